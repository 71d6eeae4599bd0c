"""The compiled loops of :mod:`isotone.kernels.posteriors`: plain arrays in and out, nothing is checked here."""

from __future__ import annotations

import numpy as np

from isotone.kernels._lattice import NOWHERE, lattice_row
from isotone.kernels._sums import sum_paths
from isotone.kernels.native import compiled


@compiled
def half_row(
    task: int,
    order: np.ndarray,
    log_probs: np.ndarray,
    labels: np.ndarray,
    frames: np.ndarray,
    tokens: np.ndarray,
    free: np.ndarray,
    blank: int,
    paths: np.ndarray,
    records: np.ndarray,
    totals: np.ndarray,
) -> None:
    """Sum over the paths of row b, from the start (half 2 b) or from the end (half 2 b + 1).

    ``records[half, t]`` becomes the log-sum over the partial paths that are in the token of ``paths[b, t]`` at
    frame t, with that frame. ``totals[half]`` becomes that over whole paths, NaN where the input was NaN or +inf. A
    blank below 0 means none.
    """
    half = order[task]
    b, backward = half // 2, half % 2 == 1
    n, m = frames[b], tokens[b]
    if n == 0:
        return
    y, f = labels[b, :m], free[b, :m]
    if backward:
        y, f = y[::-1].copy(), f[::-1].copy()
    row = lattice_row(log_probs[b, :n], y, f, blank, 1, -1, NOWHERE, 0.0)
    totals[half] = sum_paths(row, blank >= 0, backward, paths[b, :n], records[half])


@compiled
def confidence_row(
    task: int,
    order: np.ndarray,
    log_probs: np.ndarray,
    labels: np.ndarray,
    frames: np.ndarray,
    tokens: np.ndarray,
    paths: np.ndarray,
    records: np.ndarray,
    totals: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill the mean posterior of the frames that carry each token, from what :func:`half_row` recorded."""
    b = order[task]
    total = np.zeros(tokens[b])
    count = np.zeros(tokens[b], np.int64)
    for t in range(frames[b]):
        u = paths[b, t]
        if u >= 0:
            score = log_probs[b, t, labels[b, u]]
            if score > -np.inf:  # both halves hold the frame's score: it is taken out once
                total[u] += min(
                    1.0, np.exp(records[2 * b, t] + records[2 * b + 1, t] - score - totals[2 * b])
                )
            count[u] += 1
    for u in range(tokens[b]):
        if count[u] > 0:
            out[b, u] = total[u] / count[u]
