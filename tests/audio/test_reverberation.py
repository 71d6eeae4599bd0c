"""Reverberation: rooms are told from dry recordings in silence and noise, and only their tails are lowered."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import fftconvolve

from isotone.audio.reverberation import LONGEST_S, SLOWEST_DB_S, dried, fall
from isotone.training.conditions import room

RATE = 16_000
BURSTS = [(0.3 + 0.6 * i, 0.5 + 0.6 * i) for i in range(8)]


def bursts(rate: int = RATE) -> np.ndarray:
    """Sounds of a fifth of a second, and pauses of twice that."""
    rng = np.random.default_rng(0)
    samples = np.zeros(round(5.2 * rate), np.float32)
    for start, end in BURSTS:
        part = slice(round(start * rate), round(end * rate))
        samples[part] = 0.1 * rng.normal(size=part.stop - part.start)
    return samples


def in_room(samples: np.ndarray, rate: int = RATE) -> np.ndarray:
    return room(samples, rate, np.random.default_rng(1))


def with_noise(samples: np.ndarray, level: float) -> np.ndarray:
    noise = np.random.default_rng(2).normal(size=len(samples))
    return (samples + level * noise).astype(np.float32)


def power_db(samples: np.ndarray, spans: list[tuple[float, float]], rate: int = RATE) -> float:
    parts = [samples[round(start * rate) : round(end * rate)] for start, end in spans]
    return float(10 * np.log10(np.mean(np.concatenate(parts).astype(float) ** 2)))


@pytest.mark.parametrize("level", [0.0, 1e-4, 3e-3])
@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050])
def test_a_room_is_found_in_silence_and_noise(rate: int, level: float) -> None:
    dry, wet = with_noise(bursts(rate), level), with_noise(in_room(bursts(rate), rate), level)
    assert fall(wet, rate) < SLOWEST_DB_S < fall(dry, rate)
    assert dried(dry, rate) is dry
    found = dried(wet, rate)
    assert found is not wet
    assert found.shape == wet.shape
    assert found.dtype == np.float32
    # tails, from 50 ms after a sound on, and the onsets of the sounds themselves
    tails = [(end + 0.05, end + 0.2) for _, end in BURSTS]
    sounds = [(start + 0.005, start + 0.03) for start, _ in BURSTS]
    if level < 1e-3:
        assert power_db(found, tails, rate) < power_db(wet, tails, rate) - 4
    assert abs(power_db(found, sounds, rate) - power_db(wet, sounds, rate)) < 1.5


def test_a_longer_room_is_found_as_well() -> None:
    times = np.arange(1, RATE) / RATE
    tail = np.random.default_rng(3).normal(size=len(times)) * 10 ** (-3 * times / 0.9)
    response = np.concatenate([[1.0], tail / np.sqrt(np.sum(tail**2))])
    wet = fftconvolve(bursts(), response)[: len(bursts())].astype(np.float32)
    assert fall(wet, RATE) < SLOWEST_DB_S


@pytest.mark.parametrize(
    "samples",
    [
        np.zeros(0, np.float32),
        np.zeros(RATE, np.float32),
        np.ones(100, np.float32),
        np.random.default_rng(0).normal(size=2 * RATE).astype(np.float32),
    ],
    ids=["empty", "silent", "short", "steady noise"],
)
def test_nothing_is_heard_in_what_does_not_fall(samples: np.ndarray) -> None:
    assert fall(samples, RATE) == np.inf
    assert dried(samples, RATE) is samples


def test_level_plays_no_part_and_samples_stay() -> None:
    wet = in_room(bursts())
    before = wet.copy()
    found = dried(wet, RATE)
    np.testing.assert_array_equal(wet, before)
    quieter = dried((wet / 64).astype(np.float32), RATE)
    np.testing.assert_allclose(quieter, (found / 64).astype(np.float32), rtol=1e-4, atol=1e-8)


def test_very_long_recordings_stay() -> None:
    wet = in_room(bursts(1_000), 1_000)
    long = np.tile(wet, int(LONGEST_S * 1_000 / len(wet)) + 1)
    assert dried(long, 1_000) is long
    assert dried(wet, 1_000) is not wet
