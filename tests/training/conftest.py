"""A finished training run, which several test files read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training.parts import Train


@pytest.fixture(scope="module")
def finished(tiny_recipes: Path, train: Train, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with all that there is: two heads, accumulation, TensorBoard, several evaluations and checkpoints."""
    folder = tmp_path_factory.mktemp("runs") / "joint"
    return train(
        tiny_recipes / "joint.yaml", f"output={folder}", "train.steps=8", "train.accumulate=2", "train.batch_size=3",
        "train.trackers=[tensorboard]", "train.warmup_steps=4", "train.watch=2", "train.evaluate_limit=1",
    )  # fmt: skip
