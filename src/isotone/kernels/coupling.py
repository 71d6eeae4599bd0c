"""One-dimensional optimal transport: the coupling of given weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from isotone.kernels._coupling import merge_row, merge_row_backward, softmax_row
from isotone.kernels._operations import Operation, differentiable
from isotone.kernels.backends import has_kernels
from isotone.kernels.threads import each_task
from isotone.types import Coupling, check_integers, length_mask

# Work per entry, in the half nanoseconds of each_task.
_CELLS = 10
# Most weights of a row that one programme of CUDA merges; longer rows are faster by tensor operations.
_LONGEST = 1 << 15


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
        A coupling of K = n + m - 1 entries per row, sorted. ``mass`` is float64 where a weight is, else float32, and
        differentiable once in alpha and beta (almost everywhere; at a tie of F and G the gradient is that of one
        side). Entries of mass 0 are normal: at ties, and where weights are zero. A row without weights (length 0, or
        all zeros) has mass 0 throughout.

    Raises:
        ValueError: alpha and beta are not two matrices with the same number of rows, or lengths are no integers.
        IndexError: a length outside the weights (on the CPU).

    Numerics: prefix sums and differences are float64 inside: a mass has an error of about 1e-16 n of the total.
    On the CPU one compiled pass, O(n + m); elsewhere O(n log m), without synchronisation with the host: on CUDA one
    launch each way for rows of up to 32,768 weights. Memory O(n + m) per row.

    References: Peyré & Cuturi, Computational Optimal Transport, 2019, section 2.6; "A Differentiable
    Alignment Framework for Sequence-to-Sequence Modeling via Optimal Transport", 2025, section 4.2.
    """
    if alpha.ndim != 2 or beta.ndim != 2 or alpha.shape[0] != beta.shape[0]:
        raise ValueError(
            f"couple expects weights (B, n) and (B, m); got {tuple(alpha.shape)} and {tuple(beta.shape)}. "
            "For a single pair use alpha[None] and beta[None]."
        )
    check_integers(source_lengths, target_lengths)
    if source_lengths is None:
        source_lengths = torch.full((len(alpha),), alpha.shape[1], device=alpha.device)
    if target_lengths is None:
        target_lengths = torch.full((len(beta),), beta.shape[1], device=beta.device)
    wide = torch.float64 if torch.float64 in (alpha.dtype, beta.dtype) else torch.float32
    few = alpha.device.type == "cpu" or alpha.shape[1] + beta.shape[1] <= _LONGEST
    merge = merge_operation if few and has_kernels(alpha.device) else TensorMerge.apply
    mass, source, target = merge(alpha.to(wide), beta.to(wide), source_lengths, target_lengths)
    return Coupling(source, target, mass, source_lengths, target_lengths)


def frame_weights(logits: Tensor, lengths: Tensor) -> Tensor:
    r"""Softmax over the valid frames of every row: OT weights :math:`\alpha` from their unnormalised logarithms.

    Equals ``torch.softmax`` of rows filled with -inf beyond their lengths, without its threads. A batch of such rows is
    little work: on a busy machine, waiting for threads would take longer than the whole loss.

    Args:
        logits: ``(B, T)`` floating, nats; never read beyond the lengths.
        lengths: ``(B,)`` int64.

    Returns:
        ``(B, T)``, 0 beyond the lengths; float64 for float64, else float32. Differentiable once.

    Raises:
        ValueError: lengths that are no integers.
        IndexError: a length outside the logits (on the CPU).
    """
    check_integers(lengths)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if has_kernels(logits.device):
        return softmax_operation(logits, lengths)
    mask = length_mask(lengths, logits.shape[1])
    return torch.where(mask, torch.softmax(logits.masked_fill(~mask, -torch.inf), -1), 0.0)


def _merge(alpha: Tensor, beta: Tensor, n: Tensor, m: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Find masses, sources and targets on the CPU."""
    size = max(1, alpha.shape[1] + beta.shape[1] - 1)
    mass = np.empty((len(alpha), size), alpha.detach().numpy().dtype)
    source, target = (np.empty(mass.shape, np.int64) for _ in range(2))
    arrays = [x.detach().contiguous().numpy() for x in (alpha, beta, n, m)]
    each_task(merge_row, len(mass), _CELLS * mass.size, *arrays, source, target, mass)
    return torch.from_numpy(mass), torch.from_numpy(source), torch.from_numpy(target)


def _fake_merge(alpha: Tensor, beta: Tensor, n: Tensor, m: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    shape = (len(alpha), max(1, alpha.shape[1] + beta.shape[1] - 1))
    return alpha.new_empty(shape), n.new_empty(shape), m.new_empty(shape)


def _merge_gradients(
    alpha: Tensor, beta: Tensor, n: Tensor, m: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor]:
    """Find the gradients in alpha and beta from that in the masses."""
    arrays = [x.detach().contiguous().numpy() for x in (alpha, beta, n, m, grad)]
    grads = [np.zeros(x.shape, np.float64) for x in arrays[:2]]
    each_task(merge_row_backward, len(alpha), _CELLS * grad.numel(), *arrays, *grads)
    return torch.from_numpy(grads[0]).to(alpha.dtype), torch.from_numpy(grads[1]).to(beta.dtype)


def _fake_merge_gradients(
    alpha: Tensor, beta: Tensor, n: Tensor, m: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor]:
    return torch.empty_like(alpha), torch.empty_like(beta)


def _softmax(logits: Tensor, lengths: Tensor) -> Tensor:
    out = torch.empty_like(logits, memory_format=torch.contiguous_format)
    arrays = [x.detach().contiguous().numpy() for x in (logits, lengths, out)]
    each_task(softmax_row, len(logits), _CELLS * logits.numel(), *arrays)
    return out


def _fake_softmax(logits: Tensor, lengths: Tensor) -> Tensor:
    return torch.empty_like(logits, memory_format=torch.contiguous_format)


def _softmax_gradient(weights: Tensor, grad: Tensor) -> Tensor:
    # of weights that are 0, as those beyond the lengths, the gradient is 0
    pulled = weights * grad
    return pulled - weights * pulled.sum(1, keepdim=True)


def _fake_softmax_gradient(weights: Tensor, grad: Tensor) -> Tensor:
    return torch.empty_like(weights)


def _keep_weights(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
    # the weights are enough: the backward pass repeats the merge, which is cheaper than to store where it went
    ctx.mark_non_differentiable(*output[1:])
    ctx.save_for_backward(*inputs)


def _merge_backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
    return *_merge_gradients_operation(*ctx.saved_tensors, grad), None, None


def _keep_softmax(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(output)


def _softmax_backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
    return _softmax_gradient_operation(*ctx.saved_tensors, grad), None


_KERNELS = "isotone.kernels._coupling_cuda"
_merge_gradients_operation = Operation(
    "couple_backward", _merge_gradients, _fake_merge_gradients, f"{_KERNELS}:merge_gradients"
)
_softmax_gradient_operation = Operation(
    "frame_weights_backward", _softmax_gradient, _fake_softmax_gradient, f"{_KERNELS}:softmax_gradient"
)
merge_operation = differentiable(
    Operation("couple", _merge, _fake_merge, f"{_KERNELS}:merge"), _keep_weights, _merge_backward
)
softmax_operation = differentiable(
    Operation("frame_weights", _softmax, _fake_softmax, f"{_KERNELS}:softmax"),
    _keep_softmax,
    _softmax_backward,
)


class TensorMerge(torch.autograd.Function):
    """The merge by tensor operations, for any device."""

    @staticmethod
    def forward(ctx: Any, alpha: Tensor, beta: Tensor, n: Tensor, m: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Merge the weights' prefix sums."""
        f, f_total = _prefix_sums(alpha, n)
        g, g_total = _prefix_sums(beta, m)
        size = max(1, f.shape[1] + g.shape[1] - 1)
        # at a tie a source ends before a target: its rank in the merge counts the targets that end below it
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
        """Find the gradients in both weights."""
        f, g, f_total, g_total, rank_f, n, m = ctx.saved_tensors
        valid = length_mask(n + m - 1, grad.shape[1]) & (f_total != 0) & (g_total != 0)
        masked = torch.where(valid, grad.double(), 0.0)
        # mass_k is its end minus the one before: each end counts once with a plus, once with a minus; the last entry's
        # end (the last target's) is 1 and no variable
        grad_ends = torch.nn.functional.pad(masked, (0, 1)) - torch.nn.functional.pad(masked, (-1, 2))
        rank_g = torch.searchsorted(f, g, right=True) + torch.arange(g.shape[1], device=g.device)
        grad_alpha = _through_sums(grad_ends.gather(1, rank_f), f, f_total, n)
        grad_beta = _through_sums(grad_ends.gather(1, rank_g), g, g_total, m)
        return grad_alpha.to(grad.dtype), grad_beta.to(grad.dtype), None, None


def _prefix_sums(weights: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Find normalised prefix sums, exactly 1 at the last valid position and 2 beyond, and the sums ``(B, 1)``."""
    mask = length_mask(lengths, weights.shape[1])
    prefix = torch.cumsum(torch.where(mask, weights, 0.0).double(), 1)
    # a parallel scan may round out of order
    prefix = torch.cummax(prefix, 1).values
    total = prefix[:, -1:] if prefix.shape[1] else prefix.new_zeros(len(prefix), 1)
    return torch.where(mask, prefix / torch.where(total != 0, total, 1.0), 2.0), total


def _take(values: Tensor, index: Tensor) -> Tensor:
    return values.gather(1, index) if values.shape[1] else values.new_zeros(index.shape)


def _through_sums(grad: Tensor, prefix: Tensor, total: Tensor, lengths: Tensor) -> Tensor:
    """Turn the gradient in normalised prefix sums into that in weights."""
    mask = length_mask(lengths, prefix.shape[1])
    grad = torch.where(mask, grad, 0.0)
    tails = grad.flip(1).cumsum(1).flip(1)
    centred = tails - (grad * torch.where(mask, prefix, 0.0)).sum(1, keepdim=True)
    return torch.where(mask & (total != 0), centred / torch.where(total != 0, total, 1.0), 0.0)
