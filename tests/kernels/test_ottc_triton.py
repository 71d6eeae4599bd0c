"""The coupling and the cross-entropy on CUDA: without a GPU by Triton's interpreter, and compiled for one; with one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from isotone.kernels.coupling import couple, frame_weights
from isotone.kernels.cross_entropy import pair_cross_entropy
from tests.kernels.triton_parts import run

pytest.importorskip("triton", reason="this build of torch has no Triton")

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

COUPLING = """
import numpy as np
import torch
from isotone.kernels import _coupling_cuda as cuda, coupling as cpu

np.seterr(invalid="ignore")
rng = torch.Generator().manual_seed(0)
for case in range(8):
    sources, targets = (int(torch.randint(1, most, (1,), generator=rng)) for most in (40, 30))
    kind = torch.float64 if case % 2 else torch.float32
    # whole numbers: ties and zeros are common
    draw = [torch.randint(0, 4, (4, k), generator=rng).to(kind) for k in (sources, targets)]
    alpha, beta = draw if case % 3 else [torch.rand(4, k, generator=rng, dtype=kind) for k in (sources, targets)]
    n, m = (torch.randint(0, k + 1, (4,), generator=rng) for k in (sources, targets))
    n[0], m[0] = sources, targets
    alpha[1] = 0
    for values, lengths in ((alpha, n), (beta, m)):
        values[torch.arange(values.shape[1]) >= lengths[:, None]] = torch.nan
    merged, expected = cuda.merge(alpha, beta, n, m, 16), cpu._merge(alpha, beta, n, m)
    exact = {"rtol": 1e-6 if kind == torch.float32 else 1e-12, "atol": 1e-7 if kind == torch.float32 else 1e-12}
    torch.testing.assert_close(merged, expected, **exact)
    assert (merged[0][1] == 0).all() and (merged[0][0].sum() - 1).abs() < 1e-6
    grad = torch.randn(merged[0].shape, generator=rng).to(kind)
    grads = cuda.merge_gradients(alpha, beta, n, m, grad, 16), cpu._merge_gradients(alpha, beta, n, m, grad)
    torch.testing.assert_close(*grads, rtol=1e-5, atol=100 * exact["atol"])
    logits = 10 * torch.randn(alpha.shape, generator=rng).to(kind)
    logits[torch.arange(sources) >= n[:, None]] = torch.nan
    weights = cuda.softmax(logits, n, 16)
    torch.testing.assert_close(weights, cpu._softmax(logits, n), rtol=exact["rtol"], atol=0.0)
    upstream = grad[:, :sources].contiguous()
    pulled = cuda.softmax_gradient(weights, upstream, 16), cpu._softmax_gradient(weights, upstream)
    torch.testing.assert_close(*pulled, **exact)
alpha[0, 0] = torch.nan
mass, source, target = cuda.merge(alpha, beta, n, m, 16)
assert torch.isnan(mass[0]).any() and torch.isfinite(mass[1:]).all()
assert 0 <= source.min() and source.max() < sources and 0 <= target.min() and target.max() < targets
print("the same")
"""

CROSS_ENTROPY = """
import numpy as np
import torch
from isotone.kernels import _cross_entropy_cuda as cuda
from isotone.kernels.cross_entropy import TensorCrossEntropy

np.seterr(invalid="ignore", divide="ignore")
rng = torch.Generator().manual_seed(0)
types = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
cases = [(v, kind, width) for v, kind in zip((1, 2, 37, 100), types) for width in (1024, 16)]
for vocab, kind, width in cases:
    frames, pairs = 23, 31
    wide = torch.promote_types(kind, torch.float32)
    logits = (3 * torch.randn(frames, 3, vocab, generator=rng)).to(kind).transpose(0, 1)
    lengths = torch.tensor([frames, frames - 6, 0])
    source = (torch.rand(3, pairs, generator=rng) * lengths[:, None]).long().sort(1).values
    label = torch.randint(0, vocab, (3, pairs), generator=rng)
    mass = torch.rand(3, pairs, generator=rng).to(wide)
    mass[:, ::7] = 0
    mass[:, 28:] = 0
    logits[1, frames - 6 :] = logits[2] = torch.nan
    label[2] = -100
    x, w = logits.clone().requires_grad_(), mass.clone().requires_grad_()
    expected = TensorCrossEntropy.apply(x, w, source, label, lengths)
    upstream = torch.tensor([1.0, -2.0, 3.0]).to(wide)
    expected.backward(upstream)
    values, norms = cuda.losses(logits, mass, source, label, lengths, width)
    given = upstream, logits, mass, source, label, lengths, norms
    grad, grad_mass = cuda.gradients(*given, True, True, width)
    torch.testing.assert_close(values, expected.detach(), rtol=1e-6, atol=1e-5)
    torch.testing.assert_close(grad_mass, w.grad, rtol=1e-5, atol=2e-6)
    # rounded once
    torch.testing.assert_close(grad, x.grad, rtol=max(1e-5, torch.finfo(kind).eps), atol=2e-6)
    assert torch.equal(cuda.gradients(*given, True, False, width)[0], grad)
    assert torch.equal(cuda.gradients(*given, False, True, width)[1], grad_mass)
    impossible = logits.clone()
    impossible[0, source[0, 1], label[0, 1]] = -torch.inf
    expected = TensorCrossEntropy.apply(impossible, mass, source, label, lengths)
    found = cuda.losses(impossible, mass, source, label, lengths, width)[0]
    torch.testing.assert_close(found, expected, equal_nan=True)  # of one label, NaN
    for bad in (torch.nan, torch.inf):
        broken = logits.clone()
        broken[0, source[0, 1], 0] = bad
        found = cuda.losses(broken, mass, source, label, lengths, width)[0]
        assert not torch.isfinite(found[0]) and torch.equal(found[1:], values[1:])
    label[1, 3] = vocab
    found = cuda.losses(logits, mass, source, label, lengths, width)[0]
    assert torch.isnan(found[1]) and found[0] == values[0]
print("the same")
"""

COMPILED = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from isotone.kernels import _coupling_cuda as coupling, _cross_entropy_cuda as entropy

pointers = {
    **dict.fromkeys(["source_lengths", "target_lengths", "lengths", "source", "target", "label", "ends"], "*i64"),
    **dict.fromkeys(["sums", "slopes"], "*fp64"),
}
sizes = ["sources", "targets", "size", "pairs", "vocab", "row_stride", "frame_stride", "column_stride"]
block, tile = {"BLOCK": 1024}, {"FRAMES": 32, "SCORES": 64}
cases = [
    (coupling.merge_kernel, block), (coupling.merge_backward_kernel, block), (coupling.softmax_kernel, block),
    (coupling.softmax_backward_kernel, block), (entropy.norms_kernel, tile), (entropy.values_kernel, block),
    (entropy.mass_gradients_kernel, block | {"MASS": True}), (entropy.logit_gradients_kernel, tile),
]
for number, logits in (("fp32", "bf16"), ("fp64", "fp64")):
    for kernel, options in cases:
        own = dict.fromkeys(["logits", "out"], "*" + (logits if kernel.fn.__module__ == entropy.__name__ else number))
        for ones in ({}, {name: 1 for name in sizes if name in kernel.arg_names}):  # Triton takes 1 for a constant
            fixed = options | ones
            types = pointers | own | dict.fromkeys(sizes, "i32") | dict.fromkeys(fixed, "constexpr")
            signature = {name: types.get(name, "*" + number) for name in kernel.arg_names}
            source = ASTSource(kernel, signature, constexprs=fixed)
            code = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 8})
            assert "atom" not in code.asm["ptx"], "sums are taken in one order"
print("compiled")
"""


@pytest.mark.parametrize("code", [COUPLING, CROSS_ENTROPY])
def test_interpreted_kernels_agree_with_the_cpu(code: str, tmp_path: Path) -> None:
    assert "the same" in run(code, tmp_path, TRITON_INTERPRET="1")


def test_kernels_compile_for_cuda(tmp_path: Path) -> None:
    assert "compiled" in run(COMPILED, tmp_path)


def problem(dtype: torch.dtype, vocab: int) -> tuple[Tensor, ...]:
    rng = torch.Generator().manual_seed(0)
    logits = (3 * torch.randn(5, 700, vocab, generator=rng)).to(dtype)
    weight_logits = (2 * torch.randn(5, 700, generator=rng)).to(dtype)
    labels = torch.randint(0, vocab, (5, 200), generator=rng)
    frames, tokens = torch.tensor([700, 650, 300, 10, 0]), torch.tensor([200, 130, 199, 10, 0])
    beta = torch.rand(5, 200, generator=rng) + 0.1
    return logits, weight_logits, labels, beta, frames, tokens


def losses(
    logits: Tensor, weight_logits: Tensor, labels: Tensor, beta: Tensor, frames: Tensor, tokens: Tensor
) -> Tensor:
    """Sum up the pieces of the OTTC loss."""
    coupling = couple(frame_weights(weight_logits, frames), beta, frames, tokens)
    return pair_cross_entropy(
        logits, coupling.mass, coupling.source, labels.gather(1, coupling.target), frames
    )


def value_and_gradients(given: tuple[Tensor, ...], device: str, call: Any = losses) -> list[Tensor]:
    """Return values and gradients in logits, weights' logits and label weights, on the CPU."""
    moved = [x.to(device, copy=True) for x in given]
    leaves = [moved[i].requires_grad_() for i in (0, 1, 3)]
    value = call(*moved)
    value.backward(torch.arange(1.0, 1 + len(value), device=device).to(value.dtype))
    return [value.detach().cpu(), *(x.grad.cpu() for x in leaves if x.grad is not None)]


@pytest.mark.gpu
@on_gpu
@pytest.mark.parametrize("vocab", [5, 32, 3000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_on_cuda_as_on_the_cpu(vocab: int, dtype: torch.dtype) -> None:
    given = problem(dtype, vocab)
    found, expected = value_and_gradients(given, "cuda"), value_and_gradients(given, "cpu")
    assert len(found) == 4
    coarse = torch.finfo(dtype).eps if dtype in (torch.bfloat16, torch.float16) else 1e-5
    for got, true in zip(found, expected):
        torch.testing.assert_close(got, true, rtol=10 * coarse, atol=coarse)
    for once, again in zip(found, value_and_gradients(given, "cuda")):
        assert torch.equal(once, again)


@pytest.mark.gpu
@on_gpu
@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype:UserWarning")
def test_cuda_is_never_waited_for() -> None:
    given = [x.cuda() for x in problem(torch.float32, 32)]
    given[0].requires_grad_()
    given[1].requires_grad_()
    losses(*given).sum().backward()  # kernels are compiled
    torch.cuda.set_sync_debug_mode("error")
    try:
        losses(*given).sum().backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.gpu
@on_gpu
@pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores:UserWarning")
def test_graphs_hold_the_kernels() -> None:
    given = problem(torch.float32, 32)
    compiled = torch.compile(losses, fullgraph=True)
    for got, true in zip(value_and_gradients(given, "cuda", compiled), value_and_gradients(given, "cuda")):
        torch.testing.assert_close(got, true)
