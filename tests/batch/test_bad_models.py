"""A damaged model folder is explained before anything is computed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tiny_models import error_of, save_noise


def no_model(folder: Path) -> None:
    folder.mkdir()


def damaged_configuration(folder: Path) -> None:
    (folder / "isotone.json").write_text("{")


def no_heads(folder: Path) -> None:
    config = json.loads((folder / "isotone.json").read_text())
    del config["heads"]
    (folder / "isotone.json").write_text(json.dumps(config))


def unknown_reading(folder: Path) -> None:
    text = (folder / "isotone.json").read_text()
    (folder / "isotone.json").write_text(text.replace('"times":', '"tmes":'))


def later_version(folder: Path) -> None:
    config = json.loads((folder / "isotone.json").read_text())
    (folder / "isotone.json").write_text(json.dumps(config | {"format": 99}))


def no_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def damaged_weights(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])


def no_tokenizer(folder: Path) -> None:
    shutil.rmtree(folder / "tokenizer")


def no_encoder(folder: Path) -> None:
    shutil.rmtree(folder / "encoder")


def unknown_head(folder: Path) -> None:
    text = (folder / "isotone.json").read_text()
    (folder / "isotone.json").write_text(text.replace('"name": "ottc"', '"name": "otcc"'))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (no_model, "holds no model"),
        (damaged_configuration, "isotone.json is damaged"),
        (no_heads, "isotone.json is damaged: no 'heads'"),
        (unknown_reading, "isotone.json is damaged"),
        (later_version, "format 99"),
        (no_weights, "model.safetensors"),
        (damaged_weights, "model.safetensors"),
        (no_tokenizer, "tokenizer"),
        (no_encoder, "encoder"),
        (unknown_head, "Did you mean 'ottc'?"),
    ],
)
def test_a_model_folder_that_is_none(
    model: Path, tmp_path: Path, damage: Callable[[Path], None], message: str
) -> None:
    folder = tmp_path / "broken"
    if damage is not no_model:
        shutil.copytree(model, folder)
    damage(folder)
    found = error_of("transcribe", save_noise(tmp_path / "u.wav"), "-m", folder, "-o", tmp_path / "out")
    assert message in found
    assert not (tmp_path / "out").exists()
