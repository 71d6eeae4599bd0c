"""CTM as NeMo's forced aligner writes it."""

from __future__ import annotations

from dataclasses import replace

from isotone.alignment import Alignment, Segment, Tier
from isotone.format.ctm import CTMFormat, word_of


class NeMoCTMFormat(CTMFormat):
    """CTM lines ``id 1 start duration label`` with four decimals and without confidences; a space is ``<space>``.

    NeMo writes two decimals, too few for good times; its readers take any number.

    Args:
        tier: The tier to write, and the name of the tier that is read.
        decimals: Decimals of seconds, at least 3.
    """

    def __init__(self, *, tier: str = "words", decimals: int = 4) -> None:
        super().__init__(tier=tier, decimals=decimals)

    def label(self, segment: Segment) -> str:
        """See :meth:`CTMFormat.label`."""
        return word_of(segment.label.replace(" ", "<space>"))

    def loads_all(self, text: str) -> list[Alignment]:
        """See :meth:`CTMFormat.loads_all`."""
        return [
            replace(a, tiers=tuple(Tier(t.name, tuple(map(_spaced, t))) for t in a.tiers))
            for a in super().loads_all(text)
        ]


def _spaced(segment: Segment) -> Segment:
    return replace(segment, label=segment.label.replace("<space>", " "))
