"""Evidence that words were said, on emissions that are made for it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from isotone.pipeline.presence import Evidence, evidence, probabilities
from isotone.pipeline.stars import STAR_NUMBER
from isotone.pipeline.texts import TextToAlign
from isotone.text.normalize import Word
from isotone.text.tokenizer import Transcript
from isotone.types import Emissions, Grid

EVERY = 4  # frames of 20 ms per token


def emissions_of(labels: list[int], seed: int = 0) -> Emissions:
    """Make noisy emissions with a peak per label, and blanks (0) between."""
    logits = np.random.default_rng(seed).standard_normal((1, EVERY * len(labels), 9))
    peaks = np.arange(len(labels)) * EVERY + 1
    logits[0, :, 0] += 5
    logits[0, peaks, 0] -= 5
    logits[0, peaks, labels] += 5
    return Emissions(torch.from_numpy(logits).float(), torch.tensor([logits.shape[1]]), Grid(0.02))


def text_of(words: list[list[int]]) -> TextToAlign:
    tokens = [label for word in words for label in word]
    owners = tuple(i for i, word in enumerate(words) for _ in word)
    spelt = tuple(Word("w", "w", i, i + 1) for i in range(len(words)))
    return TextToAlign(Transcript(spelt, tuple(tokens), owners), [False] * len(tokens))


def evenly(text: TextToAlign, emissions: Emissions) -> list[tuple[float, float]]:
    count, seconds = len(text.optional), 0.02 * int(emissions.lengths[0])
    return [(i * seconds / count, (i + 1) * seconds / count) for i in range(count)]


SAID = [[1, 2, 3], [4, 5, 6], [7, 8, 1], [2, 4, 6], [5, 7, 8]]


def found(words: list[list[int]], said: list[list[int]] = SAID) -> Evidence:
    emissions, text = emissions_of([label for word in said for label in word]), text_of(words)
    out = evidence([emissions], text, evenly(text, emissions))
    assert out is not None
    return out


@pytest.mark.parametrize("place", range(6))
def test_a_word_that_was_not_said_has_the_least_evidence(place: int):
    seen = found([*SAID[:place], [3, 8, 5], *SAID[place:]])
    assert seen.words == list(range(6))
    # with the word against a star in its place, and against stars alone
    for column in (1, 2):
        assert int(seen.said[:, column].argmin()) == place


@pytest.mark.parametrize("place", range(5))
def test_a_gap_where_a_word_is_missing_has_the_most_evidence(place: int):
    seen = found([word for i, word in enumerate(SAID) if i != place])
    assert seen.places == list(range(5))
    assert int(seen.gaps[:, 0].argmax()) == place


def test_stars_are_not_judged_and_those_that_no_text_has_are_left_out():
    words = [SAID[0], [STAR_NUMBER], *SAID[2:], [STAR_NUMBER]]
    emissions, text = emissions_of([label for word in SAID for label in word]), text_of(words)
    nowhere = replace(text.transcript.words[-1], start=0, end=0)
    text = text._replace(transcript=replace(text.transcript, words=(*text.transcript.words[:-1], nowhere)))
    seen = evidence([emissions], text, evenly(text, emissions))
    assert seen is not None
    assert seen.words == [0, 2, 3, 4]
    assert seen.places == [0, 2, 3, 4, 5]
    assert seen.said.shape == (4, 5)
    assert seen.gaps.shape == (5, 1)


def test_two_heads_give_twice_the_features():
    emissions = [emissions_of([label for word in SAID for label in word], seed) for seed in (0, 1)]
    text = text_of(SAID)
    both = evidence(emissions, text, evenly(text, emissions[0]))
    first = evidence(emissions[:1], text, evenly(text, emissions[0]))
    assert both is not None
    assert first is not None
    assert both.said.shape == (5, 9)
    assert both.gaps.shape == (6, 2)
    np.testing.assert_array_equal(both.said[:, :5], first.said)


def test_a_stretch_too_short_for_its_words_is_evidence_against_them():
    emissions, text = emissions_of([1, 2]), text_of([[1] * 20, [2]])
    seen = evidence([emissions], text, evenly(text, emissions))
    assert seen is not None
    assert np.isfinite(seen.said).all()
    assert seen.said[0, 1] < -10


def test_scores_that_are_not_finite_are_no_evidence():
    emissions, text = emissions_of([1, 2, 3]), text_of([[1, 2, 3]])
    emissions.logits[0, 4] = torch.nan
    assert evidence([emissions], text, evenly(text, emissions)) is None


def test_probabilities_are_those_of_a_logistic_regression():
    features = np.array([[1.0, -2.0], [0.5, 3.0]])
    expected = [1 / (1 + math.exp(-(0.3 + 2 * a - b))) for a, b in features]
    np.testing.assert_allclose(probabilities((0.3, 2.0, -1.0), features), expected)
