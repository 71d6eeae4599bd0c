"""Channels are averaged, and those of opposite signs do not cancel each other."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
import soundfile

from isotone.audio import from_array, info, load
from isotone.audio.mixing import Mixer


def noise(channels: int, samples: int = 16_000) -> np.ndarray:
    return np.random.default_rng(0).normal(0, 0.1, (samples, channels)).astype(np.float32)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ([1, -1], 1.0),
        ([1, -0.8], 0.9),
        ([-1, 1], -1.0),
        ([1, -1, 1, -1], 1.0),
        ([1, 1], 1.0),
        ([1, 0], 0.5),
        ([1, -0.3], 0.35),
    ],
)
def test_only_channels_that_cancel_each_other_are_turned(shape: list[float], expected: float) -> None:
    one = noise(1)
    block = one * np.array(shape, np.float32) + 0.001 * noise(len(shape) + 1)[:, 1:]
    np.testing.assert_allclose(Mixer("x")(block), expected * one[:, 0], atol=0.005)


@pytest.mark.parametrize("channels", [2, 3, 6])
def test_unrelated_channels_are_averaged(channels: int) -> None:
    """In pieces of any size, though single samples often have opposite signs."""
    samples, mix = noise(channels), Mixer("x")
    mixed = np.concatenate([mix(samples[start : start + 3]) for start in range(0, len(samples), 3)])
    np.testing.assert_allclose(mixed, samples.mean(axis=1), atol=1e-6)


def test_a_part_that_was_wired_wrongly_is_heard() -> None:
    one = noise(1, 3_000_000)
    block, mix = np.concatenate([one, np.sign(1_000_000 - np.arange(len(one)))[:, None] * one], 1), Mixer("x")
    mixed = np.concatenate([mix(part) for part in np.split(block, 30)])
    np.testing.assert_allclose(mixed[2_900_000:], one[2_900_000:, 0], atol=1e-6)


def test_a_file_and_an_array_of_opposite_signs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    one, path = noise(1), tmp_path / "x.wav"
    both = np.concatenate([one, -one], 1)
    soundfile.write(path, both, 8_000, subtype="FLOAT")
    with caplog.at_level(logging.WARNING):
        info(path)
        assert not caplog.messages
        np.testing.assert_array_equal(load(path, 8_000), one[:, 0])
        np.testing.assert_array_equal(load(path, 8_000, channel=1), -one[:, 0])
        (said,) = caplog.messages
        np.testing.assert_array_equal(from_array(both, 8_000, 8_000), one[:, 0])
    assert said.startswith(f"{path}: its channels have opposite signs")
    assert "They were turned" in said
