"""Every registered plugin computes on a GPU what it computes on the CPU."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from isotone import aligners, decoders, encoders, heads, losses, relaxations, warpers
from isotone.testing.batches import sample_batch
from isotone.testing.losses import sample_views, value_and_grads
from isotone.types import Coupling, Emissions, Frames, Grid, Targets, TokenGraph, length_mask
from isotone.types.graph import line

#: Relative and absolute difference of float32 sums in another order.
CLOSE = {"rtol": 1e-3, "atol": 1e-4}

#: Options that take other ways through a loss than its default ones.
OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("ctc", {"prior": 0.3, "delay_penalty": 0.01, "normalize": "frames"}),
    ("consistency", {"ot_weights": 0.5}),
    ("contrastive", {"qare": {}}),
    ("contrastive", {"elements": "frames", "stride": 2}),
    ("opas", {"temperature": 0.0, "slope": 1.0, "between": "mean"}),
    ("ottc", {"beta": "self", "prior": 0.5}),
    ("ottc", {"beta": "durations"}),
    ("ottc", {"beta": "aligned"}),
    ("ottc", {"beta": "path"}),
    ("ottc", {"beta": "network"}),
    ("ottc", {"beta": "self", "states": 2}),
    ("ottc", {"path_after": 0.0}),
    ("soft-dtw", {"gamma": 0.0}),
    ("soft-dtw", {"band": 3}),
    ("talr", {"affinity": "labels"}),
    ("talr", {"affinity": "shared", "metric": "ndcg", "relaxation": "integral"}),
]


def names(cases: Iterable[tuple[str, dict[str, Any]]]) -> list[str]:
    return [" ".join([name, *(f"{k}={v}" for k, v in options.items())]) for name, options in cases]


def same(found: Tensor, expected: Tensor, device: str, **tolerance: float) -> None:
    """Check that a tensor is on the device, and has the values that the CPU gave."""
    assert found.device.type == device
    torch.testing.assert_close(found.cpu(), expected, **(CLOSE | tolerance))


def with_prior(emissions: Emissions) -> Emissions:
    size = emissions.logits.shape[2]
    return replace(emissions, log_prior=torch.log_softmax(torch.arange(size) / 3.0, 0))


LOSSES = [*((name, {}) for name in losses.names()), *OPTIONS]


@pytest.mark.parametrize("name, options", LOSSES, ids=names(LOSSES))
def test_loss(name: str, options: dict[str, Any], device: str) -> None:
    loss = losses.build(name, **options)
    emissions, targets = sample_views(loss.views)
    emissions = with_prior(emissions)
    value, grads = value_and_grads(copy.deepcopy(loss), emissions, targets)
    assert any(bool(grad.any()) for grad in grads)
    moved = copy.deepcopy(loss).to(device)
    found, of_found = value_and_grads(moved, emissions.to(device), targets.to(device))
    same(found, value, device)
    for grad, expected in zip(of_found, grads):
        same(grad, expected, device)


@pytest.mark.parametrize("name", losses.names())
def test_loss_of_half_precision(name: str, device: str) -> None:
    """Under autocast heads give bfloat16, and losses sum it in float32."""
    loss = losses.build(name)
    emissions, targets = sample_views(loss.views, torch.bfloat16)
    emissions = with_prior(emissions)
    value, _ = value_and_grads(copy.deepcopy(loss), emissions, targets)
    with torch.autocast(device, torch.bfloat16):
        found, grads = value_and_grads(loss.to(device), emissions.to(device), targets.to(device))
    assert found.dtype == torch.float32
    assert all(bool(torch.isfinite(grad).all()) for grad in grads)
    # products of some losses (contrastive ones) are bfloat16 under autocast, but for those that turn it off
    same(found, value, device, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("name", heads.names())
def test_head(name: str, device: str) -> None:
    head = heads.build(name, 7, 5).eval()
    frames = Frames(torch.randn(3, 9, 7), torch.tensor([9, 5, 1]), Grid(0.02, 0.01))
    expected, of_expected = _emissions_and_grads(head, frames)
    found, of_found = _emissions_and_grads(copy.deepcopy(head).to(device), frames.to(device))
    same(found.logits, expected.logits, device)
    if expected.weight_logits is not None:
        assert found.weight_logits is not None
        same(found.weight_logits, expected.weight_logits, device)
    for grad, other in zip(of_found, of_expected):
        same(grad, other, device)


def _emissions_and_grads(head: nn.Module, frames: Frames) -> tuple[Emissions, list[Tensor]]:
    out = head(frames)
    total = out.logits.square().sum()
    if out.weight_logits is not None:
        total = total + out.weight_logits.square().sum()
    return out, list(torch.autograd.grad(total, list(head.parameters())))


def _same_coupling(found: Coupling, expected: Coupling, device: str) -> None:
    assert found.mass.device.type == found.source.device.type == device
    same(found.dense(), expected.dense(), device)
    same(found.source_lengths, expected.source_lengths, device)
    same(found.target_lengths, expected.target_lengths, device)
    assert (found.score is None) == (expected.score is None)
    if expected.score is not None and found.score is not None:
        same(found.score.float(), expected.score.float(), device)


ALIGNERS = [
    *((name, {}) for name in aligners.names()),
    ("ctc", {"blanks": "split"}),
    ("ottc", {"beta": "self"}),
    ("ottc", {"beta": "durations", "min_alpha": 0.1}),
    ("segmental", {"silence": 0, "subframe": True, "prior": 0.5}),
    ("segmental", {"states": 2}),
    ("opas", {"relaxation": "sinkhorn", "prior": 0.5}),
    ("soft-dtw", {"band": 3, "prior": 0.5}),
]


@pytest.mark.parametrize("name, options", ALIGNERS, ids=names(ALIGNERS))
@pytest.mark.parametrize("case", ["plain", "optional", "guided", "graph"])
def test_aligner(name: str, options: dict[str, Any], case: str, device: str) -> None:
    aligner = aligners.create({"name": name, **options})
    emissions, targets = sample_batch()
    emissions = with_prior(emissions)
    if case == "optional":
        optional = torch.zeros_like(targets.labels, dtype=torch.bool)
        optional[:, 1] = targets.lengths > 1
        targets = replace(targets, optional=optional)
    elif case == "guided":
        targets = replace(targets, guide=aligner(emissions, targets).path(emissions.logits.shape[1]))
    elif case == "graph":
        if not aligner.takes_graph:
            pytest.skip("it takes no graphs")
        targets = replace(targets, graph=_lines(targets))
    for held in (aligner, aligner.holding(2)):
        expected = held(emissions, targets)
        _same_coupling(held(emissions.to(device), targets.to(device)), expected, device)


def _lines(targets: Targets) -> TokenGraph:
    counts = targets.lengths.tolist()
    return TokenGraph.from_lists(
        [line([False] * n) for n in counts], [[(0.0, 0.0)] * n for n in counts], [[False] * n for n in counts]
    )


DECODERS = [*((name, {}) for name in decoders.names()), ("ottc-greedy", {"min_alpha": 0.5})]


@pytest.mark.parametrize("name, options", DECODERS, ids=names(DECODERS))
def test_decoder(name: str, options: dict[str, Any], device: str) -> None:
    decoder = decoders.create({"name": name, **options})
    emissions, _ = sample_batch()
    tokens, coupling = decoder(emissions)
    found, of_found = decoder(emissions.to(device))
    assert found.labels.device.type == device
    assert found.tolist() == tokens.tolist()
    _same_coupling(of_found, coupling, device)


@pytest.mark.parametrize("name", relaxations.names())
def test_relaxation(name: str, device: str) -> None:
    size = (3, 5, 5)
    reward = 0.1 + torch.rand(size)
    rows = torch.tensor([5, 3, 2])
    weights = torch.randn(size)
    results = []
    for where in ("cpu", device):
        leaf = reward.to(where).detach().requires_grad_()
        out = relaxations.build(name)(leaf, rows.to(where), rows.to(where))
        grads = torch.autograd.grad((out * weights.to(where)).sum(), leaf) if out.requires_grad else ()
        results.append((out.detach(), *grads))
    for found, expected in zip(results[1], results[0], strict=True):
        same(found, expected, device)


@pytest.mark.parametrize("name", warpers.names())
@pytest.mark.parametrize("part", [False, True])
def test_warper(name: str, part: bool, device: str) -> None:
    x = torch.randn(64, 4).unfold(0, 5, 1).mean(-1).cumsum(0)
    y = x.repeat_interleave(2, 0)
    warper = warpers.build(name)
    expected = warper(x, y, part=part)
    found = warper(x.to(device), y.to(device), part=part)
    torch.testing.assert_close(found.places.cpu(), expected.places, rtol=0, atol=1e-3)
    assert found.score == pytest.approx(expected.score, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("preset", ["wav2vec2-bert-tiny", "wav2vec2-tiny"])
def test_encoder(preset: str, device: str) -> None:
    encoder = encoders.create({"name": "transformers", "source": preset}).eval()
    lengths = torch.tensor([9600, 6400, 4000])
    audio = (0.1 * torch.randn(3, 9600)).masked_fill(~length_mask(lengths, 9600), 0.0)
    with torch.inference_mode():
        expected = encoder(audio, lengths)
        statistics = encoder.statistics(audio[0])
        moved = copy.deepcopy(encoder).to(device)
        found = moved(audio.to(device), lengths.to(device))
        near = moved.statistics(audio[0].to(device))
    for mine, theirs in zip(near or (), statistics or ()):
        same(mine, theirs, device)
    for source in ("features", "last"):
        frames, of_cpu = found.read(source), expected.read(source)
        same(frames.lengths, of_cpu.lengths, device)
        mask = length_mask(of_cpu.lengths, of_cpu.values.shape[1])
        same(frames.values[mask.to(device)], of_cpu.values[mask], device, atol=1e-3)
