"""Soft-DTW on the CPU: the compiled loops on tensors."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from isotone.kernels._inputs import each_rows
from isotone.kernels.softdtw._backward import backward_rows, path_rows
from isotone.kernels.softdtw._forward import forward_rows
from isotone.kernels.softdtw._tangents import tangent_rows
from isotone.kernels.softdtw.plan import WORK, Plan, dense, rounding


def forward(cost: Tensor, plan: Plan, gamma: float, keep: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Return values ``(B,)`` float64, and if ``keep`` the packed soft-min weights of all cells, else empty tensors."""
    values = np.zeros(len(cost))
    up, left = (cost.new_empty(int(plan.start[-1]) if keep else 0) for _ in range(2))
    flat, strides = _flat(cost)
    each_rows(
        forward_rows, WORK * plan.cells, flat, strides, plan.n, plan.m, plan.low, plan.high, plan.start, gamma,
        up.numpy(), left.numpy(), values,
    )  # fmt: skip
    return torch.from_numpy(values), up, left


def best_paths(up: Tensor, left: Tensor, plan: Plan) -> tuple[Tensor, Tensor, Tensor]:
    """Return lanes and steps ``(B, K)`` of the best paths, padded with their last cells, and their lengths ``(B,)``.

    Args:
        up, left: Weights that :func:`forward` keeps at gamma = 0, of rows whose values are finite.
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
    """Return expected alignments times their weights, of the shape and layout of the cost."""
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
    """Return Hessians times a direction and weights, and the gradients' inner products with it ``(B,)`` float64."""
    direction = dense(direction)
    out, inner = torch.zeros_like(direction), np.zeros(len(direction))
    (flat_in, strides), (flat_out, _) = _flat(direction), _flat(out)
    each_rows(
        tangent_rows, WORK * plan.cells, flat_in, strides, up.numpy(), left.numpy(), plan.n, plan.m, plan.low,
        plan.high, plan.start, 1 / gamma if gamma > 0 else 0.0, rounding(up.dtype), _weights(weight), flat_out,
        inner,
    )  # fmt: skip
    return out, torch.from_numpy(inner)


def _weights(weight: Tensor) -> np.ndarray:
    return weight.detach().double().contiguous().numpy()


def _flat(matrix: Tensor) -> tuple[np.ndarray, tuple[int, int, int]]:
    by_rows = matrix if matrix.is_contiguous() else matrix.mT
    batch, row, column = matrix.stride()
    return by_rows.detach().view(-1).numpy(), (batch, row, column)
