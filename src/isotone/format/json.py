"""Isotone's own JSON, with all contents of an alignment."""

from __future__ import annotations

import json
import math
from typing import Any

from isotone.alignment import Absent, Alignment, AlignmentError, Segment, Tier
from isotone.format.reading import ForeignFileError, FormatError
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
                                  "score": number, "confidence": number, "presence": number}]}]}

    Scores are defined in :mod:`isotone.alignment`. Unknown values of ``verdict``, ``score``, ``confidence`` and
    ``presence`` are left out; values that are not finite are the texts ``"-inf"``, ``"inf"`` or ``"nan"``. Words that
    were not said are among the segments of the first tier, with ``"present": false`` and null as ``start`` and ``end``.
    Other keys are ignored when reading.

    Args:
        indent: Spaces per level; None gives one line.
    """

    suffix = ".json"

    def __init__(self, *, indent: int | None = 1) -> None:
        self.indent = indent

    def dumps(self, alignment: Alignment) -> str:
        """Return the text of the file."""
        content: dict[str, Any] = {
            "format": _FORMAT,
            "version": _VERSION,
            "id": alignment.id,
            "duration": float(alignment.duration),
            **_number("score", alignment.score),
            **({"verdict": alignment.verdict} if alignment.verdict else {}),
            "tiers": [
                {"name": tier.name, "segments": [_segment(s) for s in tier]} for tier in alignment.tiers
            ],
        }
        if alignment.absent:
            rows = content["tiers"][0]["segments"]
            for word in reversed(alignment.absent):
                rows.insert(word.position, _absent(word))
        return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=self.indent) + "\n"

    def loads(self, text: str, id: str) -> Alignment:
        """Read the text of a file; the id in the file counts.

        Raises:
            FormatError: not JSON, not this schema, another version, or segments that overlap; the message names the
                line or the path in the document.
        """
        try:
            content = json.loads(text, parse_constant=_refuse, parse_int=_integer)
        except json.JSONDecodeError as error:
            raise FormatError(f"line {error.lineno}: expected JSON; {error.msg}.") from None
        except RecursionError:
            raise FormatError("expected an alignment; got JSON that is nested too deeply to read.") from None
        if not isinstance(content, dict) or "format" not in content:
            raise ForeignFileError(f'expected an object with "format": "{_FORMAT}"; got other JSON.')
        if _get(content, "format", str, "the document") != _FORMAT:
            raise ForeignFileError(f'expected "format": "{_FORMAT}"; got {content["format"]!r}.')
        if _get(content, "version", int, "the document") != _VERSION:
            raise FormatError(
                f"expected version {_VERSION}; got {content['version']}: read it with a newer isotone."
            )
        try:
            absent: list[Absent] = []
            tiers = [
                _tier(tier, f"tiers[{i}]", absent if i == 0 else None)
                for i, tier in enumerate(_get(content, "tiers", list, "the document"))
            ]
            duration = float(_get(content, "duration", float, "the document"))
            score = _get_number(content, "score", "the document")
            verdict = _get(content, "verdict", str, "the document") if "verdict" in content else ""
            id = _get(content, "id", str, "the document")
            return Alignment(id, duration, tuple(tiers), score, absent=tuple(absent), verdict=verdict)
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
    }


def _absent(word: Absent) -> dict[str, Any]:
    return {
        "label": word.label, "start": None, "end": None, "present": False, **_number("presence", word.presence),
    }  # fmt: skip


def _number(key: str, value: float | None) -> dict[str, Any]:
    """Return a key with its value; empty for an unknown value."""
    if value is None:
        return {}
    return {key: float(value) if math.isfinite(value) else str(float(value))}


def _tier(tier: Any, where: str, absent: list[Absent] | None) -> Tier:
    """Read a tier; words that were not said are added to ``absent``, where they are allowed."""
    segments: list[Segment] = []
    for i, row in enumerate(_get(tier, "segments", list, where)):
        path = f"{where}.segments[{i}]"
        if absent is not None and isinstance(row, dict) and row.get("present") is False:
            presence = _get_number(row, "presence", path)
            absent.append(Absent(_get(row, "label", str, path), len(segments), presence or 0.0))
            continue
        label, start, end = (
            _get(row, "label", str, path),
            _get(row, "start", float, path),
            _get(row, "end", float, path),
        )
        numbers = (_get_number(row, key, path) for key in ("score", "confidence", "presence"))
        try:
            segments.append(Segment(label, float(start), float(end), *numbers))
        except AlignmentError as error:
            raise FormatError(f"{path}: {error}") from None
    return Tier(_get(tier, "name", str, where), tuple(segments))


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


def _integer(digits: str) -> int:
    if len(digits) > 300:  # more digits than any float has
        raise FormatError(f"expected finite numbers; got one of {len(digits)} digits.")
    return int(digits)


def _refuse(constant: str) -> float:
    raise FormatError(f"expected finite numbers; got {constant}.")
