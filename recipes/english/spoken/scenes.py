"""Scenes: sentences of one voice with pauses, breaths, a room, a microphone and noise; the times stay exact."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.signal import butter, fftconvolve, lfilter, sosfilt

from isotone.corpus.voices import SAMPLE_RATE, Mark, Speaker, microphone, noisy
from spoken.speech import Spoken

Samples = NDArray[np.float64]

# Seconds of pauses between sentences, and of the silence at the ends; drawn on a logarithmic scale.
_PAUSES = (0.1, 2.5)
_ENDS = (0.05, 1.0)
# Share of scenes that are cut right at their first and last sounds, as clips of sentences are, and the most
# seconds of silence that stay there.
_CUT = 0.5
_LEFT_S = 0.04


def scene(
    parts: Sequence[Spoken], speaker: Speaker, rng: np.random.Generator
) -> tuple[Samples, tuple[Mark, ...]]:
    """Join sentences into a recording with pauses between them and at the ends; half of them are cut at the ends.

    Args:
        parts: Sentences of one voice.
        speaker: Its microphone and noise.
        rng: Random numbers.

    Returns:
        Samples with a peak below 1, and the phones; pauses are ``h#``.
    """
    pieces: list[Samples] = []
    marks: list[Mark] = []
    now = 0

    def add(samples: Samples, phones: Sequence[Mark]) -> None:
        nonlocal now
        pieces.append(samples)
        marks.extend(Mark(m.label, m.start + now, m.end + now) for m in phones)
        now += len(samples)

    def pause(limits: tuple[float, float], level: float) -> None:
        seconds = float(np.exp(rng.uniform(*np.log(limits))))
        gap = _pause(round(seconds * SAMPLE_RATE), level, rng)
        add(gap, [Mark("h#", 0, len(gap))])

    for i, part in enumerate(parts):
        level = float(np.sqrt(np.mean(part.samples**2)))
        pause(_PAUSES if i else _ENDS, level)
        add(part.samples / max(level, 1e-9) * 0.05, part.phones)
    pause(_ENDS, level)
    samples = np.concatenate(pieces)
    if rng.random() < 0.5:
        samples = fftconvolve(samples, room(rng))[: len(samples)]
    samples = microphone(samples, speaker)
    samples = noisy(samples, speaker.noise_db, float(rng.uniform(0.3, 0.98)), rng)
    samples = samples * 10 ** (rng.uniform(-15, -3) / 20) / np.abs(samples).max()
    # a model that has heard silence at the ends of everything moves the first and last words of clips
    return _cut(samples, marks, rng) if rng.random() < _CUT else (samples, tuple(marks))


def _cut(
    samples: Samples, marks: Sequence[Mark], rng: np.random.Generator
) -> tuple[Samples, tuple[Mark, ...]]:
    """Cut samples ``(N,)`` before their first and behind their last sound."""
    sounds = [mark for mark in marks if mark.label != "h#"]
    before, after = (round(s * SAMPLE_RATE) for s in rng.uniform(0, _LEFT_S, 2))
    first, last = max(0, sounds[0].start - before), min(len(samples), sounds[-1].end + after)
    within = (Mark(m.label, max(m.start, first) - first, min(m.end, last) - first) for m in marks)
    return samples[first:last], tuple(mark for mark in within if mark.end > mark.start)


def room(rng: np.random.Generator) -> Samples:
    """Draw an impulse response: the direct sound without delay, then noise that decays by 60 dB in 0.1 to 0.6 s."""
    decay = rng.uniform(0.1, 0.6)
    times = np.arange(1, round(decay * SAMPLE_RATE)) / SAMPLE_RATE
    tail = rng.standard_normal(len(times)) * 10 ** (-3 * times / decay)
    tail = lfilter([1.0], [1.0, -rng.uniform(0.2, 0.8)], tail)  # rooms swallow high frequencies
    tail[: round(0.002 * SAMPLE_RATE)] = 0.0
    ratio_db = rng.uniform(-3, 15)  # direct to reverberant energy
    return np.concatenate([[1.0], tail / np.sqrt(np.sum(tail**2)) * 10 ** (-ratio_db / 20)])


def _pause(size: int, level: float, rng: np.random.Generator) -> Samples:
    """Make a pause: silence, at times with a breath or a smack of the lips."""
    samples = np.zeros(size)
    if size > 0.4 * SAMPLE_RATE and rng.random() < 0.5:
        length = min(size, round(rng.uniform(0.25, 0.6) * SAMPLE_RATE))
        at = int(rng.integers(size - length + 1))
        samples[at : at + length] += breath(length, rng)
    if size > 0.15 * SAMPLE_RATE and rng.random() < 0.2:
        length = round(rng.uniform(0.004, 0.015) * SAMPLE_RATE)
        at = int(rng.integers(size - length))
        samples[at : at + length] += (
            rng.standard_normal(length) * np.hanning(length) * 10 ** rng.uniform(-2.5, -1.5)
        )
    return samples


def breath(size: int, rng: np.random.Generator) -> Samples:
    """Make a breath ``(size,)``: a band of noise that swells and fades, 12 to 35 dB below speech at 0.05."""
    low, high = rng.uniform(300, 1200), rng.uniform(2500, 7000)
    noise = sosfilt(
        butter(2, (low, high), "bandpass", fs=SAMPLE_RATE, output="sos"), rng.standard_normal(size)
    )
    swell = np.sin(np.pi * np.linspace(0, 1, size) ** rng.uniform(0.5, 1.5)) ** 2
    noise = noise * swell
    return np.asarray(noise / np.sqrt(np.mean(noise**2)) * 0.05 * 10 ** (-rng.uniform(12, 35) / 20))
