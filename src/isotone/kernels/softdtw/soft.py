"""The soft minimum of alignments' costs and the expected alignment, with their derivatives."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from isotone.kernels.softdtw import backends, tensors
from isotone.kernels.softdtw.inputs import by_columns, prepare
from isotone.kernels.softdtw.plan import Plan


def soft_dtw(
    cost: Tensor,
    gamma: float = 1.0,
    source_lengths: Tensor | None = None,
    target_lengths: Tensor | None = None,
    *,
    band: int | None = None,
) -> Tensor:
    r"""The soft minimum of the alignments' costs, :math:`\mathrm{sdtw}_\gamma(C)`.

    Args:
        cost: ``(B, n, m)`` floating; +inf forbids a pair. Half precision is computed in float32.
        gamma: Width of the soft minimum in the unit of the costs; 0 is the minimum, whose gradient is one best path.
        source_lengths, target_lengths: ``(B,)`` int64 from 1 to n and to m. Default: all.
        band: Sakoe-Chiba band: how far a path may stray from the straight line between the corners, in positions of
            the shorter sequence, :math:`|j - i (m - 1) / (n - 1)| \le \max(b, 1/2)` where n is the longer. For n = m
            that is :math:`|i - j| \le b`, and there is always a path. Default: none.

    Returns:
        ``(B,)`` in the unit and type of the costs; +inf, without gradient, where every path is forbidden. It can be
        differentiated twice.

    Raises:
        ValueError: shapes, lengths, gamma or band other than these.

    Numerics: exp(-value / gamma) has a relative error of about 1e-15 per step of the path, and the result is rounded.
    Gradients of float32 costs have an error of about 1e-6. Sums beyond 5e14 gamma are taken as at gamma = 0 (on CUDA:
    as infinite). Time O(n m) per row; memory two numbers per cell within the band (none without a gradient).
    """
    cost, plan = prepare(cost, gamma, source_lengths, target_lengths, band)
    backend = backends.backend_of(cost.device)
    if backend is None:
        return tensors.soft_dtw(cost, plan, gamma)
    if not (torch.is_grad_enabled() and cost.requires_grad):
        return backend.forward(cost, plan, float(gamma), False)[0].to(cost.dtype)
    return _SoftDTW.apply(cost, float(gamma), plan, backend)


def expected_alignment(
    cost: Tensor,
    gamma: float = 1.0,
    source_lengths: Tensor | None = None,
    target_lengths: Tensor | None = None,
    *,
    band: int | None = None,
) -> Tensor:
    r"""The mean :math:`E_\gamma(C)` of the alignments, weighted by :math:`\exp(-\langle A, C \rangle / \gamma)`.

    Args:
        cost, gamma, source_lengths, target_lengths, band: As in :func:`soft_dtw`.

    Returns:
        ``(B, n, m)`` from 0 to 1, the probability that a path visits each pair; at gamma = 0 the best path. 0 beyond
        the lengths, and in rows where every path is forbidden. Differentiable once in the costs.
    """
    visits = values_and_visits(*prepare(cost, gamma, source_lengths, target_lengths, band), gamma)[1]
    return visits.mT if by_columns(cost) else visits


class _SoftDTW(torch.autograd.Function):
    """Values of costs whose first axis, the lanes, is the shorter one."""

    @staticmethod
    def forward(ctx: Any, cost: Tensor, gamma: float, plan: Plan, backend: ModuleType) -> Tensor:
        values, up, left = backend.forward(cost, plan, gamma, True)
        ctx.save_for_backward(cost, values, up, left)
        ctx.setting = gamma, plan, backend
        return values.to(cost.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        cost, values, up, left = ctx.saved_tensors
        weight = torch.where(torch.isinf(values), 0.0, grad)
        return Alignment.apply(cost, weight, up, left, *ctx.setting), None, None, None


class Alignment(torch.autograd.Function):
    """Expected alignments times weights: the gradient of the values, which can be differentiated in turn."""

    @staticmethod
    def forward(
        ctx: Any,
        cost: Tensor,
        weight: Tensor,
        up: Tensor,
        left: Tensor,
        gamma: float,
        plan: Plan,
        backend: ModuleType,
    ) -> Tensor:
        """Find the expected alignments."""
        ctx.save_for_backward(cost, weight, up, left)
        ctx.setting = gamma, plan, backend
        return backend.backward(cost, up, left, plan, weight)

    @staticmethod
    def backward(ctx: Any, direction: Tensor) -> tuple[Tensor | None, ...]:
        """Find the Hessian times a direction, and its gradient in the weights."""
        cost, weight, up, left = ctx.saved_tensors
        gamma, plan, backend = ctx.setting
        if hasattr(backend, "hessian"):
            change, inner = backend.hessian(direction.detach(), up, left, plan, gamma, weight.detach())
        else:
            change, inner = _hessian_by_autograd(cost, direction.detach(), plan, gamma, weight.detach())
        # cost, weight and direction as inputs: a third derivative in any of them is refused and not taken for 0
        change, inner = _Last.apply(change, inner.to(weight.dtype), cost, weight, direction)
        return change, inner, None, None, None, None, None


class _Last(torch.autograd.Function):
    """Second derivatives, which refuse to be differentiated."""

    @staticmethod
    def forward(ctx: Any, change: Tensor, inner: Tensor, *_: Tensor) -> tuple[Tensor, Tensor]:
        return change.view_as(change), inner.view_as(inner)

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> tuple[Tensor | None, ...]:
        raise NotImplementedError(
            "soft_dtw can be differentiated twice, and expected_alignment once; got a request for one derivative more. "
            "Leave create_graph out of the last torch.autograd.grad or backward."
        )


def _hessian_by_autograd(
    cost: Tensor, direction: Tensor, plan: Plan, gamma: float, weight: Tensor
) -> tuple[Tensor, Tensor]:
    with torch.enable_grad():
        leaf = cost.detach().requires_grad_()
        visits = tensors.expected_alignment(leaf, plan, gamma)
        inner = (visits * direction).sum((1, 2))
        if not inner.requires_grad:
            return torch.zeros_like(leaf), inner.detach()
        (change,) = torch.autograd.grad((weight * inner).sum(), leaf)
    return change, inner.detach()


def values_and_visits(laned: Tensor, plan: Plan, gamma: float) -> tuple[Tensor, Tensor]:
    """Return values ``(B,)``, without a gradient, and expected alignments of the shape of the costs."""
    backend = backends.backend_of(laned.device)
    if backend is None:
        values = tensors.soft_dtw(laned.detach(), plan, gamma)
        return values, tensors.expected_alignment(laned, plan, gamma)
    values, up, left = backend.forward(laned.detach(), plan, float(gamma), True)
    possible = (~torch.isinf(values)).to(laned.dtype)
    return values, Alignment.apply(laned, possible, up, left, float(gamma), plan, backend)
