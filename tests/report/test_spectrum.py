"""The spectrogram shows tones and clicks at their times and frequencies; the outline has the extremes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.report.spectrum import mono, outline, spectrogram


@pytest.mark.parametrize("sample_rate", [8000, 16000, 44100])
@pytest.mark.parametrize("hertz", [300.0, 1000.0, 3000.0])
def test_a_tone_is_loudest_at_its_frequency(sample_rate, hertz):
    audio = np.sin(2 * np.pi * hertz * np.arange(sample_rate // 2) / sample_rate)
    levels, times, frequencies = spectrogram(audio, sample_rate)
    middle = levels[:, len(times) // 4 : -len(times) // 4].mean(axis=1)
    assert abs(frequencies[middle.argmax()] - hertz) < 70  # the resolution of a 5 ms window
    assert frequencies[-1] <= min(8000, sample_rate / 2)
    assert levels.max() == 0
    assert levels.min() >= -60


def test_a_click_is_where_it_is():
    audio = np.zeros(16000)
    audio[5000] = 1.0
    levels, times, _ = spectrogram(audio, 16000)
    loudest = times[levels.sum(axis=0).argmax()]
    assert abs(loudest - 5000 / 16000) <= 0.002


def test_long_audio_gets_no_more_columns():
    levels, times, _ = spectrogram(np.random.default_rng(0).normal(size=16000 * 30), 16000, columns=500)
    assert levels.shape[1] == len(times) <= 501
    assert times[0] == 0
    assert times[-1] <= 30


@pytest.mark.parametrize("samples", [1, 7, 400])
def test_short_and_silent_audio(samples):
    levels, times, _ = spectrogram(np.zeros(samples), 16000)
    assert levels.shape[1] == len(times) >= 1
    assert (levels == -60).all()


@given(st.integers(1, 200), st.integers(1, 50), st.integers(0, 9))
@settings(deadline=None, max_examples=60)
def test_outline_is_the_least_and_greatest_of_each_column(samples, columns, seed):
    audio = np.random.default_rng(seed).normal(size=samples)
    middle, low, high = outline(audio, columns)
    assert len(middle) == len(low) == len(high) <= columns
    size = -(-samples // columns)
    for i, first in enumerate(range(0, samples, size)):
        part = audio[first : first + size]
        assert low[i] == part.min()
        assert high[i] == part.max()
        assert middle[i] == pytest.approx(np.arange(first, first + len(part)).mean())


@pytest.mark.parametrize(
    ("audio", "rate", "message"),
    [
        (np.zeros((2, 9)), 16000, r"mono audio of shape \(N,\)"),
        (np.zeros(0), 16000, "N > 0"),
        (np.array([0.0, np.nan]), 16000, "finite"),
        (np.zeros(9), 0, "positive number of samples a second; got 0"),
    ],
)
def test_audio_that_cannot_be_drawn(audio, rate, message):
    with pytest.raises(ValueError, match=message):
        mono(audio, rate)
