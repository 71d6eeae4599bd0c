"""Triton kernels of :mod:`isotone.kernels.coupling`: one programme per row.

The place of each breakpoint in the merge is found by binary search among the other side's prefix sums. A breakpoint
then knows its own entry: it begins at the larger of its two predecessors.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

# Weights that are handled at a time.
_BLOCK = 1024


@triton.jit
def larger(a, b):  # type: ignore[no-untyped-def]
    """Return the larger number, or NaN."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def prefix_sums(weights, count, sums, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Fill the prefix sums of weights, divided by their total, and return the total."""
    offset = tl.arange(0, BLOCK)
    total = tl.zeros((), tl.float64)
    begin = tl.zeros((), tl.int64)
    while begin < count:
        i = begin + offset
        part = total + tl.cumsum(tl.load(weights + i, mask=i < count, other=0.0).to(tl.float64), 0)
        # a parallel scan may round out of order
        part = tl.associative_scan(part, 0, larger)
        tl.store(sums + i, part, mask=i < count)
        total = tl.sum(tl.where(offset == BLOCK - 1, part, 0.0), 0)
        begin += BLOCK
    scale = tl.where(total != 0, total, 1.0)
    begin = tl.zeros((), tl.int64)
    while begin < count:
        i = begin + offset
        tl.store(sums + i, tl.load(sums + i, mask=i < count, other=0.0) / scale, mask=i < count)
        begin += BLOCK
    return total


@triton.jit
def count_below(sums, count, value, real, EQUAL: tl.constexpr):  # type: ignore[no-untyped-def]
    """Count the ascending sums that are below each value, or equal to it."""
    low = tl.zeros(value.shape, tl.int64)
    high = low + count
    left = count
    while left > 0:
        between = real & (low < high)
        middle = (low + high) // 2
        own = tl.load(sums + middle, mask=between, other=0.0)
        if EQUAL:
            below = between & (own <= value)
        else:
            below = between & (own < value)
        low = tl.where(below, middle + 1, low)
        high = tl.where(between & ~below, middle, high)
        left = left // 2
    return low


@triton.jit
def both_sums(  # type: ignore[no-untyped-def]
    alpha, beta, source_lengths, target_lengths, sums, sources, targets, BLOCK: tl.constexpr
):  # fmt: skip
    """Fill the prefix sums of a row; return both lengths, places and totals, and the number of entries with mass."""
    row = tl.program_id(0).to(tl.int64)
    n = tl.minimum(tl.maximum(tl.load(source_lengths + row), 0), sources)
    m = tl.minimum(tl.maximum(tl.load(target_lengths + row), 0), targets)
    f = sums + row * (sources + targets)
    g = f + sources
    f_total = prefix_sums(alpha + row * sources, n, f, BLOCK)
    g_total = prefix_sums(beta + row * targets, m, g, BLOCK)
    tl.debug_barrier()
    filled = tl.where((n > 0) & (m > 0) & (f_total != 0) & (g_total != 0), n + m - 1, 0)
    return n, m, f, g, f_total, g_total, filled


@triton.jit
def merge_side(  # type: ignore[no-untyped-def]
    own, count, other, other_count, filled, own_index, other_index, mass, EQUAL: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Fill the entries that end at one side's breakpoints."""
    offset = tl.arange(0, BLOCK)
    begin = tl.zeros((), tl.int64)
    while begin < count:
        i = begin + offset
        real = i < count
        end = tl.load(own + i, mask=real, other=0.0)
        passed = count_below(other, other_count, end, real, EQUAL)
        before = tl.maximum(
            tl.load(own + i - 1, mask=real & (i > 0), other=0.0),
            tl.load(other + passed - 1, mask=real & (passed > 0), other=0.0),
        )
        k = i + passed
        real &= k < filled
        tl.store(mass + k, (end - before).to(mass.dtype.element_ty), mask=real)
        tl.store(own_index + k, i, mask=real)
        tl.store(other_index + k, tl.minimum(passed, other_count - 1), mask=real)
        begin += BLOCK


@triton.jit
def merge_kernel(  # type: ignore[no-untyped-def]
    alpha, beta, source_lengths, target_lengths, sums, mass, source, target, sources, targets, size,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Fill the coupling of a row; ``sums`` is room for ``(B, n + m)`` float64."""
    n, m, f, g, f_total, g_total, filled = both_sums(
        alpha, beta, source_lengths, target_lengths, sums, sources, targets, BLOCK
    )
    row = tl.program_id(0).to(tl.int64)
    mass += row * size
    source += row * size
    target += row * size
    both = f_total + g_total
    counted = tl.where(both == both, filled, 0)  # NaN has no place in an order
    # at a tie the source's entry ends first
    merge_side(f, n, g, m, counted, source, target, mass, False, BLOCK)
    merge_side(g, m, f, n, counted, target, source, mass, True, BLOCK)
    # the rest repeats the last entry: it has the last target, unless all mass is gone before that
    gone = tl.load(g + m - 2, mask=(filled > 0) & (m > 1), other=0.0) >= 1
    last_source = tl.where(filled > 0, n - 1, 0)
    last_target = tl.where(filled > 0, tl.where(gone, m - 2, m - 1), 0)
    begin = counted
    while begin < size:
        k = begin + tl.arange(0, BLOCK)
        value = tl.where(k < filled, both, 0.0).to(mass.dtype.element_ty)
        tl.store(mass + k, value, mask=k < size)
        tl.store(source + k, last_source + 0 * k, mask=k < size)
        tl.store(target + k, last_target + 0 * k, mask=k < size)
        begin += BLOCK


@triton.jit
def gradient_side(  # type: ignore[no-untyped-def]
    own, count, total, other, other_count, filled, grad, slopes, out, size,
    EQUAL: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Fill the gradient in one side's weights."""
    offset = tl.arange(0, BLOCK)
    mean = tl.zeros((), tl.float64)
    begin = tl.zeros((), tl.int64)
    while begin < count:
        i = begin + offset
        real = i < count
        end = tl.load(own + i, mask=real, other=0.0)
        k = i + count_below(other, other_count, end, real, EQUAL)
        # an entry's mass is its end minus the one before: each end counts once with a plus, once with a minus
        real &= k < filled
        slope = tl.load(grad + k, mask=real, other=0.0).to(tl.float64)
        slope -= tl.load(grad + k + 1, mask=real & (k + 1 < filled), other=0.0).to(tl.float64)
        tl.store(slopes + i, slope, mask=i < count)
        mean += tl.sum(slope * end, 0)
        begin += BLOCK
    # through the sums: from the last weight to the first
    scale = tl.where(total != 0, total, 1.0)
    tail = tl.zeros((), tl.float64)
    begin = tl.zeros((), tl.int64) + (tl.cdiv(size, BLOCK) - 1) * BLOCK
    while begin >= 0:
        i = begin + offset
        slope = tl.load(slopes + i, mask=i < count, other=0.0)
        pulled = (tail + tl.cumsum(slope, 0, reverse=True) - mean) / scale
        pulled = tl.where((i < count) & (filled > 0), pulled, 0.0)
        tl.store(out + i, pulled.to(out.dtype.element_ty), mask=i < size)
        tail += tl.sum(slope, 0)
        begin -= BLOCK


@triton.jit
def merge_backward_kernel(  # type: ignore[no-untyped-def]
    alpha, beta, source_lengths, target_lengths, sums, slopes, grad, grad_alpha, grad_beta, sources, targets, size,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Fill the gradients of a row in both weights; ``sums`` and ``slopes`` are room for ``(B, n + m)`` float64."""
    n, m, f, g, f_total, g_total, filled = both_sums(
        alpha, beta, source_lengths, target_lengths, sums, sources, targets, BLOCK
    )
    row = tl.program_id(0).to(tl.int64)
    grad += row * size
    slopes += row * (sources + targets)
    gradient_side(
        f, n, f_total, g, m, filled, grad, slopes, grad_alpha + row * sources, sources, False, BLOCK
    )
    gradient_side(
        g, m, g_total, f, n, filled, grad, slopes + sources, grad_beta + row * targets, targets, True, BLOCK
    )


@triton.jit
def softmax_kernel(logits, lengths, out, size, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Fill the softmax of the valid part of a row, in float64."""
    row = tl.program_id(0).to(tl.int64)
    n = tl.minimum(tl.load(lengths + row), size)
    logits += row * size
    offset = tl.arange(0, BLOCK)
    peak = tl.full((), float("-inf"), tl.float64)
    begin = tl.zeros((), tl.int32)
    while begin < size:
        x = tl.load(logits + begin + offset, mask=begin + offset < n, other=float("-inf")).to(tl.float64)
        peak = tl.maximum(peak, tl.max(x, 0))
        begin += BLOCK
    total = tl.zeros((), tl.float64)
    begin = tl.zeros((), tl.int32)
    while begin < size:
        inside = begin + offset < n
        x = tl.load(logits + begin + offset, mask=inside, other=float("-inf")).to(tl.float64)
        total += tl.sum(tl.where(inside, tl.exp(x - peak), 0.0), 0)
        begin += BLOCK
    begin = tl.zeros((), tl.int32)
    while begin < size:
        inside = begin + offset < n
        x = tl.load(logits + begin + offset, mask=inside, other=float("-inf")).to(tl.float64)
        share = tl.where(inside, tl.exp(x - peak) / total, 0.0)
        tl.store(
            out + row * size + begin + offset, share.to(out.dtype.element_ty), mask=begin + offset < size
        )
        begin += BLOCK


@triton.jit
def softmax_backward_kernel(weights, grad, out, size, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Fill the gradient in the logits of a row's softmax."""
    row = tl.program_id(0).to(tl.int64) * size
    offset = tl.arange(0, BLOCK)
    total = tl.zeros((), tl.float64)
    begin = tl.zeros((), tl.int32)
    while begin < size:
        w = tl.load(weights + row + begin + offset, mask=begin + offset < size, other=0.0).to(tl.float64)
        g = tl.load(grad + row + begin + offset, mask=begin + offset < size, other=0.0).to(tl.float64)
        total += tl.sum(w * g, 0)
        begin += BLOCK
    begin = tl.zeros((), tl.int32)
    while begin < size:
        w = tl.load(weights + row + begin + offset, mask=begin + offset < size, other=0.0).to(tl.float64)
        g = tl.load(grad + row + begin + offset, mask=begin + offset < size, other=0.0).to(tl.float64)
        pulled = (w * (g - total)).to(out.dtype.element_ty)
        tl.store(out + row + begin + offset, pulled, mask=begin + offset < size)
        begin += BLOCK


def merge(
    alpha: Tensor, beta: Tensor, n: Tensor, m: Tensor, block: int = _BLOCK
) -> tuple[Tensor, Tensor, Tensor]:
    """Find masses, sources and targets."""
    (batch, sources), targets = alpha.shape, beta.shape[1]
    size = max(1, sources + targets - 1)
    mass = alpha.new_empty(batch, size)
    source, target = alpha.new_empty(2, batch, size, dtype=torch.int64)
    if batch:
        merge_kernel[(batch,)](
            alpha.contiguous(), beta.contiguous(), n.contiguous(), m.contiguous(), *_room(alpha, beta, 1),
            mass, source, target, sources, targets, size, BLOCK=block, num_warps=8,
        )  # fmt: skip
    return mass, source, target


def merge_gradients(
    alpha: Tensor, beta: Tensor, n: Tensor, m: Tensor, grad: Tensor, block: int = _BLOCK
) -> tuple[Tensor, Tensor]:
    """Find the gradients in alpha and beta from that in the masses."""
    alpha, beta = alpha.contiguous(), beta.contiguous()
    grads = torch.empty_like(alpha), torch.empty_like(beta)
    if len(alpha):
        merge_backward_kernel[(len(alpha),)](
            alpha, beta, n.contiguous(), m.contiguous(), *_room(alpha, beta, 2), grad.contiguous(), *grads,
            alpha.shape[1], beta.shape[1], grad.shape[1], BLOCK=block, num_warps=8,
        )  # fmt: skip
    return grads


def softmax(logits: Tensor, lengths: Tensor, block: int = _BLOCK) -> Tensor:
    """Find the softmax of the valid frames of every row."""
    logits = logits.contiguous()
    out = torch.empty_like(logits)
    if len(logits):
        softmax_kernel[(len(logits),)](logits, lengths, out, logits.shape[1], BLOCK=block, num_warps=8)
    return out


def softmax_gradient(weights: Tensor, grad: Tensor, block: int = _BLOCK) -> Tensor:
    """Find the gradient in the logits of :func:`softmax`."""
    out = torch.empty_like(weights)
    if len(weights):
        softmax_backward_kernel[(len(weights),)](
            weights, grad.contiguous(), out, weights.shape[1], BLOCK=block, num_warps=8
        )
    return out


def _room(alpha: Tensor, beta: Tensor, count: int) -> Tensor:
    """Allocate numbers for every weight, some times."""
    return alpha.new_empty(count, len(alpha), alpha.shape[1] + beta.shape[1], dtype=torch.float64)
