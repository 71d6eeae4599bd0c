"""Squared Euclidean distances with their gradients, and soft-DTW of vector sequences pair by pair on the CPU."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isotone.kernels._inputs import each_rows
from isotone.kernels.softdtw._plan import WORK, Plan, rounding
from isotone.kernels.softdtw._sequences import sequences_rows
from isotone.types import mask_rows

#: Vectors that are longer are worth a library's product of matrices.
MOST_FEATURES = 128


class SquaredDistances(torch.autograd.Function):
    """|x|^2 + |y|^2 - 2 x.y as one product of matrices, and its gradient as one a side: nothing else is (B, n, m).

    Numbers cancel less without what the sequences have in common, the ``centre (B, 1, d)`` of y.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, centre: Tensor) -> Tensor:
        ctx.save_for_backward(x, y, centre)
        x, y = x - centre, y - centre
        one_x, one_y = torch.ones_like(x[..., :1]), torch.ones_like(y[..., :1])
        left = torch.cat([-2 * x, x.square().sum(2, keepdim=True), one_x], 2)
        right = torch.cat([y, one_y, y.square().sum(2, keepdim=True)], 2)
        return left @ right.mT

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        x, y, centre = ctx.saved_tensors
        x, y = x - centre, y - centre
        wanted = ctx.needs_input_grad
        return (
            pulled_back(grad, x, y) if wanted[0] else None,
            pulled_back(grad.mT, y, x) if wanted[1] else None,
            None,
        )


def centre_of(y: Tensor, lengths: Tensor | None) -> Tensor:
    """The mean ``(B, 1, d)`` of the elements of ``(B, m, d)`` that are there; without gradient."""
    y = y.detach()
    if lengths is None:
        return y.mean(1, keepdim=True)
    return mask_rows(y, lengths).sum(1, keepdim=True) / lengths.clamp(min=1)[:, None, None]


def pulled_back(grad: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """The gradient in x of ``(B, n, m)`` weighted squared distances, sum_j grad_ij 2 (x_i - y_j)."""
    sums = grad @ torch.cat([y, torch.ones_like(y[..., :1])], 2)
    return 2 * (sums[..., -1:] * x - sums[..., :-1])


def values_and_gradients(x: Tensor, y: Tensor, gamma: float, plan: Plan, keep: bool) -> tuple[Tensor, ...]:
    """Values ``(B,)`` of the squared distances, and if they are to be kept their gradients in x and in y.

    Both are float32 or both float64; n is better the smaller.
    """
    values = np.zeros(len(x))
    rows, columns = x.detach().contiguous().numpy(), y.detach().mT.contiguous().numpy()
    of_x, of_y = (np.zeros_like(z) if keep else np.empty((0, 0, 0), z.dtype) for z in (rows, columns))
    size = (4 if keep else 1), plan.shape[1] * plan.shape[2]
    free: deque[np.ndarray] = deque()  # of every thread

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
