"""The contrastive term of an objective: the vectors that it compares."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from isotone_contrastive.head import ProjectionHead
from isotone_contrastive.loss import ContrastiveTerm
from isotone_contrastive.losses import contrastive_losses
from isotone_contrastive.qare import QARe
from torch.nn import functional as F

from isotone.testing import check_head, check_loss
from isotone.types import Emissions, Frames, Grid, Targets

LENGTHS = [9, 4, 7, 1]
TARGETS = Targets(torch.ones(8, 2, dtype=torch.long), torch.full((8,), 2))


def two_views(dtype: torch.dtype = torch.float64) -> Emissions:
    rng = torch.Generator().manual_seed(0)
    vectors = torch.randn(8, 9, 5, generator=rng, dtype=torch.float64).to(dtype)
    return Emissions(vectors, torch.tensor(LENGTHS * 2), Grid(0.02))


@pytest.mark.parametrize("name", contrastive_losses.names())
@pytest.mark.parametrize("qare", [None, {"beta": 0.5}])
@pytest.mark.parametrize("elements", ["utterances", "frames"])
def test_laws(name: str, qare: Any, elements: Any) -> None:
    check_loss(ContrastiveTerm(pairwise=name, qare=qare, elements=elements))


@pytest.mark.parametrize("qare", [None, {"beta": 0.5, "alpha": 0.5}])
def test_utterances_are_their_mean_vectors(qare: Any) -> None:
    emissions = two_views()
    spec = {"name": "sparse-clr", "temperature": 0.3}
    means = torch.stack([emissions.logits[i, :n].mean(0) for i, n in enumerate(LENGTHS * 2)])
    pairwise = contrastive_losses.build("sparse-clr", temperature=0.3)
    loss = pairwise if qare is None else QARe(pairwise, **qare)
    expected = loss(*F.normalize(means, dim=1).chunk(2))
    value = ContrastiveTerm(pairwise=spec, qare=qare)(emissions, TARGETS)
    torch.testing.assert_close(value, expected.expand(4), rtol=1e-9, atol=0)


@pytest.mark.parametrize("stride", [1, 3])
def test_frames_are_compared_within_their_utterance(stride: int) -> None:
    emissions = two_views()
    value = ContrastiveTerm(pairwise="info-nce", elements="frames", stride=stride)(emissions, TARGETS)
    loss = contrastive_losses.build("info-nce")
    for row, n in enumerate(LENGTHS):
        a, b = (F.normalize(emissions.logits[row + 4 * view, range(0, n, stride)], dim=1) for view in (0, 1))
        expected = loss(a, b).item() if len(a) > 1 else 0.0
        assert value[row].item() == pytest.approx(expected, rel=1e-9)
    assert value[3] == 0  # a single frame is told apart from nothing


def test_alike_views_cost_less_than_swapped_ones() -> None:
    emissions = two_views()
    alike = replace(emissions, logits=emissions.logits[[0, 1, 2, 3] * 2])
    swapped = replace(
        emissions, logits=emissions.logits[[0, 1, 2, 3, 2, 1, 0, 3]], lengths=torch.full((8,), 4)
    )
    term = ContrastiveTerm()
    assert term(alike, TARGETS)[0] < 0.01 < term(swapped, TARGETS)[0]


def test_an_utterance_alone_is_compared_with_nothing() -> None:
    emissions = two_views()
    vectors = emissions.logits[[0, 4]].requires_grad_()
    value = ContrastiveTerm()(replace(emissions, logits=vectors, lengths=torch.tensor([9, 9])), TARGETS)
    assert value.tolist() == [0.0]
    (gradient,) = torch.autograd.grad(value.sum(), vectors)
    assert not gradient.any()


def test_views_are_drawn_together_and_utterances_apart() -> None:
    emissions = two_views(torch.float32)
    vectors = emissions.logits.clone().requires_grad_()
    term = ContrastiveTerm(pairwise={"name": "info-nce", "temperature": 0.5})
    optimizer = torch.optim.Adam([vectors], lr=0.05)
    for _ in range(100):
        optimizer.zero_grad()
        term(replace(emissions, logits=vectors), TARGETS).mean().backward()
        optimizer.step()
    pooled = torch.stack([vectors[i, :n].mean(0) for i, n in enumerate(LENGTHS * 2)]).detach()
    cosines = torch.cosine_similarity(pooled[:4, None], pooled[None, 4:], dim=2)
    assert cosines.diagonal().min() > 0.95
    assert cosines[~torch.eye(4, dtype=torch.bool)].max() < 0.5


@pytest.mark.parametrize("options", [{}, {"size": 5, "hidden": 6}])
def test_projection_keeps_to_the_laws_of_heads(options: dict[str, Any]) -> None:
    check_head(ProjectionHead(7, 5, **options), 7, 5)


def test_projection_has_a_size_of_its_own() -> None:
    head = ProjectionHead(7, 5, 2, size=11, hidden=3, reads="features")
    out = head(Frames(torch.randn(2, 4, 7), torch.tensor([4, 2]), Grid(0.02)))
    assert out.logits.shape == (2, 4, 11)
    assert (head.reads, out.blank) == ("features", 2)


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match=r"elements 'utterances' or 'frames' and stride >= 1; got 'words'"):
        ContrastiveTerm(elements="words")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"stride >= 1; got 'frames' and 0"):
        ContrastiveTerm(elements="frames", stride=0)
    with pytest.raises(LookupError, match="No contrastive loss named 'info-nec'"):
        ContrastiveTerm(pairwise="info-nec")
    emissions = two_views()
    short = replace(emissions, logits=emissions.logits[:7], lengths=emissions.lengths[:7])
    with pytest.raises(ValueError, match=r"got 7 rows"):
        ContrastiveTerm()(short, TARGETS)
    with pytest.raises(ValueError, match=r"size >= 1 and hidden >= 0; got 0 and 0"):
        ProjectionHead(7, 5, size=0)
