"""The recipe of ordered search in music and speech, at sizes for tests."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import pytest

from tests.paths import RECIPES

RECIPE = RECIPES / "music_speech"
TINY = ["size=tiny", "data.kind=music", "train.steps=2", "train.evaluate_every=1", "threads=1", "cache=null"]


def module(name: str) -> Any:
    """Import one of the recipe's modules, which are found beside its run.py."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(RECIPE))
        return importlib.import_module(f"ordered_search.{name}")


def settings(experiment: str = "opas", *overrides: str) -> Any:
    """Settings of an experiment of seconds."""
    return module("settings").load_settings(experiment, [*TINY, *overrides])


@functools.cache
def prepared() -> tuple[Any, dict[str, Any]]:
    """Elements and sets of the smallest experiment."""
    found: tuple[Any, dict[str, Any]] = module("sets").prepare(settings().data)
    return found
