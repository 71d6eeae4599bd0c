"""Soft-DTW in tensor operations: the reference, and the implementation for devices without a faster one."""

from __future__ import annotations

import torch
from torch import Tensor

from isotone.kernels.softdtw.plan import Plan


def soft_dtw(cost: Tensor, plan: Plan, gamma: float) -> Tensor:
    """Return values ``(B,)`` of costs ``(B, N, M)`` on any device, differentiable any number of times.

    The N + M - 1 diagonals follow one another, each by a few tensor operations in the type of the costs.
    """
    n, m, low, high = (torch.from_numpy(x).to(cost.device) for x in (plan.n, plan.m, plan.low, plan.high))
    batch, lanes, steps = plan.shape
    lane = torch.arange(lanes, device=cost.device)
    outside = cost.new_full((batch, 1), torch.inf)
    value = cost.new_full((batch,), torch.inf)
    one = cost.new_full((batch, lanes), torch.inf)
    two_before = torch.cat([torch.zeros_like(outside), one[:, 1:]], 1)  # lane i holds what lane i - 1 had
    for d in range(lanes + steps - 1):
        own = cost[:, lane, (d - lane).clamp(0, steps - 1)]
        one_before = torch.cat([outside, one[:, :-1]], 1)
        now = own + _soft_minimum(torch.stack([two_before, one_before, one]), gamma)
        inside = (lane >= low[:, d, None]) & (lane <= high[:, d, None])
        one, two_before = torch.where(inside, now, torch.inf), one_before
        end = one.gather(1, (n - 1)[:, None])[:, 0]
        value = torch.where(n + m - 2 == d, end, value)
    return value


def _soft_minimum(values: Tensor, gamma: float) -> Tensor:
    """Reduce the first axis. Infinite values have gradient 0; at gamma = 0 one minimum has all of the gradient."""
    if gamma == 0:
        return values.min(0).values
    impossible = torch.isposinf(values).all(0)
    safe = torch.where(impossible, 0.0, values)
    return torch.where(impossible, torch.inf, -gamma * torch.logsumexp(-safe / gamma, 0))


def expected_alignment(cost: Tensor, plan: Plan, gamma: float) -> Tensor:
    """Return the values' gradient ``(B, N, M)`` in the costs, itself differentiable; 0 in rows of infinite value."""
    with torch.enable_grad():
        leaf = cost if cost.requires_grad else cost.detach().requires_grad_()
        value = soft_dtw(leaf, plan, gamma)
        total = torch.where(torch.isinf(value), 0.0, value).sum()
        (gradient,) = torch.autograd.grad(total, leaf, create_graph=cost.requires_grad)
    return gradient
