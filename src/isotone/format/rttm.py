"""NIST's RTTM: who speaks when."""

from __future__ import annotations

import re

from isotone.alignment import Alignment
from isotone.format.ticks import to_ticks
from isotone.format.tier_names import voices
from isotone.interfaces import Format


class RTTMFormat(Format):
    """RTTM lines ``SPEAKER id 1 start duration <NA> <NA> speaker <NA> <NA>``, one per turn. Write-only.

    A turn is the words of a speaker without a longer silence between them. The resolution is 1 ms. White space in ids
    and names becomes ``_``. Where no speakers are known, the name is ``speech``.

    Args:
        tier: The tier of words.
        max_gap_s: A silence longer than this, in seconds, ends a turn.
    """

    suffix = ".rttm"

    def __init__(self, *, tier: str = "words", max_gap_s: float = 0.5) -> None:
        if not max_gap_s >= 0:
            raise ValueError(f"Expected max_gap_s of 0 s or more; got {max_gap_s}.")
        self.tier = tier
        self.max_gap_s = max_gap_s

    def dumps(self, alignment: Alignment) -> str:
        """Return the text of the file.

        Raises:
            KeyError: the alignment does not have the tier.
        """
        turns: list[tuple[int, int, str]] = []
        for speaker, tier in voices(alignment, self.tier).items():
            spoken = [s for s in tier if s.label]
            own: list[tuple[int, int, str]] = []
            for start, end in to_ticks(spoken, alignment.duration, 1000):
                if own and start - own[-1][1] <= self.max_gap_s * 1000:
                    start = own.pop()[0]
                own.append((start, end, _word(speaker or "speech")))
            turns += own
        return "".join(
            f"SPEAKER {_word(alignment.id)} 1 {start / 1000:.3f} {(end - start) / 1000:.3f} "
            f"<NA> <NA> {name} <NA> <NA>\n"
            for start, end, name in sorted(turns)
        )


def _word(text: str) -> str:
    return re.sub(r"\s", "_", text) or "_"
