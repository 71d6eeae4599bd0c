"""Notes of oscillators, for synthetic music."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def timbre(rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw a timbre: amplitudes of the harmonics, then seconds of attack and decay."""
    harmonics = rng.uniform(0.2, 1.0, 6) / np.arange(1, 7) ** rng.uniform(0.6, 2.0)
    return np.concatenate([harmonics, [rng.uniform(0.005, 0.06), rng.uniform(0.15, 0.9)]])


def pitch_hz(tonic: int, scale: tuple[int, ...], degree: int) -> float:
    """Return the frequency of a scale's degree in Hz; degree 0 is the tonic, a MIDI note."""
    octave, step = divmod(degree, len(scale))
    return 440.0 * 2 ** ((tonic + 12 * octave + scale[step] - 69) / 12)


def add_note(
    out: NDArray[np.float64], voice: NDArray[np.float64], hz: float, start_s: float, length_s: float,
    level: float, rate: int,
) -> None:  # fmt: skip
    """Add one note to samples, in place; harmonics beyond half the rate are left out.

    Args:
        out: ``(N,)``.
        voice: A :func:`timbre`.
        hz: Frequency.
        start_s, length_s: Seconds.
        level: Amplitude.
        rate: Samples per second.
    """
    first = round(start_s * rate)
    size = min(len(out) - first, round(length_s * rate))
    if size <= 0:
        return
    t = np.arange(size) / rate
    attack, decay = voice[-2:]
    envelope = np.minimum(t / attack, 1) * np.exp(-t / decay) * np.minimum((size / rate - t) / 0.01, 1)
    numbers = np.arange(1, len(voice) - 1)
    audible = numbers * hz < rate / 2
    waves = voice[:-2, None][audible] * np.sin(2 * np.pi * hz * numbers[audible, None] * t)
    out[first : first + size] += level * envelope * waves.sum(0)
