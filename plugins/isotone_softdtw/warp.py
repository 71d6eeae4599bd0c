"""Warpers of two long sequences: dynamic time warping, and its soft version."""

from __future__ import annotations

from math import inf
from typing import ClassVar

from torch import Tensor

from isotone.interfaces import Warper
from isotone.kernels.warping import dtw_spans, soft_dtw_warp
from isotone.types import Warp, Window


class DTWWarper(Warper):
    """Dynamic time warping: the path of the least sum of squared distances.

    A position that the path matches with several others lies in their middle. O(n m) time; the memory is bounded.
    """

    most_cells: ClassVar[int] = 2**29

    def __call__(self, x: Tensor, y: Tensor, window: Window | None = None, *, part: bool = False) -> Warp:
        """See :meth:`Warper.__call__`; the score is minus the path's cost."""
        spans, cost = dtw_spans(x, y, window, part=part)
        return Warp(spans.double().mean(1), -cost)


class SoftDTWWarper(Warper):
    r"""Soft-DTW: every position is placed at the mean over all paths, weighted by :math:`e^{-c / \gamma}`.

    A hard path jumps where two are about as good; the mean lies between them.

    Args:
        gamma: Width of the soft minimum, as a share of the mean squared distance of y's vectors from their mean.

    Raises:
        ValueError: gamma not above 0.
    """

    most_cells: ClassVar[int] = 2**26

    def __init__(self, gamma: float = 0.2) -> None:
        if not gamma > 0:
            raise ValueError(
                f"SoftDTWWarper expects gamma > 0; got {gamma}. The warper 'dtw' is its limit at 0."
            )
        self.gamma = gamma

    def __call__(self, x: Tensor, y: Tensor, window: Window | None = None, *, part: bool = False) -> Warp:
        """See :meth:`Warper.__call__`; the score is minus the soft-DTW value."""
        spread = float((y - y.mean(0)).square().sum(1).mean())
        # of vectors that are not finite, which is an error, or that are all equal
        unit = spread if 0 < spread < inf else 1.0
        return soft_dtw_warp(x, y, self.gamma * unit, window, part=part)
