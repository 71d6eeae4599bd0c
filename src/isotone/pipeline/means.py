"""Means of parts of a recording, by their weights."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


def mean_of(weighted: Iterable[tuple[float, float]]) -> float:
    """Return the mean of values, each with its weight; a weight below 1 counts as 1."""
    values, weights = zip(*weighted)
    return float(np.average(values, weights=np.maximum(weights, 1)))


def mean_of_known(weighted: Iterable[tuple[float | None, float]]) -> float | None:
    """Return the mean of the values that are known, see :func:`mean_of`; None where none is."""
    known = [(value, weight) for value, weight in weighted if value is not None]
    return mean_of(known) if known else None
