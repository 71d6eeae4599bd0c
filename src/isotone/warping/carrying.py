"""Labels of a recording, carried over to another by a time map."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotone.alignment import Alignment
from isotone.audio.boundaries import moved_edges
from isotone.warping.time_map import TimeMap


def refined(
    found: TimeMap, labels: Alignment, samples: NDArray[np.float32], sample_rate: int, weight: float
) -> TimeMap:
    """Refine a time map for labels: their boundaries move to where the other recording's sound changes.

    Args:
        found: Times of the labelled recording to times of the other one.
        labels: Labels with their times in the labelled recording. Boundaries of all tiers keep their order.
        samples: ``(N,)`` of the other recording.
        sample_rate: Hz.
        weight: See :func:`isotone.audio.boundaries.moved_edges`. 0: they stay.

    Returns:
        A map whose knots are the boundaries within the given map, and its ends.
    """
    first, last = float(found.source[0]), float(found.source[-1])
    times = {t for tier in labels.tiers for s in tier for t in (s.start, s.end) if first < t < last}
    source = np.array(sorted(times))
    # several boundaries may have one place in the other recording, and move together
    edges, own = np.unique(found(source), return_inverse=True)
    low, high = (float(found.target[end]) for end in (0, -1))
    target = moved_edges(edges, samples, sample_rate, weight).clip(low, high)[own]
    return TimeMap(np.array([first, *source, last]), np.array([low, *target, high]))
