"""Mel filters."""

from __future__ import annotations

import numpy as np
import pytest
from transformers.audio_utils import mel_filter_bank

from isotone.audio.mel import mel_filters


@pytest.mark.parametrize(("bands", "rate"), [(80, 16_000), (40, 16_000), (64, 8_000)])
def test_mel_filters_are_those_of_transformers(bands: int, rate: int) -> None:
    expected = mel_filter_bank(
        num_frequency_bins=257, num_mel_filters=bands, min_frequency=20, max_frequency=rate // 2,
        sampling_rate=rate, norm=None, mel_scale="kaldi", triangularize_in_mel_space=True,
    )  # fmt: skip
    np.testing.assert_allclose(mel_filters(bands, rate, 512), expected, atol=1e-9)
