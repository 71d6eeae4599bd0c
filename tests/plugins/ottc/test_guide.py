"""The aligner segmental keeps tokens between their neighbours in a guide."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from isotone_ottc.align import SegmentalViterbi

from isotone.types import Emissions, FramePath, Grid, Targets

seeds = st.integers(0, 2**32 - 1)


def emissions(log_probs: torch.Tensor) -> Emissions:
    return Emissions(log_probs, torch.tensor([log_probs.shape[1]]), Grid(0.02))


def test_a_token_is_kept_between_its_neighbours() -> None:
    """Label 1 scores best late but is early in the guide: it stays early if the cost is high enough."""
    logits = torch.zeros(1, 10, 4)
    logits[0, 6:, 1] = 3.0
    targets = Targets.from_lists([[1, 2, 3]])
    guide = torch.full((1, 10), -1)
    guide[0, [1, 3, 5]] = torch.tensor([0, 1, 2])

    def spans(cost: float, path: torch.Tensor | None = guide) -> list[list[float]]:
        aligner = SegmentalViterbi(guide_cost=cost)
        assert aligner.takes_guide == (cost > 0)
        guided = Targets(targets.labels, targets.lengths, guide=None if path is None else FramePath(path))
        return aligner(emissions(logits), guided).spans()[0].tolist()

    free = spans(2.0, None)
    assert free[0] == [0.0, 8.0]
    assert spans(0.0) == free
    assert spans(100.0)[0][1] <= 4, "it ends at the last frame of the next one in the guide"
    assert spans(0.1) == free, "three nats a frame are worth more"
    nothing = torch.full((1, 10), -1)
    assert spans(100.0, nothing) == free


@settings(max_examples=50, deadline=None)
@given(seeds, st.integers(1, 2), st.booleans())
def test_a_guide_that_agrees_changes_nothing(seed: int, states: int, silence: bool) -> None:
    """The aligner's own path as its guide: every token lies between its neighbours then."""
    draw = torch.Generator().manual_seed(seed)
    tokens = int(torch.randint(1, 6, (), generator=draw))
    labels = torch.randint(1, 5, (tokens,), generator=draw).tolist()
    sample = emissions(torch.randn(1, 30, 5 * states, generator=draw) * 2)
    aligner = SegmentalViterbi(states=states, silence=0 if silence else None, guide_cost=5.0)
    targets = Targets.from_lists([labels])
    own = aligner(sample, targets)
    guide = torch.full((1, 30), -1)
    hard = own.hard()
    kept = hard.mass[0] > 0
    guide[0, hard.source[0, kept]] = hard.target[0, kept]
    again = aligner(sample, Targets(targets.labels, targets.lengths, guide=FramePath(guide)))
    torch.testing.assert_close(again.spans(), own.spans())
    torch.testing.assert_close(again.score, own.score)


@pytest.mark.parametrize("cost", [-1.0, float("inf"), float("nan")])
def test_the_cost_is_checked(cost: float) -> None:
    with pytest.raises(ValueError, match="guide_cost >= 0"):
        SegmentalViterbi(guide_cost=cost)
