"""Isotone's own JSON: everything an alignment holds."""

from __future__ import annotations

import json
import math
from typing import Any

from isotone.alignment import Alignment, AlignmentError, Segment, Tier
from isotone.format.reading import FormatError
from isotone.interfaces import Format

_FORMAT = "isotone-alignment"
_VERSION = 1


class JSONFormat(Format):
    """JSON that loses nothing: ids, durations, tiers, empty ones too, times and scores to the last bit.

    The schema, version 1::

        {"format": "isotone-alignment", "version": 1,
         "id": str, "duration": seconds,
         "tiers": [{"name": str,
                    "segments": [{"label": str, "start": seconds, "end": seconds, "score": number}]}]}

    ``score`` is left out where it is not known; one that is not finite is the text ``"-inf"``, ``"inf"`` or
    ``"nan"``. Other keys are ignored in reading.

    Args:
        indent: Spaces a level; none gives one line.
    """

    suffix = ".json"

    def __init__(self, *, indent: int | None = 1) -> None:
        self.indent = indent

    def dumps(self, alignment: Alignment) -> str:
        """The file's text."""
        content = {
            "format": _FORMAT,
            "version": _VERSION,
            "id": alignment.id,
            "duration": float(alignment.duration),
            "tiers": [
                {"name": tier.name, "segments": [_segment(s) for s in tier]} for tier in alignment.tiers
            ],
        }
        return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=self.indent) + "\n"

    def loads(self, text: str, id: str) -> Alignment:
        """Read a file's text; the id is the one in it.

        Raises:
            FormatError: not JSON, not this schema, another version, or segments that overlap; the message
                has the line or the place in the document.
        """
        try:
            content = json.loads(text, parse_constant=_refuse)
        except json.JSONDecodeError as error:
            raise FormatError(f"line {error.lineno}: expected JSON; {error.msg}.") from None
        if _get(content, "format", str, "the document") != _FORMAT:
            raise FormatError(f'expected "format": "{_FORMAT}"; got {content["format"]!r}.')
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
            return Alignment(_get(content, "id", str, "the document"), duration, tuple(tiers))
        except AlignmentError as error:
            raise FormatError(str(error)) from None


def _segment(segment: Segment) -> dict[str, Any]:
    out: dict[str, Any] = {
        "label": str(segment.label),
        "start": float(segment.start),
        "end": float(segment.end),
    }
    if segment.score is not None:
        score = float(segment.score)
        out["score"] = score if math.isfinite(score) else str(score)
    return out


def _tier(tier: Any, where: str) -> Tier:
    segments = []
    for i, row in enumerate(_get(tier, "segments", list, where)):
        place = f"{where}.segments[{i}]"
        score = row.get("score") if isinstance(row, dict) else None
        if score is not None and score not in ("-inf", "inf", "nan"):
            score = _get(row, "score", float, place)
        label, start, end = (
            _get(row, "label", str, place),
            _get(row, "start", float, place),
            _get(row, "end", float, place),
        )
        try:
            segments.append(Segment(label, float(start), float(end), None if score is None else float(score)))
        except AlignmentError as error:
            raise FormatError(f"{place}: {error}") from None
    return Tier(_get(tier, "name", str, where), tuple(segments))


def _get(record: Any, key: str, kind: type, where: str) -> Any:
    """A value of a record, checked."""
    names = {str: "a text", int: "a whole number", float: "a number", list: "a list"}
    value = record.get(key) if isinstance(record, dict) else None
    kinds = (int, float) if kind is float else (kind,)
    if not isinstance(value, kinds) or isinstance(value, bool):
        got = json.dumps(value if isinstance(record, dict) else record, ensure_ascii=False)[:40]
        raise FormatError(f"{where}: expected {key!r}, {names[kind]}; got {got}.")
    return value


def _refuse(constant: str) -> float:
    raise FormatError(f"expected finite numbers; got {constant}.")
