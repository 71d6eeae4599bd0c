"""Mel filters."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from transformers.audio_utils import mel_filter_bank

from isotone.audio.mel import mel_filters, mel_powers


@pytest.mark.parametrize(("bands", "rate"), [(80, 16_000), (40, 16_000), (64, 8_000)])
def test_mel_filters_are_those_of_transformers(bands: int, rate: int) -> None:
    expected = mel_filter_bank(
        num_frequency_bins=257, num_mel_filters=bands, min_frequency=20, max_frequency=rate // 2,
        sampling_rate=rate, norm=None, mel_scale="kaldi", triangularize_in_mel_space=True,
    )  # fmt: skip
    np.testing.assert_allclose(mel_filters(bands, rate, 512), expected, atol=1e-9)


@pytest.mark.parametrize("spectra_of", [torch, None], ids=["torch", "numpy"])
def test_mel_powers_are_squared_magnitudes_by_filters(
    spectra_of: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", spectra_of)
    frames = np.random.default_rng(0).normal(size=(7, 256)).astype(np.float32)
    filters = mel_filters(26, 16_000, 256).astype(np.float32)
    found = mel_powers(frames, np.ones(frames.shape[1], np.float32), filters)
    n, k = np.arange(256), np.arange(129)
    spectra = frames @ np.exp(-2j * np.pi * np.outer(n, k) / 256)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.abs(spectra) ** 2 @ filters, rtol=1e-4)
