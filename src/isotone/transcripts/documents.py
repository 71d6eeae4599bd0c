"""Reading of JSON documents: results of recognisers, alignments, and manifests with a row per line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from isotone.format.json import JSONFormat
from isotone.format.mfa import MFAJSONFormat
from isotone.format.reading import FormatError
from isotone.passage import Passage
from isotone.transcripts.passages import of_alignment, passage
from isotone.transcripts.subtitles import clock
from isotone.transcripts.tiers import check_without

_KNOWN = (
    "of Whisper, faster-whisper, WhisperX, whisper.cpp, transformers, NeMo, lhotse, the Montreal Forced Aligner or "
    "isotone"
)


def read(
    text: str, tiers: Sequence[str] = (), note: Callable[[str], None] = lambda warning: None
) -> Iterator[Passage]:
    """Read a document of JSON, or one per line; its keys tell what wrote it.

    Args:
        text: The text of the file.
        tiers, note: See :func:`isotone.transcripts.tiers.spoken`, for alignments.

    Raises:
        FormatError: it is not JSON, or of nothing that is known here, or lacks a tier; the message names the place.
    """
    try:
        yield from of(json.loads(text), tiers, note)
    except json.JSONDecodeError as error:
        lines = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
        if len(lines) < 2 or error.lineno == lines[0][0]:
            raise FormatError(f"line {error.lineno}: expected JSON; {error.msg}.") from None
        check_without(tiers)
        yield from _rows((f"line {number}", _line(line, number)) for number, line in lines)
    except RecursionError:
        raise FormatError("expected a transcript; got JSON that is nested too deeply to read.") from None


def _line(line: str, number: int) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise FormatError(f"line {number}: expected JSON; {error.msg}.") from None


def of(
    found: Any, tiers: Sequence[str] = (), note: Callable[[str], None] = lambda warning: None
) -> Iterator[Passage]:
    """Iterate over the passages of a document that was read, as :func:`read` does, or of a recogniser's result."""
    kept = found if isinstance(found, Mapping) else {}
    if "tiers" in kept:
        kind = JSONFormat if "format" in kept else MFAJSONFormat
        yield from of_alignment(kind().loads(json.dumps(found), ""), tiers, note)
        return
    check_without(tiers)
    if isinstance(found, list):
        yield from _rows((f"item {i + 1}", row) for i, row in enumerate(found))
    elif isinstance(kept.get("transcription"), list):  # whisper.cpp
        yield from _whisper_cpp(kept["transcription"])
    elif isinstance(kept.get("chunks"), list):  # transformers
        yield from _chunks(kept["chunks"])
    else:
        yield from _recognised(kept)


def _recognised(found: Mapping[str, Any]) -> Iterator[Passage]:
    """Read the result of a recogniser: its segments, else its words, else its text."""
    for key, name in (("segments", "text"), ("word_segments", "word"), ("words", "word")):
        if isinstance(found.get(key), list) and found[key]:
            for i, row in enumerate(found[key]):
                where = f"{key}[{i}]"
                row = _mapping(row, where)
                said = row.get(name, row.get("text"))
                yield passage(said, row.get("start"), row.get("end"), where, row.get("speaker"))
            return
    yield from _rows([("the document", found)])


def _whisper_cpp(rows: list[Any]) -> Iterator[Passage]:
    for i, row in enumerate(rows):
        where = f"transcription[{i}]"
        row = _mapping(row, where)
        if isinstance(row.get("offsets"), Mapping):
            offsets = [row["offsets"].get(k) for k in ("from", "to")]
            start, end = (o / 1000 if isinstance(o, int | float) else o for o in offsets)
        else:
            stamps = _mapping(row.get("timestamps", {}), where)
            start, end = (
                None if (t := stamps.get(k)) is None else clock(str(t), where) for k in ("from", "to")
            )
        speaker = row.get("speaker")
        yield passage(row.get("text"), start, end, where, None if speaker == "?" else speaker)


def _chunks(rows: list[Any]) -> Iterator[Passage]:
    for i, row in enumerate(rows):
        where = f"chunks[{i}]"
        row = _mapping(row, where)
        times = row.get("timestamp", (None, None))
        if not isinstance(times, list | tuple) or len(times) != 2:
            raise FormatError(f"{where}: expected 'timestamp', a start and an end; got {times!r:.60}.")
        yield passage(row.get("text"), times[0], times[1], where, row.get("speaker"))


def _rows(rows: Iterable[tuple[str, Any]]) -> Iterator[Passage]:
    """Read the rows of a manifest: NeMo's, lhotse's supervisions and cuts, or segments of a recogniser."""
    for where, row in rows:
        row = _mapping(row, where)
        names: tuple[Any, ...] = (row.get("recording_id"),)
        if isinstance(row.get("supervisions"), list):  # a cut of lhotse
            yield from _cut(row, where)
            continue
        start, end, said = row.get("start"), row.get("end"), row.get("text", row.get("word"))
        if "audio_filepath" in row:  # NeMo
            names, start = (row["audio_filepath"],), row.get("offset")
        if said is None:
            raise FormatError(
                f"{where}: expected a transcript {_KNOWN}; got {json.dumps(row, ensure_ascii=False)[:80]}."
            )
        if end is None:
            end = _plus(start, row.get("duration"))
        if start is None and "audio_filepath" in row:
            end = None  # the duration of the whole file
        yield passage(said, start, end, where, row.get("speaker"), names)


def _cut(cut: Mapping[str, Any], where: str) -> Iterator[Passage]:
    recording = cut.get("recording")
    named = recording.get("id") if isinstance(recording, Mapping) else None
    for i, row in enumerate(cut["supervisions"]):
        own = f"{where}, supervisions[{i}]"
        row = _mapping(row, own)
        # times of a supervision count from the start of its cut
        start = _plus(cut.get("start") or 0, row.get("start"))
        names = (row.get("recording_id"), named)
        yield passage(
            row.get("text"), start, _plus(start, row.get("duration")), own, row.get("speaker"), names
        )


def _plus(start: Any, more: Any) -> Any:
    """Add two numbers; anything else is left to the check of times."""
    numbers = all(isinstance(x, int | float) for x in (start, more))
    return round(start + more, 9) if numbers else None if more is None else start


def _mapping(row: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(row, Mapping):
        raise FormatError(
            f"{where}: expected a transcript {_KNOWN}; got {json.dumps(row, ensure_ascii=False)[:80]}."
        )
    return row
