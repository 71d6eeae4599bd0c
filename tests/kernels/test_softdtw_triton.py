"""The CUDA kernels, without a GPU: run by Triton's interpreter, and compiled for one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.kernels.triton_parts import run

pytest.importorskip("triton", reason="this build of torch has no Triton")

INTERPRETED = """
import math
import numpy as np
import torch
from isotone.kernels.softdtw import cpu, cuda
from isotone.kernels.softdtw.plan import Plan

rng = torch.Generator().manual_seed(0)
cases = [  # n, m, gamma, band, type, block
    ((5, 3, 1), (7, 2, 4), 0.5, -1, torch.float64, 1024),
    ((5, 3, 1), (7, 2, 4), 0.5, 1, torch.float32, 1024),
    ((5, 3, 1), (7, 2, 4), 0.0, -1, torch.float64, 1024),
    ((22, 19), (23, 25), 0.01, -1, torch.float64, 16),  # more lanes than a block has
]
for n, m, gamma, band, dtype, block in cases:
    shape = (len(n), max(n), max(m))
    cost = 3 * torch.rand(shape, generator=rng, dtype=torch.float64).to(dtype)
    cost[0, 1, 1] = math.inf
    if shape[0] == 3:
        cost[1, 2] = math.inf  # a row without a way
        cost[2, :, 3] = math.nan
    plan = Plan.of(shape, np.array(n), np.array(m), band)
    weight = torch.arange(1.0, shape[0] + 1)
    results = []
    for backend, options in ((cpu, {}), (cuda, {"block": block})):
        values, up, left = backend.forward(cost, plan, gamma, True, **options)
        without = backend.forward(cost, plan, gamma, False, **options)[0]
        torch.testing.assert_close(values, without, equal_nan=True)
        used = torch.where(torch.isfinite(values), weight, 0.0)
        visits = backend.backward(cost, up, left, plan, used, **options)
        results.append((values.double(), visits))
    tolerance = 1e-6 if dtype == torch.float32 else 1e-12
    finite = torch.isfinite(results[0][0])
    torch.testing.assert_close(results[1][0], results[0][0], rtol=tolerance, atol=tolerance, equal_nan=True)
    torch.testing.assert_close(results[1][1][finite], results[0][1][finite], rtol=tolerance, atol=tolerance)
    assert results[0][1][finite].sum() > 0
print("the same")
"""

COMPILED = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from isotone.kernels.softdtw import cuda

integers = dict.fromkeys(["low", "high", "start", "n", "m", "exponent"], "*i64")
sizes = dict.fromkeys(["row_stride", "lane_stride", "step_stride", "diagonals", "width"], "i32")
for number in ("*fp32", "*fp64"):
    for kernel, options in (
        (cuda.forward_kernel, {"SOFT": True, "KEEP": True, "BLOCK": 1024}),
        (cuda.forward_kernel, {"SOFT": False, "KEEP": False, "BLOCK": 16}),
        (cuda.backward_kernel, {"ROUNDING": 1e-6, "BLOCK": 1024}),
    ):
        known = integers | sizes | dict.fromkeys(options, "constexpr")
        signature = {name: known.get(name, number) for name in kernel.arg_names}
        target = GPUTarget("cuda", 90, 32)
        code = triton.compile(ASTSource(kernel, signature, constexprs=options), target=target)
        assert "bar.sync" in code.asm["ptx"], "diagonals wait for each other"
print("compiled")
"""


def test_interpreted_kernels_agree_with_the_compiled_loops(tmp_path: Path) -> None:
    assert "the same" in run(INTERPRETED, tmp_path, TRITON_INTERPRET="1")


def test_kernels_compile_for_cuda(tmp_path: Path) -> None:
    assert "compiled" in run(COMPILED, tmp_path)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("size", [33, 1500])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_on_cuda_as_on_the_cpu(size: int, dtype: torch.dtype) -> None:
    from isotone.kernels.softdtw import soft_dtw

    rng = torch.Generator().manual_seed(0)
    cost = 3 * torch.rand(3, size, size + 5, generator=rng, dtype=torch.float64).to(dtype)
    n, m = torch.tensor([size, 7, size - 3]), torch.tensor([size + 5, 30, 11])
    results = []
    for device in ("cpu", "cuda"):
        leaf = cost.to(device).requires_grad_()
        value = soft_dtw(leaf, 0.3, n.to(device), m.to(device))
        results.append((value.cpu(), torch.autograd.grad(value.sum(), leaf)[0].cpu()))
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float32 else {"rtol": 1e-10, "atol": 1e-10}
    torch.testing.assert_close(results[1], results[0], **tolerance)
