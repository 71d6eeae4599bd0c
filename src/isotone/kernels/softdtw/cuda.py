"""Soft-DTW on CUDA: one programme per row, which goes through the anti-diagonals.

It is the algorithm of :mod:`isotone.kernels.softdtw._forward` and ``_backward``, in the type of the costs: mantissas
and whole exponents of exp(-R / gamma), and packed weights of the soft minimum. A diagonal is computed in blocks of
lanes, so that sequences may have any length. Diagonals pass numbers on through global memory, with a barrier of the
programme's threads between them.
"""

from __future__ import annotations

import math

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

from isotone.kernels.softdtw.plan import Plan, rounding

# Exponents of two: of an impossible path, and of the least sum of costs that counts as infinite.
_IMPOSSIBLE = tl.constexpr(1 << 50)
_INFINITE = 1 << 49
# Most lanes of a diagonal that are computed at a time.
_BLOCK = 1024


@triton.jit
def soft_cells(power, m_up, m_left, m_both, e_up, e_left, e_both):  # type: ignore[no-untyped-def]
    """Return mantissas, exponents and weights of cells, from their neighbours' and minus the cost as a power of 2."""
    # NaN stays what it is
    power = tl.where(power > _IMPOSSIBLE, 1.0 * _IMPOSSIBLE, power)
    power = tl.where(power < -_IMPOSSIBLE, -1.0 * _IMPOSSIBLE, power)
    whole = tl.floor(power + 0.5)
    most = tl.maximum(tl.maximum(e_up, e_left), e_both)
    # 2^-1100 is 0 in either type
    from_up = m_up * tl.exp2(tl.maximum(e_up - most, -1100).to(power.dtype))
    from_left = m_left * tl.exp2(tl.maximum(e_left - most, -1100).to(power.dtype))
    total = from_up + from_left + m_both * tl.exp2(tl.maximum(e_both - most, -1100).to(power.dtype))
    w_up, w_left = from_up / total, from_left / total
    total *= tl.exp2(power - whole)
    carry = tl.floor(tl.log2(total))
    return total * tl.exp2(-carry), most + whole.to(tl.int64) + carry.to(tl.int64), w_up, w_left


@triton.jit
def hard_cells(cost, up, left, both):  # type: ignore[no-untyped-def]
    """Return the least costs up to cells, and the weights 0 or 1 of the neighbours above and to the left."""
    least = tl.minimum(up, left, propagate_nan=tl.PropagateNan.ALL)
    least = tl.minimum(least, both, propagate_nan=tl.PropagateNan.ALL)
    w_up = ((up <= left) & (up < both)).to(cost.dtype)
    w_left = ((left < up) & (left < both)).to(cost.dtype)
    return cost + least, w_up, w_left


@triton.jit
def fill_edges(diagonal, first, last, value):  # type: ignore[no-untyped-def]
    """Fill the elements beside the first and the last lane of a diagonal."""
    tl.store(diagonal + first, value)
    tl.store(diagonal + last + 2, value)


@triton.jit
def forward_kernel(  # type: ignore[no-untyped-def]
    cost, low, high, start, n, m, mantissa, exponent, up, left,
    scales, row_stride, lane_stride, step_stride, diagonals, width,
    SOFT: tl.constexpr, KEEP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Fill the values' mantissas and exponents, and the weights of cells; one programme per row."""
    row = tl.program_id(0).to(tl.int64)
    count = tl.load(n + row) + tl.load(m + row) - 1
    cost += row * row_stride
    mantissa += row * 3 * width
    exponent += row * 3 * width
    cells = tl.load(start + row)
    scale = tl.load(scales)  # a number as an argument would be a float32
    offset = tl.arange(0, BLOCK)
    d = tl.zeros((), tl.int64)
    while d < count:
        first = tl.load(low + row * diagonals + d)
        last = tl.load(high + row * diagonals + d)
        now, one, two = d % 3 * width, (d + 2) % 3 * width, (d + 1) % 3 * width
        begin = first
        while begin <= last:
            i = begin + offset
            real = i <= last
            own = tl.load(cost + i * lane_stride + (d - i) * step_stride, mask=real, other=0.0)
            m_up = tl.load(mantissa + one + i, mask=real, other=1.0)
            m_left = tl.load(mantissa + one + i + 1, mask=real, other=1.0)
            m_both = tl.load(mantissa + two + i, mask=real, other=1.0)
            if SOFT:
                e_up = tl.load(exponent + one + i, mask=real, other=0)
                e_left = tl.load(exponent + one + i + 1, mask=real, other=0)
                e_both = tl.load(exponent + two + i, mask=real, other=0)
                scaled, power, w_up, w_left = soft_cells(
                    own * scale, m_up, m_left, m_both, e_up, e_left, e_both
                )
                tl.store(mantissa + now + i + 1, scaled, mask=real)
                tl.store(exponent + now + i + 1, power, mask=real)
            else:
                best, w_up, w_left = hard_cells(own, m_up, m_left, m_both)
                tl.store(mantissa + now + i + 1, best, mask=real)
            if KEEP:
                tl.store(up + cells + i - first, w_up, mask=real)
                tl.store(left + cells + i - first, w_left, mask=real)
            begin += BLOCK
        # no paths beside the diagonal
        if SOFT:
            fill_edges(exponent + now, first, last, -_IMPOSSIBLE)
        else:
            fill_edges(mantissa + now, first, last, float("inf"))
        cells += last - first + 1
        d += 1
        tl.debug_barrier()


@triton.jit
def backward_kernel(  # type: ignore[no-untyped-def]
    up, left, low, high, start, n, m, handed, weight, out,
    row_stride, lane_stride, step_stride, diagonals, width, ROUNDING: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Fill the expected alignments times weights from the weights of cells; one programme per row."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.load(n + row)
    count = lanes + tl.load(m + row) - 1
    out += row * row_stride
    # visits that diagonals pass back to (i - 1, j), (i, j - 1) and (i - 1, j - 1); they come in zeroed
    to_up = handed + row * 9 * width
    to_left, to_both = to_up + 3 * width, to_up + 6 * width
    tl.store(to_both + (count + 1) % 3 * width + lanes + 1, tl.load(weight + row))
    tl.debug_barrier()
    cells = tl.load(start + row + 1)
    offset = tl.arange(0, BLOCK)
    d = count - 1
    while d >= 0:
        first = tl.load(low + row * diagonals + d)
        last = tl.load(high + row * diagonals + d)
        cells -= last - first + 1
        now, one, two = d % 3 * width, (d + 1) % 3 * width, (d + 2) % 3 * width
        begin = first
        while begin <= last:
            i = begin + offset
            real = i <= last
            visit = tl.load(to_up + one + i + 2, mask=real, other=0.0)
            visit += tl.load(to_left + one + i + 1, mask=real, other=0.0)
            visit += tl.load(to_both + two + i + 2, mask=real, other=0.0)
            w_up = tl.load(up + cells + i - first, mask=real, other=0.0)
            w_left = tl.load(left + cells + i - first, mask=real, other=0.0)
            # as shares() of the compiled loops
            rest = 1.0 - w_up - w_left
            rounded = tl.where(rest < ROUNDING, rest, 0.0)
            of_up = tl.where(w_up >= w_left, rounded, 0.0)
            w_up, w_left, rest = w_up + of_up, w_left + (rounded - of_up), rest - rounded
            tl.store(out + i * lane_stride + (d - i) * step_stride, visit, mask=real)
            tl.store(to_up + now + i + 1, visit * w_up, mask=real)
            tl.store(to_left + now + i + 1, visit * w_left, mask=real)
            tl.store(to_both + now + i + 1, visit * rest, mask=real)
            begin += BLOCK
        fill_edges(to_up + now, first, last, 0.0)
        fill_edges(to_left + now, first, last, 0.0)
        fill_edges(to_both + now, first, last, 0.0)
        d -= 1
        tl.debug_barrier()


def forward(
    cost: Tensor, plan: Plan, gamma: float, keep: bool, block: int = _BLOCK
) -> tuple[Tensor, Tensor, Tensor]:
    """Return values ``(B,)``, and if ``keep`` the packed soft-min weights of all cells, else empty tensors.

    Weights have the type of the costs.
    """
    batch, lanes, steps = plan.shape
    up, left = (cost.new_empty(int(plan.start[-1]) if keep else 0) for _ in range(2))
    soft = gamma > 0
    mantissa = cost.new_full((batch, 3, lanes + 2), 1.0 if soft else math.inf)
    exponent = torch.full(mantissa.shape, -_IMPOSSIBLE.value, device=cost.device)
    # diagonal -1 stands for what precedes the first cell: of diagonal 0 it is `two`, which is the second
    mantissa[:, 1, 0], exponent[:, 1, 0] = float(soft), 0
    tables = _tables(plan, cost.device)
    if batch:
        scales = cost.new_full((1,), -1 / (gamma * math.log(2)) if soft else 0.0)
        with torch.cuda.device_of(cost):
            forward_kernel[(batch,)](
                cost, *tables, mantissa, exponent, up, left, scales, *cost.stride(),
                lanes + steps - 1, lanes + 2, SOFT=soft, KEEP=keep, BLOCK=_block(lanes, block), num_stages=1,
            )  # fmt: skip
    *_, n, m = tables
    row = torch.arange(batch, device=cost.device)
    last = (n + m - 2) % 3
    values = mantissa[row, last, n]
    if soft:
        power = exponent[row, last, n]
        values = -gamma * (torch.log(values.double()) + power.double() * math.log(2))
        values = torch.where(power.abs() > _INFINITE, torch.where(power < 0, math.inf, -math.inf), values)
    return values, up, left


def backward(
    cost: Tensor, up: Tensor, left: Tensor, plan: Plan, weight: Tensor, block: int = _BLOCK
) -> Tensor:
    """Return expected alignments times their weights, of the shape and layout of the cost."""
    batch, lanes, steps = plan.shape
    out = torch.zeros_like(cost)
    if batch:
        handed = cost.new_zeros(batch, 9, lanes + 2)
        with torch.cuda.device_of(cost):
            backward_kernel[(batch,)](
                up, left, *_tables(plan, cost.device), handed, weight.to(cost.dtype).contiguous(), out, *out.stride(),
                lanes + steps - 1, lanes + 2, ROUNDING=rounding(up.dtype), BLOCK=_block(lanes, block), num_stages=1,
            )  # fmt: skip
    return out


def _tables(plan: Plan, device: torch.device) -> list[Tensor]:
    arrays: list[np.ndarray] = [plan.low, plan.high, plan.start, plan.n, plan.m]
    return [torch.from_numpy(array).to(device) for array in arrays]


def _block(lanes: int, most: int) -> int:
    return min(most, max(16, triton.next_power_of_2(lanes)))
