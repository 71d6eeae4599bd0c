"""The compiled loops of :mod:`isotone.kernels.posteriors`: plain arrays in and out, nothing is checked here."""

from __future__ import annotations

import numpy as np
from numba import njit

from isotone.kernels._lattice import emit, symbol_table
from isotone.kernels._sums import sum_paths


@njit(nogil=True, cache=True)
def score_row(
    task: int,
    order: np.ndarray,
    log_probs: np.ndarray,
    labels: np.ndarray,
    frames: np.ndarray,
    tokens: np.ndarray,
    star_cost: float,
    paths: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill the mean log-probability of the frames that carry each token."""
    b = order[task]
    n, m = frames[b], tokens[b]
    symbols, symbol_of, star = symbol_table(labels[b, :m], -1, log_probs.shape[2])
    scores = np.empty(len(symbols))
    total = np.zeros(m)
    count = np.zeros(m, np.int64)
    for t in range(n):
        u = paths[b, t]
        if u >= 0:
            k = symbol_of[u]
            emit(log_probs[b, t], symbols[k : k + 1], 0 if k == star else -1, star_cost, scores[k : k + 1])
            total[u] += scores[k]
            count[u] += 1
    for u in range(m):
        if count[u] > 0:
            out[b, u] = total[u] / count[u]


@njit(nogil=True, cache=True)
def confidence_row(
    task: int,
    order: np.ndarray,
    log_probs: np.ndarray,
    labels: np.ndarray,
    frames: np.ndarray,
    tokens: np.ndarray,
    star_cost: float,
    paths: np.ndarray,
    records: np.ndarray,
    totals: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill the mean posterior of the frames that carry each token, from what :func:`half_row` recorded."""
    b = order[task]
    n, m = frames[b], tokens[b]
    symbols, symbol_of, star = symbol_table(labels[b, :m], -1, log_probs.shape[2])
    scores = np.empty(len(symbols))
    total = np.zeros(m)
    count = np.zeros(m, np.int64)
    for t in range(n):
        u = paths[b, t]
        if u >= 0:
            k = symbol_of[u]
            emit(log_probs[b, t], symbols[k : k + 1], 0 if k == star else -1, star_cost, scores[k : k + 1])
            # both halves counted the frame
            share = records[2 * b, t] + records[2 * b + 1, t] - scores[k] - totals[2 * b]
            if scores[k] > -np.inf:
                total[u] += min(1.0, np.exp(share))
            count[u] += 1
    for u in range(m):
        if count[u] > 0:
            out[b, u] = total[u] / count[u]


@njit(nogil=True, cache=True)
def half_row(
    task: int,
    order: np.ndarray,
    log_probs: np.ndarray,
    labels: np.ndarray,
    frames: np.ndarray,
    tokens: np.ndarray,
    free: np.ndarray,
    blank: int,
    star_cost: float,
    paths: np.ndarray,
    records: np.ndarray,
    totals: np.ndarray,
) -> None:
    """Sum over the paths of row b, from the start (half 2 b) or from the end (half 2 b + 1).

    ``records[half, t]`` becomes the log-sum over the partial paths that are in the token of ``paths[b, t]`` at
    frame t, that frame counted; ``totals[half]`` that over whole paths, NaN where the input was.
    """
    half = order[task]
    b = half // 2
    n, m = frames[b], tokens[b]
    totals[half] = sum_paths(
        log_probs[b, :n],
        labels[b, :m],
        free[b, :m],
        blank,
        star_cost,
        half % 2 == 1,
        paths[b, :n],
        records[half],
    )
