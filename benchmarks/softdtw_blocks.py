"""Soft-DTW as pytorch-softdtw-cuda computes it, written anew in Triton: a peer on GPUs.

One block of threads per pair of sequences, one thread per row of the pair's matrix of costs: the threads go through the
anti-diagonals together, with a barrier after each. All sums of costs and all expected visits are in matrices of global
memory, with a border of one cell, and so are the differences of the vectors before their squares are added up. The
package has its kernels in numba; its limit of 1,024 rows, the largest block, is here too.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

_THREADS = 1024


@triton.jit
def forward_kernel(cost, sums, n, m, gamma, LANES: tl.constexpr):  # type: ignore[no-untyped-def]
    """Fill the soft minima of the sums of costs up to every cell, ``(n + 2, m + 2)`` per block."""
    row = tl.program_id(0).to(tl.int64)
    cost += row * n * m
    sums += row * (n + 2) * (m + 2)
    i = tl.arange(0, LANES)
    k = tl.zeros((), tl.int32)
    while k < n + m - 1:
        j = k - i
        real = (i < n) & (j >= 0) & (j < m)
        at = sums + (i + 1) * (m + 2) + j + 1
        both = -tl.load(at - (m + 2) - 1, mask=real, other=0.0) / gamma
        up = -tl.load(at - (m + 2), mask=real, other=0.0) / gamma
        left = -tl.load(at - 1, mask=real, other=0.0) / gamma
        most = tl.maximum(tl.maximum(both, up), left)
        total = tl.exp(both - most) + tl.exp(up - most) + tl.exp(left - most)
        own = tl.load(cost + i * m + j, mask=real, other=0.0)
        tl.store(at, own - gamma * (tl.log(total) + most), mask=real)
        k += 1
        tl.debug_barrier()


@triton.jit
def backward_kernel(cost, sums, visits, n, m, gamma, LANES: tl.constexpr):  # type: ignore[no-untyped-def]
    """Fill the expected visits of every cell from the last one back; costs have a border of zeros."""
    row = tl.program_id(0).to(tl.int64)
    width = m + 2
    cost += row * (n + 2) * width
    sums += row * (n + 2) * width
    visits += row * (n + 2) * width
    i = tl.arange(0, LANES)
    k = n + m - 2 + tl.zeros((), tl.int32)
    while k >= 0:
        j = k - i
        real = (i < n) & (j >= 0) & (j < m)
        at = (i + 1) * width + j + 1
        own = tl.load(sums + at, mask=real, other=0.0)
        down, right, both = at + width, at + 1, at + width + 1
        to_down = (
            tl.load(sums + down, mask=real, other=0.0) - own - tl.load(cost + down, mask=real, other=0.0)
        )
        to_right = (
            tl.load(sums + right, mask=real, other=0.0) - own - tl.load(cost + right, mask=real, other=0.0)
        )
        to_both = (
            tl.load(sums + both, mask=real, other=0.0) - own - tl.load(cost + both, mask=real, other=0.0)
        )
        value = tl.load(visits + down, mask=real, other=0.0) * tl.exp(to_down / gamma)
        value += tl.load(visits + right, mask=real, other=0.0) * tl.exp(to_right / gamma)
        value += tl.load(visits + both, mask=real, other=0.0) * tl.exp(to_both / gamma)
        tl.store(visits + at, value, mask=real)
        k -= 1
        tl.debug_barrier()


class SoftDTW(torch.autograd.Function):
    """Values ``(B,)`` of costs ``(B, n, m)``, and the expected visits as their gradient."""

    @staticmethod
    def forward(ctx: Any, cost: Tensor, gamma: float) -> Tensor:
        """Compute the values; ``n`` is at most 1,024."""
        rows, n, m = cost.shape
        if n > _THREADS:
            raise ValueError(f"A block has {_THREADS} threads, one per row; got {n} rows.")
        sums = cost.new_full((rows, n + 2, m + 2), torch.inf)
        sums[:, 0, 0] = 0.0
        ctx.lanes = max(32, triton.next_power_of_2(n))
        forward_kernel[rows,](cost.contiguous(), sums, n, m, gamma, ctx.lanes, num_warps=ctx.lanes // 32)
        ctx.save_for_backward(cost, sums)
        ctx.gamma = gamma
        return sums[:, n, m].clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """Compute the expected visits, times the gradient."""
        cost, sums = ctx.saved_tensors
        rows, n, m = cost.shape
        padded = torch.nn.functional.pad(cost, (1, 1, 1, 1))
        visits = torch.zeros_like(padded)
        visits[:, -1, -1] = 1.0
        sums = sums.clone()
        sums[:, :, -1] = -torch.inf
        sums[:, -1, :] = -torch.inf
        sums[:, -1, -1] = sums[:, -2, -2]
        backward_kernel[rows,](padded, sums, visits, n, m, ctx.gamma, ctx.lanes, num_warps=ctx.lanes // 32)
        return gradients[0][:, None, None] * visits[:, 1 : n + 1, 1 : m + 1], None


def soft_dtw(x: Tensor, y: Tensor, gamma: float) -> Tensor:
    """Compute soft-DTW values ``(B,)`` of squared distances of ``(B, n, d)`` and ``(B, m, d)``, as float32."""
    return SoftDTW.apply((x[:, :, None] - y[:, None]).square().sum(-1), gamma)
