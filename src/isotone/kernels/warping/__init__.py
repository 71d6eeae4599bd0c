"""Dynamic time warping of two long sequences of vectors: bounded memory, within a window, with free ends.

Costs are squared distances, computed block by block and twice: no matrix of n times m is ever there. Kept are the
rows between blocks, so memory grows with the square root of the window's cells times its width. What
:mod:`isotone.kernels.softdtw` gives for batches, with gradients and any costs, this gives for one long pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from isotone.alignment import AlignmentError
from isotone.kernels.softdtw import check_sequences, squared_distances
from isotone.kernels.warping._paths import backward_block, forward_block, hard_block, walk_block
from isotone.types import Warp, Window

__all__ = ["dtw_spans", "soft_dtw_warp"]

# Cells of a block: 32 MB of costs.
_BLOCK = 2**23

_NO_STEPS = np.empty((0, 0), np.uint8)
_NO_SUMS = np.empty((0, 0))


@torch.no_grad()
def dtw_spans(
    x: Tensor, y: Tensor, window: Window | None = None, *, part: bool = False
) -> tuple[Tensor, float]:
    """The best warping path: dynamic time warping of squared distances, with steps of one position in either or both.

    Args:
        x, y: ``(n, d)`` and ``(m, d)`` floating.
        window: Cells that the path may pass. Default: all.
        part: Leave the ends of y free: x is a part of it.

    Returns:
        ``(n, 2)`` int64, the first and last position of y for every position of x; and the path's cost. On ties the
        diagonal step goes first.

    Raises:
        AlignmentError: vectors that are not finite.
        ValueError: shapes or a window that do not fit together.
    """
    pair = _Pair.of(x, y, window)
    border = np.full(len(y), np.inf)
    borders = []
    for block in pair.blocks():
        borders.append(block.keep(border))
        hard_block(pair.costs(block), *block.frame, border, block.first, part, _NO_STEPS)
    column, cost = pair.end(border, part, np.argmin)
    spans = np.empty((len(x), 2), np.int64)
    for block, above in zip(reversed(pair.blocks()), reversed(borders)):
        costs = pair.costs(block)
        steps = np.empty(costs.shape, np.uint8)
        hard_block(costs, *block.frame, block.restore(above, len(y), np.inf), block.first, part, steps)
        rows = slice(block.start, block.stop)
        column = walk_block(steps, block.begin, len(costs), column, spans[rows])
    return torch.from_numpy(spans), cost


@torch.no_grad()
def soft_dtw_warp(
    x: Tensor, y: Tensor, gamma: float, window: Window | None = None, *, part: bool = False
) -> Warp:
    r"""The expected place of every position of x in y over all paths A, by their weights :math:`e^{-c(A) / \gamma}`.

    Args:
        x, y, window, part: As in :func:`dtw_spans`.
        gamma: Width of the soft minimum in the unit of the squared distances, above 0.

    Returns:
        Places, each the mean over its row of the expected alignment :math:`E_\gamma`; the score is minus the soft-DTW
        value.

    Raises:
        AlignmentError, ValueError: as in :func:`dtw_spans`; also gamma not above 0.
    """
    if not gamma > 0:
        raise ValueError(f"Expected gamma > 0; got {gamma}. For gamma 0 there is dtw_spans.")
    pair = _Pair.of(x, y, window)
    border = np.full(len(y), -np.inf)
    borders = []
    for block in pair.blocks():
        borders.append(block.keep(border))
        forward_block(pair.costs(block, -1 / gamma), *block.frame, border, block.first, part, _NO_SUMS)
    _, total = pair.end(border, part, _log_sum)
    places = np.empty(len(x))
    below = np.full(len(y), -np.inf)
    for block, above in zip(reversed(pair.blocks()), reversed(borders)):
        scores = pair.costs(block, -1 / gamma)
        sums = np.empty(scores.shape)
        restored = block.restore(above, len(y), -np.inf)
        forward_block(scores, *block.frame, restored, block.first, part, sums)
        rows = slice(block.start, block.stop)
        backward_block(scores, *block.frame, below, block.last, part, sums, total, places[rows])
    ordered = torch.cummax(torch.from_numpy(places), 0).values
    return Warp(ordered, gamma * total)


@dataclass(frozen=True)
class _Block:
    """Rows ``start .. stop - 1`` of a window, and the columns ``begin .. end - 1`` that hold it."""

    start: int
    stop: int
    begin: int
    end: int
    low: np.ndarray
    high: np.ndarray
    rows: int

    @property
    def first(self) -> bool:
        return self.start == 0

    @property
    def last(self) -> bool:
        return self.stop == self.rows

    @property
    def frame(self) -> tuple[int, np.ndarray, np.ndarray]:
        return self.begin, self.low, self.high

    def keep(self, border: np.ndarray) -> np.ndarray:
        """Copy what of the border above this block can be read again."""
        return border[max(0, self.begin - 1) : self.end].copy()

    def restore(self, kept: np.ndarray, columns: int, outside: float) -> np.ndarray:
        border = np.full(columns, outside)
        border[max(0, self.begin - 1) : self.end] = kept
        return border


@dataclass(frozen=True)
class _Pair:
    """Two checked sequences and the window of their paths."""

    x: Tensor
    y: Tensor
    window: Window

    @classmethod
    def of(cls, x: Tensor, y: Tensor, window: Window | None) -> _Pair:
        check_sequences(x[None], y[None])
        if not len(x) or not len(y):
            raise ValueError(f"Expected sequences with a vector at least; got {len(x)} and {len(y)}.")
        x, y = (z.detach().cpu() for z in (x, y))
        for name, z in (("x", x), ("y", y)):
            if not torch.isfinite(z).all():
                raise AlignmentError(f"the sequence {name} has vectors that are not finite.")
        if window is None:
            window = Window.whole(len(x), len(y))
        window.check(len(x), len(y))
        return cls(x, y, window)

    def blocks(self) -> list[_Block]:
        """Cut the window into blocks, each about as high as wide, which wastes few costs."""
        return list(self._blocks())

    def _blocks(self) -> Iterator[_Block]:
        low, high = self.window.low.numpy(), self.window.high.numpy()
        start, n = 0, len(low)
        while start < n:
            rows = max(64, int(high[start] - low[start]))
            stop = min(n, start + rows)
            while stop > start + 1 and (stop - start) * int(high[stop - 1] - low[start]) > _BLOCK:
                stop = start + (stop - start + 1) // 2
            part = slice(start, stop)
            yield _Block(start, stop, int(low[start]), int(high[stop - 1]), low[part], high[part], n)
            start = stop

    def costs(self, block: _Block, factor: float = 1.0) -> np.ndarray:
        """Squared distances ``(K, W)`` of a block times a factor."""
        x, y = self.x[block.start : block.stop], self.y[block.begin : block.end]
        # rounding can make them negative, and a path that gains by every cell never ends
        return squared_distances(x[None], y[None])[0].clamp_(min=0).mul_(factor).numpy()

    def end(self, border: np.ndarray, part: bool, best: Callable[[np.ndarray], float]) -> tuple[int, float]:
        """Return the column in which the best path ends, and its value; of log-sums, their sum."""
        last = border[int(self.window.low[-1]) :] if part else border[-1:]
        if not np.isfinite(last).any():
            raise AlignmentError("no path leads through the window.")
        if best is np.argmin:
            column = len(border) - len(last) + int(np.argmin(last))
            return column, float(border[column])
        return -1, float(best(last))


def _log_sum(values: np.ndarray) -> float:
    top = float(values.max())
    return top + math.log(np.exp(values - top).sum())
