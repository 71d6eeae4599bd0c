"""Warps: the place of every position of one sequence in another, and the window in which it is looked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from isotone.tensors import Tensor, torch


@dataclass(frozen=True)
class Warp:
    """The place in a sequence of m positions of each of n positions of another.

    Attributes:
        places: ``(n,)`` float64, never decreasing, from 0 to m - 1. A position that lies between two others, or is
            spread over several, has a fraction.
        score: What the warper maximised; minus the cost of a path, say.
    """

    places: Tensor
    score: float


@dataclass(frozen=True)
class Window:
    """The positions of a sequence of m that each of n positions of another may be warped to.

    Position i may be warped to ``low[i] .. high[i] - 1``. No gap lies between neighbours, so that a path leads through.

    Attributes:
        low, high: ``(n,)`` int64, never decreasing, with ``low[i + 1] <= high[i]``.
    """

    low: Tensor
    high: Tensor

    @classmethod
    def whole(cls, n: int, m: int) -> Self:
        """All m positions for each of n."""
        return cls(torch.zeros(n, dtype=torch.long), torch.full((n,), m))

    @property
    def cells(self) -> int:
        """Pairs of positions in the window."""
        return int((self.high - self.low).sum())

    def check(self, n: int, m: int) -> None:
        """Raise ValueError unless a path leads through the window."""
        low, high = self.low, self.high
        if low.shape != (n,) or high.shape != (n,):
            raise ValueError(
                f"Expected a window of {n} positions; got {tuple(low.shape)} and {tuple(high.shape)}."
            )
        inside = bool(((low >= 0) & (high <= m) & (low < high)).all())
        ordered = bool((low.diff() >= 0).all() and (high.diff() >= 0).all())
        if not (inside and ordered and bool((low[1:] <= high[:-1]).all())):
            raise ValueError(f"Expected a window within 0 .. {m} that never decreases and has no gaps.")
