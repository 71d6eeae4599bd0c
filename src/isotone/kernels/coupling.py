"""One-dimensional optimal transport: the coupling of given weights, and the best weights for given costs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from isotone.kernels._coupling import merge_rows, merge_rows_backward, ordered_path
from isotone.types import Coupling, length_mask


def couple(
    alpha: Tensor,
    beta: Tensor,
    source_lengths: Tensor | None = None,
    target_lengths: Tensor | None = None,
) -> Coupling:
    r"""The optimal coupling :math:`\gamma(\alpha, \beta)` of weights on an ordered line (north-west corner).

    With :math:`F_i = \alpha_1 + .. + \alpha_i`, :math:`G_j = \beta_1 + .. + \beta_j` and
    :math:`0 = e_0 \le e_1 \le ..` the two merged, entry k carries :math:`e_k - e_{k-1}` from the position
    whose :math:`(F_{i-1}, F_i]` holds that gap to the one whose :math:`(G_{j-1}, G_j]` does. Both weight
    vectors are divided by their sums, so a row carries a mass of 1 whatever the scale of its weights, and
    gradients are those of the normalised weights.

    Args:
        alpha: ``(B, n)`` non-negative weights of the sources (frames). Zeros drop a source.
        beta: ``(B, m)`` non-negative weights of the targets (labels).
        source_lengths, target_lengths: ``(B,)`` int64, valid sizes; weights beyond them are never read.
            Default: all.

    Returns:
        A coupling of K = n + m - 1 entries a row, sorted. ``mass`` is float64 where a weight is, else
        float32, and differentiable once in alpha and beta (almost everywhere; at a tie of F and G the
        gradient is that of one side). Entries of mass 0 are normal: at ties, and where weights are zero. A
        row without weights (length 0, or all zeros) has mass 0 throughout.

    Raises:
        ValueError: alpha and beta are not two matrices with the same number of rows.

    Numerics: prefix sums and differences are float64 inside: a mass is good to about 1e-16 n of the total.
    On the CPU one compiled pass, O(n + m); elsewhere O(n log m), without synchronisation with the host.
    Memory O(n + m) a row.

    References: Peyré & Cuturi, Computational Optimal Transport, 2019, section 2.6; "A Differentiable
    Alignment Framework for Sequence-to-Sequence Modeling via Optimal Transport", 2025, section 4.2.
    """
    if alpha.ndim != 2 or beta.ndim != 2 or alpha.shape[0] != beta.shape[0]:
        raise ValueError(
            f"couple expects weights (B, n) and (B, m); got {tuple(alpha.shape)} and {tuple(beta.shape)}. "
            "For a single pair use alpha[None] and beta[None]."
        )
    if source_lengths is None:
        source_lengths = torch.full((len(alpha),), alpha.shape[1], device=alpha.device)
    if target_lengths is None:
        target_lengths = torch.full((len(beta),), beta.shape[1], device=beta.device)
    wide = torch.float64 if torch.float64 in (alpha.dtype, beta.dtype) else torch.float32
    merge = _CompiledMerge if alpha.device.type == "cpu" else _TensorMerge
    mass, source, target = merge.apply(alpha.to(wide), beta.to(wide), source_lengths, target_lengths)
    return Coupling(source, target, mass, source_lengths, target_lengths)


def ordered_minimum(costs: Tensor, weights: Tensor | None = None) -> Tensor:
    r"""The non-decreasing :math:`i_1 \le .. \le i_m` that minimise :math:`\sum_j w_j C_{i_j, j}`.

    A prefix-minimum dynamic programme: the cheapest transport to weights w when the sources' weights are
    free.

    Args:
        costs: ``(n, m)`` floating, n and m at least 1; inf forbids a pair.
        weights: ``(m,)`` non-negative. Default: ones.

    Returns:
        ``(m,)`` int64, on the device of ``costs``; among equal minima each index the smallest, from the last
        back.

    Raises:
        ValueError: wrong shapes, or NaN.

    Numerics: sums in float64, on the CPU; O(nm) time and memory.
    """
    if costs.ndim != 2 or 0 in costs.shape or (weights is not None and weights.shape != costs.shape[1:]):
        shape = None if weights is None else tuple(weights.shape)
        raise ValueError(
            f"ordered_minimum expects costs (n, m) and weights (m,); got {tuple(costs.shape)} and {shape}."
        )
    weighted = costs.detach().double()
    if weights is not None:
        # a label without weight costs nothing anywhere, not 0 times infinity
        weighted = torch.where(weights > 0, weighted * weights.double(), 0.0)
    if torch.isnan(weighted).any():
        raise ValueError("ordered_minimum expects costs without NaN.")
    return torch.from_numpy(ordered_path(weighted.mT.contiguous().cpu().numpy())).to(costs.device)


class _CompiledMerge(torch.autograd.Function):
    """Masses and positions on the CPU."""

    @staticmethod
    def forward(ctx: Any, alpha: Tensor, beta: Tensor, n: Tensor, m: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        alpha, beta = alpha.contiguous(), beta.contiguous()
        size = max(1, alpha.shape[1] + beta.shape[1] - 1)
        source, target = n.new_zeros(len(alpha), size), n.new_zeros(len(alpha), size)
        mass = alpha.new_zeros(len(alpha), size)
        merge_rows(*(x.detach().numpy() for x in (alpha, beta, n, m, source, target, mass)))
        ctx.save_for_backward(alpha, beta, n, m)
        ctx.mark_non_differentiable(source, target)
        return mass, source, target

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        grads = [torch.zeros_like(x, dtype=torch.float64) for x in saved[:2]]
        merge_rows_backward(*(x.numpy() for x in (*saved, grad.contiguous(), *grads)))
        return grads[0].to(saved[0].dtype), grads[1].to(saved[1].dtype), None, None


class _TensorMerge(torch.autograd.Function):
    """The same in tensor operations, for any device."""

    @staticmethod
    def forward(ctx: Any, alpha: Tensor, beta: Tensor, n: Tensor, m: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        f, f_total = _prefix_sums(alpha, n)
        g, g_total = _prefix_sums(beta, m)
        size = max(1, f.shape[1] + g.shape[1] - 1)
        # at a tie a source ends before a target: its place in the merge counts the targets that end below it
        rank = torch.searchsorted(g, f) + torch.arange(f.shape[1], device=f.device)
        is_source = rank.new_zeros(len(f), size + 1).scatter_(1, rank, 1)[:, :size]
        last = (n + m - 2).clamp(min=0)[:, None]
        entry = torch.arange(size, device=f.device).minimum(last)
        i = (torch.cumsum(is_source, 1) - is_source).gather(1, entry)
        source = i.minimum((n - 1).clamp(min=0)[:, None])
        target = (entry - i).minimum((m - 1).clamp(min=0)[:, None])
        ends = torch.where(is_source.gather(1, entry) > 0, _take(f, source), _take(g, target))
        mass = torch.diff(ends, dim=1, prepend=ends.new_zeros(len(ends), 1))
        mass = torch.where((f_total != 0) & (g_total != 0), mass, 0.0).to(alpha.dtype)
        ctx.save_for_backward(f, g, f_total, g_total, rank, n, m)
        ctx.mark_non_differentiable(source, target)
        return mass, source, target

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        f, g, f_total, g_total, rank_f, n, m = ctx.saved_tensors
        valid = length_mask(n + m - 1, grad.shape[1]) & (f_total != 0) & (g_total != 0)
        masked = torch.where(valid, grad.double(), 0.0)
        # mass_k is its end minus the end before: an end counts once for, once against; the end after the last
        # entry (the last target's) is no variable
        grad_ends = torch.nn.functional.pad(masked, (0, 1)) - torch.nn.functional.pad(masked, (-1, 2))
        rank_g = torch.searchsorted(f, g, right=True) + torch.arange(g.shape[1], device=g.device)
        grad_alpha = _through_sums(grad_ends.gather(1, rank_f), f, f_total, n)
        grad_beta = _through_sums(grad_ends.gather(1, rank_g), g, g_total, m)
        return grad_alpha.to(grad.dtype), grad_beta.to(grad.dtype), None, None


def _prefix_sums(weights: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Normalised prefix sums, 1 exactly at the last valid position and 2 beyond; and the sums ``(B, 1)``."""
    mask = length_mask(lengths, weights.shape[1])
    prefix = torch.cumsum(torch.where(mask, weights, 0.0).double(), 1)
    # a parallel scan may round out of order
    prefix = torch.cummax(prefix, 1).values
    total = prefix[:, -1:] if prefix.shape[1] else prefix.new_zeros(len(prefix), 1)
    return torch.where(mask, prefix / torch.where(total != 0, total, 1.0), 2.0), total


def _take(values: Tensor, index: Tensor) -> Tensor:
    return values.gather(1, index) if values.shape[1] else values.new_zeros(index.shape)


def _through_sums(grad: Tensor, prefix: Tensor, total: Tensor, lengths: Tensor) -> Tensor:
    """From the gradient in normalised prefix sums to that in weights."""
    mask = length_mask(lengths, prefix.shape[1])
    grad = torch.where(mask, grad, 0.0)
    tails = grad.flip(1).cumsum(1).flip(1)
    centred = tails - (grad * torch.where(mask, prefix, 0.0)).sum(1, keepdim=True)
    return torch.where(mask & (total != 0), centred / torch.where(total != 0, total, 1.0), 0.0)
