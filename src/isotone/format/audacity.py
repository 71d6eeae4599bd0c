"""Audacity's label track."""

from __future__ import annotations

import re

from isotone.alignment import Alignment
from isotone.format.reading import (
    ForeignFileError,
    FormatError,
    Row,
    build_tier,
    numbered_lines,
    parse_seconds,
)
from isotone.format.ticks import to_ticks
from isotone.format.tier_names import one_tier
from isotone.interfaces import Format

_RATE = 10**6
_BREAKS = re.compile(r"[\t\r\n]")


class AudacityFormat(Format):
    """Audacity labels: ``start``, ``end`` and label separated by tabs, one tier.

    The resolution is 1 microsecond, as in Audacity. Tabs and line ends in a label become spaces. Scores and the length
    of the audio are not kept: when read, the audio ends with the last label. Frequency lines of spectral selections are
    ignored.

    Args:
        tier: The tier to write, and the name of the tier that is read.
    """

    suffix = ".txt"

    def __init__(self, *, tier: str = "words") -> None:
        self.tier = tier

    def dumps(self, alignment: Alignment) -> str:
        """Return the text of the file.

        Raises:
            KeyError: the alignment does not have the tier.
        """
        segments = one_tier(alignment, self.tier).segments
        ticks = to_ticks(segments, alignment.duration, _RATE)
        return "".join(
            f"{start / _RATE:.6f}\t{end / _RATE:.6f}\t{_BREAKS.sub(' ', segment.label)}\n"
            for segment, (start, end) in zip(segments, ticks)
        )

    def loads(self, text: str, id: str) -> Alignment:
        """Read the text of a file.

        Raises:
            FormatError: a line is not a label, or labels overlap; the message names the line.
        """
        rows: list[Row] = []
        for number, line in numbered_lines(text):
            if line.startswith("\\\t"):
                continue
            fields = line.split("\t")
            if len(fields) not in (2, 3):
                kind = FormatError if rows or "\t" in line else ForeignFileError
                raise kind(f"line {number}: expected start, end and label between tabs; got {line[:80]!r}.")
            start, end = (parse_seconds(f, number, w) for f, w in zip(fields, ("a start", "an end")))
            rows.append(Row(number, fields[2] if len(fields) == 3 else "", start, end))
        tier = build_tier(self.tier, rows)
        return Alignment(id, tier.segments[-1].end if rows else 0.0, (tier,))
