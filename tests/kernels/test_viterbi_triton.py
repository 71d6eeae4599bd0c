"""Best paths on CUDA: without a GPU by Triton's interpreter, and compiled for one; with one, as on the CPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from isotone.alignment import AlignmentError
from isotone.kernels.viterbi import ctc_path, monotone_path
from tests.kernels.triton_parts import run
from tests.kernels.viterbi_parts import random_log_probs

pytest.importorskip("triton", reason="this build of torch has no Triton")

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

INTERPRETED = """
import numpy as np
import torch
from isotone.alignment import AlignmentError
from isotone.kernels.viterbi import cuda, search

np.seterr(invalid="ignore")  # NaN among the scores

def one(row, blank):
    try:
        paths, scores, _ = search.best_paths(*(x[None] for x in row), blank, None, 1, None)
    except (AlignmentError, ValueError):
        return None
    return paths[0].tolist(), float(scores[0])

rng = np.random.default_rng(0)
found = 0
# frames, tokens, whether scores are whole numbers (ties), type, share of -inf, what is wrong, cells per block
cases = [
    (9, 4, True, torch.float64, 0.0, None, 1024),
    (11, 4, True, torch.float32, 0.2, None, 1024),
    (6, 3, False, torch.bfloat16, 0.0, "nan", 1024),
    (6, 3, False, torch.float16, 0.0, "inf", 1024),
    (7, 3, False, torch.float32, 0.0, "label", 1024),
    (1, 0, False, torch.float32, 0.0, None, 1024),
    (37, 17, True, torch.float32, 0.0, None, 16),  # more cells than a block has
    (41, 33, False, torch.float64, 0.0, None, 16),
    (40, 16, False, torch.float64, 0.0, None, 16),  # the last blank is in a block of its own
]
for frames, tokens, whole, kind, share, wrong, block in cases:
    for blank in (0, None):
        log_probs = rng.normal(size=(4, frames, 3))
        if whole:
            log_probs = np.round(log_probs)
        log_probs[rng.random(log_probs.shape) < share] = -np.inf
        labels = rng.integers(blank is not None, 3, (4, tokens))
        m = rng.integers(0, tokens + 1, 4)
        n = rng.integers(min(frames, tokens), frames + 1, 4)
        m[0], n[0] = tokens, frames
        n[3] = m[3] // 2  # too few, unless there are no tokens
        if wrong == "label":
            labels[0, 1], labels[1, 0] = 3, -1
            m[1] = max(1, m[1])
        elif wrong:
            log_probs[0, 2] = np.nan if wrong == "nan" else np.inf
        batch = torch.from_numpy(log_probs).to(kind), *(torch.from_numpy(x) for x in (labels, n, m))
        paths, scores = cuda._paths(*batch, blank, block)
        for b in range(4):
            expected = one([x[b] for x in batch], blank)
            if expected is None:
                assert not np.isfinite(float(scores[b])), (frames, tokens, blank, b)
            else:
                found += 1
                kept = torch.promote_types(kind, torch.float32)
                assert (paths[b].tolist(), float(scores[b].to(kept))) == expected, (frames, tokens, blank, b)
assert found > 35, found
print("the same")
"""

COMPILED = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from isotone.kernels.viterbi import _trellis

known = {
    **dict.fromkeys(["labels", "frames", "tokens", "paths"], "*i64"), **dict.fromkeys(["rests", "wrong"], "*i32"),
    **dict.fromkeys(["handed", "passed", "scores"], "*fp64"), "trellis": "*i16",
}
for number, blanks, block, warps in (("fp32", True, 512, 8), ("bf16", False, 1024, 16), ("fp64", True, 16, 1)):
    for kernel, options in (
        (_trellis.forward_kernel, {"BLANKS": blanks, "BLOCK": block}), (_trellis.trace_kernel, {}),
    ):
        types = known | {"log_probs": "*" + number} | dict.fromkeys(options, "constexpr")
        sizes = [name for name in kernel.arg_names if name not in types]
        for ones in ({}, dict.fromkeys(sizes, 1)):  # Triton takes 1 for a constant
            signature = {name: types.get(name, "constexpr" if ones else "i32") for name in kernel.arg_names}
            source = ASTSource(kernel, signature, constexprs=options | ones)
            code = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps})
            assert ("bar.sync" in code.asm["ptx"]) == (bool(options) and warps > 1), "neighbours wait for each other"
print("compiled")
"""


def test_interpreted_kernels_find_the_same_paths_as_the_compiled_loops(tmp_path: Path) -> None:
    assert "the same" in run(INTERPRETED, tmp_path, TRITON_INTERPRET="1")


def test_kernels_compile_for_cuda(tmp_path: Path) -> None:
    assert "compiled" in run(COMPILED, tmp_path)


@pytest.mark.gpu
@on_gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize(
    ("frames", "tokens", "vocab", "whole"),
    [
        (50, 20, 5, True),
        (700, 300, 32, False),
        (3000, 1000, 32, True),
        (6000, 2500, 500, False),
        (3, 0, 4, False),
    ],
)
def test_on_cuda_as_on_the_cpu(frames: int, tokens: int, vocab: int, whole: bool, dtype: torch.dtype) -> None:
    rng = np.random.default_rng(frames)
    log_probs = random_log_probs(rng, 4, frames, vocab)
    log_probs = torch.from_numpy(np.round(log_probs) if whole else log_probs).to(dtype)
    labels = torch.from_numpy(rng.integers(1, vocab, (4, tokens)))
    n = torch.from_numpy(rng.integers(min(frames, 2 * tokens), frames + 1, 4))
    m = torch.from_numpy(rng.integers(tokens // 2, tokens + 1, 4))
    given = log_probs, labels, n, m
    on_device = [x.cuda() for x in given]
    for find, rest in ((ctc_path, (0,)), (monotone_path, ())):
        if tokens == 0 and find is monotone_path:
            continue
        for found, expected in zip(find(*on_device, *rest), find(*given, *rest)):
            assert found.is_cuda
            assert torch.equal(found.cpu(), expected)


@pytest.mark.gpu
@on_gpu
def test_errors_on_cuda_are_those_of_the_cpu() -> None:
    log_probs = torch.full((2, 5, 3), -1.0)
    labels, n, m = torch.tensor([[1, 1, 2], [1, 2, 2]]), torch.tensor([5, 3]), torch.tensor([3, 3])
    broken = log_probs.clone()
    broken[0, 1, 2] = torch.nan
    for given in (
        (log_probs, labels, n, m),
        (broken, labels, torch.tensor([5, 5]), m),
        (log_probs, labels + 1, torch.tensor([5, 5]), m),
        (log_probs, labels, torch.tensor([5, 6]), m),
    ):
        messages = []
        for device in ("cpu", "cuda"):
            with pytest.raises((AlignmentError, ValueError)) as raised:
                ctc_path(*(x.to(device) for x in given), 0)
            messages.append(str(raised.value))
        assert messages[0] == messages[1]
