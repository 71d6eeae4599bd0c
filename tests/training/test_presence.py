"""Fitting of the probabilities that words were said."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from isotone.model.check import Check, Presence, known_presence
from isotone.training.presence import _logistic, corrupted, line

RATES = st.floats(0, 0.5)


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=20), RATES, st.integers(0, 9))
def test_corruptions_are_marked(words: list[str], rate: float, seed: int):
    found = corrupted(words, ["X", "Y"], np.random.default_rng(seed), rate)
    assert len(found.words) == len(found.source)
    kept = [number for number in found.source if number is not None]
    assert kept == sorted(set(kept))
    for word, number in zip(found.words, found.source):
        assert word in "XY" if number is None else word == words[number]
    assert all(0 <= place <= len(found.words) for place in found.missing)


def test_without_a_rate_nothing_is_corrupted():
    assert corrupted(["a", "b"], ["X"], np.random.default_rng(0), 0).words == ["a", "b"]


def test_a_removed_word_is_missing_where_it_was():
    words = [str(number) for number in range(1000)]
    found = corrupted(words, ["X"], np.random.default_rng(0), 0.02)
    assert found.missing
    for place in found.missing:
        before, after = found.source[place - 1], found.source[place]
        assert before is None or after is None or after > before + 1


def test_the_regression_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    features = rng.standard_normal((400, 3)) * [1.0, 5.0, 0.1] + [0.0, 2.0, -1.0]
    truth = rng.random(400) < 1 / (1 + np.exp(-(0.5 + features @ [1.0, -0.3, 4.0])))
    constant, *weights = _logistic(features, truth)
    centre, spread = features.mean(0), features.std(0)
    theirs = LogisticRegression(C=1.0, tol=1e-8).fit((features - centre) / spread, truth)
    np.testing.assert_allclose(np.array(weights) * spread, theirs.coef_[0], rtol=1e-3)
    np.testing.assert_allclose(constant + centre @ weights, theirs.intercept_[0], rtol=1e-3)


def test_presence_survives_json_and_counts_only_with_its_heads():
    presence = Presence(("ctc", "ottc"), (0.5, 1.0), (0.1, 2.0), 0.1, 0.9, "dev", 10, 0.0, 1.0)
    check = Check(0.2, "dev", 10, 0.0, 0.9, presence=presence)
    assert Check.from_dict(asdict(check)) == check
    for changed in (presence, replace(presence, rise=(2.0, -0.5))):
        written = json.loads(json.dumps(asdict(replace(check, presence=changed))))
        assert Check.from_dict(written).presence == changed
    without = {key: value for key, value in asdict(presence).items() if key != "rise"}
    assert Check.from_dict({**asdict(check), "presence": without}) == check
    assert Check.from_dict({**asdict(check), "presence": None}).presence is None
    assert known_presence(check, {"ctc", "ottc"}) == presence
    assert known_presence(check, {"ottc"}) is None
    assert known_presence(None, {"ctc"}) is None


def test_the_threshold_of_gaps_follows_the_words():
    rng = np.random.default_rng(0)
    texts = []
    for middle in rng.uniform(-2, 6, 400):  # the worse the words fit, the likelier seems other speech
        texts.append((-(rng.standard_normal(50) - 0.5 * middle), middle + rng.standard_normal(50)))
    constant, slope = line([texts], 0.01)
    assert slope == pytest.approx(0.5, abs=0.1)
    below = np.mean([own < constant + slope * np.median(words) for own, words in texts])
    assert below == pytest.approx(0.01, abs=0.002)


def test_the_threshold_follows_the_texts_and_loses_its_share_of_the_words():
    rng = np.random.default_rng(0)
    texts = [
        [middle + rng.standard_normal(50) for middle in rng.uniform(low, low + 2, 200)] for low in (0, 4)
    ]
    constant, slope = line([list(zip(some, some)) for some in texts], 0.01)
    assert 0.8 < slope < 1.2
    below = [np.concatenate([x < constant + slope * np.median(x) for x in some]).mean() for some in texts]
    assert 0.005 < np.mean(below) < 0.02
