"""TIMIT's files of phones and words with times, ``.phn`` and ``.wrd``."""

from __future__ import annotations

import logging
import math
import re
from itertools import pairwise

from isotone.alignment import Alignment
from isotone.format.reading import FormatError, Row, build_tier, numbered_lines
from isotone.format.ticks import to_ticks
from isotone.format.tier_names import one_tier
from isotone.interfaces import Format

logger = logging.getLogger(__name__)

_SPACE = re.compile(r"\s")
_SUFFIXES = {"phones": ".phn", "words": ".wrd"}


class TIMITFormat(Format):
    """TIMIT lines ``start_sample end_sample label``, one tier.

    As in the corpus, phones cover the recording, with ``h#`` for silence, and words leave gaps. When read, ``h#`` is a
    label like any other. White space in a label becomes ``_``. Scores and the length of the audio are not kept: when
    read, the audio ends with the last segment.

    Words of the corpus that share a phone overlap ("did you" with one ``jh``). When read, the first word is cut where
    the second starts, with a warning. Overlapping phones are an error.

    Args:
        tier: ``"phones"`` (``.phn``) or ``"words"`` (``.wrd``).
        sample_rate: Sample rate in Hz.
    """

    def __init__(self, *, tier: str = "phones", sample_rate: int = 16000) -> None:
        if tier not in _SUFFIXES:
            raise ValueError(f"TIMIT has tiers 'phones' and 'words'; got {tier!r}.")
        if sample_rate <= 0:
            raise ValueError(f"A sample rate is above 0 Hz; got {sample_rate}.")
        self.tier = tier
        self.sample_rate = sample_rate
        self.suffix = _SUFFIXES[tier]

    def dumps(self, alignment: Alignment) -> str:
        """Return the text of the file.

        Raises:
            KeyError: the alignment does not have the tier.
        """
        tier = one_tier(alignment, self.tier)
        if self.tier == "phones":
            segments = [s for s in tier.filled(alignment.duration) if s.label or s.end > s.start]
        else:
            segments = [s for s in tier if s.label]
        ticks = to_ticks(segments, alignment.duration, self.sample_rate)
        return "".join(
            f"{start} {end} {_SPACE.sub('_', segment.label) or 'h#'}\n"
            for segment, (start, end) in zip(segments, ticks)
            if segment.label or end > start
        )

    def loads(self, text: str, id: str) -> Alignment:
        """Read the text of a file.

        Raises:
            FormatError: a line is not two sample numbers and a label, or phones overlap; the message names the line.
        """
        rows = []
        for number, line in numbered_lines(text):
            fields = line.split(maxsplit=2)
            if len(fields) < 3 or not all(re.fullmatch(r"[0-9]{1,15}", f) for f in fields[:2]):
                raise FormatError(
                    f"line {number}: expected 'start_sample end_sample label'; got {line[:80]!r}."
                )
            start, end = int(fields[0]) / self.sample_rate, int(fields[1]) / self.sample_rate
            rows.append(Row(number, fields[2].rstrip(), start, end))
        tier = build_tier(self.tier, rows, math.inf if self.tier == "words" else 0.0)
        if shared := sum(b.start < a.end for a, b in pairwise(rows)):
            logger.warning("%s: %d words reach into the next one; cut where that starts.", id, shared)
        return Alignment(id, tier.segments[-1].end if rows else 0.0, (tier,))
