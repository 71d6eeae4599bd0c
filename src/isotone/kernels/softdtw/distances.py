"""Squared Euclidean distances of all pairs of elements of two sequences, with gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from isotone.kernels.softdtw.inputs import lengths_of, of_one_type
from isotone.types import mask_rows


def check_sequences(x: Tensor, y: Tensor) -> None:
    """Raise ValueError unless x and y are ``(B, n, d)`` and ``(B, m, d)``."""
    if x.ndim != 3 or y.ndim != 3 or x.shape[::2] != y.shape[::2]:
        raise ValueError(
            f"Expected sequences (B, n, d) and (B, m, d); got {tuple(x.shape)} and {tuple(y.shape)}. "
            "For one pair use x[None] and y[None]."
        )


def squared_distances(x: Tensor, y: Tensor, target_lengths: Tensor | None = None) -> Tensor:
    """The squared Euclidean distance of every pair of elements.

    Args:
        x, y: ``(B, n, d)`` and ``(B, m, d)`` floating.
        target_lengths: ``(B,)`` int64, elements of y that are there: what its mean is taken of. Default: all.

    Returns:
        ``(B, n, m)``, good to the rounding of the squared norms (of what differs from the mean of y): it may come out
        below 0 by so much; float32 for half precision. Differentiable as often as one likes.

    Raises:
        ValueError: shapes that do not fit together.
    """
    check_sequences(x, y)
    x, y = of_one_type(x, y)
    if target_lengths is not None:
        lengths_of(target_lengths, len(y), y.shape[1])
    return SquaredDistances.apply(x, y, centre_of(y, target_lengths))


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
