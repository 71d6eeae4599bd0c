"""Recordings made worse: noise, babble, a telephone's band, a room, a codec, a muted end. Times stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.signal import butter, fftconvolve, sosfiltfilt

from isotone.audio.codecs import coded

# Seconds of digital silence after a recording.
_MUTED_S = 3
# Codecs at about their lowest rates: speech has 21, 9 and 13 kbit/s.
_CODECS = ("mp3", "opus", "gsm")

#: Name of the condition that changes nothing.
CLEAN = "clean"

Samples = NDArray[np.float32]
Change = Callable[[Samples, np.random.Generator], Samples]


def conditions(others: Sequence[Samples], rate: int = 16_000) -> dict[str, Change]:
    """Return the conditions by name.

    Args:
        others: Recordings that babble is mixed from, six at a time.
        rate: Hz of all recordings.
    """
    changes: dict[str, Change] = {CLEAN: lambda samples, rng: samples}
    for ratio in (20, 10, 5):
        changes[f"white, {ratio} dB"] = partial(_white, ratio_db=ratio)
    for ratio in (20, 10, 5):
        changes[f"babble, {ratio} dB"] = partial(_among, others=others, ratio_db=ratio)
    changes["telephone"] = lambda samples, rng: telephone(samples, rate)
    changes["room"] = lambda samples, rng: room(samples, rate, rng)
    for codec in _CODECS:
        changes[codec] = partial(_coded, rate=rate, codec=codec)
    changes["muted"] = lambda samples, rng: np.append(samples, np.zeros(_MUTED_S * rate, samples.dtype))
    return changes


def telephone(samples: Samples, rate: int) -> Samples:
    """Keep 300 to 3400 Hz, without delay."""
    band = butter(4, (300, 3400), "bandpass", fs=rate, output="sos")
    return sosfiltfilt(band, samples).astype(np.float32)


def room(samples: Samples, rate: int, rng: np.random.Generator) -> Samples:
    """Add the decay of a room: 0.5 s to -60 dB, as strong as the direct sound."""
    times = np.arange(1, rate // 2) / rate
    tail = rng.standard_normal(len(times)) * 10 ** (-3 * times / 0.5)
    response = np.concatenate([[1.0], tail / np.sqrt(np.sum(tail**2))])
    return fftconvolve(samples, response)[: len(samples)].astype(np.float32)


def _coded(samples: Samples, rng: np.random.Generator, rate: int, codec: str) -> Samples:
    return coded(samples, rate, codec)


def _white(samples: Samples, rng: np.random.Generator, ratio_db: float) -> Samples:
    return _mixed(samples, rng.standard_normal(len(samples)), ratio_db)


def _among(samples: Samples, rng: np.random.Generator, others: Sequence[Samples], ratio_db: float) -> Samples:
    return _mixed(samples, _babble(others, len(samples), rng), ratio_db)


def _mixed(samples: Samples, noise: NDArray[np.float64], ratio_db: float) -> Samples:
    power = np.mean(np.square(samples, dtype=np.float64)) / max(1e-12, float(np.mean(noise**2)))
    return (samples + noise * np.sqrt(power * 10 ** (-ratio_db / 10))).astype(np.float32)


def _babble(others: Sequence[Samples], size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    mix = np.zeros(size)
    for i in rng.integers(len(others), size=6):
        voice = np.resize(others[i], size + len(others[i]))
        start = int(rng.integers(len(others[i])))
        mix += voice[start : start + size] / max(1e-6, float(np.sqrt(np.mean(others[i] ** 2))))
    return mix
