"""Ranges of the settings of training: a number outside would fail late, or train nothing without a word."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

#: Least and largest number of a setting; None: there is no end.
_LIMITS: dict[str, tuple[float, float | None]] = {
    "epochs": (0, None), "steps": (0, None), "batch_size": (1, None), "batch_seconds": (0, None),
    "max_seconds": (0, None), "accumulate": (1, None), "lr": (0, None), "warmup_steps": (0, None),
    "warmup_share": (0, 1), "weight_decay": (0, None), "evaluate_every": (0, None), "evaluate_limit": (0, None),
    "save_every": (0, None), "keep": (0, None), "watch": (0, None), "workers": (0, None),
}  # fmt: skip

#: Seeds that numpy's generators take.
_SEEDS = (0, 2**32 - 1)


def wrong_number(recipe: Any) -> str:
    """Say which number of a recipe is out of its range; empty where all are within.

    Args:
        recipe: Of :class:`isotone.training.config.Recipe`.
    """
    return next(_wrong(recipe), "")


def _wrong(recipe: Any) -> Iterator[str]:
    train = recipe.train
    for name, (least, most) in _LIMITS.items():
        value = getattr(train, name)
        if not least <= value <= (float("inf") if most is None else most):
            expected = f"{least} or more" if most is None else f"{least} to {most}"
            yield f"train.{name} expects {expected}; got {value}."
    if not train.clip > 0:
        yield f"train.clip expects a norm above 0, and .inf for no clipping; got {train.clip}."
    for number, part in enumerate(train.freeze):
        if not 0 <= part.start < part.end <= 1:
            yield (
                f"train.freeze[{number}] expects shares of the training, 0 <= start < end <= 1; got "
                f"{part.start} and {part.end}."
            )
    if not _SEEDS[0] <= recipe.seed <= _SEEDS[1]:
        yield f"seed expects {_SEEDS[0]} to {_SEEDS[1]}; got {recipe.seed}."
