"""Time maps: in order, invertible, and carrying tiers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.alignment import Alignment, Segment, Tier
from isotone.warping import TimeMap

times = st.lists(st.floats(0, 100), min_size=2, max_size=20).map(sorted)


def test_between_knots_and_beyond() -> None:
    found = TimeMap(np.array([1.0, 2.0, 4.0]), np.array([10.0, 12.0, 12.5]))
    np.testing.assert_allclose(found([0, 1, 1.5, 3, 9]), [10, 10, 11, 12.25, 12.5])
    assert list(found.knots()) == [(1.0, 10.0), (2.0, 12.0), (4.0, 12.5)]
    assert [found.covers(t) for t in (0.9, 1.0, 4.0, 4.1)] == [False, True, True, False]


@given(source=times, target=times)
def test_never_decreases_and_the_inverse_leads_back(source: list[float], target: list[float]) -> None:
    size = min(len(source), len(target))
    found = TimeMap(np.array(source[:size]), np.array(target[:size]))
    grid = np.linspace(0, 100, 51)
    assert (np.diff(found(grid)) >= -1e-9).all()
    for a, b in found.knots():
        back = found.inverse()(b)
        twins = [s for s, t in found.knots() if t == b]
        assert min(twins) - 1e-6 <= back <= max(twins) + 1e-6
        assert a in twins


def test_tiers_are_carried_and_what_lies_outside_is_left_out() -> None:
    words = [Segment("a", 0.0, 0.5), Segment("b", 0.5, 1.5), Segment("c", 1.5, 2.5), Segment("d", 3.0, 3.2)]
    labels = Alignment("ref", 3.5, (Tier("words", tuple(words)), Tier("notes", ())))
    found = TimeMap(np.array([1.0, 2.0]), np.array([0.0, 4.0])).carry(labels, "clip", 3.9)
    assert found.id == "clip"
    assert found.duration == 3.9
    assert [(s.label, s.start, s.end) for s in found.tier("words")] == [("b", 0.0, 2.0), ("c", 2.0, 3.9)]
    assert len(found.tier("notes")) == 0


@pytest.mark.parametrize(
    ("source", "target"),
    [([0.0], [0.0]), ([0.0, 1.0], [0.0]), ([1.0, 0.0], [0.0, 1.0]), ([0.0, 1.0], [0.0, np.nan])],
)
def test_what_is_no_map(source: list[float], target: list[float]) -> None:
    with pytest.raises(ValueError, match="A time map expects"):
        TimeMap(np.array(source), np.array(target))
