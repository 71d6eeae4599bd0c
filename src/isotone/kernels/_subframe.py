"""The compiled loop of :func:`isotone.kernels.paths.subframe_coupling`: plain arrays in and out."""

from __future__ import annotations

import math

import numpy as np

from isotone.kernels.native import compiled

#: Most that a boundary moves, in frames: below one half, so that a token of one frame keeps a part of it.
MOST = 0.49


@compiled
def subframe_row(
    b: int,
    paths: np.ndarray,
    logits: np.ndarray,
    labels: np.ndarray,
    source: np.ndarray,
    target: np.ndarray,
    mass: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Fill the entries of row b, and their number.

    Args:
        b: The row.
        paths: ``(B, T)``, the token of every frame, below 0 where there is none.
        logits: ``(B, T, V)``.
        labels: ``(B, U)``, label of every token.
        source, target, mass: ``(B, 2 T)``, zeros, written: entries in order, the last one's positions to the end.
        counts: ``(B,)``, written.
    """
    path, size = paths[b], paths.shape[1]
    k, before = 0, np.float32(0.0)
    for t in range(size):
        token, after = path[t], np.float32(0.0)
        if token < 0:
            before = after
            continue
        if t + 1 < size and path[t + 1] >= 0 and path[t + 1] != token:
            after = _shift(logits[b, t], logits[b, t + 1], labels[b, token], labels[b, path[t + 1]])
        to_last, to_next = max(before, np.float32(0.0)), max(-after, np.float32(0.0))
        if to_last > 0:
            source[b, k], target[b, k], mass[b, k] = t, path[t - 1], to_last
            k += 1
        source[b, k], target[b, k], mass[b, k] = t, token, np.float32(1.0) - to_last - to_next
        k += 1
        if to_next > 0:
            source[b, k], target[b, k], mass[b, k] = t, path[t + 1], to_next
            k += 1
        before = after
    counts[b] = k
    if k > 0:
        source[b, k:], target[b, k:] = source[b, k - 1], target[b, k - 1]


@compiled
def _shift(early: np.ndarray, late: np.ndarray, a: int, b: int) -> np.float32:
    """Frames by which the boundary between labels a and b moves; 0 where scores tell nothing."""
    shift = _share(late[a] - late[b]) - _share(early[b] - early[a])
    return np.float32(0.0 if math.isnan(shift) else min(max(shift, -MOST), MOST))


@compiled
def _share(difference: float) -> float:
    """The posterior of one label against another, of the difference of their scores."""
    return 1 / (1 + math.exp(np.float64(-difference)))
