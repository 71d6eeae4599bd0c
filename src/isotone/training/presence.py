"""Probabilities that single words were said, fitted to real speech with corrupted transcripts.

Words are taken out of the transcripts, put in or exchanged. The evidence (:mod:`isotone.pipeline.presence`) on all
words and gaps of the corrupted texts fits two logistic regressions. Thresholds come from the true transcripts. The
model must not have been trained with these speakers: it is too sure of what it has learnt.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from isotone.alignment import AlignmentError
from isotone.model import Model
from isotone.model.check import Presence
from isotone.pipeline import Pipeline
from isotone.pipeline.presence import Evidence, probabilities
from isotone.text.normalize import TextError
from isotone.training.data import Utterances

log = logging.getLogger(__name__)

Array = NDArray[np.float64]

#: Most utterances, spread over the split.
MOST = 200

#: Number of corruptions of every transcript.
TIMES = 3

#: Share of the words that are taken out, and exchanged, and of the gaps that get another word.
RATE = 0.04

#: Share of the words, and of the gaps, of true transcripts beyond the thresholds.
FALSE_ALARMS = 0.001

# Weight of the squares of weights of features of unit variance, beside the sum over all examples.
_RIDGE = 1.0


class Corrupted(NamedTuple):
    """A corrupted text.

    Attributes:
        words: Its words.
        source: For every word its number in the true text, None for one that was not said.
        missing: Places (numbers of words before them) where a word was taken out.
    """

    words: list[str]
    source: list[int | None]
    missing: frozenset[int]


def corrupted(
    words: Sequence[str], others: Sequence[str], rng: np.random.Generator, rate: float
) -> Corrupted:
    """Corrupt a text: every word is taken out or exchanged, and gets a word before it, by chance.

    Args:
        words: The text.
        others: Words to put in.
        rng: Source of chance.
        rate: Probability of each of the three.
    """
    out: list[str] = []
    source: list[int | None] = []
    missing = set()
    for number, word in enumerate(words):
        if rng.random() < rate:
            out.append(str(rng.choice(others)))
            source.append(None)
        fate = rng.random()
        if fate < rate:
            missing.add(len(out))
            continue
        exchanged = fate < 2 * rate
        out.append(str(rng.choice(others)) if exchanged else word)
        source.append(None if exchanged else number)
    return Corrupted(out, source, frozenset(missing))


def watching(pipeline: Pipeline, presence: Presence | None = None) -> None:
    """Let a pipeline collect evidence, and leave nothing out.

    Args:
        pipeline: The pipeline.
        presence: How it judges words. Default: all words are equally likely, by the evidence of all its heads.
    """
    heads = tuple(head for head in pipeline.model.heads if head in pipeline.placer.heads)
    # a constant and the number of labels, and of every head four features of words and one of gaps
    blind = Presence(heads, (0.0,) * (2 + 4 * len(heads)), (0.0,) * (1 + len(heads)), 0, 1, "", 0, 0, 0)
    pipeline.presence = replace(presence or blind, least=0.0, most=1.0)


def fit(model: Model, data: Utterances, split: str, seed: int = 0) -> Presence | None:
    """Fit the probabilities of a model.

    Args:
        model: In evaluation mode.
        data: Utterances with transcripts, of speakers that the model was not trained with.
        split: Their name, for the result.
        seed: Seed of the corruptions.

    Returns:
        The presence; None where the aligner cannot leave tokens out, or no transcript can be aligned.
    """
    pipeline = Pipeline(model, device=next(model.parameters()).device, check=False)
    if not pipeline.aligner.skips_optional:
        return None
    watching(pipeline)
    assert pipeline.presence is not None
    rng = np.random.default_rng(seed)
    right = list(_examples(pipeline, data, rng, 0.0))
    wrong = [example for _ in range(TIMES) for example in _examples(pipeline, data, rng, RATE)]
    if not right or not wrong:
        log.info("Nothing says which words were said: no transcript could be aligned.")
        return None
    words, said = _rows(wrong, True)
    gaps, missing = _rows(wrong, False)
    if said.all() or not missing.any():
        log.info("Nothing says which words were said: the transcripts are too short to be corrupted.")
        return None
    of_words, of_gaps = _logistic(words, said), _logistic(gaps, missing)
    clean = probabilities(of_words, _rows(right, True)[0])
    least = float(np.quantile(clean, FALSE_ALARMS))
    return replace(
        pipeline.presence,
        said=of_words,
        extra=of_gaps,
        least=least,
        most=float(np.quantile(probabilities(of_gaps, _rows(right, False)[0]), 1 - FALSE_ALARMS)),
        split=split,
        words=len(clean),
        right_flagged=float(np.mean(clean < least)),
        wrong_flagged=float(np.mean(probabilities(of_words, words[~said]) < least)),
    )


class _Example(NamedTuple):
    text: Corrupted
    evidence: Evidence


def _examples(
    pipeline: Pipeline, data: Utterances, rng: np.random.Generator, rate: float
) -> Iterator[_Example]:
    """Align corrupted texts; those that cannot be aligned are left out."""
    count = min(MOST, len(data))
    chosen = [i * len(data) // count for i in range(count)]
    texts = {i: data.row(i)["text"].split() for i in chosen}
    others = [word for words in texts.values() for word in words]
    for i, words in texts.items():
        text = corrupted(words, others, rng, rate)
        if text.words and (found := _evidence(pipeline, data, i, text.words)) is not None:
            yield _Example(text, found)


def _evidence(pipeline: Pipeline, data: Utterances, i: int, words: Sequence[str]) -> Evidence | None:
    example = data[i]
    try:
        found = pipeline.align(example.id, example.audio, pipeline.encode(" ".join(words))).evidence
    except (AlignmentError, TextError):
        return None
    # a text whose words are counted in another way has no truth for each
    return found if found is not None and found.words == list(range(len(words))) else None


def _rows(examples: Sequence[_Example], of_words: bool) -> tuple[Array, NDArray[np.bool_]]:
    """Return the features of all words, and if they were said; or those of all gaps, and if words are missing there."""
    if of_words:
        said = [number is not None for e in examples for number in e.text.source]
        return np.concatenate([e.evidence.said for e in examples]), np.array(said)
    missing = [place in e.text.missing for e in examples for place in range(len(e.text.words) + 1)]
    return np.concatenate([e.evidence.gaps for e in examples]), np.array(missing)


def _logistic(features: Array, truth: NDArray[np.bool_]) -> tuple[float, ...]:
    """Fit a logistic regression: the constant, then the weights of the features."""
    centre, spread = features.mean(0), features.std(0) + 1e-9
    rows = np.hstack([np.ones((len(features), 1)), (features - centre) / spread])
    signs = np.where(truth, 1.0, -1.0)

    def loss(weights: Array) -> tuple[float, Array]:
        margins = signs * (rows @ weights)
        value = np.logaddexp(0, -margins).sum() + _RIDGE / 2 * (weights[1:] ** 2).sum()
        slope = -rows.T @ (signs * expit(-margins))
        slope[1:] += _RIDGE * weights[1:]
        return value, slope

    found = minimize(loss, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B").x
    weights = found[1:] / spread
    return (float(found[0] - centre @ weights), *map(float, weights))
