"""Which cells soft-DTW visits in what order, and the compiled loops on tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from isotone.kernels._inputs import each_rows
from isotone.kernels.softdtw._cells import backward_rows, forward_rows, path_rows, plan_rows
from isotone.kernels.softdtw._hessian import hessian_rows

#: A cell takes as long as so many cells of the kernels that threads are shared out by.
WORK = 8


@dataclass(frozen=True)
class Plan:
    """The anti-diagonals of a batch of (n, m) matrices.

    Attributes:
        shape: ``(B, N, M)`` of the padded batch; N is better the smaller.
        n, m: ``(B,)`` int64, lanes and steps of every row.
        low, high: ``(B, N + M - 1)`` int64, first and last lane of every diagonal.
        start: ``(B + 1,)`` int64, where the cells of every row begin among all that are visited.
        band: The half width of the band, -1 without one.
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
        plan_rows(n, m, band, low, high, start[1:])
        np.cumsum(start, out=start)
        return cls(shape, n, m, low, high, start, band)

    @property
    def cells(self) -> np.ndarray:
        """``(B,)`` int64, cells of every row."""
        return self.start[1:] - self.start[:-1]


def forward(cost: Tensor, plan: Plan, gamma: float, keep: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Values ``(B,)`` float64, and the packed soft-min weights of all cells, or empty tensors."""
    values = np.zeros(len(cost))
    up, left = (cost.new_empty(int(plan.start[-1]) if keep else 0) for _ in range(2))
    flat, strides = _flat(cost)
    each_rows(
        forward_rows, WORK * plan.cells, flat, strides, plan.n, plan.m, plan.low, plan.high, plan.start, gamma,
        up.numpy(), left.numpy(), values,
    )  # fmt: skip
    return torch.from_numpy(values), up, left


def best_paths(up: Tensor, left: Tensor, plan: Plan) -> tuple[Tensor, Tensor, Tensor]:
    """Lanes and steps ``(B, K)`` of the best paths, padded with their last cells, and their lengths ``(B,)``.

    Args:
        up, left: What :func:`forward` keeps at gamma = 0, of rows whose values are finite.
        plan: Its plan.
    """
    batch, n, m = plan.shape
    lanes, steps = (np.zeros((batch, max(1, n + m - 1)), np.int64) for _ in range(2))
    count = np.zeros(batch, np.int64)
    each_rows(
        path_rows, plan.n + plan.m, up.numpy(), left.numpy(), plan.n, plan.m, plan.low, plan.high, plan.start, lanes,
        steps, count,
    )  # fmt: skip
    size = max(1, count.max(initial=0))
    return torch.from_numpy(lanes[:, :size]), torch.from_numpy(steps[:, :size]), torch.from_numpy(count)


def backward(cost: Tensor, up: Tensor, left: Tensor, plan: Plan, weight: Tensor) -> Tensor:
    """Expected alignments times their weights, of the shape and layout of the cost."""
    full = int(plan.start[-1]) == cost.numel()
    out = torch.empty_like(cost) if full else torch.zeros_like(cost)
    flat, strides = _flat(out)
    each_rows(
        backward_rows, WORK * plan.cells, up.numpy(), left.numpy(), plan.n, plan.m, plan.low, plan.high, plan.start,
        plan.cells, _weights(weight), strides, rounding(up.dtype), flat,
    )  # fmt: skip
    return out


def hessian(
    direction: Tensor, up: Tensor, left: Tensor, plan: Plan, gamma: float, weight: Tensor
) -> tuple[Tensor, Tensor]:
    """Hessians times a direction, times their weights; and the gradients' inner products with it ``(B,)`` float64."""
    direction = dense(direction)
    out, inner = torch.zeros_like(direction), np.zeros(len(direction))
    (flat_in, strides), (flat_out, _) = _flat(direction), _flat(out)
    each_rows(
        hessian_rows, WORK * plan.cells, flat_in, strides, up.numpy(), left.numpy(), plan.n, plan.m, plan.low,
        plan.high, plan.start, 1 / gamma if gamma > 0 else 0.0, rounding(up.dtype), _weights(weight), flat_out,
        inner,
    )  # fmt: skip
    return out, torch.from_numpy(inner)


def rounding(dtype: torch.dtype) -> float:
    """By how much the weights of a soft minimum may be wrong: what is missing to 1 is nothing below."""
    return 8 * torch.finfo(dtype).eps


def dense(matrix: Tensor) -> Tensor:
    """The batch of matrices without gaps in memory, each by rows or by columns."""
    return matrix if matrix.mT.is_contiguous() else matrix.contiguous()


def _weights(weight: Tensor) -> np.ndarray:
    return weight.detach().double().contiguous().numpy()


def _flat(matrix: Tensor) -> tuple[np.ndarray, tuple[int, int, int]]:
    by_rows = matrix if matrix.is_contiguous() else matrix.mT
    batch, row, column = matrix.stride()
    return by_rows.detach().view(-1).numpy(), (batch, row, column)
