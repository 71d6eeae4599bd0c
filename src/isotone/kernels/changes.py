"""Spread of frames on both sides of a cut."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotone.kernels.native import compiled

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


def spreads(frames: Array, low: Indices, cut: Indices, high: Indices) -> Array:
    """Compute the squared distances of frames from the mean of their side of a cut, summed over both sides.

    Args:
        frames: ``(T, D)``.
        low, high: ``(n,)`` first frame and one past the last of both sides together.
        cut: ``(n, k)`` first frame of the second side, from low to high.

    Returns:
        ``(n, k)``; rounding may make it a little less than 0.
    """
    out = np.empty(cut.shape)
    _fill_spreads(np.ascontiguousarray(frames), low, np.ascontiguousarray(cut), high, out)
    return out


@compiled
def _fill_spreads(
    frames: np.ndarray, low: np.ndarray, cut: np.ndarray, high: np.ndarray, out: np.ndarray
) -> None:
    size = frames.shape[1]
    sums, squares = np.empty((len(frames) + 1, size)), np.empty(len(frames) + 1)
    none = np.zeros(size)
    sums[0], squares[0] = 0.0, 0.0
    for t in range(len(frames)):
        squares[t + 1] = squares[t] + _square(none, frames[t])
        for d in range(size):
            sums[t + 1, d] = sums[t, d] + frames[t, d]
    for i in range(len(out)):
        first, last, all_squares = sums[low[i]], sums[high[i]], squares[high[i]] - squares[low[i]]
        for k in range(out.shape[1]):
            middle = sums[cut[i, k]]
            # of a side of n frames that sum to s, the mean takes s s / n
            before = _square(first, middle) / max(1, cut[i, k] - low[i])
            after = _square(middle, last) / max(1, high[i] - cut[i, k])
            out[i, k] = all_squares - (before + after)


@compiled(fastmath={"reassoc", "contract"})
def _square(start: np.ndarray, end: np.ndarray) -> float:
    total = 0.0
    for d in range(len(start)):
        total += (end[d] - start[d]) * (end[d] - start[d])
    return total
