"""Boundaries, moved by up to 45 ms to where two halves of sound are most alike within.

An aligner places boundaries on frames of 10 or 20 ms, and in part by habits of its training data. People who label
speech look for the largest change of the spectrum, or the middle of a slow one. A boundary b of the aligner moves to
the time t that maximises

    -weight log(r(t) + 0.01)  +  log p(t - b)

where r(t) is the mean squared distance of the log-mel frames around b to their mean on their own side of t. The frames
reach to the middles of both neighbouring segments, and no farther than :data:`WINDOW_S`. Between two sounds that change
slowly it is :data:`SLOW_WINDOW_S`: the spectrum glides from a vowel to an l for a tenth of a second. The first term is
the likelihood of two stationary sounds that meet at t, with their variance at its best. The prior p is Cauchy's, of
scale :data:`SPREAD_S`, for an aligner's errors are small but for a few. Between slow sounds all of them are larger:
there it is normal, of deviation :data:`SLOW_SPREAD_S`. Boundaries stay between the middles of their segments, so their
order is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotone.audio.mel import mel_filters, mel_powers
from isotone.kernels.changes import spreads

#: Seconds of the distance to the aligner's boundary that half of the boundaries are within.
SPREAD_S = 0.009
#: Standard deviation in seconds of that distance between two sounds that change slowly.
SLOW_SPREAD_S = 0.021
#: Farthest that a boundary is moved, in seconds.
REACH_S = 0.045
#: Seconds of sound on each side of a boundary that are compared, at most.
WINDOW_S = 0.04
#: The same between two sounds that change slowly.
SLOW_WINDOW_S = 0.12

_STEP_S = 0.002
_FRAME_S = 0.016
_BANDS = 26
_LOWEST_HZ = 80.0
_FLOOR = 1e-3  # of a band's mean power, so that there is no boundary between two near silences
_LEAST_DISTANCE = 0.01
_LEAST_SIDE = 2  # frames
_SAME_S = 0.0005  # the end of a token and the start of the next may differ in their last digits
_BLOCK = 5_000  # frames, 10 s: bounds the memory

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]
Samples = NDArray[np.float32]
Times = Sequence[tuple[float, float]]


class Changes(NamedTuple):
    """Boundaries with what the sound around them says about their place.

    Attributes:
        times: ``(n,)`` seconds, increasing.
        deviations: ``(n,)`` standard deviation in seconds of a boundary's place, given the sound and where the aligner
            put it; NaN for a boundary that had no choice.
        gains: ``(n,)`` nats, by how much the log distance of the frames around to one mean exceeds that to the mean of
            their own side; 0 without choice.
        distances: ``(n,)`` squared nats, mean squared distance of these frames to one mean; 0 without choice.
    """

    times: Array
    deviations: Array
    gains: Array
    distances: Array


#: Starts and ends of tokens in seconds, and whether each is a sound that changes slowly, to other times, with the
#: changes of the sound there.
Mover = Callable[[Times, Sequence[bool]], tuple[list[tuple[float, float]], Changes]]


def moved(
    times: Times, slow: Sequence[bool], samples: Samples, sample_rate: int, weight: float
) -> tuple[list[tuple[float, float]], Changes]:
    """Move the boundaries of tokens to where the sound changes.

    Args:
        times: Start and end of every token in seconds, in order, without overlap; tokens without duration stay so.
        slow: For every token, whether it is a sound that changes slowly: a vowel, a glide or a liquid.
        samples, sample_rate, weight: See :func:`moved_edges`.

    Returns:
        Start and end of every token, and the boundaries with their changes.
    """
    edges = np.array(sorted({t for span in times if span[1] > span[0] for t in span}))
    spans = [span for span, own in zip(times, slow) if own and span[1] > span[0]]
    # ends and starts that meet may differ in their last digits
    between = {round(end, 6) for _, end in spans} & {round(start, 6) for start, _ in spans}
    glides = np.array([round(edge, 6) in between for edge in edges.tolist()], bool)
    changes = changes_at(edges, samples, sample_rate, weight, glides)
    found = changes.times
    # a token without duration stays at the end of the one before it
    before = np.searchsorted(edges, [start for start, _ in times], "right") - 1
    after = np.searchsorted(edges, [end for _, end in times])
    spans = [
        (float(found[i]), float(found[j if end > start else i])) if i >= 0 else (start, end)
        for (start, end), i, j in zip(times, before.tolist(), after.tolist())
    ]
    return spans, changes


def movers(audio: Sequence[Samples], sample_rate: int, weight: float) -> list[Mover]:
    """Return :func:`moved` of every recording, as a function of its tokens alone."""
    return [partial(moved, samples=samples, sample_rate=sample_rate, weight=weight) for samples in audio]


def moved_edges(
    edges: Array,
    samples: Samples,
    sample_rate: int,
    weight: float,
    slow: Flags | None = None,
) -> Array:
    """Move boundaries to where the sound changes.

    Args:
        edges: ``(n,)`` seconds, increasing. At the first and last moment of the recording they are no boundaries, and
            stay.
        samples: ``(N,)`` of the recording.
        sample_rate: Hz.
        weight: Weight of the sound against the distance. 0: they stay.
        slow: ``(n,)`` true for boundaries between two sounds that change slowly. Default: none is.

    Returns:
        ``(n,)`` seconds, increasing. Boundaries within half a millisecond of the one before move with it.
    """
    return changes_at(edges, samples, sample_rate, weight, slow).times


def changes_at(
    edges: Array,
    samples: Samples,
    sample_rate: int,
    weight: float,
    slow: Flags | None = None,
) -> Changes:
    """Move boundaries to where the sound changes, and say what it says about them; see :func:`moved_edges`."""
    if not (len(edges) and weight):
        return _unchanged(edges)
    leads = np.append(True, np.diff(edges) > _SAME_S)
    leaders, own = edges[leads], np.cumsum(leads) - 1
    glides = np.zeros(len(leaders), bool) if slow is None else slow[leads]
    found = _moved_apart(leaders, glides, samples, sample_rate, weight)
    times = found.times[own] + (edges - leaders[own])
    return Changes(times, *(values[own] for values in found[1:]))


def _unchanged(edges: Array) -> Changes:
    """Return boundaries that stay where they are."""
    nothing = np.zeros(len(edges))
    return Changes(edges.copy(), np.full(len(edges), np.nan), nothing, nothing.copy())


def _moved_apart(edges: Array, slow: Flags, samples: Samples, sample_rate: int, weight: float) -> Changes:
    """Move boundaries that are no two in one place, see :func:`moved_edges`, to multiples of a step of about 2 ms."""
    found = _unchanged(edges)
    hop = max(1, round(_STEP_S * sample_rate))
    step, frames = hop / sample_rate, len(samples) // hop
    places, width = edges / step, np.where(slow, SLOW_WINDOW_S, WINDOW_S) / step
    middles = (places[1:] + places[:-1]) / 2
    low = _frames(np.maximum(np.append(0, middles), places - width).clip(0))
    high = _frames(np.minimum(np.append(middles, frames), places + width).clip(max=frames))
    ends = np.searchsorted(places // _BLOCK, np.unique(places // _BLOCK), "right").tolist()
    for own in map(slice, [0, *ends], ends):
        first = int(low[own].min())
        levels = _levels(samples, first, int(high[own].max()), hop, sample_rate)
        best = _best(places[own], slow[own], low[own] - first, high[own] - first, levels, first, step, weight)
        inside = ~np.isnan(best.deviations) & (places[own] > 0) & (places[own] < frames)
        for values, theirs in zip(found, best):
            values[own] = np.where(inside, theirs, values[own])
    return found


def _frames(places: Array) -> Indices:
    # middles of frames are common, and a hair's breadth must not decide between two frames
    return np.floor(places + 0.501).astype(np.int64)


def _levels(samples: Samples, first: int, end: int, hop: int, sample_rate: int) -> Array:
    """Compute log-mel frames ``(end - first, bands)``; frame f is centred on sample f hop."""
    size = round(_FRAME_S * sample_rate)
    start = first * hop - size // 2
    stop = start + (max(1, end - first) - 1) * hop + size
    part = samples[max(0, start) : stop]
    # mirrored, so that the ends of a recording are no change
    part = np.pad(part, (max(0, -start), stop - max(0, start) - len(part)), mode="symmetric")
    window, filters = np.hanning(size + 2)[1:-1], mel_filters(_BANDS, sample_rate, size, _LOWEST_HZ)
    power = mel_powers(part, hop, window, filters)
    power += _FLOOR * power.mean(0) + 1e-12
    return np.log(power, out=power)


def _best(
    places: Array,
    slow: Flags,
    low: Indices,
    high: Indices,
    levels: Array,
    first: int,
    step: float,
    weight: float,
) -> Changes:
    """Choose the best frame for every boundary; with a deviation of NaN where there is no choice.

    Args:
        places: ``(n,)`` boundaries in frames of the recording.
        slow: ``(n,)`` see :func:`moved_edges`.
        low, high: ``(n,)`` first frame and one past the last that a boundary is judged by, in rows of ``levels``.
        levels: ``(F, bands)``.
        first: Frame of the recording that the levels begin with.
        step: Seconds per frame.
        weight: See :func:`moved_edges`.
    """
    reach = round(REACH_S / step)
    frames = _frames(places)[:, None] + np.arange(-reach, reach + 1)
    cut, count = frames - first, np.maximum(high - low, 1)[:, None]
    allowed = (cut >= low[:, None] + _LEAST_SIDE) & (cut <= high[:, None] - _LEAST_SIDE)
    # the first column is not divided
    cuts = np.hstack([low[:, None], cut.clip(low[:, None], high[:, None])])
    distance = np.maximum(spreads(levels, low, cuts, high) / count / levels.shape[1], 0)
    logs = np.log(distance + _LEAST_DISTANCE)
    away = (frames - places[:, None]) * step
    scores = np.where(allowed, _log_priors(away, slow[:, None]) - weight * logs[:, 1:], -np.inf)
    best = scores.argmax(1)[:, None]
    gains = logs[:, 0] - np.take_along_axis(logs[:, 1:], best, 1)[:, 0]
    # 91.978, not 91.97800000000001
    times = np.round(np.take_along_axis(frames, best, 1)[:, 0] * step, 9)
    return Changes(times, _deviations(scores, frames * np.float64(step)), gains, distance[:, 0])


def _log_priors(away: Array, slow: Flags) -> Array:
    """Compute the log-probabilities of distances in seconds to the aligner's boundaries, up to a constant."""
    return np.where(slow, -np.square(away / SLOW_SPREAD_S) / 2, -np.log1p(np.square(away / SPREAD_S)))


def _deviations(scores: Array, times: Array) -> Array:
    """Compute the standard deviations ``(n,)`` of times ``(n, k)`` with log-probabilities; NaN where none can be."""
    most = scores.max(1, keepdims=True)
    shares = np.exp(scores - np.where(np.isfinite(most), most, 0))
    total = shares.sum(1)
    shares /= np.where(total > 0, total, np.nan)[:, None]
    mean = (shares * times).sum(1, keepdims=True)
    return np.sqrt((shares * np.square(times - mean)).sum(1))
