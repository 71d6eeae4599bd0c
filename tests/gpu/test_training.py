"""Training on a GPU: the losses of the CPU, in full and half precision, and runs that go on after an interruption."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.training import checkpoint
from isotone.training.teacher import aligned_paths
from tests.conftest import BASE
from tests.paths import RECIPES
from tests.training.parts import Train, steps_of, trainer_of

#: Five steps on the four utterances of a trainer, saved after the second and the fourth.
STEPS = ["train.steps=5", "train.evaluate_every=100", "train.save_every=2", "train.keep=0"]


@pytest.fixture(scope="module")
def recipes(tmp_path_factory: pytest.TempPathFactory, timit_root: Path) -> Path:
    """A folder of a tiny recipe, beside the experiments that all recipes of speech share."""
    root = tmp_path_factory.mktemp("shared")
    (root / "tiny").mkdir()
    (root / "tiny" / "base.yaml").write_text(BASE.format(root=timit_root))
    shutil.copytree(RECIPES / "models", root / "models")
    return root / "tiny"


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let accelerate choose the CPU, or what else there is."""
    return lambda device: monkeypatch.setenv("ACCELERATE_USE_CPU", "true" if device == "cpu" else "false")


def losses_of(folder: Path) -> list[float]:
    return [row["loss"] for row in steps_of(folder)]


@pytest.mark.parametrize("name", ["joint", "ctc", "opas", "softdtw", "beta_duration"])
def test_steps_of_a_recipe(name: str, recipes: Path, tmp_path: Path, on: Any, device: str) -> None:
    rows = []
    for part, where in (("first", "cpu"), ("second", device)):
        on(where)
        trainer = trainer_of(recipes / f"{name}.yaml", *STEPS, f"output={tmp_path / part}")
        assert trainer.accelerator.device.type == where
        model = trainer.fit()
        assert model is not None
        assert next(model.parameters()).device.type == where
        rows.append(steps_of(tmp_path / part))
    assert len(rows[0]) == len(rows[1]) == 5
    for step, (expected, found) in enumerate(zip(*rows)):
        # differences of rounding grow from step to step
        near = 1e-3 if step == 0 else 5e-2
        assert found["loss"] == pytest.approx(expected["loss"], rel=near)
        assert found["grad_norm"] == pytest.approx(expected["grad_norm"], rel=10 * near)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision(precision: str, recipes: Path, tmp_path: Path, on: Any, device: str) -> None:
    if precision == "fp16" and device == "cpu":
        pytest.skip("the CPU has no gradient scaler")
    on(device)
    rows = []
    for kind in ("no", precision):
        folder = tmp_path / kind
        trainer = trainer_of(recipes / "joint.yaml", *STEPS, f"train.precision={kind}", f"output={folder}")
        model = trainer.fit()
        assert model is not None
        assert {p.dtype for p in model.parameters()} == {torch.float32}
        rows.append(losses_of(folder))
    assert rows[1][0] == pytest.approx(rows[0][0], rel=0.03)
    assert np.isfinite(rows[1]).all()
    assert rows[1] != rows[0]


@pytest.mark.parametrize("name", ["cr_joint", "cr_ottc"])
def test_views_under_masks(name: str, recipes: Path, tmp_path: Path, on: Any, device: str) -> None:
    """Masks, dropout and changed recordings: nothing to compare with, but every step has a loss."""
    on(device)
    options = ["train.augment=[{name: speed}, {name: noise}]", "train.average=0.9", "train.workers=2"]
    trainer = trainer_of(recipes / f"{name}.yaml", *STEPS, *options, f"output={tmp_path / 'run'}")
    trainer.fit()
    assert len(losses_of(tmp_path / "run")) == 5
    assert np.isfinite(losses_of(tmp_path / "run")).all()


def test_a_resumed_run_goes_on_as_before(recipes: Path, tmp_path: Path, on: Any, device: str) -> None:
    on(device)
    folder = tmp_path / "run"
    path, options = recipes / "joint.yaml", [*STEPS, "train.average=0.9", f"output={folder}"]
    trainer_of(path, *options).fit()
    whole = steps_of(folder)
    weights = load_file(checkpoint.find(folder / "checkpoints")[-1] / "model.safetensors")
    for last in checkpoint.find(folder / "checkpoints")[1:]:
        shutil.rmtree(last)
    shutil.move(folder, tmp_path / "ended")
    # trainer_of makes its folder
    again = trainer_of(path, *options)
    shutil.copytree(tmp_path / "ended", folder, dirs_exist_ok=True)
    again.fit()
    assert again.step == 5
    for found, expected in zip(steps_of(folder), whole, strict=True):
        assert found["loss"] == pytest.approx(expected["loss"], rel=1e-4)
    found_weights = load_file(checkpoint.find(folder / "checkpoints")[-1] / "model.safetensors")
    for name, value in weights.items():
        torch.testing.assert_close(found_weights[name], value, rtol=1e-3, atol=1e-4)


def test_alignments_of_a_teacher(recipes: Path, tmp_path: Path, on: Any, device: str) -> None:
    on("cpu")
    trainer = trainer_of(recipes / "joint.yaml", *STEPS, f"output={tmp_path / 'run'}")
    model = trainer.raw.model
    expected = aligned_paths(model, trainer.data, tmp_path / "cpu.npz")
    found = aligned_paths(model.to(device), trainer.data, tmp_path / "device.npz")
    assert found.keys() == expected.keys()
    for row, path in expected.items():
        np.testing.assert_array_equal(found[row], path)


def test_a_whole_run(tiny_recipes: Path, train: Train, tmp_path: Path, on: Any, device: str) -> None:
    """With evaluation on the device, snapshots and TextGrids; the saved model is used on the CPU."""
    on(device)
    options = ["train.steps=4", "train.evaluate_every=2", "realign.after=[0.5]", f"output={tmp_path / 'run'}"]
    folder = train(tiny_recipes / "joint.yaml", *options)
    assert (folder / "result.json").is_file()
    assert list((folder / "forced").iterdir())
    pipeline = Pipeline(Model.load(folder))
    assert pipeline.transcribe("", np.zeros(16_000, np.float32)).frames > 0
