"""TALR as a term of an objective: the codes that it ranks, and the affinities."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from isotone_hashing.loss import TALRLoss
from isotone_hashing.term import TALRTerm
from torch.nn import functional as F

from isotone.testing import check_loss
from isotone.types import Emissions, Grid, Targets

LENGTHS = [9, 4, 7, 1]
LABELS = [[1, 2, 2], [3], [1, 2, 2], [2, 3, 4]]
TARGETS = Targets.from_lists(LABELS * 2)


def two_views() -> Emissions:
    vectors = torch.randn(8, 9, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return Emissions(vectors, torch.tensor(LENGTHS * 2), Grid(0.02))


@pytest.mark.parametrize("affinity", ["views", "labels", "shared"])
@pytest.mark.parametrize("metric", ["ap", "ndcg"])
@pytest.mark.parametrize("relaxation", ["simplified", "integral"])
def test_laws(affinity: Any, metric: Any, relaxation: Any) -> None:
    check_loss(TALRTerm(affinity=affinity, metric=metric, relaxation=relaxation))


def relevance(affinity: str, most: int = 5) -> list[list[int]]:
    """Count by sets, row by row."""
    rows = LABELS * 2
    out = []
    for i, a in enumerate(rows):
        row = []
        for j, b in enumerate(rows):
            other_view = i % 4 == j % 4
            if affinity == "views":
                row.append(int(other_view))
            elif affinity == "labels":
                row.append(int(a == b))
            else:
                row.append(min(most, len({*a} & {*b})))
        out.append(row)
    return out


@pytest.mark.parametrize("progress, alpha", [(0.0, 2.0), (0.5, 6.0), (1.0, 18.0)])
@pytest.mark.parametrize("affinity", ["views", "labels", "shared"])
def test_mean_vectors_rank_the_batch(affinity: Any, progress: float, alpha: float) -> None:
    emissions = two_views()
    term = TALRTerm(affinity=affinity, metric="ndcg", first_scale=2.0, scale=18.0)
    term.progress = progress
    means = torch.stack([emissions.logits[i, :n].mean(0) for i, n in enumerate(LENGTHS * 2)])
    codes = torch.tanh(alpha * F.normalize(means, dim=1))
    expected = TALRLoss(metric="ndcg")(codes, torch.tensor(relevance(affinity)))
    value = term(emissions, TARGETS)
    torch.testing.assert_close(value, (expected[:4] + expected[4:]) / 2, rtol=1e-9, atol=1e-12)


def test_descent_makes_codes_that_find_the_same_labels() -> None:
    torch.manual_seed(0)
    labels = [[1], [2], [3], [1], [2], [3]] * 2
    vectors = torch.randn(12, 1, 8, requires_grad=True)
    term = TALRTerm(affinity="labels")
    optimiser = torch.optim.Adam([vectors], lr=0.05)
    for step in range(150):
        term.progress = step / 150
        loss = term(
            Emissions(vectors, torch.ones(12, dtype=torch.long), Grid(0.02)), Targets.from_lists(labels)
        ).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    codes = (vectors.detach()[:, 0] > 0).float() * 2 - 1
    nearest = (codes @ codes.T).fill_diagonal_(-99)
    for row, label in enumerate(labels):
        alike = [i for i, other in enumerate(labels) if other == label and i != row]
        other = [i for i, found in enumerate(labels) if found != label]
        assert nearest[row, alike].min() > nearest[row, other].max()
    assert loss.item() < 0.05


def test_an_utterance_alone_finds_itself() -> None:
    emissions = Emissions(torch.randn(2, 3, 4), torch.tensor([3, 3]), Grid(0.02))
    assert TALRTerm()(emissions, Targets.from_lists([[1], [1]])).item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    "options", [{"affinity": "other"}, {"scale": 0.0}, {"first_scale": -1.0}, {"most": 0}]
)
def test_mistakes_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="TALRTerm expects"):
        TALRTerm(**options)
    with pytest.raises(ValueError, match="2 views"):
        TALRTerm()(
            Emissions(torch.randn(3, 3, 4), torch.tensor([3, 3, 3]), Grid(0.02)),
            Targets.from_lists([[1]] * 3),
        )
