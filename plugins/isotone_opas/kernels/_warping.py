"""The compiled loops of order-preserving selection with gap penalties: plain arrays, nothing is checked here."""

from __future__ import annotations

import numpy as np

from isotone.kernels.native import compiled


@compiled
def select_rows(
    scores: np.ndarray,
    begin: int,
    low: np.ndarray,
    high: np.ndarray,
    step: int,
    slope: float,
    first: bool,
    part: bool,
    lead: int,
    border: np.ndarray,
    origins: np.ndarray,
) -> None:
    """Move a border of best sums over a block of rows that select increasing columns.

    Row k's column lies after that of row k - 1 by ``gap >= 1``, at a cost of ``slope |gap - step| / step``.

    Args:
        scores: ``(K, W)`` float32, of the columns from ``begin`` on.
        low, high: ``(K,)`` int64, window of the rows: columns ``low .. high - 1``.
        step: Positions between two rows.
        slope: Cost of a gap that is a step too long or too short.
        first: True for the first row of all.
        part: True where the first row may select any column at no cost.
        lead: Column that the first row selects at no cost otherwise.
        border: ``(m,)`` float64, best sums of the row above, minus infinity outside of its window; changed in place to
            those of the block's last row.
        origins: ``(K, W)`` int32, filled with the column of the row above; -1 for the first row.
    """
    each = slope / step
    values = np.empty(scores.shape[1])
    above_low, above_high = 0, len(border)
    for k in range(len(low)):
        start, stop = low[k], high[k]
        far, far_origin, passed = -np.inf, -1, max(0, above_low)
        for j in range(start, stop):
            if first and k == 0:
                values[j - start] = scores[k, j - begin] - (0.0 if part else each * abs(j - lead))
                origins[k, j - begin] = -1
                continue
            far -= each
            while passed <= j - step:  # columns that are a step or more before this one
                value = border[passed] - each * (j - step - passed)
                if value >= far:
                    far, far_origin = value, passed
                passed += 1
            best, origin = far, far_origin
            for near in range(max(0, j - step + 1), j):
                value = border[near] - each * (step - (j - near))
                if value > best:
                    best, origin = value, near
            values[j - start] = best + scores[k, j - begin]
            origins[k, j - begin] = origin
        border[above_low:above_high] = -np.inf
        border[start:stop] = values[: stop - start]
        above_low, above_high = start, stop
