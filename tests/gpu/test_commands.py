"""The command line with a GPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from accelerate.state import AcceleratorState

from isotone import format as files
from tests.gpu.conftest import ON_GPU
from tests.gpu.test_pipeline import same_tiers
from tests.tiny_models import isotone, save_character_model, save_noise


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_character_model(tmp_path_factory.mktemp("models") / "characters", guide="ctc")


@pytest.fixture
def speech(tmp_path: Path) -> Path:
    texts = ["so it is", "and so on", "go and see", "well it was", "as you were", "or not to"]
    for number, text in enumerate(texts):
        save_noise(tmp_path / f"speech/{number}.wav", text=text, seed=number)
    return tmp_path / "speech"


def test_align(speech: Path, model: Path, tmp_path: Path, device: str) -> None:
    for where in ("cpu", device):
        isotone("align", speech, "--model", model, "--device", where, "--out", tmp_path / f"out-{where}")
    found = sorted((tmp_path / f"out-{device}").glob("*.TextGrid"))
    assert len(found) == 6
    for path in found:
        same_tiers(files.read(path), files.read(tmp_path / "out-cpu" / path.name))


def test_transcribe(speech: Path, model: Path, tmp_path: Path, device: str) -> None:
    for where in ("cpu", device):
        out = tmp_path / f"out-{where}"
        isotone("transcribe", speech, "--model", model, "--device", where, "--out", out)
    found = sorted((tmp_path / f"out-{device}").glob("*.TextGrid"))
    assert len(found) == 6
    for path in found:
        same_tiers(files.read(path), files.read(tmp_path / "out-cpu" / path.name))


def test_match(speech: Path, model: Path, tmp_path: Path, device: str) -> None:
    isotone(
        "match", speech / "0.wav", speech / "1.wav", "--features", "phones", "--model", model, "--device", device,
        "--out", tmp_path / "matched",
    )  # fmt: skip
    assert list((tmp_path / "matched").iterdir())


def test_adapt(speech: Path, model: Path, tmp_path: Path, device: str) -> None:
    """Noise cannot be learned from: a better model or none, but no failure."""
    AcceleratorState._reset_state(reset_partial_state=True)
    try:
        result = isotone(
            "adapt", speech, "--model", model, "--device", device, "--steps", "4", "--out", tmp_path / "mine",
            code=None,
        )  # fmt: skip
    finally:
        AcceleratorState._reset_state(reset_partial_state=True)
    assert result.exit_code in (0, 3), result.output
    assert "Loss of the held-out recordings" in result.output


@ON_GPU[0]
@ON_GPU[1]
def test_doctor_names_the_device() -> None:
    rows = {row["what"]: row for row in json.loads(isotone("doctor", "--json", code=None).stdout)}
    assert torch.cuda.get_device_name(0) in rows["cuda:0"]["found"]
