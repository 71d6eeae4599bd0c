"""A training step of a Wav2Vec2-tiny encoder under InfoNCE, with and without quadratic assignment regularisation.

The encoder's part of a step is the same for every contender and grows with the batch alone; it runs in slices, as for
large batches in little memory, and is timed with every contender: gradients reach each slice from the loss of all
embeddings (Gao et al. 2021, without the first pass, because the slices' embeddings are given).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from isotone_contrastive.functional import costs
from isotone_contrastive.losses import InfoNCE
from isotone_contrastive.qare import QARe
from torch import Tensor, nn

from benchmarks.harness import Bench, Peer, Size
from isotone.model.encoder import SpeechEncoder

_SECONDS = 0.5
_SLICE = 32


class Step(NamedTuple):
    """Inputs of a step: an encoder, a slice of audio, the number of such slices in a batch, and its embeddings."""

    encoder: nn.Module
    audio: Tensor
    lengths: Tensor
    slices: int
    a: Tensor
    b: Tensor


def inputs(dims: Mapping[str, int]) -> Step:
    """Make two views of N recordings of half a second, and unit embeddings of D dimensions."""
    torch.manual_seed(0)
    size = min(_SLICE, dims["N"])
    audio = 0.1 * torch.randn(size, round(_SECONDS * 16_000))
    a, b = nn.functional.normalize(torch.randn(2, dims["N"], dims["D"]), dim=-1)
    encoder = SpeechEncoder("wav2vec2-tiny") if dims["encoder"] else nn.Identity()
    lengths = torch.full((size,), audio.shape[1])
    return Step(encoder, audio, lengths, 2 * dims["N"] // size, a.requires_grad_(), b.requires_grad_())


def _step(step: Step, loss: nn.Module) -> tuple[Tensor, Tensor]:
    """Compute loss and gradient in the first view, after forward and backward of the encoder over all slices."""
    value = loss(step.a, step.b)
    gradient = torch.autograd.grad(value, (step.a, step.b))
    if isinstance(step.encoder, SpeechEncoder):
        for _ in range(step.slices):
            vectors = step.encoder(step.audio, step.lengths).hidden[-1].values.mean(1)
            vectors.backward(torch.ones_like(vectors) / step.slices)
        step.encoder.zero_grad()
    return value.detach(), gradient[0]


def ours(step: Step) -> tuple[Tensor, Tensor]:
    return _step(step, QARe(InfoNCE(metric="euclidean")))


def top_16(step: Step) -> tuple[Tensor, Tensor]:
    return _step(step, QARe(InfoNCE(metric="euclidean"), top=16))


def cosine(step: Step) -> tuple[Tensor, Tensor]:
    return _step(step, QARe(InfoNCE(metric="cosine")))


def without(step: Step) -> tuple[Tensor, Tensor]:
    return _step(step, InfoNCE(metric="euclidean"))


def autograd(step: Step) -> tuple[Tensor, Tensor]:
    """Compute the same loss by torch's own differentiable eigenvalues."""

    def loss(a: Tensor, b: Tensor) -> Tensor:
        x, y = (torch.linalg.eigvalsh(costs(v, v, "euclidean")) for v in (a, b))
        return InfoNCE(metric="euclidean")(a, b) - x @ y.flip(0) / len(a) ** 2

    module = nn.Module()
    module.forward = loss  # type: ignore[method-assign]
    return _step(step, module)


def same(step: Step, result: tuple[Tensor, Tensor], theirs: tuple[Tensor, Tensor]) -> None:
    torch.testing.assert_close(result[0], theirs[0], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(result[1], theirs[1], rtol=0, atol=1e-3 * float(theirs[1].abs().max()))


def check(step: Step, result: tuple[Tensor, Tensor]) -> None:
    """Check the value by float64 eigenvalues."""
    a, b = (v.detach().double() for v in (step.a, step.b))
    x, y = (torch.linalg.eigvalsh(torch.cdist(v, v)) for v in (a, b))
    right = InfoNCE(metric="euclidean")(a, b) - x @ y.flip(0) / len(a) ** 2
    torch.testing.assert_close(result[0].double(), right, rtol=1e-4, atol=1e-4)


def _size(n: int, **options: object) -> Size:
    return Size({"N": n, "D": 64, "encoder": 1}, **options)  # type: ignore[arg-type]


_PEERS = [
    Peer("InfoNCE alone", without, yardstick=True),
    Peer("QARe top 16", top_16, yardstick=True),
    Peer("QARe cosine", cosine, yardstick=True),
]

BENCHES = [
    Bench(
        name="qare-step",
        about="a step of Wav2Vec2-tiny on two views of half a second, InfoNCE + QARe with all eigenvalues",
        inputs=inputs,
        ours=ours,
        check=check,
        peers=_PEERS,
        sizes=[
            _size(8, quick=True),
            _size(64, swept=True),
            _size(256, swept=True, targets={"InfoNCE alone": 1.13}),
            _size(1024, swept=True, peers=("InfoNCE alone",)),  # a step takes minutes
            _size(2048, swept=True, peers=("InfoNCE alone",), targets={"InfoNCE alone": 1.29}),
        ],
        axis="N",
    ),
    Bench(
        name="qare-loss",
        about="the loss and its gradient alone",
        inputs=inputs,
        ours=ours,
        check=check,
        peers=[Peer("torch eigvalsh", autograd, same), *_PEERS],
        sizes=[
            Size({"N": n, "D": 64, "encoder": 0}, swept=n > 16, quick=n == 16)
            for n in (16, 64, 256, 1024, 2048)
        ],
        axis="N",
    ),
]
