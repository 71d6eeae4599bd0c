"""Soft-DTW of vector sequences by their squared distances, pair by pair on the CPU."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isotone.kernels._inputs import each_rows
from isotone.kernels.softdtw import cpu
from isotone.kernels.softdtw._sequences import sequences_rows
from isotone.kernels.softdtw.distances import (
    SquaredDistances,
    centre_of,
    check_sequences,
    gradient_in_first,
    squared_distances,
)
from isotone.kernels.softdtw.inputs import check_options, lengths_of, of_one_type
from isotone.kernels.softdtw.plan import WORK, Plan, rounding
from isotone.kernels.softdtw.soft import Alignment, soft_dtw

# Distances of longer vectors are worth a library's matrix product.
_MOST_FEATURES = 128


def soft_dtw_sqeuclidean(
    x: Tensor,
    y: Tensor,
    gamma: float = 1.0,
    source_lengths: Tensor | None = None,
    target_lengths: Tensor | None = None,
    *,
    band: int | None = None,
) -> Tensor:
    """The soft minimum :func:`soft_dtw` of the :func:`squared_distances`, which on the CPU are not stored.

    Args:
        x, y: ``(B, n, d)`` and ``(B, m, d)`` floating; finite also beyond the lengths.
        gamma, source_lengths, target_lengths, band: As in :func:`soft_dtw`.

    Returns:
        ``(B,)``. Up to 128 features the CPU finds the gradient along with the value, one pair per thread at a time, in
        memory of 4 n m numbers per thread. A second derivative computes the costs again.

    Raises:
        ValueError: as in :func:`soft_dtw`.
    """
    check_sequences(x, y)
    x, y = of_one_type(x, y)
    if x.device.type != "cpu" or x.shape[2] > _MOST_FEATURES:
        costs = squared_distances(x, y, target_lengths)
        return soft_dtw(costs, gamma, source_lengths, target_lengths, band=band)
    if x.shape[1] > y.shape[1]:
        x, y, source_lengths, target_lengths = y, x, target_lengths, source_lengths
    if len(x) and 0 in (x.shape[1], y.shape[1]):
        raise ValueError(
            f"Expected sequences of one element at least; got {tuple(x.shape)}, {tuple(y.shape)}."
        )
    check_options(gamma, band)
    n, m = lengths_of(source_lengths, len(x), x.shape[1]), lengths_of(target_lengths, len(y), y.shape[1])
    plan = Plan.of((len(x), x.shape[1], y.shape[1]), n, m, -1 if band is None else int(band))
    if not (torch.is_grad_enabled() and (x.requires_grad or y.requires_grad)):
        return _values_and_gradients(x, y, float(gamma), plan, False)[0]
    return _FromSequences.apply(x, y, float(gamma), plan)


class _FromSequences(torch.autograd.Function):
    """Values of sequences, the first the shorter one, whose gradients come with them."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, gamma: float, plan: Plan) -> Tensor:
        values, *gradients = _values_and_gradients(x, y, gamma, plan, True)
        ctx.save_for_backward(x, y, *gradients)
        ctx.setting = gamma, plan
        return values

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, y, *gradients = ctx.saved_tensors
        gamma, plan = ctx.setting
        rest = (None,) * 2
        if not torch.is_grad_enabled():
            of_x, of_y = (
                grad[:, None, None] * gradient if needed else None
                for gradient, needed in zip(gradients, ctx.needs_input_grad)
            )
            return of_x, of_y, *rest
        centre = centre_of(y, torch.from_numpy(plan.m))
        cost = SquaredDistances.apply(x, y, centre)
        _, up, left = cpu.forward(cost.detach(), plan, gamma, True)
        visits = Alignment.apply(cost, grad, up, left, gamma, plan, cpu)
        # the products of SquaredDistances.backward, to be differentiated in turn
        x, y = x - centre, y - centre
        return gradient_in_first(visits, x, y), gradient_in_first(visits.mT, y, x), *rest


def _values_and_gradients(x: Tensor, y: Tensor, gamma: float, plan: Plan, keep: bool) -> tuple[Tensor, ...]:
    """Return the values ``(B,)``, and if ``keep`` their gradients in x and in y.

    Both are float32 or both float64; it is faster where n is not above m.
    """
    values = np.zeros(len(x))
    rows, columns = x.detach().contiguous().numpy(), y.detach().mT.contiguous().numpy()
    of_x, of_y = (np.zeros_like(z) if keep else np.empty((0, 0, 0), z.dtype) for z in (rows, columns))
    size = (4 if keep else 1), plan.shape[1] * plan.shape[2]
    free: deque[np.ndarray] = deque()  # buffers that no task uses: at most one per thread

    def some(task: int, *arguments: Any) -> None:
        buffers = free.pop() if free else np.empty(size, rows.dtype)
        sequences_rows(task, *arguments, buffers, values, of_x, of_y)
        free.append(buffers)

    cells = plan.cells
    each_rows(
        some, WORK * cells, np.zeros(len(x), np.int64), np.ones(len(x)), rows, columns, plan.n, plan.m, plan.low,
        plan.high, cells, gamma, rounding(x.dtype),
    )  # fmt: skip
    gradients = (2 * torch.from_numpy(of_x), 2 * torch.from_numpy(of_y).mT) if keep else ()
    return torch.from_numpy(values).to(x.dtype), *gradients
