"""Errors of boundaries: exact at the collars, and without what an aligner's frames add."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.aligners.__main__ import _report
from benchmarks.aligners.errors import in_common, phone_errors, row, without_offset, word_errors
from benchmarks.aligners.recordings import Labelled
from benchmarks.aligners.systems import Times
from isotone.alignment import Segment


def test_a_boundary_at_the_collar_is_within() -> None:
    found = [Segment("a", 0.11, 0.32), Segment("b", 0.34, 0.7)]
    labels = [Segment("a", 0.1, 0.3), Segment("b", 0.33, 0.69)]
    assert 1000 * (0.32 - 0.3) > 20, "in floating-point numbers it is outside"
    assert word_errors(found, labels) == {0: (10.0, 20.0), 1: (10.0, 10.0)}
    assert word_errors(found[:1], labels) is None
    same = [Segment(x, s.start, s.end) for x, s in zip(("iy", "s"), found)]
    theirs = [Segment(x, s.start, s.end) for x, s in zip(("iy", "s"), labels)]
    assert phone_errors(same, theirs) == {0: (10.0, 20.0), 1: (10.0, 10.0)}


def test_the_median_offset_is_taken_away_at_the_labels_resolution() -> None:
    errors = {0: {0: (6.0, 9.0)}, 2: {0: (8.0, -23.0), 3: (13.0, 8.0)}}  # the median is 8
    assert without_offset(errors, 10) == {0: {0: (0.0, 0.0)}, 2: {0: (0.0, -30.0), 3: (0.0, 0.0)}}
    assert without_offset(errors, 1) == {0: {0: (-2.0, 1.0)}, 2: {0: (0.0, -31.0), 3: (5.0, 0.0)}}
    moved = {r: {i: (a + 40, b + 40) for i, (a, b) in own.items()} for r, own in errors.items()}
    assert without_offset(moved, 10) == without_offset(errors, 10)


def test_what_all_have_is_without_failed_recordings_and_other_phones() -> None:
    near, far = (1.0, 2.0), (90.0, 80.0)
    found = in_common({"a": {0: {0: near, 1: far}, 1: {0: far}}, "b": {0: {0: near}}})
    assert found == {"a": {0: {0: near}}, "b": {0: {0: near}}}
    assert (
        row("a", found["a"], 0)
        == "| a | 1.5 (1.5 to 1.5) | 1.5 | 100.0 | 100.0 | 100.0 | 100.0 | 100.0 | 100.0 | 0 |"
    )
    assert row("none", {0: {}}, 2).startswith("| none | - | - |")


def test_an_aligner_that_fails_is_counted_and_compared_where_it_does_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words, silence = (Segment("a", 0.1, 0.3),), np.zeros(16000, np.float32)
    labels = [Labelled(str(i), silence, "a", words, ()) for i in range(2)]

    def late(samples: np.ndarray, text: str) -> Times:
        return Times((Segment("a", 0.1 + samples[0], 0.3 + samples[0]),), ())

    def fails(samples: np.ndarray, text: str) -> Times:
        if samples[0]:
            raise RuntimeError
        return Times(words, ())

    _report("clean", {"late": late, "fails": fails}, labels, [silence, silence + np.float32(0.5)], None)
    _, first, second = capsys.readouterr().out.split("**words, clean")
    assert "| late | 250.0" in first
    assert "| fails | 0.0 (0.0 to 0.0) | 0.0 | 100.0" in first
    assert first.count("| 1 |") == 1, "one recording is not aligned, by one aligner"
    assert "what all have" in second
    assert "| late | 0.0 (0.0 to 0.0)" in second
