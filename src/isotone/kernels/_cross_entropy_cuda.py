"""Triton kernels of :mod:`isotone.kernels.cross_entropy`.

Forward: the norms of all frames, then the pairs of a row. Backward: the pairs of a row, then the gradient in the
logits, which is written once, frame by frame.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

# Pairs of a row that are handled at a time.
_PAIRS = 1024
# Most scores of a frame, and of some frames together, that are handled at a time.
_SCORES, _TILE = 1024, 2048
# Most frames that are handled at a time.
_FRAMES = 32


@triton.jit
def load_scores(  # type: ignore[no-untyped-def]
    frames, inside, v, vocab, column_stride, wide: tl.constexpr
):  # fmt: skip
    """Load a tile of scores ``(frames, labels)``."""
    mask = inside[:, None] & (v < vocab)[None, :]
    return tl.load(frames[:, None] + (v * column_stride)[None, :], mask=mask, other=float("-inf")).to(wide)


@triton.jit
def norms_kernel(  # type: ignore[no-untyped-def]
    logits, lengths, norms, size, vocab, row_stride, frame_stride, column_stride,
    FRAMES: tl.constexpr, SCORES: tl.constexpr,
):  # fmt: skip
    """Fill the norms of some frames: the largest score, and the log-sum-exp of the scores less the largest."""
    row = tl.program_id(0).to(tl.int64)
    wide: tl.constexpr = norms.dtype.element_ty
    t = tl.program_id(1).to(tl.int64) * FRAMES + tl.arange(0, FRAMES)
    inside = t < tl.minimum(tl.load(lengths + row), size)
    frames = logits + row * row_stride + t * frame_stride
    peak = tl.full((FRAMES,), float("-inf"), wide)
    total = tl.zeros((FRAMES,), wide)
    begin = tl.zeros((), tl.int32)
    while begin < vocab:
        x = load_scores(frames, inside, begin + tl.arange(0, SCORES), vocab, column_stride, wide)
        higher = tl.maximum(peak, tl.max(x, 1))
        shift = tl.where(higher == float("-inf"), 0.0, higher)
        total = total * tl.exp(peak - shift) + tl.sum(tl.exp(x - shift[:, None]), 1)
        peak = higher
        begin += SCORES
    at = norms + (row * size + t) * 2
    tl.store(at, peak, mask=inside)
    tl.store(at + 1, tl.log(total.to(tl.float64)).to(wide), mask=inside)


@triton.jit
def pair_losses(  # type: ignore[no-untyped-def]
    k, pairs, frames, row, logits, source, label, norms, size, vocab, row_stride, frame_stride, column_stride
):  # fmt: skip
    """Return -log p of some pairs of a row: NaN for labels that are none."""
    real = k < pairs
    s = tl.load(source + row * pairs + k, mask=real, other=0)
    v = tl.load(label + row * pairs + k, mask=real, other=0)
    known = real & (s >= 0) & (s < frames) & (v >= 0) & (v < vocab)
    peak = tl.load(norms + (row * size + s) * 2, mask=known, other=0.0)
    rest = tl.load(norms + (row * size + s) * 2 + 1, mask=known, other=0.0)
    x = tl.load(logits + row * row_stride + s * frame_stride + v * column_stride, mask=known, other=0.0)
    return tl.where(known | ~real, rest - (x.to(peak.dtype) - peak), float("nan")), known | ~real


@triton.jit
def values_kernel(  # type: ignore[no-untyped-def]
    logits, mass, source, label, lengths, norms, values, size, pairs, vocab,
    row_stride, frame_stride, column_stride, BLOCK: tl.constexpr,
):  # fmt: skip
    """Fill the value of a row, summed in float64; NaN where a label, source or length is none."""
    row = tl.program_id(0).to(tl.int64)
    n = tl.load(lengths + row)
    total = tl.zeros((), tl.float64)
    wrong = tl.where(n > size, 1, 0)
    begin = tl.zeros((), tl.int32)
    while begin < pairs:
        k = begin + tl.arange(0, BLOCK)
        loss, known = pair_losses(
            k, pairs, tl.minimum(n, size), row, logits, source, label, norms, size, vocab,
            row_stride, frame_stride, column_stride,
        )  # fmt: skip
        w = tl.load(mass + row * pairs + k, mask=k < pairs, other=0.0)
        # without mass, an impossible label costs nothing
        total += tl.sum(tl.where(w != 0, w.to(tl.float64) * loss.to(tl.float64), 0.0), 0)
        wrong = tl.maximum(wrong, tl.max(tl.where(known, 0, 1), 0))
        begin += BLOCK
    total = tl.where(wrong > 0, float("nan"), total)
    tl.store(values + row, tl.where(n > 0, total, 0.0).to(values.dtype.element_ty))


@triton.jit
def mass_gradients_kernel(  # type: ignore[no-untyped-def]
    grad, logits, mass, source, label, lengths, norms, grad_mass, ends, size, pairs, vocab,
    row_stride, frame_stride, column_stride, MASS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Fill the gradient in the masses of a row, if wanted, and the number of its pairs up to the last with mass."""
    row = tl.program_id(0).to(tl.int64)
    n = tl.load(lengths + row)
    upstream = tl.load(grad + row)
    end = tl.zeros((), tl.int64)
    begin = tl.zeros((), tl.int32)
    while begin < pairs:
        k = begin + tl.arange(0, BLOCK)
        w = tl.load(mass + row * pairs + k, mask=k < pairs, other=0.0)
        end = tl.maximum(end, tl.max(tl.where(w != 0, k + 1, 0), 0))
        if MASS:
            loss, _ = pair_losses(
                k, pairs, tl.minimum(n, size), row, logits, source, label, norms, size, vocab,
                row_stride, frame_stride, column_stride,
            )  # fmt: skip
            pulled = tl.where(n > 0, upstream * loss, 0.0).to(grad_mass.dtype.element_ty)
            tl.store(grad_mass + row * pairs + k, pulled, mask=k < pairs)
        begin += BLOCK
    tl.store(ends + row, end)


@triton.jit
def first_pair(source, pairs, t):  # type: ignore[no-untyped-def]
    """Return the number of sources below t: they ascend."""
    low = tl.zeros(t.shape, tl.int64)
    high = low + pairs
    left = tl.zeros((), tl.int64) + pairs
    while left > 0:
        middle = (low + high) // 2
        below = tl.load(source + middle, mask=low < high, other=0) < t
        below &= low < high
        high = tl.where(below, high, middle)
        low = tl.where(below, middle + 1, low)
        left = left // 2
    return low


@triton.jit
def logit_gradients_kernel(  # type: ignore[no-untyped-def]
    grad, logits, mass, source, label, lengths, norms, ends, out, size, pairs, vocab,
    row_stride, frame_stride, column_stride, FRAMES: tl.constexpr, SCORES: tl.constexpr,
):  # fmt: skip
    """Fill the gradient in the logits of some frames: the softmax times the frame's mass, less the pairs' masses."""
    row = tl.program_id(0).to(tl.int64)
    wide: tl.constexpr = norms.dtype.element_ty
    t = tl.program_id(1).to(tl.int64) * FRAMES + tl.arange(0, FRAMES)
    inside = t < tl.minimum(tl.load(lengths + row), size)
    upstream = tl.load(grad + row).to(wide)
    mass += row * pairs
    label += row * pairs
    end = tl.load(ends + row)
    first = tl.minimum(first_pair(source + row * pairs, pairs, t), end)
    last = tl.minimum(first_pair(source + row * pairs, pairs, t + 1), end)
    count = tl.where(inside, last - first, 0)
    most = tl.max(count, 0)
    weight = tl.zeros((FRAMES,), wide)
    p = tl.zeros((), tl.int64)
    while p < most:
        weight += upstream * tl.load(mass + first + p, mask=p < count, other=0.0).to(wide)
        p += 1
    peak = tl.load(norms + (row * size + t) * 2, mask=inside, other=0.0)
    rest = tl.load(norms + (row * size + t) * 2 + 1, mask=inside, other=0.0)
    frames = logits + row * row_stride + t * frame_stride
    begin = tl.zeros((), tl.int32)
    while begin < vocab:
        v = begin + tl.arange(0, SCORES)
        x = load_scores(frames, inside, v, vocab, column_stride, wide)
        pulled = tl.exp((x - peak[:, None]) - rest[:, None]) * weight[:, None]
        # a frame without mass has no gradient, whatever its scores are
        pulled = tl.where((weight != 0)[:, None], pulled, 0.0)
        p = tl.zeros((), tl.int64)
        while p < most:
            w = upstream * tl.load(mass + first + p, mask=p < count, other=0.0).to(wide)
            own = tl.load(label + first + p, mask=p < count, other=-1)
            pulled -= tl.where(v[None, :] == own[:, None], w[:, None], 0.0)
            p += 1
        place = out + ((row * size + t) * vocab)[:, None] + v[None, :]
        mask = (t < size)[:, None] & (v < vocab)[None, :]
        tl.store(place, tl.where(inside[:, None], pulled, 0.0).to(out.dtype.element_ty), mask=mask)
        begin += SCORES


def _tile(vocab: int, scores: int) -> tuple[int, int]:
    """Return frames and scores that are handled at a time."""
    width = min(scores, max(16, triton.next_power_of_2(vocab)))
    return max(1, min(_FRAMES, _TILE // width)), width


def losses(
    logits: Tensor, mass: Tensor, source: Tensor, label: Tensor, lengths: Tensor, scores: int = _SCORES
) -> tuple[Tensor, Tensor]:
    """Find the values, and the norms of all frames ``(B, T, 2)``, of which those beyond the lengths are undefined."""
    batch, size, vocab = logits.shape
    wide = torch.promote_types(logits.dtype, torch.float32)
    norms = logits.new_empty(batch, size, 2, dtype=wide)
    values = logits.new_empty(batch, dtype=wide)
    frames, width = _tile(vocab, scores)
    if batch and size:
        norms_kernel[(batch, triton.cdiv(size, frames))](
            logits, lengths, norms, size, vocab, *logits.stride(), FRAMES=frames, SCORES=width
        )
    if batch:
        values_kernel[(batch,)](
            logits, mass.contiguous(), source.contiguous(), label.contiguous(), lengths, norms, values,
            size, mass.shape[1], vocab, *logits.stride(), BLOCK=_PAIRS, num_warps=8,
        )  # fmt: skip
    return values, norms


def gradients(
    grad: Tensor,
    logits: Tensor,
    mass: Tensor,
    source: Tensor,
    label: Tensor,
    lengths: Tensor,
    norms: Tensor,
    for_logits: bool,
    for_mass: bool,
    scores: int = _SCORES,
) -> tuple[Tensor, Tensor]:
    """Find the gradients in logits and mass; empty where they are not requested."""
    (batch, size, vocab), pairs = logits.shape, mass.shape[1]
    grad_logits = logits.new_empty(logits.shape if for_logits else (0, 0, 0))
    grad_mass = mass.new_empty(mass.shape if for_mass else (0, 0))
    given = [x.contiguous() for x in (mass, source, label)]
    ends = lengths.new_empty(batch)
    common = size, pairs, vocab, *logits.stride()
    grad = grad.contiguous()
    if batch:
        mass_gradients_kernel[(batch,)](
            grad, logits, *given, lengths, norms, grad_mass, ends, *common, MASS=for_mass, BLOCK=_PAIRS, num_warps=8
        )  # fmt: skip
    frames, width = _tile(vocab, scores)
    if batch and size and for_logits:
        logit_gradients_kernel[(batch, triton.cdiv(size, frames))](
            grad, logits, *given, lengths, norms, ends, grad_logits, *common, FRAMES=frames, SCORES=width
        )
    return grad_logits, grad_mass
