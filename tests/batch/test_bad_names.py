"""Names of files, ids, folders and options: odd ones stay in the output folder, wrong ones are explained."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from isotone import format as files
from isotone import formats
from isotone.alignment import Alignment, Segment, Tier
from isotone.model import Model
from tests.tiny_models import error_of, isotone, lines_of, save_noise


def test_weird_names_stay_in_the_folder(model: Path, tmp_path: Path) -> None:
    names = [
        "-rf",
        "a\nb",
        "x\\..\\..\\evil",
        "[x]",
        "con trol\x07",
        "\U0001f600",
        "n" * 240,
        ".hidden",
    ]
    speech, out = tmp_path / "in/speech", tmp_path / "in/out"
    for name in names:
        save_noise(speech / f"{name}.wav", 0.6)
    before = set(tmp_path.rglob("*"))
    isotone("transcribe", speech, "-m", model, "-f", "textgrid", "-f", "json", "-o", out)
    written = set(tmp_path.rglob("*")) - before - {out}
    assert {p.parent for p in written} == {out}
    ids = [json.loads(p.read_text(encoding="utf-8"))["id"] for p in out.glob("*.json")]
    assert sorted(ids) == sorted(names[:-1]), "a name that begins with a dot is a hidden file's"
    assert len(list(out.glob("*.TextGrid"))) == len(ids)


def test_a_name_that_is_not_unicode_is_explained(model: Path, tmp_path: Path) -> None:
    save_noise(tmp_path / "speech/good.wav", 0.6)
    try:
        (tmp_path / "speech" / os.fsdecode(b"caf\xe9.wav")).touch()
    except OSError:
        pytest.skip("this file system takes no such name")
    message = error_of("transcribe", tmp_path / "speech", "-m", model, "-o", tmp_path / "out", code=1)
    assert "caf\\udce9.wav: its name is not Unicode; rename it." in message
    (row,) = lines_of(tmp_path / "out/errors.jsonl")
    assert row["file"].endswith("caf\\udce9.wav")
    assert (tmp_path / "out/good.TextGrid").is_file()


@pytest.mark.parametrize(
    "id", ["../../evil", "/etc/evil", "..", "", "a/../../b", "c:\\evil", "x\0y", "n" * 400]
)
@pytest.mark.parametrize("name", formats.names())
def test_an_id_from_a_corpus_never_leaves_the_folder(tmp_path: Path, id: str, name: str) -> None:
    tiers = tuple(Tier(n, (Segment("a", 0.0, 0.5),)) for n in ("words", "phones"))
    path = files.write(Alignment(id, 1.0, tiers), tmp_path / "in/out", name)
    assert path.resolve().parent == tmp_path / "in/out"
    assert {p for p in tmp_path.rglob("*") if p.is_file()} == {path}


def test_an_output_folder_that_cannot_be(model: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    speech = save_noise(tmp_path / "u.wav", text="so")
    for out in (tmp_path / "file", tmp_path / "file/below/out"):
        for command in ("align", "transcribe"):
            message = error_of(command, speech, "-m", tmp_path, "-o", out)
            assert f"{out} cannot be made: {tmp_path / 'file'} is a file" in message


def test_names_that_are_nearly_right(model: Path, tmp_path: Path) -> None:
    """Wrong names are errors before anything is computed: no folder appears."""
    speech = save_noise(tmp_path / "u.wav", text="so")

    def error(*options: str | Path) -> str:
        return error_of("align", speech, "-o", tmp_path / "out", *options)

    assert "Did you mean 'textgrid'?" in error("-m", model, "-f", "textgird")
    assert "Did you mean 'segmental'?" in error("-m", model, "--aligner", "segmentl")
    assert "Did you mean 'ottc'?" in error("-m", model, "--times", "otcc")
    assert "Did you mean 'characters'?" in error("-m", model.with_name("character"))
    assert "No model or run folder jiont" in error("-m", "jiont"), (
        "the hub is not asked for what is no id of it"
    )
    assert "'quantum'" in error("-m", model, "--device", "quantum")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "options", [("-f", "textgird"), ("--aligner", "segmentl"), ("--device", "quantum")], ids=" ".join
)
def test_no_model_is_loaded_for_a_wrong_name(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, str]
) -> None:
    def loaded(*_: object) -> None:
        raise AssertionError("a model was loaded")

    monkeypatch.setattr(Model, "load", loaded)
    speech = save_noise(tmp_path / "u.wav", text="so")
    assert options[1] in error_of("align", speech, "-o", tmp_path / "out", "-m", model, *options)
