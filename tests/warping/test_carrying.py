"""Labels that are carried over, and their boundaries in the other recording."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.alignment import Alignment, Segment, Tier
from isotone.audio.boundaries import REACH_S, moved_edges
from isotone.warping import Matcher, TimeMap, refined

RATE = 16_000


def labels(*tiers: list[float]) -> Alignment:
    """Return tiers of segments that meet at the given times, in a recording of 2 s."""
    segments = [tuple(Segment("x", *span) for span in itertools.pairwise(edges)) for edges in tiers]
    return Alignment("ref", 2.0, tuple(Tier(str(i), s) for i, s in enumerate(segments)))


def noise(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(RATE).astype(np.float32)


def test_boundaries_of_all_tiers_move_as_one_row_of_boundaries() -> None:
    found = TimeMap(np.array([0.0, 2.0]), np.array([0.0, 1.0]))
    better = refined(found, labels([0.0, 0.4, 1.2, 2.0], [0.4, 0.8, 1.2]), noise(), RATE, 5.0)
    expected = moved_edges(np.array([0.2, 0.4, 0.6]), noise(), RATE, 5.0)
    np.testing.assert_allclose(better([0.0, 0.4, 0.8, 1.2, 2.0]), [0.0, *expected, 1.0])
    assert not np.allclose(expected, [0.2, 0.4, 0.6])
    assert not list(refined(found, labels([0.0, 2.0]), noise(), RATE, 5.0).source[1:-1])


def test_without_weight_times_are_those_of_the_map() -> None:
    found = TimeMap(np.array([0.5, 1.0, 1.5]), np.array([0.0, 0.9, 1.0]))
    edges = [0.0, 0.4, 0.7, 1.2, 2.0]
    better = refined(found, labels(edges), noise(), RATE, 0.0)
    np.testing.assert_allclose(better(edges), found(edges))


@given(st.lists(st.floats(0.0, 2.0), min_size=2, max_size=12, unique=True), st.integers(0, 5))
def test_order_is_kept_within_the_map(times: list[float], seed: int) -> None:
    # all times from 0.8 to 1.2 s have one place in the other recording
    found = TimeMap(np.array([0.3, 0.8, 1.2, 1.9]), np.array([0.1, 0.5, 0.5, 0.9]))
    edges = sorted(times)
    better = refined(found, labels(edges), noise(seed), RATE, 9.0)
    assert (np.diff(better(edges)) >= 0).all()
    assert (np.abs(better(edges) - found(edges)) <= REACH_S + 0.001).all()
    assert 0.1 <= better(0.0) <= better(2.0) <= 0.9


@pytest.mark.parametrize("weight", [-1.0, float("nan")])
def test_an_unusable_weight_is_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="Refine is a weight of 0 or more"):
        Matcher(refine=weight)
