"""What the readers share: bytes to text, numbered lines, and rows to tiers with errors that name a line."""

from __future__ import annotations

import codecs
import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from isotone.alignment import Segment, Tier

logger = logging.getLogger(__name__)

#: Overlaps and gaps below this are rounding in the last digits of a float, not annotation.
NOISE_S = 1e-6


class FormatError(ValueError):
    """A file is not of its format; the message says which line, what was expected and what came."""


class ForeignFileError(FormatError):
    """A file has a format's suffix and is something else altogether, as many JSON, CSV and text files are."""


@dataclass(frozen=True, slots=True)
class Row:
    """A segment as it was read, before it is known to fit its neighbours. Times in seconds."""

    line: int
    label: str
    start: float
    end: float
    score: float | None = None
    confidence: float | None = None


def decode(data: bytes) -> str:
    """The text of a file: UTF-16 with a byte order mark, else UTF-8 with or without one; newlines are kept.

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
    """The lines that hold more than whitespace, with their numbers from 1."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line.removesuffix("\r")


def parse_seconds(field: str, line: int, what: str) -> float:
    """A time in seconds from text.

    Raises:
        FormatError: no number, not finite, or negative.
    """
    try:
        value = float(field)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise FormatError(f"line {line}: expected {what} in seconds, 0 or later; got {field!r}.")
    return value + 0.0  # -0.0 becomes 0.0


def build_tier(name: str, rows: Sequence[Row], slack_s: float = NOISE_S) -> Tier:
    """A tier from the rows of a file, in their order.

    Args:
        name: The tier's name.
        rows: What was read.
        slack_s: Seconds by which a row may reach into the next one; the earlier is then cut where the later
            starts.

    Raises:
        FormatError: a row ends before it starts, or starts before its neighbour has ended; the message has
            its line.
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
        segments.append(Segment(row.label, start, max(start, row.end), row.score, row.confidence))
    return Tier(name, tuple(segments))
