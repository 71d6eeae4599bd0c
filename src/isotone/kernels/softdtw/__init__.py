r"""Dynamic time warping and its soft minimum, for batches of cost matrices, with gradients.

Of all alignments A of n and m positions (paths from (1, 1) to (n, m) by steps (1, 0), (0, 1) and (1, 1)),

.. math:: \mathrm{sdtw}_\gamma(C) = -\gamma \log \sum_A \exp(-\langle A, C \rangle / \gamma),
   \qquad E_\gamma(C) = \nabla \mathrm{sdtw}_\gamma(C) = \mathbb{E}[A]

(Cuturi & Blondel, "Soft-DTW: a differentiable loss function for time-series", ICML 2017); at gamma = 0 the cost of the
best alignment and that alignment.

On the CPU the loops are compiled, run in float64 whatever the costs are, and deal the rows of a batch to
``torch.get_num_threads()`` threads. The forward pass keeps two numbers a cell, the weights of its soft minimum, and
the backward pass only adds and multiplies. On CUDA a Triton kernel does the same, one programme a row, in the type of
the costs. Elsewhere it is tensor operations. Entries beyond the lengths are never read and have no gradient.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from isotone.alignment import AlignmentError
from isotone.kernels.softdtw import _plan, _torch
from isotone.kernels.softdtw._fused import (
    MOST_FEATURES,
    SquaredDistances,
    centre_of,
    pulled_back,
    values_and_gradients,
)
from isotone.kernels.softdtw._plan import Plan, dense
from isotone.types import Coupling, length_mask


class SubsequenceMatch(NamedTuple):
    """Where a query lies in a longer sequence.

    Attributes:
        coupling: Query positions to sequence positions, hard; its score is minus the cost.
        spans: ``(B, 2)`` int64, first position of the sequence that is matched, and one past the last.
    """

    coupling: Coupling
    spans: Tensor


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
        ValueError: shapes, lengths, gamma or band outside what is said above.

    Numerics: a relative error of about 1e-15 in exp(-value / gamma) a step of the path, plus the rounding of the
    result; gradients of float32 costs are good to about 1e-6. Sums beyond 5e14 gamma are taken as at gamma = 0
    (on CUDA: as infinite). Time O(n m) a row; memory two numbers a cell within the band (none without a gradient).
    """
    cost, plan = _prepare(cost, gamma, source_lengths, target_lengths, band)
    backend = _backend(cost.device)
    if backend is None:
        return _torch.soft_dtw(cost, plan, gamma)
    if not (torch.is_grad_enabled() and cost.requires_grad):
        return backend.forward(cost, plan, float(gamma), False)[0].to(cost.dtype)
    return _SoftDTW.apply(cost, float(gamma), plan, backend)


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
    x, y = _of_one_type(x, y)
    if target_lengths is not None:
        _lengths(target_lengths, len(y), y.shape[1])
    return SquaredDistances.apply(x, y, centre_of(y, target_lengths))


def soft_dtw_sqeuclidean(
    x: Tensor,
    y: Tensor,
    gamma: float = 1.0,
    source_lengths: Tensor | None = None,
    target_lengths: Tensor | None = None,
    *,
    band: int | None = None,
) -> Tensor:
    """:func:`soft_dtw` of the :func:`squared_distances`, which on the CPU are not stored.

    Args:
        x, y: ``(B, n, d)`` and ``(B, m, d)`` floating; finite also beyond the lengths.
        gamma, source_lengths, target_lengths, band: As in :func:`soft_dtw`.

    Returns:
        ``(B,)``. Up to 128 features the CPU finds the gradient along with the value, a pair a thread at a time, in
        memory of 4 n m numbers a thread; a second derivative computes the costs anew.

    Raises:
        ValueError: as in :func:`soft_dtw`.
    """
    check_sequences(x, y)
    x, y = _of_one_type(x, y)
    if x.device.type != "cpu" or x.shape[2] > MOST_FEATURES:
        costs = squared_distances(x, y, target_lengths)
        return soft_dtw(costs, gamma, source_lengths, target_lengths, band=band)
    if x.shape[1] > y.shape[1]:
        x, y, source_lengths, target_lengths = y, x, target_lengths, source_lengths
    if len(x) and 0 in (x.shape[1], y.shape[1]):
        raise ValueError(
            f"Expected sequences of one element at least; got {tuple(x.shape)}, {tuple(y.shape)}."
        )
    _check_options(gamma, band)
    n, m = _lengths(source_lengths, len(x), x.shape[1]), _lengths(target_lengths, len(y), y.shape[1])
    plan = Plan.of((len(x), x.shape[1], y.shape[1]), n, m, -1 if band is None else int(band))
    if not (torch.is_grad_enabled() and (x.requires_grad or y.requires_grad)):
        return values_and_gradients(x, y, float(gamma), plan, False)[0]
    return _FromSequences.apply(x, y, float(gamma), plan)


def expected_alignment(
    cost: Tensor,
    gamma: float = 1.0,
    source_lengths: Tensor | None = None,
    target_lengths: Tensor | None = None,
    *,
    band: int | None = None,
) -> Tensor:
    r"""The mean :math:`E_\gamma(C)` of the alignments, each weighted by :math:`\exp(-\langle A, C \rangle / \gamma)`.

    Args:
        cost, gamma, source_lengths, target_lengths, band: As in :func:`soft_dtw`.

    Returns:
        ``(B, n, m)`` from 0 to 1, the probability that a path visits each pair; at gamma = 0 the best path. 0 beyond
        the lengths, and in rows where every path is forbidden. Differentiable once in the costs.
    """
    visits = _values_and_visits(*_prepare(cost, gamma, source_lengths, target_lengths, band), gamma)[1]
    return visits.mT if _by_columns(cost) else visits


@torch.no_grad()
def dtw(
    cost: Tensor,
    source_lengths: Tensor | None = None,
    target_lengths: Tensor | None = None,
    *,
    band: int | None = None,
) -> Coupling:
    """The best alignment: dynamic time warping.

    Args:
        cost, source_lengths, target_lengths, band: As in :func:`soft_dtw`.

    Returns:
        A hard coupling, mass 1 for every pair of the path; ``score`` is minus the path's cost. On ties the diagonal
        step goes first.

    Raises:
        AlignmentError: a row holds NaN, or every path in it is forbidden; the message names it.
        ValueError: as in :func:`soft_dtw`.
    """
    laned, plan = _prepare(cost.detach(), 0.0, source_lengths, target_lengths, band)
    backend = _backend(cost.device)
    if backend is _plan:
        values, up, left = backend.forward(laned, plan, 0.0, True)
        _check_values(values)
        source, target, count = backend.best_paths(up, left, plan)
    else:
        values, visits = _values_and_visits(laned, plan, 0.0)
        _check_values(values)
        source, target, count = _visited(visits > 0)
    n, m = (torch.from_numpy(x).to(cost.device) for x in (plan.n, plan.m))
    if _by_columns(cost):
        source, target, n, m = target, source, m, n
    mass = length_mask(count, source.shape[1]).to(laned.dtype)
    return Coupling(source, target, mass, n, m, -values.to(laned.dtype))


@torch.no_grad()
def subsequence_dtw(
    cost: Tensor, query_lengths: Tensor | None = None, sequence_lengths: Tensor | None = None
) -> SubsequenceMatch:
    """The part of a sequence that warps best onto a query: the ends of the query are fixed, the sequence's are free.

    Args:
        cost: ``(B, n, m)`` floating, of query positions (n) against sequence positions (m).
        query_lengths, sequence_lengths: ``(B,)`` int64. Default: all.

    Returns:
        Path and span of the minimum over all parts of the sequence of the cost of :func:`dtw`.

    Raises:
        AlignmentError, ValueError: as in :func:`dtw`.
    """
    cost = cost.detach()
    if cost.ndim != 3:
        raise ValueError(f"Expected costs (B, n, m); got {tuple(cost.shape)}. For one pair use cost[None].")
    n = torch.from_numpy(_lengths(query_lengths, len(cost), cost.shape[1])).to(cost.device)
    # a row of zeros before the query and one after: paths enter and leave anywhere at no cost
    row = torch.arange(cost.shape[1] + 2, device=cost.device)[:, None]
    framed = torch.nn.functional.pad(cost, (0, 0, 1, 1))
    framed = torch.where((row == 0) | (row > n[:, None, None]), 0.0, framed)
    path = dtw(framed, n + 2, sequence_lengths)
    inside = (path.mass > 0) & (path.source > 0) & (path.source <= n[:, None])
    match = path.select(inside)
    coupling = Coupling(match.source - 1, match.target, match.mass, n, path.target_lengths, path.score)
    return SubsequenceMatch(coupling, torch.stack([match.target[:, 0], match.target[:, -1] + 1], 1))


class _FromSequences(torch.autograd.Function):
    """Values of sequences, of which the first is the shorter, with their gradients at hand."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, gamma: float, plan: Plan) -> Tensor:
        values, *gradients = values_and_gradients(x, y, gamma, plan, True)
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
                grad[:, None, None] * gradient if wanted else None
                for gradient, wanted in zip(gradients, ctx.needs_input_grad)
            )
            return of_x, of_y, *rest
        centre = centre_of(y, torch.from_numpy(plan.m))
        cost = SquaredDistances.apply(x, y, centre)
        _, up, left = _plan.forward(cost.detach(), plan, gamma, True)
        visits = _Alignment.apply(cost, grad, up, left, gamma, plan, _plan)
        # the products that SquaredDistances.backward makes, to be differentiated in turn
        x, y = x - centre, y - centre
        return pulled_back(visits, x, y), pulled_back(visits.mT, y, x), *rest


class _SoftDTW(torch.autograd.Function):
    """Values of costs whose lanes are the shorter axis."""

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
        return _Alignment.apply(cost, weight, up, left, *ctx.setting), None, None, None


class _Alignment(torch.autograd.Function):
    """Expected alignments times weights: the gradient of the values, and what is differentiated a second time."""

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
        ctx.save_for_backward(cost, weight, up, left)
        ctx.setting = gamma, plan, backend
        return backend.backward(cost, up, left, plan, weight)

    @staticmethod
    def backward(ctx: Any, direction: Tensor) -> tuple[Tensor | None, ...]:
        cost, weight, up, left = ctx.saved_tensors
        gamma, plan, backend = ctx.setting
        if hasattr(backend, "hessian"):
            change, inner = backend.hessian(direction.detach(), up, left, plan, gamma, weight.detach())
        else:
            change, inner = _hessian_by_autograd(cost, direction.detach(), plan, gamma, weight.detach())
        change, inner = _Last.apply(change, inner.to(weight.dtype), cost, weight, direction)
        return change, inner, None, None, None, None, None


class _Last(torch.autograd.Function):
    """Second derivatives, which say so when they are asked for a third."""

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
        visits = _torch.expected_alignment(leaf, plan, gamma)
        inner = (visits * direction).sum((1, 2))
        if not inner.requires_grad:
            return torch.zeros_like(leaf), inner.detach()
        (change,) = torch.autograd.grad((weight * inner).sum(), leaf)
    return change, inner.detach()


def _values_and_visits(laned: Tensor, plan: Plan, gamma: float) -> tuple[Tensor, Tensor]:
    """Values ``(B,)``, without a gradient, and expected alignments of the shape of the costs."""
    backend = _backend(laned.device)
    if backend is None:
        values = _torch.soft_dtw(laned.detach(), plan, gamma)
        return values, _torch.expected_alignment(laned, plan, gamma)
    values, up, left = backend.forward(laned.detach(), plan, float(gamma), True)
    possible = (~torch.isinf(values)).to(laned.dtype)
    return values, _Alignment.apply(laned, possible, up, left, float(gamma), plan, backend)


def _backend(device: torch.device) -> ModuleType | None:
    """The module that computes on a device; None for tensor operations."""
    if device.type == "cpu":
        return _plan
    if device.type == "cuda":
        try:
            from isotone.kernels.softdtw import _triton
        except ImportError:  # a build of torch without triton
            return None
        return _triton
    return None


def _prepare(
    cost: Tensor, gamma: float, source_lengths: Tensor | None, target_lengths: Tensor | None, band: int | None
) -> tuple[Tensor, Plan]:
    """Costs with the shorter axis first, without gaps in memory, and the order of their cells."""
    if cost.ndim != 3 or not cost.is_floating_point() or (len(cost) and 0 in cost.shape):
        raise ValueError(
            f"Expected floating costs (B, n, m) with n, m >= 1; got {tuple(cost.shape)}, {cost.dtype}. "
            "For one pair use cost[None]."
        )
    _check_options(gamma, band)
    n = _lengths(source_lengths, len(cost), cost.shape[1])
    m = _lengths(target_lengths, len(cost), cost.shape[2])
    cost = cost.to(torch.promote_types(cost.dtype, torch.float32))
    if _by_columns(cost):
        cost, n, m = cost.mT, m, n
    return dense(cost), Plan.of((len(cost), *cost.shape[1:]), n, m, -1 if band is None else int(band))


def _check_options(gamma: float, band: int | None) -> None:
    if not (math.isfinite(gamma) and gamma >= 0):
        raise ValueError(f"Expected gamma >= 0, in the unit of the costs; got {gamma}.")
    if band is not None and (band < 0 or band != int(band)):
        raise ValueError(f"Expected a band of 0 or more positions, or None; got {band}.")


def _of_one_type(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    wide = torch.promote_types(torch.promote_types(x.dtype, y.dtype), torch.float32)
    return x.to(wide), y.to(wide)


def _by_columns(cost: Tensor) -> bool:
    return cost.shape[1] > cost.shape[2]


def _lengths(lengths: Tensor | None, batch: int, size: int) -> np.ndarray:
    if lengths is None:
        return np.full(batch, size)
    values = lengths.detach().cpu().numpy().astype(np.int64)
    if values.shape != (batch,) or ((values < 1) | (values > size)).any():
        raise ValueError(f"Expected {batch} lengths from 1 to {size}; got {values.tolist()}.")
    return values


def _check_values(values: Tensor) -> None:
    finite = torch.isfinite(values)
    if not finite.all():
        row = int((~finite).nonzero()[0])
        reason = "its costs hold NaN" if torch.isnan(values[row]) else "every path in it is forbidden"
        raise AlignmentError(f"{reason}.", row=row)


def _visited(cells: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rows and columns ``(B, K)`` of the cells that ``cells (B, n, m)`` marks, one path a row, and their number."""
    _, row, column = cells.nonzero().unbind(1)
    count = cells.flatten(1).sum(1)
    begin = torch.cumsum(count, 0) - count
    size = max(1, int(count.max()) if len(count) else 1)
    place = torch.arange(size, device=cells.device)
    index = begin[:, None] + torch.minimum(place, count[:, None] - 1)
    return row[index], column[index], count
