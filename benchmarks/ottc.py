"""The OTTC loss and its gradient against those of CTC, from logits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from isotone_ottc.functional import ottc_loss
from torch import Tensor
from torch.nn import functional as F

from benchmarks.harness import Bench, Peer, Size
from isotone.kernels.coupling import frame_weights
from isotone.types import length_mask

Result = tuple[Tensor, tuple[Tensor, ...]]


class Batch(NamedTuple):
    logits: Tensor  # (B, T, V), blank 0
    weight_logits: Tensor  # (B, T)
    labels: Tensor  # (B, U), no two neighbours equal
    frames: Tensor  # (B,), the first row full, the others shorter by up to a quarter
    tokens: Tensor  # (B,), in proportion


def batch(dims: Mapping[str, int]) -> Batch:
    generator = torch.Generator().manual_seed(0)
    rows, size, vocab, count = (dims[name] for name in "BTVU")
    steps = torch.randint(1, vocab - 2, (rows, count), generator=generator)
    labels = 1 + torch.cumsum(steps, 1) % (vocab - 1)
    share = 1 - 0.25 * torch.arange(rows) / rows
    return Batch(
        torch.randn(rows, size, vocab, generator=generator).requires_grad_(),
        torch.randn(rows, size, generator=generator).requires_grad_(),
        labels,
        (share * size).long().clamp(min=1),
        (share * count).long().clamp(min=1),
    )


def ottc(given: Batch) -> Result:
    """Run forward and backward, with the softmax of the OT weights; label weights are uniform."""
    alpha = frame_weights(given.weight_logits, given.frames)
    beta = length_mask(given.tokens, given.labels.shape[1]) / given.tokens[:, None]
    loss = ottc_loss(given.logits, alpha, given.labels, beta, given.frames, given.tokens)
    return loss.detach(), torch.autograd.grad(loss.sum(), (given.logits, given.weight_logits))


def ctc(given: Batch) -> Result:
    log_probs = F.log_softmax(given.logits, -1).transpose(0, 1)
    loss = F.ctc_loss(log_probs, given.labels, given.frames, given.tokens, reduction="none")
    return loss.detach(), torch.autograd.grad(loss.sum(), (given.logits,))


def check(given: Batch, result: Result) -> None:
    """Check value and gradient in logits against a dense log-softmax and overlaps of intervals, in float64.

    The gradient in the weights' logits is checked by a step of the loss along it.
    """
    for row, (frames, tokens) in enumerate(zip(given.frames.tolist(), given.tokens.tolist())):
        logits = given.logits[row, :frames].detach().double()
        labels = given.labels[row, :tokens]
        mass = _overlaps(given.weight_logits[row, :frames].detach().double(), tokens)
        log_probs = torch.log_softmax(logits, -1)
        value = -(mass * log_probs[:, labels]).sum()
        gradient = log_probs.exp() * mass.sum(1, keepdim=True)
        gradient.index_add_(1, labels, -mass)
        torch.testing.assert_close(result[0][row].double(), value, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(result[1][0][row, :frames].double(), gradient, rtol=1e-4, atol=1e-7)
    _check_slope(given, result)


def _overlaps(weight_logits: Tensor, tokens: int) -> Tensor:
    """Compute the overlap of each frame's interval with each label's on the line from 0 to 1: ``(T, U)``."""
    ends = torch.cumsum(torch.softmax(weight_logits, 0), 0)
    begins = F.pad(ends[:-1], (1, 0))
    bounds = torch.arange(tokens + 1, dtype=ends.dtype) / tokens
    high = torch.minimum(ends[:, None], bounds[1:])
    return (high - torch.maximum(begins[:, None], bounds[:-1])).clamp(min=0)


def _check_slope(given: Batch, result: Result) -> None:
    gradient = result[1][1]
    direction = gradient / gradient.norm()
    step = 1e-3
    at = [
        ottc(given._replace(weight_logits=(given.weight_logits.detach() + side * direction).requires_grad_()))
        for side in (step, -step)
    ]
    slope = (at[0][0].double() - at[1][0].double()).sum() / (2 * step)
    torch.testing.assert_close(slope, gradient.norm().double(), rtol=0.05, atol=1e-3)


def _size(b: int, t: int, v: int, u: int, **options: Any) -> Size:
    return Size({"B": b, "T": t, "V": v, "U": u}, **options)


BENCHES = [
    Bench(
        name="ottc",
        about="loss and gradient from logits, float32",
        inputs=batch,
        ours=ottc,
        check=check,
        peers=[Peer("torch CTC", ctc, yardstick=True, devices=("cpu", "cuda"))],
        sizes=[
            _size(2, 60, 12, 9, quick=True),
            _size(8, 250, 32, 37, swept=True),
            _size(8, 500, 32, 75, swept=True),
            _size(8, 1000, 32, 150, swept=True, targets={"torch CTC": 0.06}),
            _size(8, 2000, 32, 300, swept=True),
            _size(8, 4000, 32, 600, swept=True),
            _size(4, 3000, 1000, 600, targets={"torch CTC": 0.15}),
        ],
        gpu_sizes=[
            _size(2, 60, 12, 9, quick=True),
            _size(8, 1000, 32, 150),
            _size(32, 1000, 32, 150),
            _size(4, 3000, 1000, 600),
        ],
        axis="T",
    )
]
