"""Probabilities that single words were said, fitted to real speech with corrupted transcripts.

Words are taken out of the transcripts, put in or exchanged. The evidence (:mod:`isotone.pipeline.presence`) on all
words and gaps of the corrupted texts fits two logistic regressions. Thresholds come from the true transcripts of
speakers that neither the model nor the regressions have heard.
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

#: Most utterances of each kind, spread over the split.
MOST = 100

#: Share of the words and gaps of true transcripts beyond the thresholds.
FALSE_ALARMS = 0.003

#: Share of the words that are taken out, and exchanged, and of the gaps that get another word.
RATE = 0.04

# Weight of the squares of weights of features of unit variance, beside the sum over all examples.
_RIDGE = 1.0


class Corrupted(NamedTuple):
    """A corrupted text.

    Attributes:
        words: Its words.
        said: For every word, True if it was said there.
        missing: Places (numbers of words before them) where a word was taken out.
    """

    words: list[str]
    said: list[bool]
    missing: frozenset[int]


def corrupted(
    words: Sequence[str],
    others: Sequence[str],
    rng: np.random.Generator,
    removed: float = RATE,
    added: float = RATE,
    replaced: float = RATE,
) -> Corrupted:
    """Corrupt a text: every word is taken out or exchanged, and gets a word before it, by chance.

    Args:
        words: The text.
        others: Words to put in.
        rng: Source of chance.
        removed, added, replaced: Probabilities of the three.
    """
    out: list[str] = []
    said: list[bool] = []
    missing = set()
    for word in words:
        if rng.random() < added:
            out.append(str(rng.choice(others)))
            said.append(False)
        fate = rng.random()
        if fate < removed:
            missing.add(len(out))
            continue
        exchanged = fate < removed + replaced
        out.append(str(rng.choice(others)) if exchanged else word)
        said.append(not exchanged)
    return Corrupted(out, said, frozenset(missing))


def fit(model: Model, data: Utterances, held_out: Utterances, split: str, seed: int = 0) -> Presence | None:
    """Fit the probabilities of a model.

    Args:
        model: In evaluation mode.
        data: Utterances with transcripts, to fit the regressions.
        held_out: Utterances of other speakers, to choose the thresholds.
        split: Name of the latter, for the result.
        seed: Seed of the corruptions.

    Returns:
        The presence; None where the aligner cannot leave tokens out, or there is too little to tell.
    """
    pipeline = Pipeline(model, device=next(model.parameters()).device, check=False)
    heads = tuple(head for head in model.heads if head in pipeline.placer.heads)
    if not pipeline.aligner.skips_optional:
        return None
    pipeline.presence = Presence(heads, (), (), 0.0, 1.0, 0.0, split, 0, 0.0, 0.0)
    rng = np.random.default_rng(seed)
    wrong = list(_examples(pipeline, data, rng, RATE))
    right, strange = (list(_examples(pipeline, held_out, rng, rate)) for rate in (0.0, RATE))
    if not (wrong and right and strange):
        log.info("Nothing says which words were said: no transcript could be aligned.")
        return None
    said = _logistic(*_rows(wrong, True))
    extra = _logistic(*_rows(wrong, False))
    fitted = replace(pipeline.presence, said=said, extra=extra)
    return _with_thresholds(fitted, right, strange, list(_strangers(pipeline, held_out)))


def _with_thresholds(
    fitted: Presence, right: Sequence[_Example], wrong: Sequence[_Example], strangers: Sequence[Evidence]
) -> Presence:
    words = probabilities(fitted.said, _rows(right, True)[0])
    gaps = probabilities(fitted.extra, _rows(right, False)[0])
    least, most = np.quantile(words, FALSE_ALARMS), np.quantile(gaps, 1 - FALSE_ALARMS)
    own = [probabilities(fitted.said, e.evidence.said).mean() for e in right]
    other = [probabilities(fitted.said, e.said).mean() for e in strangers]
    # in the middle between right texts and wrong ones
    whole = (np.quantile(own, 0.01) + np.quantile(other, 0.99)) / 2 if other else 0.0
    features, said = _rows(wrong, True)
    found = probabilities(fitted.said, features[~said]) < least
    return replace(
        fitted,
        least=float(least),
        most=float(most),
        wrong=float(whole),
        words=len(words),
        right_flagged=float(np.mean(words < least)),
        wrong_flagged=float(np.mean(found)) if len(found) else 0.0,
    )


class _Example(NamedTuple):
    text: Corrupted
    evidence: Evidence


def _texts(data: Utterances) -> Iterator[tuple[int, list[str]]]:
    """Iterate over the utterances to use, with their words."""
    count = min(MOST, len(data))
    for i in (i * len(data) // count for i in range(count)):
        yield i, data.row(i)["text"].split()


def _examples(
    pipeline: Pipeline, data: Utterances, rng: np.random.Generator, rate: float
) -> Iterator[_Example]:
    """Align corrupted texts; those that cannot be aligned are left out."""
    texts = list(_texts(data))
    others = [word for _, words in texts for word in words]
    for i, words in texts:
        text = corrupted(words, others, rng, rate, rate, rate)
        if (found := _evidence(pipeline, data, i, text.words)) is not None:
            yield _Example(text, found)


def _strangers(pipeline: Pipeline, data: Utterances) -> Iterator[Evidence]:
    """Align every recording with the text of the one half the list away."""
    texts = list(_texts(data))
    for (i, _), (_, words) in zip(texts, texts[len(texts) // 2 :] + texts[: len(texts) // 2]):
        if (found := _evidence(pipeline, data, i, words)) is not None:
            yield found


def _evidence(pipeline: Pipeline, data: Utterances, i: int, words: Sequence[str]) -> Evidence | None:
    example = data[i]
    try:
        transcript = pipeline.encode(" ".join(words))
        found = pipeline.evidence(example.id, example.audio, transcript)
    except (AlignmentError, TextError):
        return None
    # a text whose words are counted in another way has no truth for each
    whole = len(transcript.words) == len(words) and found is not None and len(found.words) == len(words)
    return found if whole else None


def _rows(examples: Sequence[_Example], of_words: bool) -> tuple[Array, NDArray[np.bool_]]:
    """Return the features of all words, and if they were said; or those of all gaps, and if words are missing there."""
    if of_words:
        said = np.concatenate([e.text.said for e in examples])
        return np.concatenate([e.evidence.said for e in examples]), said
    missing = [[place in e.text.missing for place in e.evidence.places] for e in examples]
    return np.concatenate([e.evidence.gaps for e in examples]), np.concatenate(missing)


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
