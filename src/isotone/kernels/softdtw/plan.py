"""The order in which soft-DTW visits cells: anti-diagonals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from isotone.kernels.native import compiled

#: Work per cell, in the half nanoseconds of each_task.
WORK = 8


@dataclass(frozen=True)
class Plan:
    """The anti-diagonals of a batch of (n, m) matrices.

    Attributes:
        shape: ``(B, N, M)`` of the padded batch; loops are faster where N is not above M.
        n, m: ``(B,)`` int64, lanes and steps of every row.
        low, high: ``(B, N + M - 1)`` int64, first and last lane of every diagonal.
        start: ``(B + 1,)`` int64, index of each row's first cell among all that are visited.
        band: Half width of the band, -1 without one.
    """

    shape: tuple[int, int, int]
    n: np.ndarray
    m: np.ndarray
    low: np.ndarray
    high: np.ndarray
    start: np.ndarray
    band: int

    @classmethod
    def of(cls, shape: tuple[int, int, int], n: np.ndarray, m: np.ndarray, band: int) -> Self:
        """Lay out the diagonals of rows with n lanes and m steps."""
        low, high = (np.zeros((shape[0], max(0, shape[1] + shape[2] - 1)), np.int64) for _ in range(2))
        start = np.zeros(shape[0] + 1, np.int64)
        _plan_rows(n, m, band, low, high, start[1:])
        np.cumsum(start, out=start)
        return cls(shape, n, m, low, high, start, band)

    @property
    def cells(self) -> np.ndarray:
        """Cells of every row, ``(B,)`` int64."""
        return self.start[1:] - self.start[:-1]


@compiled
def _plan_rows(
    n: np.ndarray, m: np.ndarray, band: int, low: np.ndarray, high: np.ndarray, cells: np.ndarray
) -> None:
    """Fill the lanes of every diagonal ``(B, D)`` and the number of cells ``(B,)``; a band below 0 means none.

    Within a band, lane i has the steps j with ``2 |i (m - 1) - j (n - 1)| <= max(2 band, 1) (max(n, m) - 1)``.
    """
    for b in range(len(n)):
        lanes, steps = n[b], m[b]
        reach = max(2 * band, 1) * (max(lanes, steps) - 1)
        first, last = np.zeros(lanes, np.int64), np.full(lanes, steps - 1)
        if band >= 0 and lanes > 1:
            for i in range(lanes):
                middle = 2 * i * (steps - 1)
                first[i] = max(0, -((reach - middle) // (2 * (lanes - 1))))
                last[i] = min(steps - 1, (middle + reach) // (2 * (lanes - 1)))
        # first and last lane never decrease from one diagonal to the next: one pass for all diagonals
        lo, hi, count = 0, -1, 0
        for d in range(lanes + steps - 1):
            while hi + 1 < lanes and hi + 1 + first[hi + 1] <= d:
                hi += 1
            while lo + last[lo] < d:
                lo += 1
            low[b, d], high[b, d] = lo, hi
            count += hi - lo + 1
        cells[b] = count


def rounding(dtype: torch.dtype) -> float:
    """Return the rounding error of a soft minimum's two weights: below it, the third counts as 0."""
    return 8 * torch.finfo(dtype).eps


def dense(matrix: Tensor) -> Tensor:
    """Return the batch of matrices without gaps in memory, each by rows or by columns."""
    return matrix if matrix.mT.is_contiguous() else matrix.contiguous()
