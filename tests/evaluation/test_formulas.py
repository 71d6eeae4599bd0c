"""Every definition on numbers worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from isotone.evaluation import formulas
from isotone.evaluation.error_rates import (
    EditCounts,
    character_error_rate,
    count_character_edits,
    count_edits,
    error_rate,
)


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


def test_character_errors_count_spaces() -> None:
    assert character_error_rate([("sitting", "kitten"), (" ", "left out")]) == pytest.approx(3 / 7)
    assert character_error_rate([("a b", "ab")]) == pytest.approx(1 / 3)
    assert np.isnan(character_error_rate([("", "a")]))
