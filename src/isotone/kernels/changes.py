"""Spread of frames on both sides of a cut."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotone.kernels.native import compiled

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


def squares_of_means(sums: Array, low: Indices, cut: Indices, high: Indices) -> Array:
    """Compute what the means of both sides of every cut take of the frames' squares.

    A side of k frames that sum to s takes ``s s / k``. The squares of its frames, less that, are its spread.

    Args:
        sums: ``(T + 1, D)`` sums of the first frames.
        low, high: ``(n,)`` first frame and one past the last of both sides together.
        cut: ``(n, k)`` cuts from low to high.

    Returns:
        ``(n, k)``.
    """
    out = np.empty(cut.shape)
    _fill_squares(np.ascontiguousarray(sums), low, np.ascontiguousarray(cut), high, out)
    return out


@compiled
def _fill_squares(
    sums: np.ndarray, low: np.ndarray, cut: np.ndarray, high: np.ndarray, out: np.ndarray
) -> None:
    for i in range(len(out)):
        first, last = sums[low[i]], sums[high[i]]
        for k in range(out.shape[1]):
            middle = sums[cut[i, k]]
            before, after = _square(first, middle), _square(middle, last)
            out[i, k] = before / max(1, cut[i, k] - low[i]) + after / max(1, high[i] - cut[i, k])


@compiled(fastmath={"reassoc", "contract"})
def _square(start: np.ndarray, end: np.ndarray) -> float:
    total = 0.0
    for d in range(len(start)):
        total += (end[d] - start[d]) * (end[d] - start[d])
    return total
