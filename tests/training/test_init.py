"""A run that starts from another model: trained further, or evaluated only."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from isotone.model import Model
from isotone.registries import packs
from isotone.training.config import RecipeError
from tests.packs import pack_class
from tests.training.parts import Train


def test_training_goes_on_from_another_model(
    finished: Path, tiny_recipes: Path, train: Train, tmp_path: Path
) -> None:
    """Weights are copied wherever names and shapes agree; a step of rate 0 does not change them."""
    options = [f"init={finished}", "train.lr=0.0", "train.steps=1"]
    folder = train(tiny_recipes / "ctc.yaml", *options, f"output={tmp_path / 'run'}")
    theirs, ours = Model.load(finished).state_dict(), Model.load(folder).state_dict()
    assert set(ours) == {name for name in theirs if "ottc" not in name}
    assert all(torch.equal(value, theirs[name]) for name, value in ours.items())


def test_training_goes_on_from_a_pack(
    finished: Path, tiny_recipes: Path, train: Train, tmp_path: Path, register: Callable[..., None]
) -> None:
    register(packs, "german", pack_class(finished / "model"))
    options = ["init=german", "train.lr=0.0", "train.steps=1"]
    folder = train(tiny_recipes / "ctc.yaml", *options, f"output={tmp_path / 'run'}")
    theirs, ours = Model.load(finished).state_dict(), Model.load(folder).state_dict()
    assert all(torch.equal(value, theirs[name]) for name, value in ours.items())


def test_another_model_of_which_no_weight_fits(
    finished: Path, tiny_recipes: Path, train: Train, tmp_path: Path
) -> None:
    options = [f"init={finished}", "train.lr=0.0", "train.steps=1"]
    wide = "encoder.source.hidden_size=18"
    with pytest.raises(RecipeError, match="no weight of that model fits"):
        train(
            tiny_recipes / "ctc.yaml", *options, wide, "encoder.source.feature_projection_input_dim=80",
            "encoder.source.intermediate_size=20", f"output={tmp_path / 'wide'}",
            "encoder.source.conv_depthwise_kernel_size=5", "heads.ctc={name: ottc}", "objective.ctc.loss={name: ottc}",
        )  # fmt: skip


def test_a_model_is_evaluated_without_training(
    finished: Path, tiny_recipes: Path, timit_root: Path, train: Train, tmp_path: Path
) -> None:
    """As its own run was: the same words; with no training files, and with another decoder."""
    root = tmp_path / "TIMIT"
    shutil.copytree(timit_root / "TEST", root / "TEST")
    options = [f"data.root={root}", f"init={finished}", "train.epochs=0"]
    same = train(tiny_recipes / "joint.yaml", *options, f"output={tmp_path / 'same'}")
    assert (same / "predictions.jsonl").read_text().replace(str(root), str(timit_root)) == (
        finished / "predictions.jsonl"
    ).read_text()
    assert json.loads((same / "result.json").read_text()) == json.loads(
        (finished / "result.json").read_text()
    )
    assert not (same / "metrics.jsonl").exists()
    other = train(
        tiny_recipes / "joint.yaml",
        *options,
        "reading.decoder={name: ctc-beam, beam: 4}",
        f"output={tmp_path / 'other'}",
    )
    assert len((other / "predictions.jsonl").read_text().splitlines()) == len(
        (same / "predictions.jsonl").read_text().splitlines()
    )
    with pytest.raises(RecipeError, match="init=RUN"):
        train(tiny_recipes / "joint.yaml", "train.epochs=0", f"output={tmp_path / 'none'}")
