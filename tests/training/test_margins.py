"""Fitting of margins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t

from isotone.alignment import Alignment, Segment, Tier
from isotone.corpus.layouts import TimitLayout
from isotone.corpus.timit import TimitCorpus
from isotone.corpus.voices import record, speakers
from isotone.model import Model
from isotone.pipeline.margins import FEATURES, LEVELS, interval, scales
from isotone.pipeline.result import Result
from isotone.text.espeak import Engine
from isotone.training.data import Utterances
from isotone.training.margins import errors_of, fit, fitted
from isotone.types import Grid
from tests.paths import ROOT


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


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixteen sentences of espeak-ng's voices, in the files of TIMIT."""
    pytest.importorskip("espeakng_loader", reason="espeak-ng is an extra")
    root, people = tmp_path_factory.mktemp("scenes"), speakers(4, 16, 5)[1]
    layout, engine = TimitLayout(root, [], [person.name for person in people]), Engine(5)
    for number, person in enumerate(people):
        layout.add(
            record(engine, person, number, "nobody heard the small bell ring", np.random.default_rng(number))
        )
    return root


@pytest.mark.skipif(
    not (ROOT / "plugins/isotone_english/model").is_dir(), reason="the pack's weights are not built"
)
def test_margins_are_fitted_to_recordings_with_known_times(spoken: Path) -> None:
    model = Model.load("english")
    rows = TimitCorpus(spoken, phones=39, closures="merge", silence="drop").load("all")
    data = Utterances(rows, model.tokenizer, model.encoder.sample_rate, 0.0, model.encoder.frames)
    found = fit(model, data, "made up")
    assert found is not None
    assert found.boundaries > 400
    assert found.split == "made up"
    assert len(found.weights) == 1 + len(FEATURES)
    assert len(found.errors) == len(LEVELS)
    assert list(found.errors) == sorted(found.errors)
    low, high = interval(found)
    assert low < 0 < high
    assert fit(model, data, "made up") == found, "the same again"
    few = Utterances(
        rows.select(range(2)), model.tokenizer, model.encoder.sample_rate, 0.0, model.encoder.frames
    )
    assert fit(model, few, "made up") is None
    model.decoding.refine = 0.0
    assert fit(model, data, "made up") is None
