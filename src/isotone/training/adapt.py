"""Adaptation of a model to recordings with transcripts, by its own alignments: self-training without labels.

Heads that read the input features stay as they are, if others can learn. They see a few frames and know when a phone
begins; their own alignments can only teach them their habits. What the model hears in other voices and rooms is a
matter of the encoder and of the heads on it.

The measure is the loss of recordings that are held out, by the head that recognises text. With CTC it is minus the
log-probability of the text over all alignments: a model cannot lower it by being surer where it is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from accelerate.state import AcceleratorState
from accelerate.utils import patch_environment
from safetensors.torch import load_file, save

from isotone.files import atomic_write
from isotone.model import Model
from isotone.training.config import ReadingConfig, Recipe, Term, Training
from isotone.training.data import Utterances
from isotone.training.loop import Trainer
from isotone.training.objective import Objective
from isotone.training.processes import make_accelerator

_BEST, _WEIGHTS = "best.json", "best.safetensors"


@dataclass(frozen=True)
class Settings:
    """Settings of an adaptation.

    Attributes:
        steps: Most optimiser steps.
        batch_size: Utterances per step.
        lr: Peak learning rate.
        evaluate_every: Steps between two measurements, and between checkpoints.
        patience: Measurements without a new best after which it ends.
        seed: Of everything random.
    """

    steps: int = 200
    batch_size: int = 8
    lr: float = 5e-4
    evaluate_every: int = 25
    patience: int = 3
    seed: int = 0


@dataclass(frozen=True)
class Adapted:
    """The loss of the recordings that are held out, before and after.

    Attributes:
        before: Of the model as it was, mean nats per token.
        after: Of the best model found; equal to ``before`` where none is better.
        step: Step at which it was found; 0 where none is better.
    """

    before: float
    after: float
    step: int

    @property
    def better(self) -> bool:
        """True where training found a better model."""
        return self.step > 0


class _Enough(Exception):
    """The loss has not fallen for some time."""


def adapt(
    model: Model,
    rows: Sequence[Mapping[str, Any]],
    held_out: Sequence[Mapping[str, Any]],
    folder: Path,
    settings: Settings = Settings(),
) -> Adapted:
    """Train a model on rows, and keep the weights with the lowest loss of others; in place.

    Args:
        model: The model, on the device to train on.
        rows: Utterances with the columns of :data:`isotone.corpus.COLUMNS`; phones with times are the targets where
            the model has phones.
        held_out: Rows that measure the model and do not train it.
        folder: Checkpoints and metrics go there; the same call goes on where it was cut off.
        settings: Settings of the training.

    Raises:
        ValueError: the model has no head that can be adapted, or there is nothing to train on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    recipe = _recipe(model, folder, settings)
    data = Utterances(list(rows), model.tokenizer, model.encoder.sample_rate, frames=model.encoder.frames)
    best = _Best(folder, model, _Measure(model, held_out, recipe), settings)
    # a run of this process before may have had another device, which accelerate keeps
    AcceleratorState._reset_state(reset_partial_state=True)
    with patch_environment(ACCELERATE_TORCH_DEVICE=str(next(model.parameters()).device)):
        accelerator = make_accelerator(recipe, folder)
    objective = Objective(model, {name: asdict(term) for name, term in recipe.objective.items()})
    try:
        Trainer(objective, data, recipe, folder, best.look, accelerator).fit()
    except _Enough:
        pass
    finally:
        accelerator.end_training()
    best.restore()
    return Adapted(best.before, best.value, best.step)


class _Measure:
    """The loss of recordings that are held out, by the text head where it learns."""

    def __init__(self, model: Model, rows: Sequence[Mapping[str, Any]], recipe: Recipe) -> None:
        self.data = Utterances(
            list(rows), model.tokenizer, model.encoder.sample_rate, frames=model.encoder.frames
        )
        if not len(self.data):
            raise ValueError(
                "None of the recordings that are held out can measure the model: all are too short."
            )
        terms = {name: asdict(term) for name, term in recipe.objective.items()}
        text = model.decoding.text
        self.objective = Objective(model, {text: terms[text]} if text in terms else terms)
        self.objective.set_progress(1.0)

    def __call__(self) -> float:
        """Return the mean loss in nats per token."""
        device = next(self.objective.parameters()).device
        self.objective.eval()
        losses = []
        with torch.inference_mode():
            for example in self.data.readable(range(len(self.data))):
                batch = self.data.collate([example])
                loss, _ = self.objective(
                    batch.audio.to(device), batch.lengths.to(device), batch.targets.to(device)
                )
                losses.append(float(loss))
        return fmean(losses)


class _Best:
    """The lowest loss and its weights, in files, so that a resumed adaptation knows them."""

    def __init__(self, folder: Path, model: Model, measure: _Measure, settings: Settings) -> None:
        self.folder, self.model, self.measure, self.settings = folder, model, measure, settings
        try:
            found = json.loads((folder / _BEST).read_text(encoding="utf-8"))
            self.before, self.value, self.step = found["before"], found["value"], found["step"]
        except (OSError, ValueError, KeyError):
            self.before = self.value = measure()
            self.step = 0
            self._write()

    def look(self, step: int, model: Model) -> dict[str, float]:
        """Measure the model in training; raise _Enough where it is time to stop."""
        value = self.measure()
        if value < self.value:
            self.value, self.step = value, step
            self._write()
        elif step - self.step >= self.settings.patience * self.settings.evaluate_every:
            raise _Enough
        return {"held_out": value}

    def restore(self) -> None:
        """Give the model its best weights."""
        self.model.load_state_dict(load_file(self.folder / _WEIGHTS))
        self.model.eval()

    def _write(self) -> None:
        state = {k: v.detach().cpu().contiguous().clone() for k, v in self.model.state_dict().items()}
        with atomic_write(self.folder / _WEIGHTS, "wb") as file:
            file.write(save(state))
        with atomic_write(self.folder / _BEST) as file:
            json.dump({"before": self.before, "value": self.value, "step": self.step}, file)


def _recipe(model: Model, folder: Path, settings: Settings) -> Recipe:
    """Make the recipe of an adaptation; the optimiser leaves parameters without a gradient as they are."""
    train = Training(
        steps=settings.steps, batch_size=settings.batch_size, lr=settings.lr, warmup_steps=settings.steps // 10,
        evaluate_every=settings.evaluate_every, save_every=settings.evaluate_every, keep=1,
        augment=[{"name": "noise", "probability": 0.5}, {"name": "band", "probability": 0.3}], trackers=["none"],
    )  # fmt: skip
    reading = ReadingConfig(**asdict(model.decoding))
    return Recipe(
        data={"name": "folder"}, encoder={}, heads=model.head_specs, objective=_terms(model), reading=reading,
        train=train, seed=settings.seed, output=str(folder),
    )  # fmt: skip


def _terms(model: Model) -> dict[str, Term]:
    """Make an objective per head that learns: CTC, or cross-entropy along the own best path of a head of OTTC.

    Raises:
        ValueError: there is none.
    """
    terms: dict[str, Term] = {}
    for name, spec in model.head_specs.items():
        if spec["name"] == "ctc":
            terms[name] = Term(name, {"name": "ctc"})
        elif spec["name"] == "ottc":
            loss = {"name": "ottc", "path_after": 0.0, "states": spec.get("states", 1)}
            if spec.get("track_prior"):
                loss["prior"] = float(model.decoding.aligner.get("prior", 0.0))
            terms[name] = Term(name, loss)
    if not terms:
        raise ValueError(
            f"None of the model's heads can be adapted ({', '.join(model.heads)}): ctc and ottc can."
        )
    wide = {name: term for name, term in terms.items() if model.head_specs[name].get("reads") != "features"}
    return wide or terms
