"""Lyrics with times: LRC."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, zip_longest
from typing import Any

from isotone.alignment import Alignment, Segment, Tier
from isotone.format.cues import Cue
from isotone.format.given import Given, given_cues, sheet_of
from isotone.format.subtitles import Subtitles
from isotone.format.tier_names import voices
from isotone.passage import LYRICS, Passage

# Title, artist ...; an offset is in the times already.
_TAG = re.compile(r"\[(?!offset\b)[a-z]+:[^\]\n]*\](?=\r?$)", re.IGNORECASE | re.MULTILINE)

# A line disappears at its end where the next one begins later than this, in milliseconds.
_GAP_MS = 2000


class LRCFormat(Subtitles):
    """Lyrics in LRC, a line of the text for each line of the file. Write-only; options as of :class:`Subtitles`.

    The lines are those of the text, or the cues of a transcript with times; new ones have 42 characters. A line without
    timed words is left out where the text had no times. Title and artist of a given file of LRC stay. The resolution is
    10 ms. Lines have no ends: where the next one begins two seconds later or more, an empty line stands between, as
    after the last one.

    Args:
        inline: Put the time before every word, and after the last one, as in enhanced LRC.
        options: See :class:`Subtitles`.
    """

    suffix = LYRICS
    keeps_file = False

    def __init__(self, *, inline: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.inline = inline
        if "max_lines" not in options:
            self.layout = replace(self.layout, max_lines=1)

    def dumps(self, alignment: Alignment) -> str:
        """See :meth:`Subtitles.dumps`."""
        sheet = sheet_of(alignment)
        tags = _TAG.findall(sheet.text) if sheet is not None and sheet.suffix == self.suffix else []
        return "".join(f"{tag}\n" for tag in tags) + super().dumps(alignment)

    def written(self, cues: Sequence[Cue]) -> str:
        """Return the text of a file with these lines."""
        out = []
        for cue, following in zip_longest(cues, cues[1:]):
            out.append(f"[{self.clock(cue.start)}]{self._text(cue)}\n")
            if following is None or following.start - cue.end >= _GAP_MS:
                out.append(f"[{self.clock(cue.end)}]\n")
        return "".join(out)

    def clock(self, milliseconds: int) -> str:
        """Write a time as ``01:02.34``."""
        seconds, hundredths = divmod(round(milliseconds / 10), 100)
        return f"{seconds // 60:02d}:{seconds % 60:02d}.{hundredths:02d}"

    def _text(self, cue: Cue) -> str:
        parts = []
        for part in cue.parts:
            if self.inline and part.start is not None:
                parts.append(f"<{self.clock(part.start)}>")
            parts.append("" if part.tag else part.text.replace("\0", "\ufffd"))
        if self.inline and cue.words:
            parts.append(f"<{self.clock(cue.words[-1][1])}>")
        return " ".join("".join(parts).split())

    def _given(self, alignment: Alignment) -> list[Given] | None:
        """Return the lines of the text, or the cues of the transcript; None where lines are made anew."""
        lines = _lines(alignment, self.tier) if self._cues == "auto" else None
        heard = [one for one in given_cues(lines, self.tier, self.layout) if one.heard] if lines else []
        return heard or super()._given(alignment)


def _lines(alignment: Alignment, tier: str) -> Alignment | None:
    """Return an alignment whose passages are the lines of a text without times; None for another transcript."""
    if len(alignment.passages) != 1 or alignment.passages[0].start is not None:
        return None
    rows = alignment.passages[0].text.split("\n")
    starts = list(accumulate((len(row) + 1 for row in rows[:-1]), initial=0))

    def placed(segment: Segment) -> Segment:
        if segment.origin is None:
            return segment
        line = bisect_right(starts, segment.origin.start) - 1
        first, last = (place - starts[line] for place in (segment.origin.start, segment.origin.end))
        last = min(last, len(rows[line]))  # a mark that begins the next line goes with the word
        return replace(segment, origin=replace(segment.origin, start=first, end=last, passage=line))

    words = voices(alignment, tier).values()
    if len(rows) < 2 or not any(s.origin for voice in words for s in voice):
        return None
    tiers = tuple(Tier(voice.name, tuple(map(placed, voice))) for voice in words)
    lines = tuple(Passage(row, where=f"line {n + 1}", number=n) for n, row in enumerate(rows))
    return replace(alignment, tiers=tiers, passages=lines)
