"""Consistency of two views: against explicit sums, and the gradient of each view."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from isotone_consistency.functional import mutual_divergence
from isotone_consistency.loss import ConsistencyLoss
from torch import Tensor

from isotone.testing import check_loss
from isotone.types import Emissions, Grid, Targets

LENGTHS = [6, 3, 1]
TOKENS = [2, 1, 0]


def two_views(seed: int = 0, dtype: torch.dtype = torch.float64) -> tuple[Emissions, Targets]:
    """Emissions of three utterances in two views, and their targets."""
    rng = torch.Generator().manual_seed(seed)
    logits = (3 * torch.randn(6, 6, 4, generator=rng, dtype=torch.float64)).to(dtype)
    weights = torch.randn(6, 6, generator=rng, dtype=torch.float64).to(dtype)
    emissions = Emissions(logits, torch.tensor(LENGTHS * 2), Grid(0.02), 0, weights)
    return emissions, Targets(torch.ones(6, 2, dtype=torch.long), torch.tensor(TOKENS * 2))


def softmax(scores: list[float]) -> list[float]:
    powers = [math.exp(s) for s in scores]
    return [p / sum(powers) for p in powers]


def divergence(p: list[float], q: list[float]) -> float:
    return sum(a * math.log(a / b) for a, b in zip(p, q))


def by_hand(emissions: Emissions, row: int) -> tuple[float, float]:
    """Half of both divergences of an utterance: summed over its frames, and of its OT weights."""
    n = LENGTHS[row]
    frames = 0.0
    for t in range(n):
        a, b = (softmax(emissions.logits[row + 3 * view, t].tolist()) for view in (0, 1))
        frames += (divergence(b, a) + divergence(a, b)) / 2
    assert emissions.weight_logits is not None
    a, b = (softmax(emissions.weight_logits[row + 3 * view, :n].tolist()) for view in (0, 1))
    return frames, (divergence(b, a) + divergence(a, b)) / 2


@pytest.mark.parametrize("normalize", ["frames", "tokens", "none"])
@pytest.mark.parametrize("ot_weights", [0.0, 0.7])
def test_against_sums_written_out(normalize: Any, ot_weights: float) -> None:
    emissions, targets = two_views()
    value = ConsistencyLoss(normalize=normalize, ot_weights=ot_weights)(emissions, targets)
    per = {"frames": LENGTHS, "tokens": [max(1, n) for n in TOKENS], "none": [1] * 3}[normalize]
    expected = []
    for row in range(3):
        frames, weights = by_hand(emissions, row)
        expected.append(frames / per[row] + ot_weights * weights)
    assert value.tolist() == pytest.approx(expected, rel=1e-10)
    assert min(expected) > 0


@pytest.mark.parametrize("options", [{}, {"normalize": "tokens"}, {"normalize": "none", "ot_weights": 0.5}])
def test_laws(options: dict[str, Any]) -> None:
    check_loss(ConsistencyLoss(**options))


rows = st.lists(st.lists(st.floats(-50, 50), min_size=4, max_size=4), min_size=6, max_size=6)


@settings(max_examples=30, deadline=None)
@given(rows)
def test_symmetric_and_not_negative(scores: list[list[float]]) -> None:
    p, q = torch.log_softmax(torch.tensor(scores, dtype=torch.float64), -1).chunk(2)
    value = mutual_divergence(p, q)
    torch.testing.assert_close(value, mutual_divergence(q, p), rtol=1e-12, atol=1e-12)
    assert (value >= -1e-12).all()
    # Jeffreys: half of the sum over (p - q) log(p / q)
    torch.testing.assert_close(value, 0.5 * ((p.exp() - q.exp()) * (p - q)).sum(-1), rtol=1e-9, atol=1e-9)


def test_swapped_views_are_the_same() -> None:
    emissions, targets = two_views()
    order = torch.tensor([3, 4, 5, 0, 1, 2])
    assert emissions.weight_logits is not None
    swapped = replace(emissions, logits=emissions.logits[order], weight_logits=emissions.weight_logits[order])
    loss = ConsistencyLoss(ot_weights=1.0)
    torch.testing.assert_close(loss(swapped, targets), loss(emissions, targets), rtol=1e-12, atol=0)


def test_identical_views_agree() -> None:
    emissions, targets = two_views()
    assert emissions.weight_logits is not None
    logits = emissions.logits[:3].repeat(2, 1, 1).requires_grad_()
    weights = emissions.weight_logits[:3].repeat(2, 1).requires_grad_()
    value = ConsistencyLoss(ot_weights=1.0)(replace(emissions, logits=logits, weight_logits=weights), targets)
    assert value.tolist() == [0, 0, 0]
    for gradient in torch.autograd.grad(value.sum(), (logits, weights)):
        assert gradient.abs().max() < 1e-15


def gradients(function: Any, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    leaves = a.clone().requires_grad_(), b.clone().requires_grad_()
    value = function(*(torch.log_softmax(x, -1) for x in leaves)).sum()
    return torch.autograd.grad(value, leaves)  # type: ignore[return-value]


def test_the_target_side_has_no_gradient() -> None:
    """In the logits of p it is (p - q) / 2: that of cross-entropy with q as fixed labels, and nothing else."""
    a, b = two_views()[0].logits.chunk(2)
    p, q = a.softmax(-1), b.softmax(-1)
    of_a, of_b = gradients(mutual_divergence, a, b)
    torch.testing.assert_close(of_a, (p - q) / 2, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(of_b, (q - p) / 2, rtol=1e-9, atol=1e-12)

    def without_stop(log_p: Tensor, log_q: Tensor) -> Tensor:
        return 0.5 * ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum(-1)

    whole, _ = gradients(without_stop, a, b)
    assert (whole - of_a).abs().max() > 0.1


def test_only_the_fixed_side_is_missing_from_the_loss() -> None:
    """A view that is held fixed leaves the other's gradient as it is."""
    emissions, targets = two_views()
    loss = ConsistencyLoss(normalize="none")
    found = []
    for fixed in (False, True):
        a, b = (x.clone().requires_grad_() for x in emissions.logits.chunk(2))
        value = loss(replace(emissions, logits=torch.cat([a, b.detach() if fixed else b])), targets).sum()
        found.append(torch.autograd.grad(value, a)[0])
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=0)
    assert found[0].abs().max() > 0.1


def test_padding_has_no_influence() -> None:
    emissions, targets = two_views()
    loss = ConsistencyLoss(ot_weights=1.0)
    assert emissions.weight_logits is not None
    logits, weights = emissions.logits.clone(), emissions.weight_logits.clone()
    for row, n in enumerate(LENGTHS * 2):
        logits[row, n:] = torch.nan
        weights[row, n:] = torch.inf
    logits.requires_grad_()
    value = loss(replace(emissions, logits=logits, weight_logits=weights.requires_grad_()), targets)
    assert torch.equal(value, loss(emissions, targets))
    for gradient in torch.autograd.grad(value.sum(), (logits, weights)):
        assert torch.isfinite(gradient).all()


def test_views_are_drawn_together() -> None:
    """Trained with this loss alone, two views become equal, and both change."""
    emissions, targets = two_views(dtype=torch.float32)
    logits = emissions.logits.clone().requires_grad_()
    loss = ConsistencyLoss()
    optimizer = torch.optim.Adam([logits], lr=0.1)
    before = loss(emissions, targets).sum().item()
    for _ in range(100):
        optimizer.zero_grad()
        value = loss(replace(emissions, logits=logits), targets).sum()
        value.backward()
        optimizer.step()
    assert value.item() < 0.01 * before
    moved = (logits.detach() - emissions.logits).abs().amax(-1)
    assert all(moved[row, :n].max() > 0.1 for row, n in enumerate(LENGTHS * 2))


def test_what_is_refused() -> None:
    emissions, targets = two_views()
    with pytest.raises(ValueError, match=r"normalize 'frames', 'tokens' or 'none'; got 'frame'"):
        ConsistencyLoss(normalize="frame")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"ot_weights >= 0; got -1"):
        ConsistencyLoss(ot_weights=-1)
    with pytest.raises(ValueError, match=r"expects 2 views of every utterance.*; got 5 rows"):
        ConsistencyLoss()(
            replace(emissions, logits=emissions.logits[:5], lengths=emissions.lengths[:5]), targets
        )
    with pytest.raises(ValueError, match="expects emissions with OT weights"):
        ConsistencyLoss(ot_weights=1.0)(replace(emissions, weight_logits=None), targets)
