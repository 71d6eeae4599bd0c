"""Boundaries, moved by up to 30 ms to where the spectrum changes most.

An aligner places boundaries on frames of 10 or 20 ms, and in part by habits of its training data. People who label
speech look for the largest change of the spectrum. For boundaries b_1 < b_2 < ... of the aligner, the times
t_1 < t_2 < ... maximise

    sum_i  weight log c(t_i)  -  (t_i - b_i)^2 / (2 SPREAD_S^2)

where c(t) is the change of the log-mel spectrum at t: the distance between its means over the 16 ms before t, and
from t on. Neighbours keep their order, and every token :data:`LEAST_S`, or its length if it was shorter. The maximum is
exact, by dynamic programming over steps of 2 ms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from isotone.audio.mel import mel_filters

#: Standard deviation in seconds of the distance to the aligner's boundary.
SPREAD_S = 0.008
#: Farthest that a boundary is moved, in seconds.
REACH_S = 0.03
#: Least duration in seconds that a longer token keeps.
LEAST_S = 0.005

_STEP_S = 0.002
_WINDOW_S = 0.016
_SIDE = 8  # frames that are compared on each side
_BANDS = 26
_LOWEST_HZ = 80.0
_FLOOR = 1e-3  # of a band's mean power, so that the change between two near silences is none
_LEAST_CHANGE = 0.01
_BLOCK = 5_000  # frames, 10 s: bounds the memory
_MOVES = round(REACH_S / _STEP_S)

Times = Sequence[tuple[float, float]]


def moved(
    times: Times, samples: NDArray[np.float32], sample_rate: int, weight: float
) -> list[tuple[float, float]]:
    """Move the boundaries of tokens to where the spectrum changes most.

    Args:
        times: Start and end of every token in seconds, in order, without overlap; tokens without duration stay so.
        samples, sample_rate, weight: See :func:`moved_edges`.
    """
    edges = np.array(sorted({t for span in times if span[1] > span[0] for t in span}))
    found = moved_edges(edges, samples, sample_rate, weight)
    # a token without duration stays at the end of the one before it
    before = np.searchsorted(edges, [start for start, _ in times], "right") - 1
    after = np.searchsorted(edges, [end for _, end in times])
    return [
        (float(found[i]), float(found[j if end > start else i])) if i >= 0 else (start, end)
        for (start, end), i, j in zip(times, before.tolist(), after.tolist())
    ]


def moved_edges(
    edges: NDArray[np.float64], samples: NDArray[np.float32], sample_rate: int, weight: float
) -> NDArray[np.float64]:
    """Move boundaries to where the spectrum changes most.

    Args:
        edges: ``(n,)`` seconds, increasing. At the first and last moment of the recording they are no boundaries, and
            stay.
        samples: ``(N,)`` of the recording.
        sample_rate: Hz.
        weight: Weight of the change against the distance.

    Returns:
        ``(n,)`` seconds, increasing.
    """
    if not len(edges):
        return edges
    step = _hop(sample_rate) / sample_rate
    scores = _scores(edges / step, spectral_change(samples, sample_rate), weight, step)
    return edges + _best_moves(np.diff(edges), scores, step) * step


def spectral_change(samples: NDArray[np.float32], sample_rate: int) -> NDArray[np.float64]:
    """Compute the logarithm of the change of the spectrum ``(F,)``, from the start of a recording ``(N,)`` every 2 ms.

    They are a whole number of samples: as near to 2 ms as the sample rate in Hz allows.
    """
    blocks = list(_blocks(samples, sample_rate))
    return np.concatenate(blocks) if blocks else np.zeros(0)


def _blocks(samples: NDArray[np.float32], sample_rate: int) -> Iterator[NDArray[np.float64]]:
    hop, size = _hop(sample_rate), round(_WINDOW_S * sample_rate)
    window = np.hanning(size + 2)[1:-1].astype(np.float32)
    filters = mel_filters(_BANDS, sample_rate, size, _LOWEST_HZ).astype(np.float32)
    frames = len(samples) // hop + 1
    for first in range(0, frames, _BLOCK):
        # frame f is centred on sample f hop; a block begins and ends with the frames that its own are compared with
        count = min(_BLOCK, frames - first) + 2 * _SIDE - 1
        start = (first - _SIDE) * hop - size // 2
        part = _reflected(samples, start, start + (count - 1) * hop + size)
        views = np.lib.stride_tricks.sliding_window_view(part, size)[::hop]
        power = np.square(np.abs(np.fft.rfft(views * window))) @ filters
        levels = np.log(power + _FLOOR * power.mean(0) + np.float32(1e-12))
        sums = np.cumsum(np.pad(levels, ((1, 0), (0, 0))), 0, dtype=np.float64)
        means = (sums[_SIDE:] - sums[:-_SIDE]) / _SIDE
        yield np.log(np.sqrt(np.square(means[_SIDE:] - means[:-_SIDE]).mean(1)) + _LEAST_CHANGE)


def _reflected(samples: NDArray[np.float32], start: int, stop: int) -> NDArray[np.float32]:
    """Return samples from one place to another, mirrored at the ends, so that these are no change."""
    part = samples[max(0, start) : stop]
    return np.pad(part, (max(0, -start), stop - max(0, start) - len(part)), mode="symmetric")


def _hop(sample_rate: int) -> int:
    return max(1, round(_STEP_S * sample_rate))


def _scores(
    edges: NDArray[np.float64], change: NDArray[np.float64], weight: float, step: float
) -> NDArray[np.float64]:
    """Score every move of every edge ``(n, 2 _MOVES + 1)``; edges and moves are in steps of so many seconds.

    Edges at the ends of the recording have only their place.
    """
    moves = np.arange(-_MOVES, _MOVES + 1)
    places = edges[:, None] + moves
    last = len(change) - 1
    # between frames, so that a boundary that is a hair's breadth off does not land elsewhere
    heights = np.interp(places, np.arange(len(change)), change)
    scores = weight * heights - np.square(moves * step / SPREAD_S) / 2
    ends = (edges <= 0) | (edges >= last)
    scores[(ends[:, None] | (places < 0) | (places > last)) & (moves != 0)] = -np.inf
    return scores


def _best_moves(lengths: NDArray[np.float64], scores: NDArray[np.float64], step: float) -> NDArray[np.int64]:
    """Choose the moves in steps ``(n,)`` with the greatest sum of scores under which no length becomes too short.

    Args:
        lengths: ``(n - 1,)`` seconds from every edge to the next.
        scores: ``(n, 2 _MOVES + 1)`` of the moves of every edge.
        step: Seconds per step.
    """
    # an edge may come nearer to the one before it by so many steps
    spare = np.floor((lengths - np.minimum(lengths, LEAST_S)) / step + 1e-6).astype(int)
    numbers = np.arange(scores.shape[1])
    best, back = scores[0], []
    for own, steps in zip(scores[1:], spare.tolist()):
        highest = np.maximum.accumulate(best)
        leader = np.maximum.accumulate(np.where(best >= highest, numbers, 0))
        reach = np.minimum(numbers + steps, len(numbers) - 1)
        back.append(leader[reach])
        best = own + highest[reach]
    chosen = [int(best.argmax())]
    for before in reversed(back):
        chosen.append(int(before[chosen[-1]]))
    return np.array(chosen[::-1]) - _MOVES
