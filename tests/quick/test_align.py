"""One call for one recording gives what the command gives."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

import isotone
from isotone import format as files
from isotone.batch import Options, Target, align_files
from isotone.model import Model
from isotone.quick.calls import kept
from isotone.quick.given import Recording, passages
from isotone.registries import packs
from tests.packs import pack_class
from tests.tiny_models import save_character_model, save_noise, save_phone_model

TEXT = "well then, go on"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_character_model(tmp_path_factory.mktemp("models") / "characters")


@pytest.fixture
def speech(tmp_path: Path) -> Path:
    return save_noise(tmp_path / "talk.wav", rate=22_050, text=TEXT)


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The models that are loaded, in order, from an empty cache."""
    found: list[str] = []
    load = Model.load

    def counted(source: Any, *rest: Any) -> Model:
        found.append(str(source))
        return load(source, *rest)

    monkeypatch.setattr(Model, "load", counted)
    kept.__init__()  # type: ignore[misc]
    return found


def test_it_gives_what_the_command_gives(speech: Path, model: Path, tmp_path: Path) -> None:
    align_files([speech], Options(str(model)), Target(tmp_path / "out", ("json",)))
    expected = files.read(tmp_path / "out/talk.json")
    found = isotone.align(speech, TEXT, model=model)
    assert files.read(found.save(tmp_path / "talk.json")) == expected
    assert found.alignment.id == "talk"
    assert found.words.labels == TEXT.split()
    assert found.text == TEXT
    assert isotone.align(str(speech), speech.with_suffix(".txt"), model=model) == found, "a text in a file"


def test_arrays_are_as_files(speech: Path, model: Path) -> None:
    expected = isotone.align(speech, TEXT, model=model)
    samples, rate = soundfile.read(speech, dtype="float32")
    stereo = np.stack([samples, samples], 1)
    for audio, options in [
        (samples, {"rate": rate}), (stereo, {"rate": rate}), (stereo.T, {"rate": rate}), ((samples, rate), {}),
        ((rate, samples), {}),
    ]:  # fmt: skip
        found = isotone.align(audio, TEXT, model=model, **options)
        assert found.alignment.id == "audio"
        for tier, other in zip(found.alignment.tiers, expected.alignment.tiers, strict=True):
            assert tier.labels == other.labels
            assert [s.start for s in tier] == pytest.approx([s.start for s in other], abs=1e-3)


@pytest.mark.parametrize(
    ("audio", "options", "message"),
    [
        (np.zeros(9), {}, "needs its sample rate"),
        ((np.zeros(9), 16_000), {"rate": 8000}, "given twice"),
        ((np.zeros(9), np.zeros(9)), {}, "pair"),
        ((16_000, 8_000), {}, "pair"),
        ("talk.wav", {"rate": 16_000}, "knows its own"),
    ],
)
def test_wrong_recordings_are_explained(audio: Any, options: Any, message: str, model: Path) -> None:
    with pytest.raises(TypeError, match=message):
        isotone.align(audio, TEXT, model=model, **options)


def test_the_type_of_a_text_decides(speech: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(speech.parent)
    with pytest.warns(UserWarning, match=r"Path\('talk.txt'\)"):
        found = isotone.align(speech, "talk.txt", model=model)
    assert found.words.labels == ["talk.txt"]
    with pytest.raises(FileNotFoundError, match="gone"):
        isotone.align(speech, Path("gone.txt"), model=model)
    with pytest.raises(TypeError, match="A text is a string"):
        isotone.align(speech, ["a", "list"], model=model)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["word " * 120, "\0", "a/b\n", "\ud800", ""])
def test_any_string_is_a_text(text: str) -> None:
    none = Recording("u", np.zeros(0, np.float32), None)
    assert [p.text for p in passages(text, none, 1.0)] == [text]


def test_the_model_of_the_last_call_is_kept(
    speech: Path, model: Path, tmp_path: Path, loads: list[str]
) -> None:
    mine = tmp_path / "mine"
    shutil.copytree(model, mine)
    for options in ({}, {}, {"edges": False}, {"aligner": {"name": "segmental"}}, {"keep_markup": True}):
        isotone.align(speech, TEXT, model=mine, **options)  # type: ignore[arg-type]
    assert loads == [str(mine)]
    shutil.rmtree(mine)
    save_phone_model(mine)  # another model under the same name
    assert isotone.align(speech, "s iy t", model=mine).phones.labels == ["s", "iy", "t"]
    assert loads == [str(mine)] * 2
    isotone.align(speech, TEXT, model=model)
    isotone.align(speech, TEXT, model=model, language="de")
    assert loads == [str(mine)] * 2 + [str(model)] * 2


def test_a_changed_dictionary_is_read_again(speech: Path, tmp_path: Path, loads: list[str]) -> None:
    phones = save_phone_model(tmp_path / "phones")
    own = tmp_path / "own.dict"
    for said in ("s iy t", "t aa s"):
        own.write_text(f"seat {said} \n" + "tea t iy\n" * len(loads))
        found = isotone.align(speech, "seat", model=phones, dictionaries=[own])
        assert found.phones.labels == said.split()
    assert len(loads) == 1


def test_without_a_model_the_pack_of_the_language_is_used(
    speech: Path, model: Path, register: Callable[..., None]
) -> None:
    register(packs, "german", pack_class(model))
    found = isotone.align(speech, TEXT, language="de")
    assert found.model == "german"
    assert "model german" in str(found)
    with pytest.raises(LookupError, match="--model"):
        isotone.align(speech, TEXT, language="hsb")


def test_wrong_options_are_errors(speech: Path, model: Path) -> None:
    with pytest.raises(TypeError, match="aligners"):
        isotone.align(speech, TEXT, model=model, aligners="ctc")  # type: ignore[call-arg]
    with pytest.raises(LookupError, match="Did you mean 'segmental'"):
        isotone.align(speech, TEXT, model=model, aligner="segmentl")
    with pytest.raises(FileNotFoundError, match="No model or run folder"):
        isotone.align(speech, TEXT, model="nothing")


def test_importing_isotone_imports_no_torch() -> None:
    code = "import sys, isotone; sys.exit('torch' in sys.modules or 'align' not in isotone.__all__)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
