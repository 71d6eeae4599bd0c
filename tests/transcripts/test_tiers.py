"""Of the tiers of an annotation those that hold speech are read: by their names, or those that are asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isotone import formats
from isotone.alignment import Alignment, Segment, Tier
from isotone.format.reading import FormatError
from isotone.transcripts import TranscriptError, documents, open_source
from isotone.transcripts.tiers import spoken


def annotation(path: Path, *names: str) -> Path:
    """Write an annotation with tiers of these names, each with its name as the text."""
    tiers = tuple(Tier(name, (Segment(f"in {name}", i, i + 0.5),)) for i, name in enumerate(names))
    kind = {".TextGrid": "textgrid", ".eaf": "elan", ".json": "json", ".csv": "csv"}[path.suffix]
    path.write_text(formats.build(kind).dumps(Alignment("a", len(names), tiers)), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("Ann", "Ben", "phones"), {"Ann": "Ann", "Ben": "Ben"}),
        (("Ann", "notes"), {"Ann": "Ann"}),
        (("words", "phones", "notes"), {"words": ""}),
        (("Ann - words", "Ann - phones", "Ben - words"), {"Ann - words": "Ann", "Ben - words": "Ben"}),
        (("utterances", "words", "phones"), {"utterances": ""}),
        (("Ann", "words", "phones"), {"words": ""}),
    ],
)
def test_names_tell_what_holds_speech(names: tuple[str, ...], expected: dict[str, str]) -> None:
    assert spoken(names) == expected


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (("Ann",), {"Ann": "Ann"}),
        (("Ben", "Ann"), {"Ann": "Ann", "Ben": "Ben"}),
        (("notes",), {"notes": "notes"}),
        (("words",), {"A - words": "A", "B/word": "B"}),
        (("B - Words",), {"B/word": "B"}),
        (("tx@*",), {"tx@A": "tx@A", "tx@B": "tx@B"}),
        (("tx@A",), {"tx@A": "tx@A"}),
        (("tx?A",), {"tx@A": "tx@A"}),
        (("gloss",), {"A - gloss": "A", "B - Gloss": "B"}),
        (("Group - Eve", "Group - Dan"), {"Group - Eve": "Group - Eve", "Group - Dan": "Group - Dan"}),
        (("what?",), {"what?": "what?"}),
    ],
)
def test_tiers_that_are_asked_for(asked: tuple[str, ...], expected: dict[str, str]) -> None:
    names = (
        "Ann", "Ben", "notes", "A - words", "A - phones", "B/word", "tx@A", "tx@B", "A - gloss", "B - Gloss",
        "Group - Eve", "Group - Dan", "what?",
    )  # fmt: skip
    assert spoken(names, asked) == expected


def test_notes_that_are_left_out_are_told(tmp_path: Path) -> None:
    path = annotation(tmp_path / "a.TextGrid", "Ann", "Notes", "Comments")
    source = open_source(path)
    assert [(p.text, p.speaker) for p in source.passages] == [("in Ann", "Ann")]
    assert "left out as notes" in source.warning
    assert "'Notes', 'Comments'" in source.warning
    source = open_source(path, ["Ann", "Notes"])
    assert [p.speaker for p in source.passages] == ["Ann", "Notes"]
    assert source.warning == ""


@pytest.mark.parametrize("suffix", [".TextGrid", ".eaf", ".json", ".csv"])
def test_every_annotation_has_tiers_to_choose(tmp_path: Path, suffix: str) -> None:
    path = annotation(tmp_path / f"a{suffix}", "Ann", "orth", "phones")
    (found,) = open_source(path, ["orth"]).passages
    assert (found.text, found.speaker) == ("in orth", "orth")
    with pytest.raises(
        TranscriptError, match=r"a tier of intervals 'Eve' \(--tier\); got 'Ann', 'orth', 'phones'"
    ):
        open_source(path, ["Ann", "Eve"])


def test_a_transcript_without_tiers_has_none_to_choose(tmp_path: Path) -> None:
    rows = {
        "a.txt": "so", "a.srt": "1\n00:00:01,000 --> 00:00:02,000\nso\n", "a.json": '{"text": "so"}',
        "a.jsonl": '{"text": "so"}\n{"text": "it"}\n', "text": "a so\n",
    }  # fmt: skip
    for name, content in rows.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "wav.scp").write_text("a a.wav\n")
    for path in (*(tmp_path / name for name in rows if "." in name), tmp_path):
        with pytest.raises(TranscriptError, match="a transcript of this kind has no tiers"):
            open_source(path, ["Ann"])
        assert open_source(path).passages


def test_phones_alone_are_no_text(tmp_path: Path) -> None:
    with pytest.raises(
        TranscriptError, match="expected a tier of words; got 'phones', 'notes': --tier names"
    ):
        open_source(annotation(tmp_path / "a.TextGrid", "phones", "notes"))


def test_a_result_in_memory_has_tiers_as_well(tmp_path: Path) -> None:
    found = json.loads(annotation(tmp_path / "a.json", "Ann", "notes").read_text())
    assert [p.text for p in documents.of(found, ["notes"])] == ["in notes"]
    with pytest.raises(FormatError, match="no tiers"):
        list(documents.of({"text": "so"}, ["notes"]))
