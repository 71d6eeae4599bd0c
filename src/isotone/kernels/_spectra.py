"""The compiled loop of :func:`isotone.kernels.spectra.band_powers`: plain arrays in and out, nothing is checked here.

Every lane is a frame, so all steps are those of one frame. Two frames of a lane are the real and the imaginary part of
one sequence: the spectrum of either follows from the symmetry of spectra of real numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isotone.kernels.native import compiled
from isotone.kernels.native.lanes import LANES, add, load, multiply, splat, store, subtract

#: Frames of one turn of the loop.
FRAMES = 2 * LANES


@compiled
def fill_powers(
    task: int,
    run: int,
    samples: np.ndarray,
    hop: int,
    window: np.ndarray,
    emphasis: float,
    centred: bool,
    turns: np.ndarray,
    places: np.ndarray,
    filters: np.ndarray,
    bounds: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill the powers of the frames of a task: ``run`` times those of one turn."""
    size, frames = len(places), len(out)
    parts, powers = np.empty((2, size * LANES)), np.empty((2, (size // 2 + 1) * LANES))
    offsets, band = np.zeros(FRAMES), np.empty(LANES)
    emphasised = np.empty(FRAMES * hop + len(window))
    for first in range(task * run * FRAMES, min(frames, (task + 1) * run * FRAMES), FRAMES):
        count = min(FRAMES, frames - first)
        own = samples[first * hop : (first + count - 1) * hop + len(window)]
        if centred:
            for f in range(count):
                offsets[f] = (1 - emphasis) * _sum(own[f * hop : f * hop + len(window)]) / len(window)
        _emphasise(own, emphasis, emphasised)
        for half in range(2):
            _fill_frames(emphasised, hop, window, offsets, half * LANES, count - 1, parts[half])
            # before a frame's first sample there is none
            for lane in range(min(LANES, count - half * LANES)):
                f = half * LANES + lane
                parts[half, lane] = ((1 - emphasis) * own[f * hop] - offsets[f]) * window[0]
        _transform(parts[0], parts[1], turns)
        _fill_both(parts[0], parts[1], places, powers[0], powers[1])
        for half in range(2):
            for b in range(len(filters)):
                _sum_band(powers[half], filters[b], bounds[b, 0], bounds[b, 1], band)
                for lane in range(min(LANES, count - half * LANES)):
                    out[first + half * LANES + lane, b] = band[lane]


@compiled(fastmath={"reassoc"})
def _sum(values: np.ndarray) -> float:
    total = 0.0
    for n in range(len(values)):
        total += values[n]
    return total


@compiled
def _emphasise(samples: np.ndarray, emphasis: float, out: np.ndarray) -> None:
    out[0] = samples[0]
    after, now = samples[1:], out[1:]
    for n in range(len(after)):
        now[n] = after[n] - emphasis * samples[n]


@compiled
def _fill_frames(
    samples: np.ndarray,
    hop: int,
    window: np.ndarray,
    offsets: np.ndarray,
    first: int,
    last: int,
    part: np.ndarray,
) -> None:
    """Fill the frames from ``first`` on, one per lane, with 0 after the window; those past the last are the last."""
    begin = np.empty(LANES, np.uint32)
    for lane in range(LANES):
        begin[lane] = min(first + lane, last) * hop
    for n in range(len(window)):
        own, weight, row = samples[n:], window[n], part[n * LANES : (n + 1) * LANES]
        for lane in range(LANES):
            row[lane] = (own[begin[lane]] - offsets[first + lane]) * weight
    for n in range(len(window) * LANES, len(part)):
        part[n] = 0.0


@compiled
def _transform(real: np.ndarray, imaginary: np.ndarray, turns: np.ndarray) -> None:
    """Transform sequences in place; frequencies end in places of reversed bits (Cooley and Tukey, radix 4)."""
    size, step = len(real) // LANES, 1
    length = size
    while length >= 4:
        quarter = length // 4 * LANES
        for j in range(length // 4):
            w1, w2, w3 = _turn(turns, j * step), _turn(turns, 2 * j * step), _turn(turns, 3 * j * step)
            for p0 in range(j * LANES, size * LANES, 4 * quarter):
                p1, p2, p3 = p0 + quarter, p0 + 2 * quarter, p0 + 3 * quarter
                a, c = load(real, p0), load(real, p2)
                b, d = load(imaginary, p0), load(imaginary, p2)
                even, odd = (add(a, c), add(b, d)), (subtract(a, c), subtract(b, d))
                a, c = load(real, p1), load(real, p3)
                b, d = load(imaginary, p1), load(imaginary, p3)
                e, f, g, h = add(a, c), add(b, d), subtract(a, c), subtract(b, d)
                store(real, p0, add(even[0], e))
                store(imaginary, p0, add(even[1], f))
                _put(real, imaginary, p1, subtract(even[0], e), subtract(even[1], f), w2)
                _put(real, imaginary, p2, add(odd[0], h), subtract(odd[1], g), w1)
                _put(real, imaginary, p3, subtract(odd[0], h), add(odd[1], g), w3)
        length, step = length // 4, 4 * step
    if length == 2:
        for place in range(0, size * LANES, 2 * LANES):
            for part in (real, imaginary):
                a, b = load(part, place), load(part, place + LANES)
                store(part, place, add(a, b))
                store(part, place + LANES, subtract(a, b))


@compiled
def _turn(turns: np.ndarray, number: int) -> Any:
    return splat(turns[0, number]), splat(turns[1, number])


@compiled
def _put(real: np.ndarray, imaginary: np.ndarray, place: int, a: Any, b: Any, turn: Any) -> None:
    """Store complex numbers, turned."""
    store(real, place, subtract(multiply(a, turn[0]), multiply(b, turn[1])))
    store(imaginary, place, add(multiply(a, turn[1]), multiply(b, turn[0])))


@compiled
def _fill_both(
    real: np.ndarray, imaginary: np.ndarray, places: np.ndarray, first: np.ndarray, second: np.ndarray
) -> None:
    """Fill the powers of the frames in the real part and of those in the imaginary part, times 4."""
    size = len(places)
    for k in range(size // 2 + 1):
        place, mirrored = places[k] * LANES, places[(size - k) % size] * LANES
        a, b = load(real, place), load(real, mirrored)
        c, d = load(imaginary, place), load(imaginary, mirrored)
        even, odd = add(a, b), subtract(c, d)
        store(first, k * LANES, add(multiply(even, even), multiply(odd, odd)))
        even, odd = add(c, d), subtract(a, b)
        store(second, k * LANES, add(multiply(even, even), multiply(odd, odd)))


@compiled
def _sum_band(powers: np.ndarray, weights: np.ndarray, low: int, high: int, out: np.ndarray) -> None:
    total = multiply(load(powers, low * LANES), splat(weights[low]))
    for k in range(low + 1, high):
        total = add(total, multiply(load(powers, k * LANES), splat(weights[k])))
    store(out, 0, total)
