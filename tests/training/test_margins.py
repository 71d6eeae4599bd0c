"""Fitting of margins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t

from isotone.alignment import Alignment, Segment, Tier
from isotone.pipeline.margins import scales
from isotone.pipeline.result import Result
from isotone.training.margins import errors_of, fitted
from isotone.types import Grid


def drawn(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features, errors, and the weights of their scales."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, 3)) * [1.0, 5.0, 0.1] + [0.0, 2.0, -1.0]
    weights = np.array([-1.5, 0.5, -0.1, 2.0])
    return features, scales(weights, features) * rng.standard_t(5, n), weights


def test_the_weights_of_drawn_errors_are_found() -> None:
    features, errors, weights = drawn(20_000)
    np.testing.assert_allclose(fitted(features, errors), weights, atol=0.12, rtol=0.1)


def test_no_weights_make_the_errors_likelier() -> None:
    """By the density of scipy, with the same penalty."""
    features, errors, _ = drawn(500, seed=1)
    spread = features.std(0)

    def cost(weights: np.ndarray) -> float:
        scale = np.exp(weights[0] + features @ weights[1:])
        likely = t.logpdf(errors / scale, 5) - np.log(scale)
        return float(-likely.sum() + 3.0 * np.square(weights[1:] * spread).sum())

    best = np.array(fitted(features, errors))
    at_best, rng = cost(best), np.random.default_rng(0)
    for size in (1e-3, 1e-2, 1e-1):
        for _ in range(50):
            assert cost(best + size * rng.standard_normal(4) / [1, *spread]) > at_best - 1e-6


def result_of(words: list[Segment], units: list[Segment], name: str = "phones") -> Result:
    alignment = Alignment("u", 9.0, (Tier("words", tuple(words)), Tier(name, tuple(units))))
    return Result(alignment, "", 50, (), Grid(0.02), 0.0)


def test_phones_are_compared_in_the_set_of_39() -> None:
    ours = [Segment("t", 1.0, 1.2), Segment("ax", 1.2, 1.3), Segment("s", 1.3, 1.5), Segment("iy", 1.6, 1.7)]
    true = Tier("phones", (
        Segment("h#", 0.0, 0.9), Segment("tcl", 0.9, 1.1), Segment("t", 1.1, 1.21), Segment("ah", 1.21, 1.3),
        Segment("z", 1.3, 1.5), Segment("iy", 1.61, 1.72),
    ))  # fmt: skip
    found = dict(errors_of(result_of([], ours), true))
    expected = {0: -0.1, 1: 0.01, 2: 0.01, 3: 0.0, 6: 0.01, 7: 0.02}  # s and z are not the same
    assert found == pytest.approx(expected)


def test_words_are_those_of_their_first_and_last_unit() -> None:
    words, units = [Segment("Hi", 1.0, 1.4)], [Segment("h", 1.0, 1.2), Segment("i", 1.2, 1.4)]
    true = Tier("words", (Segment("hi", 1.1, 1.35), Segment("there", 1.4, 1.5)))
    found = dict(errors_of(result_of(words, units, "characters"), true))
    assert found == pytest.approx({0: 0.1, 3: -0.05})
