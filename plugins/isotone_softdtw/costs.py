"""Costs of pairing elements of two sequences, or frames with labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from isotone.kernels.softdtw import check_sequences, squared_distances
from isotone.types import check_integers, length_mask

#: Names of costs.
CostName = Literal["sqeuclidean", "cosine"]
#: Or a function ``(B, n, d), (B, m, d) -> (B, n, m)``.
Cost = CostName | Callable[[Tensor, Tensor], Tensor]


def check(x: Tensor, y: Tensor, cost: Cost) -> None:
    """Raise ValueError unless x and y are batches of vectors of one size, and the cost is a function or a name."""
    check_sequences(x, y)
    if not callable(cost) and cost not in get_args(CostName):
        raise ValueError(f"Expected a cost among {get_args(CostName)} or a function; got {cost!r}.")


def pairwise_cost(
    x: Tensor, y: Tensor, cost: Cost = "sqeuclidean", target_lengths: Tensor | None = None
) -> Tensor:
    """The cost of every pair of elements.

    Args:
        x, y: ``(B, n, d)`` and ``(B, m, d)`` floating.
        cost: ``"sqeuclidean"``, the squared distance; ``"cosine"``, 1 minus the cosine (1 where a vector is zero); or
            a function of both batches.
        target_lengths: ``(B,)`` int64, valid elements of y, as
            :func:`isotone.kernels.softdtw.squared_distances` takes them. Default: all.

    Returns:
        ``(B, n, m)``; of the named costs, float32 for half precision.

    Raises:
        ValueError: shapes that do not fit together, or no cost of that name.
    """
    check(x, y, cost)
    if callable(cost):
        out = cost(x, y)
        if out.shape != (len(x), x.shape[1], y.shape[1]):
            raise ValueError(
                f"Expected a cost function that gives {(len(x), x.shape[1], y.shape[1])}; got {tuple(out.shape)}."
            )
        return out
    if cost == "sqeuclidean":
        return squared_distances(x, y, target_lengths)
    wide = torch.promote_types(torch.promote_types(x.dtype, y.dtype), torch.float32)
    x, y = x.to(wide), y.to(wide)
    return 1 - torch.nn.functional.normalize(x, dim=-1) @ torch.nn.functional.normalize(y, dim=-1).mT


def label_costs(logits: Tensor, labels: Tensor, frame_lengths: Tensor, label_lengths: Tensor) -> Tensor:
    r"""The cost :math:`-\log p_{y_j}(x_i)` of every frame and label.

    Args:
        logits: ``(B, T, V)`` unnormalised, nats.
        labels: ``(B, U)`` int64.
        frame_lengths, label_lengths: ``(B,)`` int64; nothing beyond has an influence or a gradient.

    Returns:
        ``(B, T, U)`` nats, float32 at least. Its gradient is the one other tensor of the size of the logits: no
        log-softmax is stored. Differentiable once.
    """
    check_integers(frame_lengths)
    known = length_mask(label_lengths, labels.shape[1])
    return _LabelCosts.apply(logits, torch.where(known, labels, 0), frame_lengths)


class _LabelCosts(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor, lengths: Tensor) -> Tensor:
        wide = torch.promote_types(logits.dtype, torch.float32)
        # of the scores less the largest: a sum with it would be rounded as coarsely as the largest
        peak = logits.amax(-1, keepdim=True).to(wide)
        rest = torch.logsumexp(logits.to(wide) - peak, -1, keepdim=True)
        ctx.save_for_backward(logits, labels, lengths, peak, rest)
        return rest - (logits.gather(2, _every_frame(labels, logits)).to(wide) - peak)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        logits, labels, lengths, peak, rest = ctx.saved_tensors
        out = (logits.to(rest.dtype) - peak).sub_(rest).exp_().mul_(grad.sum(2, keepdim=True))
        out.scatter_add_(2, _every_frame(labels, logits), -grad)
        out.masked_fill_(~length_mask(lengths, out.shape[1])[..., None], 0.0)
        return out.to(logits.dtype), None, None


def _every_frame(labels: Tensor, logits: Tensor) -> Tensor:
    return labels[:, None].expand(-1, logits.shape[1], -1)
