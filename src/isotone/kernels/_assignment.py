"""The compiled loops of :mod:`isotone.kernels.assignment`: plain arrays in and out, nothing is checked here."""

from __future__ import annotations

import numpy as np

from isotone.kernels.native import compiled


@compiled
def minimum_row(
    b: int,
    costs: np.ndarray,
    weights: np.ndarray,
    positions: np.ndarray,
    labels: np.ndarray,
    path: np.ndarray,
    value: np.ndarray,
) -> None:
    """Find the cheapest non-decreasing indices for costs ``(B, n, m)``: path and value of row b.

    ``better[i, j]`` is true where ending target j at i beats ending it at any smaller index.
    """
    n, m = positions[b], labels[b]
    best = np.full(m, np.inf)
    better = np.empty((n, m), np.bool_)
    cost = np.empty(m)
    broken = False
    for i in range(n):
        for j in range(m):
            # a label without weight costs nothing anywhere, not 0 times infinity
            cost[j] = weights[b, j] * costs[b, i, j] if weights[b, j] != 0 else 0.0
            broken |= cost[j] != cost[j]
        low = 0.0  # the cheapest way to end the target before, at i or earlier
        for j in range(m):
            total = low + cost[j]
            low = min(total, best[j])
            better[i, j] = total < best[j]
            best[j] = low
    better[:1] = True  # the back-trace ends at the first source
    value[b] = np.nan if broken else best[m - 1] if m else 0.0
    i = n - 1
    for j in range(m - 1, -1, -1):
        while not better[i, j]:
            i -= 1
        path[b, j] = i


@compiled
def assignment_row(
    b: int,
    rewards: np.ndarray,
    queries: np.ndarray,
    positions: np.ndarray,
    path: np.ndarray,
    value: np.ndarray,
) -> None:
    """Find the best increasing indices for rewards ``(B, m, n)``: path and value of row b.

    Query j lies in j .. n - m + j, and its positions are counted from j on: i stands for position j + i.
    """
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
