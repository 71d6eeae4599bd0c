"""Margins: intervals that hold the true boundaries in nine of ten cases, and probabilities of being near them.

The error of a boundary is a scale s times a number that is drawn in the same way for all boundaries. The scale is
exp(w0 + w f) with features f of the boundary: how clearly the sound changes there (:class:`isotone.audio.boundaries.
Changes`), the segments on both sides, and the fit of the whole text. Weights, and the quantiles of the errors as
multiples of their scale, are fitted to recordings with known times (:mod:`isotone.training.margins`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotone.alignment import Margin, Segment, Tier
from isotone.audio.boundaries import Changes
from isotone.model.check import Margins
from isotone.pipeline.result import Result

Array = NDArray[np.float64]

#: Share of the true boundaries that are within their margins.
HELD = 0.9
#: Distance in seconds of which :class:`isotone.alignment.Margin` has the probability.
NEAR_S = 0.02
#: Levels of the quantiles of errors.
LEVELS = (0.005, 0.01, 0.025, *(round(0.05 * k, 2) for k in range(1, 20)), 0.975, 0.99, 0.995)

#: Names of the features, in order.
FEATURES = (
    "log deviation", "no change", "gain", "log distance", "log left seconds", "log right seconds", "nothing left",
    "nothing right", "left score", "right score", "doubt", "fit",
)  # fmt: skip

# Added to what logarithms are taken of: seconds of deviations and of segments, and squared nats.
_DEVIATION_S, _SEGMENT_S, _DISTANCE = 0.001, 0.01, 0.05
# Higher confidences of segments are as good as this.
_SURE = 0.995
# Closer times than this are one boundary.
_SAME_S = 0.001
# Scales in seconds stay within these, whatever the features are.
_SCALES_S = (0.001, 1.0)


class Sides(NamedTuple):
    """Segments that touch at a boundary, or None for silence."""

    left: Segment | None
    right: Segment | None


def sides_of(segments: Sequence[Segment]) -> list[tuple[Sides, Sides]]:
    """List what touches at the start and at the end of every segment of a tier."""
    joined = [b.start - a.end < _SAME_S for a, b in pairwise(segments)]
    before = [a if own else None for a, own in zip(segments, joined)]
    after = [b if own else None for b, own in zip(segments[1:], joined)]
    return [
        (Sides(left, segment), Sides(segment, right))
        for left, segment, right in zip([None, *before], segments, [*after, None])
    ]


def features_of(result: Result) -> Array:
    """Compute the features of the boundaries of a result: ``(n, 2, F)``, of start and end of its n units.

    Units are the segments of its last tier.

    Raises:
        ValueError: its boundaries were not moved to where the sound changes.
    """
    if result.changes is None:
        raise ValueError("Features are of boundaries that were moved to where the sound changes.")
    segments = result.alignment.tiers[-1].segments
    if not segments:
        return np.empty((0, 2, len(FEATURES)))
    times = np.array([(s.start, s.end) for s in segments])
    sides = [_features(own) for pair in sides_of(segments) for own in pair]
    segmental = np.array(sides).reshape(len(segments), 2, -1)
    fit = np.full((len(segments), 2, 1), result.score)
    return np.concatenate([_heard(times, result.changes), segmental, fit], 2)


def _heard(times: Array, changes: Changes) -> Array:
    """Compute the features of the sound at times ``(n, 2)``: ``(n, 2, 4)``."""
    if not len(changes.times):
        changes = Changes(np.array([np.inf]), *(np.array([np.nan]),) * 3)
    place = np.searchsorted(changes.times, times - _SAME_S).clip(max=len(changes.times) - 1)
    known = np.abs(changes.times[place] - times) < _SAME_S
    known &= ~np.isnan(changes.deviations[place])
    found = np.stack([
        np.log(np.where(known, changes.deviations[place], 0) + _DEVIATION_S),
        ~known,
        np.where(known, changes.gains[place], 0),
        np.log(np.where(known, changes.distances[place], 0) + _DISTANCE),
    ], -1)  # fmt: skip
    return np.asarray(found, float)


def _features(sides: Sides) -> list[float]:
    """Return the features of the segments on both sides of a boundary."""
    seconds = [float(np.log(s.duration + _SEGMENT_S)) if s else 0.0 for s in sides]
    scores = [(s.score or 0.0) if s else 0.0 for s in sides]
    confidences = [s.confidence for s in sides if s and s.confidence is not None]
    doubt = float(np.log1p(-min(_SURE, *confidences, _SURE)))
    return [*seconds, *(float(s is None) for s in sides), *scores, doubt]


def scales(weights: Sequence[float], features: Array) -> Array:
    """Compute the scales in seconds ``(...)`` of features ``(..., F)``.

    Raises:
        ValueError: weights of other features.
    """
    if len(weights) != features.shape[-1] + 1:
        raise ValueError(
            f"The model's margins are of {len(weights) - 1} features, and there are {features.shape[-1]}: they were "
            "fitted by another version of isotone. Fit them again."
        )
    logs = weights[0] + features @ np.array(weights[1:])
    return np.asarray(np.exp(np.clip(logs, *np.log(_SCALES_S))))


def shares_near(margins: Margins, scale: Array, distance_s: float = NEAR_S) -> Array:
    """Compute the probabilities ``(...)`` that boundaries with scales ``(...)`` are near the true ones."""
    reach = distance_s / scale
    upper, lower = (np.interp(sign * reach, margins.errors, LEVELS) for sign in (1, -1))
    return np.asarray(np.clip(upper - lower, 0, 1))


def interval(margins: Margins, held: float = HELD) -> tuple[float, float]:
    """Return the interval of errors, as multiples of their scale, that holds a share of them."""
    low, high = np.interp([(1 - held) / 2, (1 + held) / 2], LEVELS, margins.errors)
    return min(0.0, float(low)), max(0.0, float(high))


def with_margins(result: Result, margins: Margins) -> Result:
    """Copy a result whose boundaries have margins; one without changes of the sound stays as it is.

    Words have those of their first and last unit. Margins end where the recording does.
    """
    alignment = result.alignment
    if result.changes is None or not alignment.tiers:
        return result
    scale = scales(margins.weights, features_of(result))
    near = shares_near(margins, scale)
    low, high = interval(margins)
    units = alignment.tiers[-1]
    found: tuple[dict[float, Margin], dict[float, Margin]] = ({}, {})
    for segment, own_scales, own_near in zip(units, scale.tolist(), near.tolist()):
        for own, time, s, p in zip(found, (segment.start, segment.end), own_scales, own_near):
            own[time] = Margin(min(-low * s, time), min(high * s, max(0.0, alignment.duration - time)), p)
    tiers = (_marked(tier, *found) for tier in alignment.tiers)
    return replace(result, alignment=replace(alignment, tiers=tuple(tiers)))


def _marked(tier: Tier, starts: dict[float, Margin], ends: dict[float, Margin]) -> Tier:
    segments = (replace(s, start_margin=starts.get(s.start), end_margin=ends.get(s.end)) for s in tier)
    return Tier(tier.name, tuple(segments))
