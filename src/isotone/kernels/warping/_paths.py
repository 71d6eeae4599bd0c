"""The compiled loops of dynamic time warping in a window: plain arrays in and out, nothing is checked here.

A block is some rows of the window, with costs ``(K, W)`` of the columns from ``begin`` on. A border is the row above a
block, ``(m,)`` with infinity outside of its window.
"""

from __future__ import annotations

import numpy as np

from isotone.kernels.native import compiled

# Steps into a cell: from the row above and the column before, from the row above, from the column before.
DIAGONAL, ABOVE, BEFORE, BEGIN = 0, 1, 2, 3


@compiled
def hard_block(
    costs: np.ndarray,
    begin: int,
    low: np.ndarray,
    high: np.ndarray,
    border: np.ndarray,
    first: bool,
    free: bool,
    steps: np.ndarray,
) -> None:
    """Move a border over a block: afterwards it is the block's last row.

    Args:
        costs: ``(K, W)`` floating.
        begin: Column of the costs' first one.
        low, high: ``(K,)`` int64, window of the rows.
        border: ``(m,)`` float64, changed in place.
        first: True for the first row of all, which paths begin in.
        free: True where they begin in any column, not only in the first one.
        steps: ``(K, W)`` uint8, filled with the best step into every cell; or ``(0, 0)``.
    """
    for k in range(len(low)):
        start, stop = low[k], high[k]
        left, corner = np.inf, border[start - 1] if start > 0 else np.inf
        initial = first and k == 0
        for j in range(start, stop):
            above = border[j]
            step, best = DIAGONAL, corner
            if above < best:
                step, best = ABOVE, above
            if left < best:
                step, best = BEFORE, left
            if initial and (free or j == 0) and not best <= 0.0:
                step, best = BEGIN, 0.0
            left = best + costs[k, j - begin]
            border[j] = left
            corner = above
            if len(steps):
                steps[k, j - begin] = step
        if start > 0:
            border[start - 1] = np.inf


@compiled
def walk_block(steps: np.ndarray, begin: int, rows: int, column: int, spans: np.ndarray) -> int:
    """Follow steps ``(K, W)`` back from a column of a block's last row.

    Fills the first and last column of the path in every row, ``spans (K, 2)``, and returns the column in which the path
    enters the row above the block; -1 where it begins within the block.
    """
    j = column
    for k in range(rows - 1, -1, -1):
        spans[k, 1] = j
        while steps[k, j - begin] == BEFORE:
            j -= 1
        spans[k, 0] = j
        step = steps[k, j - begin]
        if step == BEGIN:
            return -1
        if step == DIAGONAL:
            j -= 1
    return j


@compiled
def _sum3(a: float, b: float, c: float) -> float:
    """log(exp a + exp b + exp c), minus infinity where all are."""
    top = max(a, max(b, c))
    if top == -np.inf:
        return top
    return top + np.log(np.exp(a - top) + np.exp(b - top) + np.exp(c - top))


@compiled
def forward_block(
    scores: np.ndarray,
    begin: int,
    low: np.ndarray,
    high: np.ndarray,
    border: np.ndarray,
    first: bool,
    free: bool,
    sums: np.ndarray,
) -> None:
    """Move a border of log-sums over all paths over a block; see :func:`hard_block`.

    Args:
        scores: ``(K, W)`` floating, log-weights of the cells.
        sums: ``(K, W)`` float64, filled with the log-sums over the paths that end in each cell; or ``(0, 0)``.
    """
    for k in range(len(low)):
        start, stop = low[k], high[k]
        left, corner = -np.inf, border[start - 1] if start > 0 else -np.inf
        initial = first and k == 0
        for j in range(start, stop):
            above = border[j]
            if initial:
                total = _sum3(left, 0.0 if free or j == 0 else -np.inf, -np.inf)
            else:
                total = _sum3(corner, above, left)
            left = total + scores[k, j - begin]
            border[j] = left
            corner = above
            if len(sums):
                sums[k, j - begin] = left
        if start > 0:
            border[start - 1] = -np.inf


@compiled
def backward_block(
    scores: np.ndarray,
    begin: int,
    low: np.ndarray,
    high: np.ndarray,
    border: np.ndarray,
    last: bool,
    free: bool,
    sums: np.ndarray,
    total: float,
    places: np.ndarray,
) -> None:
    """Move a border of log-sums over the paths to the end up over a block, and average the columns of its rows.

    Args:
        scores, begin, low, high, sums: As in :func:`forward_block`.
        border: ``(m,)`` float64, log-sums over the paths from each cell of the row below on, the cell included;
            changed in place to the block's first row.
        last: True where the block has the last row of all, which paths end in.
        free: True where they end in any column, not only in the last one.
        total: Log-sum over all paths.
        places: ``(K,)`` float64, filled with the expected column of every row: the mean over its cells by their
            probabilities.
    """
    for k in range(len(low) - 1, -1, -1):
        start, stop = low[k], high[k]
        final = last and k == len(low) - 1
        right, corner = -np.inf, border[stop] if stop < len(border) else -np.inf
        weight, place = 0.0, 0.0
        for j in range(stop - 1, start - 1, -1):
            below = border[j]
            if final:
                after = _sum3(right, 0.0 if free or j == len(border) - 1 else -np.inf, -np.inf)
            else:
                after = _sum3(corner, below, right)
            right = after + scores[k, j - begin]
            border[j] = right
            corner = below
            share = np.exp(sums[k, j - begin] + after - total)
            weight += share
            place += share * j
        places[k] = place / weight
        if stop < len(border):
            border[stop] = -np.inf
