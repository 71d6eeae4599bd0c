"""Errors of boundaries: exact at the collars, and without what an aligner's frames add."""

from __future__ import annotations

from benchmarks.aligners.errors import phone_errors, without_offset, word_errors
from isotone.alignment import Segment


def test_a_boundary_at_the_collar_is_within() -> None:
    found = [Segment("a", 0.11, 0.32), Segment("b", 0.34, 0.7)]
    labels = [Segment("a", 0.1, 0.3), Segment("b", 0.33, 0.69)]
    assert 1000 * (0.32 - 0.3) > 20, "in floating-point numbers it is outside"
    assert word_errors(found, labels) == [10.0, 20.0, 10.0, 10.0]
    assert word_errors(found[:1], labels) is None
    same = [Segment(x, s.start, s.end) for x, s in zip(("iy", "s"), found)]
    theirs = [Segment(x, s.start, s.end) for x, s in zip(("iy", "s"), labels)]
    assert phone_errors(same, theirs) == [10.0, 20.0, 10.0, 10.0]


def test_the_median_offset_is_taken_away_at_the_labels_resolution() -> None:
    errors = [[6.0, 9.0, 8.0], [-23.0, 13.0]]  # the median is 8
    assert without_offset(errors, 10) == [[0.0, 0.0, 0.0], [-30.0, 0.0]]
    assert without_offset(errors, 1) == [[-2.0, 1.0, 0.0], [-31.0, 5.0]]
    moved = [[e + 40 for e in own] for own in errors]
    assert without_offset(moved, 10) == without_offset(errors, 10)
