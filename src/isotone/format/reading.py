"""Parts that the readers share: bytes to text, lines, JSON, XML, and rows to tiers with errors that name a line."""

from __future__ import annotations

import codecs
import json
import logging
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from xml.etree import ElementTree

from isotone.alignment import Margin, Segment, Tier

logger = logging.getLogger(__name__)

#: Seconds below which overlaps and gaps are rounding errors of floats, not annotation.
NOISE_S = 1e-6


class FormatError(ValueError):
    """A file is not of its format; the message names the line, the expected content and the actual one."""


class ForeignFileError(FormatError):
    """A file has a format's suffix but is something else, as many JSON, CSV and text files are."""


@dataclass(frozen=True, slots=True)
class Row:
    """A segment as read, not yet checked against its neighbours. Times are in seconds."""

    line: int
    label: str
    start: float
    end: float
    score: float | None = None
    confidence: float | None = None
    start_margin: Margin | None = None
    end_margin: Margin | None = None


def decode(data: bytes) -> str:
    """Decode the text of a file: UTF-16 with a byte order mark, else UTF-8 with or without one. Newlines are kept.

    Raises:
        FormatError: a binary Praat file, or neither encoding.
    """
    if data.startswith(b"ooBinaryFile"):
        raise FormatError(
            "expected a text file; got a binary Praat file: save it in Praat with 'Save as text file'."
        )
    utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return data.decode("utf-16" if utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError(
            f"line {line}: expected {'UTF-16' if utf16 else 'UTF-8, or UTF-16 with a byte order mark'}; "
            f"got byte 0x{data[error.start]:02x}: save the file as UTF-8."
        ) from None


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """Iterate over the lines that are not blank, with their numbers from 1."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line.removesuffix("\r")


def parse_seconds(field: str, line: int, what: str) -> float:
    """Parse a time in seconds.

    Raises:
        FormatError: not a number, not finite, or negative.
    """
    try:
        value = float(field)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise FormatError(f"line {line}: expected {what} in seconds, 0 or later; got {field!r}.")
    return value + 0.0  # -0.0 becomes 0.0


def build_tier(name: str, rows: Sequence[Row], slack_s: float = NOISE_S) -> Tier:
    """Build a tier from the rows of a file, in their order.

    Args:
        name: Name of the tier.
        rows: Rows as read.
        slack_s: Seconds by which a row may overlap the next one; it is then cut where the next one starts.

    Raises:
        FormatError: a row ends before it starts, or starts before the last one ends; the message names its line.
    """
    segments: list[Segment] = []
    for row in rows:
        if row.end < row.start:
            raise FormatError(
                f"line {row.line}: expected {row.label!r} to end after it starts; "
                f"got {row.start} .. {row.end} s."
            )
        start = row.start
        if segments and start < segments[-1].end:
            last = segments[-1]
            if start < last.start - NOISE_S or last.end - start > slack_s:
                raise FormatError(
                    f"line {row.line}: expected {row.label!r} to start at {last.end} s or later, where "
                    f"{last.label!r} ends (tier {name!r}); got {start} s."
                )
            start = max(start, last.start)
            segments[-1] = replace(last, end=start)
        segments.append(
            Segment(
                row.label, start, max(start, row.end), row.score, row.confidence,
                start_margin=row.start_margin, end_margin=row.end_margin,
            )
        )  # fmt: skip
    return Tier(name, tuple(segments))


def parse_xml(text: str) -> ElementTree.Element:
    """Parse XML without document types, whose entities can grow without bounds.

    Raises:
        FormatError: the text is not XML, or declares a document type.
    """
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise FormatError("expected XML without a document type: remove <!DOCTYPE ...>.")
    try:
        # a declared encoding is that of the bytes, not of this text
        return ElementTree.fromstring(re.sub(r"\A\s*<\?xml[^>]*\?>", "", text))
    except (ElementTree.ParseError, ValueError) as error:
        raise FormatError(f"expected XML; {error}.") from None


def parse_json(text: str) -> Any:
    """Parse JSON of finite numbers.

    Raises:
        FormatError: the text is not such JSON, or is nested too deeply; the message names the line.
    """
    try:
        return json.loads(text, parse_constant=_refuse, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise FormatError(f"line {error.lineno}: expected JSON; {error.msg}.") from None
    except RecursionError:
        raise FormatError("expected JSON of a few levels; it is nested too deeply to read.") from None


def _integer(digits: str) -> int:
    if len(digits) > 300:  # more digits than any float has
        raise FormatError(f"expected finite numbers; got one of {len(digits)} digits.")
    return int(digits)


def _refuse(constant: str) -> float:
    raise FormatError(f"expected finite numbers; got {constant}.")
