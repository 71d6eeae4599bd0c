"""A trainer with nothing else of a run, and the rows of a run's metrics."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from accelerate.state import AcceleratorState

from isotone.corpus.timit import TimitCorpus
from isotone.model import DecodingConfig, Model
from isotone.model.encoder import SpeechEncoder
from isotone.text.tokenizer import build_tokenizer
from isotone.training.config import load_recipe
from isotone.training.data import Utterances
from isotone.training.loop import Trainer
from isotone.training.objective import Objective
from isotone.training.processes import make_accelerator

Train = Callable[..., Path]


def metrics(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def steps_of(folder: Path) -> list[dict[str, Any]]:
    return [row for row in metrics(folder) if "loss" in row]


def trainer_of(path: Path, *overrides: str, evaluate: Any = None) -> Trainer:
    """A trainer on the first four utterances, with nothing else of a run."""
    recipe = load_recipe(path, overrides)
    rows = TimitCorpus(recipe.data["root"]).load("train").select(range(4))
    tokenizer = build_tokenizer("phones", rows)
    torch.manual_seed(0)
    settings: Any = asdict(recipe)
    source = settings["encoder"]["source"]
    source.update(dict.fromkeys(("hidden_dropout", "activation_dropout", "conformer_conv_dropout"), 0.0))
    heads = {name: {**spec, "dropout": 0.0} for name, spec in settings["heads"].items()}
    model = Model(SpeechEncoder(source), heads, tokenizer, DecodingConfig(**settings["reading"]))
    folder = Path(recipe.output)
    folder.mkdir(parents=True)
    AcceleratorState._reset_state(reset_partial_state=True)
    accelerator = make_accelerator(recipe, folder)
    data = Utterances(rows, tokenizer, 16_000)
    return Trainer(Objective(model, settings["objective"]), data, recipe, folder, evaluate, accelerator)
