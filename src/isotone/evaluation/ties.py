"""Rankings with ties, as counts of the items that share a score; and sums over the ranks of a group of ties."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from isotone.evaluation.tracks import Floats, Ints
from isotone.kernels.hamming import check_affinity
from isotone.types import check_integers

# From here on the series of the harmonic numbers is exact in double precision.
_SERIES_FROM = 24
_HARMONIC = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, _SERIES_FROM + 1))])


def tie_counts(
    scores: npt.ArrayLike | Tensor,
    affinity: npt.ArrayLike | Tensor,
    lengths: npt.ArrayLike | Tensor | None = None,
) -> Ints:
    """Count the items of every affinity in every group of equal scores, best group first: ``(Q, G, V)``.

    G is the largest number of groups of a query; the others end in empty ones. Arguments and errors as in
    :func:`isotone.evaluation.ranking.average_precision`.
    """
    values, levels = check_scores(scores, affinity, lengths)
    # absent items go last, behind those whose score is -inf
    order = np.lexsort((-values, levels < 0), axis=1)
    ranked, level = np.take_along_axis(values, order, 1), np.take_along_axis(levels, order, 1)
    group = np.zeros(ranked.shape, np.int64)
    # a new group begins wherever the sorted score changes
    group[:, 1:] = np.cumsum(ranked[:, 1:] != ranked[:, :-1], axis=1)
    groups = int(group.max(initial=0, where=level >= 0)) + 1
    count = max(2, int(levels.max(initial=0)) + 1)
    row = np.arange(len(values))[:, None] * groups
    # number of the cell (query, group, affinity) of every item that is there
    cell = ((row + group) * count + level)[level >= 0]
    return np.bincount(cell, minlength=len(values) * groups * count).reshape(len(values), groups, count)


def harmonic_between(low: npt.ArrayLike, high: npt.ArrayLike) -> Floats:
    """Sum 1 / t for t = low + 1 .. high, to the last decimals whatever their size.

    The difference of two large harmonic numbers would have few correct decimals.
    """
    low, high = np.asarray(low, float), np.asarray(high, float)
    # the part up to _SERIES_FROM from a table, the part beyond it by the asymptotic series
    few = _HARMONIC[np.minimum(high, _SERIES_FROM).astype(np.int64)]
    few = few - _HARMONIC[np.minimum(low, _SERIES_FROM).astype(np.int64)]
    x, y = np.maximum(low, _SERIES_FROM), np.maximum(high, _SERIES_FROM)
    # Euler-Maclaurin: log(y / x) and the differences of B_2k / (2k t^2k); log1p keeps a small difference exact
    tail = np.log1p((y - x) / x)
    for power, factor in ((1, 1 / 2), (2, -1 / 12), (4, 1 / 120), (6, -1 / 252), (8, 1 / 240)):
        tail += factor * (y**-power - x**-power)
    return few + tail


def check_scores(scores: Any, affinity: Any, lengths: Any) -> tuple[np.ndarray, npt.NDArray[np.int8]]:
    """Check scores and affinities; items past the lengths get affinity -1, and their scores may be anything."""
    values = np.asarray(scores.detach().double().cpu() if isinstance(scores, Tensor) else scores, np.float64)
    if values.ndim != 2:
        raise ValueError(
            f"Expected scores of shape (Q, N); got {values.shape}. For one query use scores[None]."
        )
    levels = check_affinity(affinity, values.shape)
    if lengths is not None:
        sizes = np.asarray(lengths.cpu() if isinstance(lengths, Tensor) else lengths)
        check_integers(sizes)
        if sizes.shape != values.shape[:1] or (sizes < 0).any() or (sizes > values.shape[1]).any():
            raise ValueError(
                f"Expected {len(values)} lengths from 0 to {values.shape[1]}; got {sizes.tolist()}."
            )
        levels = np.where(np.arange(values.shape[1]) < sizes[:, None], levels, np.int8(-1))
    if (np.isnan(values) & (levels >= 0)).any():
        row = np.argwhere(np.isnan(values) & (levels >= 0))[0][0]
        raise ValueError(f"Row {row}: a score is NaN, which has no rank.")
    return values, levels
