"""Isotone's own JSON, with all contents of an alignment."""

from __future__ import annotations

import io
import json
import math
from typing import Any

from isotone.alignment import Absent, Alignment, AlignmentError, Margin, Origin, Segment, Tier
from isotone.format.reading import ForeignFileError, FormatError, parse_json
from isotone.interfaces import Format

_FORMAT = "isotone-alignment"
_VERSION = 1


class JSONFormat(Format):
    """JSON that loses nothing: ids, durations, all tiers (empty ones included), exact times and scores.

    The schema, version 1::

        {"format": "isotone-alignment", "version": 1,
         "id": str, "duration": seconds, "score": number, "verdict": str,
         "tiers": [{"name": str,
                    "segments": [{"label": str, "start": seconds, "end": seconds,
                                  "score": number, "confidence": number, "presence": number,
                                  "start_margin": {"before": seconds, "after": seconds, "near": number},
                                  "end_margin": {"before": seconds, "after": seconds, "near": number},
                                  "text": str, "start_char": int, "end_char": int, "reading": str,
                                  "passage": int}]}],
         "absent": [{"label": str, "after": int, "presence": number,
                     "text": str, "start_char": int, "end_char": int, "reading": str}]}

    Words of a given text have ``text`` and what follows it. ``text`` is the word as written,
    ``source[start_char:end_char]``, and ``reading`` the words that were said. The source is the given text without a
    byte order mark, and with line feeds for line breaks. ``label`` is ``text`` without the markup that is inside of a
    word, if there is any. A word that is aligned as unknown speech has no reading. Where a transcript has passages
    with times, ``passage`` is the number of the word's passage among those of the recording, from 0 on, and the
    source is that passage's text; with ``--book`` there is none, and the source is the book.

    ``absent`` are the words of the text that were not said, if there are any: ``after`` is the number of segments of
    the first tier that come before one.

    Scores and margins are defined in :mod:`isotone.alignment`. Unknown values of ``verdict``, ``score``,
    ``confidence``, ``presence`` and margins are left out; values that are not finite are the texts ``"-inf"``,
    ``"inf"`` or ``"nan"``. Other keys are ignored when reading.

    Args:
        indent: Spaces per level; None gives one line.
    """

    suffix = ".json"

    def __init__(self, *, indent: int | None = 1) -> None:
        self.indent = indent

    def dumps(self, alignment: Alignment) -> str:
        """Return the text of the file."""
        return self._written(alignment, "surrogatepass").getvalue().decode("utf-8", "surrogatepass")

    def encoded(self, alignment: Alignment) -> bytes:
        """Return the text of the file in UTF-8; it is never there a second time, for hours of speech make it long."""
        return self._written(alignment, "strict").getvalue()

    def _written(self, alignment: Alignment, errors: str) -> io.BytesIO:
        """Write the text of the file in UTF-8."""
        content = {
            "format": _FORMAT,
            "version": _VERSION,
            "id": alignment.id,
            "duration": float(alignment.duration),
            **_number("score", alignment.score),
            **({"verdict": alignment.verdict} if alignment.verdict else {}),
            "tiers": [{"name": tier.name, "segments": tier.segments} for tier in alignment.tiers],
            **({"absent": [_absent(word) for word in alignment.absent]} if alignment.absent else {}),
        }
        # json.dumps would keep a list of all parts of the text, and io.StringIO four bytes per character
        content_bytes = io.BytesIO()
        text = io.TextIOWrapper(content_bytes, "utf-8", errors, newline="\n", write_through=True)
        # segments become objects one by one: those of hours of speech take more memory than all else
        json.dump(content, text, ensure_ascii=False, allow_nan=False, indent=self.indent, default=_segment)
        text.write("\n")
        text.flush()
        text.detach()  # it would close what it writes to
        return content_bytes

    def loads(self, text: str, id: str) -> Alignment:
        """Read the text of a file; the id in the file counts.

        Raises:
            FormatError: not JSON, not this schema, another version, or segments that overlap; the message names the
                line or the path in the document.
        """
        content = parse_json(text)
        if not isinstance(content, dict) or "format" not in content:
            raise ForeignFileError(f'expected an object with "format": "{_FORMAT}"; got other JSON.')
        if _get(content, "format", str, "the document") != _FORMAT:
            raise ForeignFileError(f'expected "format": "{_FORMAT}"; got {content["format"]!r}.')
        if _get(content, "version", int, "the document") != _VERSION:
            raise FormatError(
                f"expected version {_VERSION}; got {content['version']}: read it with a newer isotone."
            )
        try:
            tiers = [
                _tier(tier, f"tiers[{i}]")
                for i, tier in enumerate(_get(content, "tiers", list, "the document"))
            ]
            duration = float(_get(content, "duration", float, "the document"))
            score = _get_number(content, "score", "the document")
            absent = _get(content, "absent", list, "the document") if "absent" in content else []
            return Alignment(
                _get(content, "id", str, "the document"), duration, tuple(tiers), score,
                absent=tuple(_read_absent(row, f"absent[{i}]") for i, row in enumerate(absent)),
                verdict=_get(content, "verdict", str, "the document") if "verdict" in content else "",
            )  # fmt: skip
        except AlignmentError as error:
            raise FormatError(str(error)) from None


def _segment(segment: Segment) -> dict[str, Any]:
    return {
        "label": str(segment.label),
        "start": float(segment.start),
        "end": float(segment.end),
        **_number("score", segment.score),
        **_number("confidence", segment.confidence),
        **_number("presence", segment.presence),
        **_margin("start_margin", segment.start_margin),
        **_margin("end_margin", segment.end_margin),
        **_written(segment.origin),
    }


def _margin(key: str, margin: Margin | None) -> dict[str, Any]:
    """Return a key with the values of a margin; empty for an unknown one."""
    if margin is None:
        return {}
    return {key: {name: float(getattr(margin, name)) for name in ("before", "after", "near")}}


def _absent(word: Absent) -> dict[str, Any]:
    rest = {**_number("presence", word.presence), **_written(word.origin)}
    return {"label": word.label, "after": word.after, **rest}


def _read_absent(row: Any, path: str) -> Absent:
    label, after = _get(row, "label", str, path), _get(row, "after", int, path)
    return Absent(label, after, _get_number(row, "presence", path) or 0.0, _origin(row, path))


def _written(origin: Origin | None) -> dict[str, Any]:
    """Return the keys of a word's place in its text; empty for an unknown one."""
    if origin is None:
        return {}
    found: dict[str, Any] = {"text": origin.text, "start_char": origin.start, "end_char": origin.end}
    if origin.reading:
        found["reading"] = origin.reading
    return found if origin.passage is None else {**found, "passage": origin.passage}


def _number(key: str, value: float | None) -> dict[str, Any]:
    """Return a key with its value; empty for an unknown value."""
    if value is None:
        return {}
    return {key: float(value) if math.isfinite(value) else str(float(value))}


def _tier(tier: Any, where: str) -> Tier:
    segments = []
    for i, row in enumerate(_get(tier, "segments", list, where)):
        path = f"{where}.segments[{i}]"
        label, start, end = (
            _get(row, "label", str, path),
            _get(row, "start", float, path),
            _get(row, "end", float, path),
        )
        score, confidence, presence = (
            _get_number(row, key, path) for key in ("score", "confidence", "presence")
        )
        try:
            rest = (_read_margin(row, key, path) for key in ("start_margin", "end_margin"))
            segments.append(
                Segment(
                    label, float(start), float(end), score, confidence, _origin(row, path), presence, *rest
                )
            )
        except AlignmentError as error:
            raise FormatError(f"{path}: {error}") from None
    return Tier(_get(tier, "name", str, where), tuple(segments))


def _read_margin(row: Any, key: str, path: str) -> Margin | None:
    if key not in row:
        return None
    path = f"{path}.{key}"
    return Margin(*(float(_get(row[key], name, float, path)) for name in ("before", "after", "near")))


def _origin(row: Any, path: str) -> Origin | None:
    if "start_char" not in row:
        return None
    text, start, end = (
        _get(row, "text", str, path),
        _get(row, "start_char", int, path),
        _get(row, "end_char", int, path),
    )
    reading = _get(row, "reading", str, path) if "reading" in row else ""
    return Origin(text, start, end, reading, _get(row, "passage", int, path) if "passage" in row else None)


def _get(record: Any, key: str, kind: type, where: str) -> Any:
    """Return a value of a record after checking its type."""
    names = {str: "a text", int: "a whole number", float: "a number", list: "a list"}
    value = record.get(key) if isinstance(record, dict) else None
    kinds = (int, float) if kind is float else (kind,)
    if not isinstance(value, kinds) or isinstance(value, bool):
        got = json.dumps(value if isinstance(record, dict) else record, ensure_ascii=False)[:40]
        raise FormatError(f"{where}: expected {key!r}, {names[kind]}; got {got}.")
    return value


def _get_number(record: Any, key: str, where: str) -> float | None:
    """Return an optional number, which is a text if it is not finite."""
    value = record.get(key) if isinstance(record, dict) else None
    if value is not None and value not in ("-inf", "inf", "nan"):
        value = _get(record, key, float, where)
    return None if value is None else float(value)
