"""Every definition on numbers worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from isotone.alignment import Alignment, Segment, Tier
from isotone.evaluation import formulas, peaky
from isotone.evaluation.error_rates import EditCounts, count_character_edits, count_edits, error_rate
from isotone.evaluation.peakiness import silent_frames
from isotone.types import Grid


def test_f1_is_the_harmonic_mean() -> None:
    # 3 of 4 predictions hit, 3 of 6 references found: P = 3/4, R = 1/2, F1 = 2 * 3/8 / (5/4) = 3/5
    assert formulas.percent(3, 4) == 75
    assert formulas.percent(3, 6) == 50
    assert formulas.f1(3, 4, 6) == 60
    assert formulas.f1(0, 4, 6) == 0
    assert math.isnan(formulas.f1(0, 0, 0))


def test_idr_pools_time() -> None:
    # 0.175 s and 0.15 s of overlap in 0.35 s and 0.2 s of reference
    assert formulas.idr(0.325, 0.55) == pytest.approx(59.0909, abs=1e-4)


@pytest.mark.parametrize(
    "hits, hyp, ref, value",
    [
        (10, 10, 10, 100.0),  # perfect
        # HR 3/4, OS 0: r1 = 1/4, r2 = -0.25/sqrt 2 = -0.17678: 1 - 0.42678 / 2
        (75, 100, 100, 78.6612),
        # all found, three times too many: HR 1, OS 2: r1 = 2, r2 = -2/sqrt 2 = -1.41421: 1 - 3.41421 / 2
        (10, 30, 10, -70.7107),
        # nothing found, nothing predicted: HR 0, OS -1: r1 = sqrt 2, r2 = 0: 1 - 0.70711
        (0, 0, 10, 29.2893),
    ],
)
def test_r_value(hits: int, hyp: int, ref: int, value: float) -> None:
    assert formulas.r_value(hits, hyp, ref) == pytest.approx(value, abs=1e-4)


def test_formulas_work_element_by_element_and_say_what_is_undefined() -> None:
    out = formulas.percent(np.array([1.0, 0.0]), np.array([4.0, 0.0]))
    assert out[0] == 25
    assert np.isnan(out[1])
    assert np.isnan(formulas.r_value(np.array([0.0]), np.array([3.0]), np.array([0.0]))).all()


def test_over_segmentation() -> None:
    assert formulas.over_segmentation(9, 8) == 12.5
    assert formulas.over_segmentation(4, 8) == -50


def reference(duration: float, *segments: tuple[str, float, float]) -> Alignment:
    return Alignment("u", duration, (Tier("phones", tuple(Segment(*s) for s in segments)),))


def test_silent_frames_are_those_whose_centre_no_label_covers() -> None:
    ref = reference(0.1, ("h#", 0.0, 0.02), ("a", 0.02, 0.045), ("b", 0.045, 0.07))
    # centres 5, 15, ..., 95 ms; "a" and "b" cover 20 to 70 ms, the rest is "h#" or a gap
    assert silent_frames(ref, 10).tolist() == [True, True] + [False] * 5 + [True] * 3
    # hop 20 ms, offset 10 ms: centres 20, 40, 60, 80: a start belongs to its segment, an end does not
    assert silent_frames(ref, 4, grid=Grid(0.02, 0.01)).tolist() == [False, False, False, True]
    # h# is no silence now; a, with centres 25 and 35, is silent
    assert (
        silent_frames(ref, 10, silence={"a"}).tolist() == [False] * 2 + [True] * 2 + [False] * 3 + [True] * 3
    )


def test_peaky_is_the_mean_over_utterances_less_silence() -> None:
    ref = [reference(0.1, ("h#", 0.0, 0.04), ("a", 0.04, 0.1)), reference(0.2, ("a", 0.0, 0.2))]
    # 8 of 10 frames blank and 4 of 10 silent; 2 of 20 blank and none silent
    blank = [np.arange(10) < 8, np.arange(20) < 2]
    assert peaky(blank) == pytest.approx(100 * (0.8 + 0.1) / 2)
    assert peaky(blank, ref) == pytest.approx(100 * (0.8 - 0.4 + 0.1) / 2)
    assert peaky([(8, 10), (2, 20)], ref) == peaky(blank, ref)
    # fewer blanks than silence: the corpus's value stops at 0, an utterance's does not
    assert peaky([(1, 10), (3, 20)], ref) == 0
    assert peaky([]) is None


def test_peaky_refuses_impossible_counts() -> None:
    with pytest.raises(ValueError, match="11 of 10"):
        peaky([(11, 10)])
    with pytest.raises(ValueError, match="0 of 0"):
        peaky([np.zeros(0, dtype=bool)])
    with pytest.raises(ValueError, match="one reference an utterance"):
        peaky([(1, 10)], [])


def test_error_rates_count_by_utterance() -> None:
    # 1 2 3 4 -> 1 9 4: one substitution, one deletion; nothing -> 5: one insertion; 1 -> 1; nothing at all
    counts = count_edits([[1, 9, 4], [5], [1], []], [[1, 2, 3, 4], [], [1], []])
    assert counts[:, :3].sum(1).tolist() == [2, 1, 0, 0]
    assert counts[0].tolist() == [1, 1, 0, 4]
    assert counts[1].tolist() == [0, 0, 1, 0]
    assert counts[:, 3].tolist() == [4, 0, 1, 0]
    # "the cat" -> "a cat": t and h deleted, e to a
    assert count_character_edits(["a cat"], ["the cat"]).tolist() == [[1, 2, 0, 7]]
    assert count_edits([], []).shape == (0, 4)
    with pytest.raises(ValueError, match="one hypothesis per reference"):
        count_edits([[1]], [])


def test_an_empty_reference_has_no_error_rate() -> None:
    assert EditCounts(0, 0, 3, 0).rate is None
    assert EditCounts(1, 1, 1, 6).rate == 50


def test_the_error_rate_of_texts() -> None:
    assert error_rate([("a b c d", "a x c"), ("e f", "e f g")]) == pytest.approx(3 / 6)
    assert error_rate([("a", ""), (" ", "what is this")]) == 1  # nothing to find is left out
    assert np.isnan(error_rate([("", "a")]))
