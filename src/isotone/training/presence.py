"""Probabilities that single words were said, fitted to real speech with corrupted transcripts.

Words are taken out of the transcripts, put in or exchanged. The evidence (:mod:`isotone.pipeline.presence`) on all
words and gaps of the corrupted texts fits two logistic regressions. Thresholds come from the true transcripts, with
their recordings as they are and made worse (:mod:`isotone.training.conditions`). The model must not have been trained
with these speakers: it is too sure of what it has learnt.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
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
from isotone.pipeline.presence import Evidence, least_odds, log_odds
from isotone.text.normalize import TextError
from isotone.training.conditions import CLEAN, Change, conditions
from isotone.training.data import Utterances, evenly

log = logging.getLogger(__name__)

Array = NDArray[np.float64]

#: Most utterances, spread over the split.
MOST = 200

#: Number of corruptions of every transcript.
TIMES = 3

#: Share of the words that are taken out, and exchanged, and of the gaps that get another word.
RATE = 0.04

#: Share of the gaps of true transcripts beyond the threshold, under half of the conditions; and, about, under any
#: condition, where the threshold follows the typical word.
FALSE_ALARMS, FOLLOWING = 0.001, 0.005

#: Share of the words of true transcripts below the threshold, about, under every condition.
LOST = 0.003

#: Recordings that babble is mixed from, at most.
_VOICES = 30

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
    worse = [[*_examples(pipeline, data, rng, 0.0, change)] for change in _worse(model, data)]
    heard = [examples for examples in (right, *worse) if examples]
    odds = [_odds(of_words, examples) for examples in heard]
    least, slope = line([list(zip(some, some)) for some in odds], LOST)
    of_right = [[log_odds(of_gaps, e.evidence.gaps) for e in examples] for examples in heard]
    # beyond a threshold of gaps is below that of their negatives
    rise = line([[(-g, o) for g, o in zip(*some)] for some in zip(of_right, odds)], FOLLOWING)
    most = np.median([np.quantile(np.concatenate(gaps), 1 - FALSE_ALARMS) for gaps in of_right])
    found = replace(
        pipeline.presence,
        said=of_words,
        extra=of_gaps,
        least=float(expit(least)),
        slope=slope,
        most=float(expit(most)),
        rise=(-rise[0], -rise[1]),
        split=split,
        words=len(_rows(right, True)[1]),
    )
    below = np.concatenate([odds < least_odds(found, odds) for odds in _odds(of_words, wrong)])
    missed = np.concatenate([odds < least_odds(found, odds) for odds in _odds(of_words, right)])
    return replace(found, right_flagged=float(missed.mean()), wrong_flagged=float(below[~said].mean()))


def line(texts: Sequence[Sequence[tuple[Array, Array]]], share: float) -> tuple[float, float]:
    """Fit thresholds of log-odds: a constant, and a slope over the median of a text's words.

    It is a quantile regression: about ``share`` of the log-odds lie below.

    Args:
        texts: Per condition, for every text, log-odds and those of its words. Conditions weigh the same.
        share: 0 to 1.
    """
    odds = [np.concatenate([own for own, _ in some]) for some in texts if some]
    middles = [np.concatenate([np.full(len(own), np.median(w)) for own, w in some]) for some in texts if some]

    def loss(at: Array) -> float:
        above = (own - at[0] - at[1] * middle for own, middle in zip(odds, middles))
        return sum(float(np.maximum(share * x, (share - 1) * x).mean()) for x in above) / share

    tried = [minimize(loss, start, method="Nelder-Mead") for start in ([0.0, 0.0], [-3.0, 1.0])]
    constant, slope = min(tried, key=lambda found: found.fun).x
    return float(constant), float(slope)


def _worse(model: Model, data: Utterances) -> list[Change]:
    """Return what makes recordings worse, with babble of some of them."""
    step = -(-len(data) // _VOICES)
    voices = [np.asarray(data[i].audio) for i in range(0, len(data), step)]
    changes = conditions(voices, model.encoder.sample_rate)
    return [change for name, change in changes.items() if name != CLEAN]


class _Example(NamedTuple):
    text: Corrupted
    evidence: Evidence


def _examples(
    pipeline: Pipeline,
    data: Utterances,
    rng: np.random.Generator,
    rate: float,
    change: Change = lambda samples, rng: samples,
) -> Iterator[_Example]:
    """Align corrupted texts with changed recordings; those that cannot be aligned are left out."""
    chosen = evenly(len(data), MOST)
    texts = {i: data.row(i)["text"].split() for i in chosen}
    others = [word for words in texts.values() for word in words]
    for i, words in texts.items():
        text = corrupted(words, others, rng, rate)
        samples = change(np.asarray(data[i].audio), rng)
        if text.words and (found := _evidence(pipeline, samples, text.words)) is not None:
            yield _Example(text, found)


def _evidence(pipeline: Pipeline, samples: NDArray[np.float32], words: Sequence[str]) -> Evidence | None:
    try:
        found = pipeline.align("", samples, pipeline.encode(" ".join(words))).evidence
    except (AlignmentError, TextError):
        return None
    # a text whose words are counted in another way has no truth for each
    return found if found is not None and found.words == list(range(len(words))) else None


def _odds(weights: Sequence[float], examples: Iterable[_Example]) -> list[Array]:
    """Return the log-odds of the words of every text."""
    return [log_odds(weights, e.evidence.said) for e in examples]


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
