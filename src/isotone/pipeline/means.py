"""Means of parts of a recording, by their weights."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


def mean_of(weighted: Iterable[tuple[float, float]]) -> float:
    """Return the mean of values, each with its weight; a weight below 1 counts as 1."""
    values, weights = zip(*weighted)
    return float(np.average(values, weights=np.maximum(weights, 1)))
