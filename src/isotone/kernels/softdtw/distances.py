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
        target_lengths: ``(B,)`` int64, valid elements of y, of which its mean is taken. Default: all.

    Returns:
        ``(B, n, m)``, with the rounding error of the squared norms of differences from the mean of y: a distance may
        be below 0 by so much. float32 for half precision. Differentiable any number of times.

    Raises:
        ValueError: shapes that do not fit together.
    """
    check_sequences(x, y)
    x, y = of_one_type(x, y)
    if target_lengths is not None:
        lengths_of(target_lengths, len(y), y.shape[1])
    return SquaredDistances.apply(x, y, centre_of(y, target_lengths))


class SquaredDistances(torch.autograd.Function):
    """|x|^2 + |y|^2 - 2 x.y as one matrix product, and its gradient as one per side: nothing else is (B, n, m).

    The ``centre (B, 1, d)`` of y is subtracted from both first: fewer digits cancel.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, centre: Tensor) -> Tensor:
        """Find the distances."""
        ctx.save_for_backward(x, y, centre)
        x, y = x - centre, y - centre
        one_x, one_y = torch.ones_like(x[..., :1]), torch.ones_like(y[..., :1])
        left = torch.cat([-2 * x, x.square().sum(2, keepdim=True), one_x], 2)
        right = torch.cat([y, one_y, y.square().sum(2, keepdim=True)], 2)
        return left @ right.mT

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        """Find the gradients in x and y."""
        x, y, centre = ctx.saved_tensors
        x, y = x - centre, y - centre
        for_x, for_y = ctx.needs_input_grad[:2]
        of_x = gradient_in_first(grad, x, y) if for_x else None
        of_y = gradient_in_first(grad.mT, y, x) if for_y else None
        return of_x, of_y, None


def centre_of(y: Tensor, lengths: Tensor | None) -> Tensor:
    """Return the mean ``(B, 1, d)`` of the valid elements of ``(B, m, d)``; without gradient."""
    y = y.detach()
    if lengths is None:
        return y.mean(1, keepdim=True)
    return mask_rows(y, lengths).sum(1, keepdim=True) / lengths.clamp(min=1)[:, None, None]


def gradient_in_first(grad: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return the gradient in x of squared distances with weights ``(B, n, m)``: sum_j grad_ij 2 (x_i - y_j)."""
    sums = grad @ torch.cat([y, torch.ones_like(y[..., :1])], 2)
    return 2 * (sums[..., -1:] * x - sums[..., :-1])
