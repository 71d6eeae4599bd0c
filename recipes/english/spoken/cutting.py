"""Recordings cut right at their first and last sounds, as clips of single sentences are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from isotone.corpus.voices import SAMPLE_RATE, Mark

Number = TypeVar("Number", bound=np.generic)

#: Share of the recordings that are cut.
SHARE = 0.5
# Most seconds of silence that stay at each end.
_MOST_S = 0.04


def cut(
    samples: NDArray[Number], marks: Sequence[Mark], rng: np.random.Generator
) -> tuple[NDArray[Number], tuple[Mark, ...]]:
    """Cut some recordings at their ends, and leave the others as they are.

    A model that has heard silence at both ends of everything expects it, and puts the first and last words elsewhere.

    Args:
        samples: ``(N,)``.
        marks: Phones in samples, from 0 to N; silence is ``h#``.
        rng: Random numbers.
    """
    sounds = [mark for mark in marks if mark.label != "h#"]
    if rng.random() >= SHARE or not sounds:
        return samples, tuple(marks)
    before, after = (round(s * SAMPLE_RATE) for s in rng.uniform(0, _MOST_S, 2))
    first, last = max(0, sounds[0].start - before), min(len(samples), sounds[-1].end + after)
    within = (Mark(m.label, max(m.start, first) - first, min(m.end, last) - first) for m in marks)
    return samples[first:last], tuple(mark for mark in within if mark.end > mark.start)
