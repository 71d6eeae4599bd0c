"""Mel filters."""

from __future__ import annotations

import numpy as np
import pytest
from transformers.audio_utils import mel_filter_bank

from isotone.audio.mel import mel_filters, mel_powers


@pytest.mark.parametrize(("bands", "rate"), [(80, 16_000), (40, 16_000), (64, 8_000)])
def test_mel_filters_are_those_of_transformers(bands: int, rate: int) -> None:
    expected = mel_filter_bank(
        num_frequency_bins=257, num_mel_filters=bands, min_frequency=20, max_frequency=rate // 2,
        sampling_rate=rate, norm=None, mel_scale="kaldi", triangularize_in_mel_space=True,
    )  # fmt: skip
    np.testing.assert_allclose(mel_filters(bands, rate, 512), expected, atol=1e-9)


@pytest.mark.parametrize("size", [256, 384])
def test_mel_powers_are_squared_magnitudes_by_filters(size: int) -> None:
    samples = np.random.default_rng(0).normal(size=7 * size).astype(np.float32)
    window, filters = np.hanning(size), mel_filters(26, 16_000, size)
    found = mel_powers(samples, 50, window, filters)
    frames = np.stack([samples[i : i + size] * window for i in range(0, 6 * size + 1, 50)])
    n, k = np.arange(size), np.arange(size // 2 + 1)
    spectra = frames @ np.exp(-2j * np.pi * np.outer(n, k) / size)
    np.testing.assert_allclose(found, np.abs(spectra) ** 2 @ filters, rtol=1e-9, atol=1e-12)
