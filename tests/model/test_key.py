"""Keys of models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from isotone.model import Model
from isotone.model.check import Check
from isotone.model.key import key_of
from tests.pipeline.parts import model_of_characters


def test_equal_models_have_equal_keys_wherever_they_are(tmp_path: Path) -> None:
    model = model_of_characters()
    model.save(tmp_path / "model")
    assert key_of(Model.load(tmp_path / "model")) == key_of(model)


def test_all_that_results_depend_on_is_in_the_key() -> None:
    """Thresholds decide which words get times, and so make other results."""
    model = model_of_characters()
    keys = [key_of(model)]
    model.check = Check(0.2, "dev", 10, 0.0, 0.9)
    keys.append(key_of(model))
    model.check = replace(model.check, threshold=0.3)
    keys.append(key_of(model))
    model.decoding.refine = 10.0
    keys.append(key_of(model))
    model.heads["ctc"].lm_head.weight.data[0, 0] += 1
    keys.append(key_of(model))
    assert len(set(keys)) == len(keys)
