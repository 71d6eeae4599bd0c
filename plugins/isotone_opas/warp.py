"""Time warping by order-preserving selection: places of a sequence select their places in another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from isotone.alignment import AlignmentError
from isotone.interfaces import Relaxation, Warper
from isotone.kernels.softdtw import squared_distances
from isotone.registries import relaxations
from isotone.types import Warp, Window
from isotone_opas.kernels._warping import select_rows

# Cells of a block of rows.
_BLOCK = 2**22

# A plan of a relaxation has zeros; their logarithm stays finite.
_LEAST_MASS = 1e-12

# Spread of y as a share of the largest number, below which it is rounding.
_LEAST_SPREAD = 1e-15


class OPASWarper(Warper):
    r"""Order-preserving selection: every ``step``-th position of x, with its context, selects one of y, in order.

    The positions :math:`t_1 < t_2 < \dots` of y maximise

    .. math:: -\frac{1}{\sigma^2} \sum_k \frac{1}{2w + 1} \sum_{o=-w}^{w} |x_{i_k + o} - y_{t_k + o}|^2
              - \kappa \sum_k \left|\frac{t_k - t_{k-1}}{\text{step}} - 1\right|

    with :math:`\sigma^2` the mean squared distance of y's vectors from their mean. This is OPAS with x as the query, y
    as the corpus sequence, right monotone and exact, and with its penalty for gaps. Positions between the selecting
    ones are interpolated. Unlike in DTW, positions of y that nothing selects cost only their gap.

    Args:
        step: Positions of x from one that selects to the next.
        context: w, positions on either side that are compared as well.
        slope: :math:`\kappa`.
        relaxation: ``"ordered"``: exact. Or another relaxation, by its name or a mapping of its name and options: the
            exact selection is then of the logarithm of its plan.

    Raises:
        ValueError: an option outside its range.
        LookupError: no such relaxation.

    References: "Learning Right Monotone Permutation Matrices for Neural Subsequence Search".
    """

    def __init__(
        self,
        *,
        step: int = 5,
        context: int = 6,
        slope: float = 0.3,
        relaxation: str | Mapping[str, Any] = "ordered",
    ) -> None:
        if step < 1 or context < 0 or not slope >= 0:
            raise ValueError(
                f"OPASWarper expects step >= 1, context >= 0 and slope >= 0; got {step}, {context} and {slope}."
            )
        self.step = step
        self.context = context
        self.slope = slope
        self.relaxation: Relaxation | None = None
        if relaxation != "ordered":
            self.relaxation = relaxations.create(relaxation)

    @torch.no_grad()
    def __call__(self, x: Tensor, y: Tensor, window: Window | None = None, *, part: bool = False) -> Warp:
        """See :meth:`Warper.__call__`; the score is the maximum above.

        Raises:
            AlignmentError: vectors that are not finite, or fewer positions of y than select.
            ValueError: as in :meth:`Warper.__call__`.
        """
        x, y = x.cpu(), y.cpu()
        if x.shape[1] != y.shape[1]:
            raise ValueError(f"Expected vectors of one size; got {x.shape[1]} and {y.shape[1]} numbers.")
        for z in (x, y):
            if not torch.isfinite(z).all():
                raise AlignmentError("a sequence has vectors that are not finite.")
        n, m = len(x), len(y)
        window = window or Window.whole(n, m)
        window.check(n, m)
        rows = torch.arange(min(self.step // 2, n - 1), n, self.step)
        if len(rows) > m:
            raise AlignmentError(f"{len(rows)} positions cannot select among {m}: give a larger step.")
        selected, score = self._select(x, y, rows, window, part)
        return Warp(_between(rows, selected, n, m, part), score)

    def _select(
        self, x: Tensor, y: Tensor, rows: Tensor, window: Window, part: bool
    ) -> tuple[np.ndarray, float]:
        """Return the positions of y that the rows select, and the maximum."""
        low, high = window.low[rows].numpy(), window.high[rows].numpy()
        border = np.full(len(y), -np.inf)
        parts = []
        lead = int(rows[0])
        for start, stop, scores in self._scores(x, y, rows, low, high):
            origins = np.empty(scores.shape, np.int32)
            frame = scores, int(low[start]), low[start:stop], high[start:stop]
            select_rows(*frame, self.step, self.slope, start == 0, part, lead, border, origins)
            parts.append((int(low[start]), origins))
        if not part:  # the rest after the last row should be as long as that of x
            rest = len(y) - len(x) + int(rows[-1]) - np.arange(len(y))
            border -= self.slope / self.step * np.abs(rest)
        column = int(np.argmax(border))
        score = float(border[column])
        if score == -np.inf:
            raise AlignmentError("no selection leads through the window.")
        selected = []
        for begin, origins in reversed(parts):
            for row in origins[::-1]:
                selected.append(column)
                column = int(row[column - begin])
        return np.array(selected[::-1]), score

    def _scores(
        self, x: Tensor, y: Tensor, rows: Tensor, low: np.ndarray, high: np.ndarray
    ) -> Iterator[tuple[int, int, np.ndarray]]:
        """Yield blocks of rows: first, one past the last, and scores ``(K, W)`` of the columns of their window."""
        scale = -1 / (2 * self.context + 1)
        near = [_padded(z, self.context) for z in _in_units(x, y)]
        plan = None
        if self.relaxation is not None:
            reward = self._rewards(near, rows, slice(0, len(y))) * scale
            plan = self.relaxation(reward[None])[0].clamp(min=_LEAST_MASS).log()
        start = 0
        while start < len(rows):
            # about as many rows as a row is wide, in positions of y: few columns lie outside of the window
            stop = min(len(rows), start + max(16, int(high[start] - low[start]) // self.step))
            while stop > start + 1 and (stop - start) * int(high[stop - 1] - low[start]) > _BLOCK:
                stop = start + (stop - start + 1) // 2
            columns = slice(int(low[start]), int(high[stop - 1]))
            if plan is None:
                scores = self._rewards(near, rows[start:stop], columns) * scale
            else:
                scores = plan[start:stop, columns]
            yield start, stop, scores.float().contiguous().numpy()
            start = stop

    def _rewards(self, near: list[Tensor], rows: Tensor, columns: slice) -> Tensor:
        """Squared distances ``(K, W)`` of rows of x and columns of y with their context, from both padded."""
        x, y = near
        first, last = int(rows[0]), int(rows[-1])
        width = 2 * self.context
        context_x = _contexts(x[first : last + 1 + width], width)[rows - first]
        context_y = _contexts(y[columns.start : columns.stop + width], width)
        return squared_distances(context_x[None], context_y[None])[0]


def _in_units(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Move and scale sequences, so that y has mean 0 and spread 1: single precision then holds any distances."""
    middle = y.double().mean(0)
    unit = float((y - middle).square().sum(1).mean()) ** 0.5
    farthest = max(float((z - middle).abs().max()) for z in (x, y))
    if unit < farthest * _LEAST_SPREAD:  # the vectors of y are equal, but for rounding
        unit = farthest
    unit = unit or 1.0
    return ((x - middle) / unit).float(), ((y - middle) / unit).float()


def _padded(x: Tensor, context: int) -> Tensor:
    """Repeat the first and the last vector of ``(n, d)`` as often as a context needs."""
    return F.pad(x.T[None], (context, context), mode="replicate")[0].T


def _contexts(padded: Tensor, width: int) -> Tensor:
    """Join every vector with the ``width`` ones after it: ``(n - width, (width + 1) d)``."""
    return padded.unfold(0, width + 1, 1).flatten(1)


def _between(rows: Tensor, selected: np.ndarray, n: int, m: int, part: bool) -> Tensor:
    """Places ``(n,)`` of all positions, interpolated between those that select; at the ends at the same speed."""
    known, places = rows.numpy().astype(float), selected.astype(float)
    before, after = places[0] - known[0], places[-1] + n - 1 - known[-1]
    if not part:
        before, after = 0.0, m - 1.0
    if known[0] > 0:
        known, places = np.append(-0.0, known), np.append(max(0.0, before), places)
    if known[-1] < n - 1:
        known, places = np.append(known, n - 1.0), np.append(places, min(m - 1.0, after))
    return torch.from_numpy(np.interp(np.arange(n), known, places))
