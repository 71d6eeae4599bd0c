"""The option --tier: the tiers of transcripts that are aligned."""

from __future__ import annotations

from pathlib import Path

import pytest

import isotone as package
from isotone import format as files
from isotone import formats
from isotone.alignment import Alignment, Segment, Tier
from isotone.transcripts import TranscriptError
from tests.tiny_models import error_of, isotone, lines_of, save_noise


def annotated(folder: Path, name: str, **texts: str) -> Path:
    """Write a recording and a TextGrid with tiers of these names and texts."""
    tiers = tuple(Tier(n.replace("_", " "), (Segment(text, 0.2, 1.2),)) for n, text in texts.items())
    (folder / f"{name}.TextGrid").parent.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.TextGrid").write_text(
        formats.build("textgrid").dumps(Alignment(name, 1.5, tiers)), encoding="utf-8"
    )
    return save_noise(folder / f"{name}.wav")


def tiers_in(out: Path, name: str) -> dict[str, list[str]]:
    found = files.read(out / f"{name}.TextGrid")
    return {tier.name: tier.labels for tier in found.tiers if "characters" not in tier.name}


def test_a_folder_with_one_file_that_lacks_the_tier(model: Path, tmp_path: Path) -> None:
    speech, out = tmp_path / "speech", tmp_path / "out"
    annotated(speech, "a", orth="so it", remarks="a door")
    annotated(speech, "b", Ann="so it")
    save_noise(speech / "c.wav", text="so it")
    save_noise(speech / "d.wav", text="another text")
    annotated(speech, "d", orth="it is")
    isotone("align", speech, "-m", model, "--tier", "orth", "--no-check", "-o", out, code=1)
    assert tiers_in(out, "a") == {"words": ["so", "it"]}
    assert tiers_in(out, "d") == {"words": ["it", "is"]}
    errors = {Path(row["file"]).name: row["error"] for row in lines_of(out / "errors.jsonl")}
    assert sorted(errors) == ["b.wav", "c.wav"]
    assert "expected a tier of intervals 'orth' (--tier); got 'Ann'" in errors["b.wav"]
    assert "c.txt" in errors["c.wav"]
    assert "has no tiers" in errors["c.wav"]


def test_another_choice_is_another_result(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    speech = annotated(tmp_path, "a", Ann="so it", Ben="is so", notes="a door")
    command = ("align", speech, "-m", model, "--no-check", "-o", out)
    isotone(*command)
    assert tiers_in(out, "a") == {"Ann - words": ["so", "it"], "Ben - words": ["is", "so"]}
    assert "left out as notes" in (out / "warnings.jsonl").read_text()
    isotone(*command, "--tier", "Ben")
    assert tiers_in(out, "a") == {"words": ["is", "so"]}
    isotone(*command, "--tier", "Ben", "--tier", "Ann")
    assert set(tiers_in(out, "a")) == {"Ann - words", "Ben - words"}


def test_an_earlier_alignment_is_a_transcript_by_its_words(model: Path, tmp_path: Path) -> None:
    speech = annotated(tmp_path, "a", words="so", phones="s", Ann="so it")
    isotone("align", speech, "-m", model, "--no-check", "-o", tmp_path / "out")
    assert tiers_in(tmp_path / "out", "a") == {"words": ["so"]}


def test_other_commands_and_a_book(model: Path, tmp_path: Path) -> None:
    speech = tmp_path / "speech"
    for name, text in (("a", "so it"), ("b", "not at all")):
        annotated(speech, name, orth=text, other="nothing else")
    isotone("score-check", speech, "-m", model, "--tier", "orth")
    said = error_of("score-check", speech, "-m", model, "--tier", "Ann")
    assert "got 'orth', 'other'" in said
    said = error_of("adapt", speech, "-m", model, "--tier", "Ann", "-o", tmp_path / "adapted")
    assert "got 'orth', 'other'" in said
    said = error_of("stream", speech / "a.TextGrid", "-m", model, "--tier", "Ann")
    assert "got 'orth', 'other'" in said
    (tmp_path / "book.txt").write_text("so it is")
    said = error_of(
        "align", speech, "--book", tmp_path / "book.txt", "--tier", "Ann", "-m", model, "-o", tmp_path / "o"
    )
    assert "no tiers" in said


def test_in_python(model: Path, tmp_path: Path) -> None:
    speech = annotated(tmp_path, "a", Ann="so it", Ben="is so")
    text = speech.with_suffix(".TextGrid")
    for tiers in ("Ann", ["Ann"]):
        assert package.align(speech, text, model=model, tiers=tiers).words.labels == ["so", "it"]
    with pytest.raises(TranscriptError, match="got 'Ann', 'Ben'"):
        package.align(speech, text, model=model, tiers=["Eve"])
    with pytest.raises(ValueError, match="no tiers"):
        package.align(speech, "so it", model=model, tiers=["Ann"])
