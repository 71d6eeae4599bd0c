"""Margins of boundaries, fitted to recordings whose times are known.

Every recording is aligned under one condition of :mod:`isotone.training.conditions`, drawn at random. The weights of
the scale are those under which the errors, as multiples of it, are most likely by Student's t distribution with five
degrees of freedom: it has room for gross errors. The quantiles of these multiples need no distribution.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from isotone.alignment import AlignmentError, Segment, Tier
from isotone.corpus import reference
from isotone.evaluation.matching import pair_by_edits
from isotone.evaluation.tracks import encode
from isotone.model import Model
from isotone.model.check import Margins
from isotone.pipeline import Pipeline
from isotone.pipeline.margins import LEVELS, features_of, scales
from isotone.pipeline.result import Result
from isotone.text.normalize import TextError
from isotone.text.phones import PHONES_61, fold_segments
from isotone.training.conditions import conditions
from isotone.training.data import Utterances, evenly

log = logging.getLogger(__name__)

Array = NDArray[np.float64]

#: Most utterances, spread over the split.
MOST = 600

#: Fewest boundaries to fit to.
LEAST = 200

# Labels of phones that can be folded, with silence.
_PHONES = frozenset({*PHONES_61, "", "sil"})
# Degrees of freedom of Student's t distribution.
_FREEDOM = 5
# Weight of the squares of weights of features of unit variance, beside the sum over all boundaries.
_RIDGE = 3.0
# Recordings that babble is mixed from, at most.
_VOICES = 60
# Errors in seconds are no smaller, so that none has a scale of 0.
_LEAST_S = 1e-4


def fit(model: Model, data: Utterances, split: str, seed: int = 0) -> Margins | None:
    """Fit the margins of a model.

    Args:
        model: In evaluation mode; its boundaries move to where the sound changes (``reading.refine``).
        data: Utterances with known times of phones, or else of words; best of voices that the model was not trained
            with.
        split: Their name, for the result.
        seed: Seed of the conditions.

    Returns:
        The margins; None where the boundaries do not move, or too few of them are known.
    """
    pipeline = Pipeline(model, device=next(model.parameters()).device, check=False, presence=False)
    rng = np.random.default_rng(seed)
    voices = [np.asarray(data[i].audio) for i in evenly(len(data), _VOICES)]
    changes = list(conditions(voices, model.encoder.sample_rate).values()) if voices else []
    rows = [
        found
        for i in evenly(len(data), MOST if pipeline.refine else 0)
        if (found := _compared(pipeline, data, i, changes[rng.integers(len(changes))], rng)) is not None
    ]
    if not rows or sum(len(errors) for _, errors in rows) < LEAST:
        log.info("Nothing says how sure boundaries are: fewer than %d of them are known.", LEAST)
        return None
    features, errors = (np.concatenate(part) for part in zip(*rows))
    weights = fitted(features, errors)
    quantiles = np.quantile(errors / scales(weights, features), LEVELS)
    return Margins(weights, tuple(map(float, quantiles)), split, len(errors))


def fitted(features: Array, errors: Array) -> tuple[float, ...]:
    """Fit the weights of scales to errors ``(n,)`` in seconds with features ``(n, F)``: a constant, then F weights."""
    centre, spread = features.mean(0), features.std(0) + 1e-9
    rows = np.hstack([np.ones((len(features), 1)), (features - centre) / spread])
    logs = np.log(np.maximum(np.abs(errors), _LEAST_S))

    def loss(weights: Array) -> tuple[float, Array]:
        scale = rows @ weights
        squares = np.exp(2 * (logs - scale))
        value = (scale + (_FREEDOM + 1) / 2 * np.log1p(squares / _FREEDOM)).sum()
        slope = rows.T @ (1 - (_FREEDOM + 1) * squares / (_FREEDOM + squares))
        slope[1:] += 2 * _RIDGE * weights[1:]
        return value + _RIDGE * (weights[1:] ** 2).sum(), slope

    start = np.zeros(rows.shape[1])
    start[0] = np.median(logs)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 1000}).x
    weights = found[1:] / spread
    return (float(found[0] - centre @ weights), *map(float, weights))


def _compared(
    pipeline: Pipeline, data: Utterances, index: int, change: Any, rng: np.random.Generator
) -> tuple[Array, Array] | None:
    """Align an utterance under a condition, and return features and errors; None where it cannot be aligned."""
    row = data.row(index)
    samples = change(np.asarray(data[index].audio), rng)
    try:
        found = pipeline.align(row["id"], samples, pipeline.encode(row["text"]))
    except (AlignmentError, TextError) as error:
        log.debug("%s: %s", row["id"], error)
        return None
    known = reference(row)
    if found.changes is None or not known.tiers:
        return None
    rows = list(errors_of(found, known.tiers[-1]))
    features = features_of(found)
    places, errors = [place for place, _ in rows], np.array([error for _, error in rows])
    return features.reshape(-1, features.shape[-1])[places], errors


def errors_of(result: Result, known: Tier) -> Iterator[tuple[int, float]]:
    """Iterate over the boundaries of a result whose true places are known.

    Args:
        result: The result.
        known: A tier of true times, of words or of phones. Phones are compared in the set of 39, with their closures.

    Yields:
        Twice the number of the unit, plus 1 at its end; and the true place less that of the result, in seconds.
    """
    units = result.alignment.tiers[-1].segments
    name = known.name if result.alignment.has(known.name) else result.alignment.tiers[-1].name
    tiers = result.alignment.tier(name), known
    phones = all(s.label in _PHONES for tier in tiers for s in tier)
    ours, theirs = (_comparable(tier, phones) for tier in tiers)
    codes: dict[str, int] = {}
    tracks = [encode(Tier("", tuple(segments)), codes) for segments in (ours, theirs)]
    places = [{s.start: 2 * i for i, s in enumerate(units)}, {s.end: 2 * i + 1 for i, s in enumerate(units)}]
    for own, i in zip(theirs, pair_by_edits(*tracks).tolist()):
        if i < 0 or ours[i].label != own.label:
            continue
        pairs = (ours[i].start, own.start), (ours[i].end, own.end)
        for place, (found, true) in zip(places, pairs):
            if found in place:
                yield place[found], true - found


def _comparable(tier: Tier, phones: bool) -> Sequence[Segment]:
    """Return the segments of a tier: phones in the set of 39 without silence, others in lower case."""
    segments = [s for s in tier if s.label]
    if phones:
        return fold_segments(segments, 39, closures="merge", silence="drop")
    return [Segment(s.label.casefold(), s.start, s.end) for s in segments]
