"""Audio in memory gives what the same audio in a file gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from hypothesis import given
from hypothesis import strategies as st

from isotone.audio import AudioError, from_array, load


@given(
    seed=st.integers(0, 9),
    size=st.integers(200, 5000),
    channels=st.integers(1, 3),
    rate=st.sampled_from([8_000, 16_000, 22_050, 44_100]),
)
def test_an_array_is_as_its_file(
    tmp_path_factory: pytest.TempPathFactory, seed: int, size: int, channels: int, rate: int
) -> None:
    samples = np.random.default_rng(seed).uniform(-0.9, 0.9, (size, channels)).astype(np.float32)
    path = tmp_path_factory.mktemp("audio") / "a.wav"
    soundfile.write(path, samples, rate, subtype="FLOAT")
    expected = load(path, 16_000)
    for shape in (samples, samples.T, torch.from_numpy(samples)):
        found = from_array(shape, rate, 16_000)
        assert found.dtype == np.float32
        assert abs(len(found) - len(expected)) <= 1
        np.testing.assert_allclose(found[: len(expected)], expected[: len(found)], atol=2e-6)


@pytest.mark.parametrize(("kind", "subtype"), [("int16", "PCM_16"), ("int32", "PCM_32"), ("uint8", "PCM_U8")])
def test_whole_numbers_are_scaled_as_in_files(tmp_path: Path, kind: str, subtype: str) -> None:
    limits = np.iinfo(kind)
    samples = np.random.default_rng(0).integers(limits.min, limits.max, 500, endpoint=True).astype(kind)
    samples[:2] = limits.min, limits.max
    wide = {"int16": np.int16, "int32": np.int32}.get(kind)
    if wide is None:  # libsndfile takes no bytes: their place in 16 bits
        soundfile.write(tmp_path / "a.wav", (samples.astype(np.int16) - 128) * 256, 16_000, subtype=subtype)
    else:
        soundfile.write(tmp_path / "a.wav", samples, 16_000, subtype=subtype)
    np.testing.assert_allclose(from_array(samples, 16_000), load(tmp_path / "a.wav"), atol=1e-6)


@pytest.mark.parametrize(
    ("audio", "rate", "message"),
    [
        (np.zeros(0), 16_000, "no samples"),
        (np.zeros((2, 2)), 16_000, r"\(2, 2\)"),
        (np.zeros((2, 3, 4)), 16_000, r"\(2, 3, 4\)"),
        (np.float32(0.0), 16_000, r"\(\)"),
        (
            [0.0, np.nan, 0.0, np.inf],
            2,
            "2 samples are not finite numbers of up to 1e15, the first at 0.5000 s",
        ),
        ([0.0, 1e20, 2e9, -1e20], 2, "2 samples are not finite numbers of up to 1e15, the first at 0.5000 s"),
        (["a", "b"], 16_000, "array of numbers"),
        ([True, False], 16_000, "array of numbers"),
        (np.zeros(9), 0, "positive number"),
        (np.zeros(9), float("nan"), "positive number"),
    ],
)
def test_what_is_no_audio_is_an_error(audio: object, rate: float, message: str) -> None:
    with pytest.raises(AudioError, match=message):
        from_array(audio, rate)  # type: ignore[arg-type]
