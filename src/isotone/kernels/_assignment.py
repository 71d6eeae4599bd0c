"""The compiled loops of :mod:`isotone.kernels.assignment`: plain arrays in and out, nothing is checked here."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def minimum_row(
    b: int,
    costs: np.ndarray,
    weights: np.ndarray,
    positions: np.ndarray,
    labels: np.ndarray,
    path: np.ndarray,
    value: np.ndarray,
) -> None:
    """Of costs ``(B, m, n)``: ``better[j, i]`` says that ending j at i beats ending it at any smaller index."""
    n, m = positions[b], labels[b]
    best = np.zeros(n)
    better = np.empty((m, n), np.bool_)
    broken = False
    for j in range(m):
        weight, low = weights[b, j], np.inf
        for i in range(n):
            # a label without weight costs nothing anywhere, not 0 times infinity
            total = best[i] + (weight * costs[b, j, i] if weight != 0 else 0.0)
            broken |= np.isnan(total)
            better[j, i] = total < low or i == 0
            low = total if better[j, i] else low
            best[i] = low
    value[b] = np.nan if broken else best[n - 1] if m else 0.0
    i = n - 1
    for j in range(m - 1, -1, -1):
        while not better[j, i]:
            i -= 1
        path[b, j] = i


@njit(nogil=True, cache=True)
def assignment_row(
    b: int,
    rewards: np.ndarray,
    queries: np.ndarray,
    positions: np.ndarray,
    path: np.ndarray,
    value: np.ndarray,
) -> None:
    """Of rewards ``(B, m, n)``: query j lies in j .. n - m + j, and counts positions from j on."""
    m, n = queries[b], positions[b]
    width = n - m + 1
    best = np.zeros(width)
    better = np.empty((m, width), np.bool_)
    broken = False
    for j in range(m):
        high = -np.inf
        for i in range(width):
            total = best[i] + rewards[b, j, j + i]
            broken |= np.isnan(total)
            better[j, i] = total > high or i == 0
            high = total if better[j, i] else high
            best[i] = high
    value[b] = np.nan if broken else best[width - 1] if m else 0.0
    i = width - 1
    for j in range(m - 1, -1, -1):
        while not better[j, i]:
            i -= 1
        path[b, j] = j + i
