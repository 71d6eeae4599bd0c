"""Codecs: what comes back is the recording, at its own times."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.audio.codecs import CODECS, coded
from isotone.training.conditions import CLEAN, conditions


def speechlike(rate: int, seconds: float = 1.0) -> np.ndarray:
    """Make vowels with clicks between them: a sum of harmonics under pulses."""
    times = np.arange(round(rate * seconds)) / rate
    voice = sum(np.sin(2 * np.pi * 120 * k * times) / k for k in range(1, 25))
    return (0.1 * voice * (np.sin(2 * np.pi * 3 * times) > 0)).astype(np.float32)


def delay(one: np.ndarray, other: np.ndarray) -> int:
    """Return by how many samples the other is later, by the maximum of the cross-correlation."""
    size = 2 * len(one)
    cross = np.fft.irfft(np.fft.rfft(other, size) * np.conj(np.fft.rfft(one, size)))
    at = int(cross.argmax())
    return at if at < len(one) else at - size


@pytest.mark.parametrize("rate", [8_000, 16_000, 44_100])
@pytest.mark.parametrize("codec", CODECS)
def test_times_stay(codec: str, rate: int) -> None:
    wave = speechlike(rate)
    changed = coded(wave, rate, codec)
    assert changed.shape == wave.shape
    assert changed.dtype == np.float32
    assert abs(delay(wave, changed)) <= rate / 1000  # 1 ms
    likeness = wave @ changed / np.sqrt((wave @ wave) * (changed @ changed))
    assert 0.7 < likeness < 0.99999


@given(size=st.integers(0, 2000), codec=st.sampled_from(list(CODECS)), loud=st.sampled_from([0.0, 0.1, 3.0]))
@settings(max_examples=40, deadline=None)
def test_any_length_and_level(size: int, codec: str, loud: float) -> None:
    wave = loud * np.random.default_rng(size).standard_normal(size)
    changed = coded(wave, 16_000, codec)
    assert changed.shape == (size,)
    assert np.isfinite(changed).all()
    assert loud or np.abs(changed).max(initial=0) < 0.01


def test_an_unknown_codec_is_named() -> None:
    with pytest.raises(ValueError, match=r"'aac'.*mp3, opus"):
        coded(np.zeros(100), 16_000, "aac")


def test_every_condition_keeps_times() -> None:
    wave = speechlike(16_000, 2.0)
    for name, change in conditions([wave[::-1].copy()]).items():
        changed = change(wave, np.random.default_rng(0))
        assert len(changed) >= len(wave)
        assert abs(delay(wave, changed[: len(wave)])) <= 16, name
        assert np.array_equal(changed, wave) == (name == CLEAN), name
