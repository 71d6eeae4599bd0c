"""The segmental aligner with a least number of frames per token, in rows that are long enough."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from isotone_ottc.align import SegmentalViterbi

from isotone.types import Emissions, Grid, Targets


def best_by_hand(log_probs: torch.Tensor, labels: list[int], least: int) -> float:
    """Compute the best score over all ways to give every label a least number of frames."""
    frames = len(log_probs)
    scores = []
    for cuts in itertools.combinations(range(1, frames), len(labels) - 1):
        edges = [0, *cuts, frames]
        if all(b - a >= least for a, b in itertools.pairwise(edges)):
            spans = zip(labels, itertools.pairwise(edges))
            scores.append(sum(float(log_probs[a:b, v].sum()) for v, (a, b) in spans))
    return max(scores)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_every_row_is_the_best_that_holds_where_it_can(data: st.DataObject) -> None:
    """By brute force; rows that are too short are aligned without it, whatever else is in the batch."""
    count, least = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    labels = [data.draw(st.permutations([1, 2, 3]))[: data.draw(st.integers(1, 3))] for _ in range(count)]
    lengths = [data.draw(st.integers(len(row), 9)) for row in labels]
    torch.manual_seed(data.draw(st.integers(0, 999)))
    emissions = Emissions(torch.randn(count, max(lengths), 4) * 2, torch.tensor(lengths), Grid(0.02))
    found = SegmentalViterbi().holding(least)(emissions, Targets.from_lists(labels))
    assert found.score is not None
    for i, (row, frames) in enumerate(zip(labels, lengths)):
        holds = least if len(row) * least <= frames else 1
        log_probs = emissions.log_probs()[i, :frames]
        assert float(found.score[i]) == pytest.approx(best_by_hand(log_probs, row, holds), abs=1e-3)
        spans = found.spans()[i, : len(row)]
        assert float((spans[:, 1] - spans[:, 0]).min()) >= holds


def test_with_states_nothing_changes() -> None:
    torch.manual_seed(0)
    emissions = Emissions(torch.randn(1, 12, 8), torch.tensor([12]), Grid(0.02))
    aligner, targets = SegmentalViterbi(states=2), Targets.from_lists([[1, 2, 3]])
    held = aligner.holding(2)(emissions, targets)
    assert torch.equal(held.spans(), aligner(emissions, targets).spans())
