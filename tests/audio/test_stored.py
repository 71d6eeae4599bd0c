"""Samples on disk are those in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from isotone.audio import AudioError, Stored, blocks, load, store
from isotone.audio.reading import _Spilling

_parts = st.none() | st.integers(-30, 30)


@given(st.lists(st.integers(0, 9), max_size=4), _parts, _parts)
def test_slices_are_those_of_the_array(sizes: list[int], start: int | None, stop: int | None) -> None:
    array = np.arange(sum(sizes), dtype=np.float32)
    stored = Stored()
    for part in np.split(array, np.cumsum(sizes)):
        stored.append(part)
    assert len(stored) == len(array)
    assert stored[start:stop].tolist() == array[start:stop].tolist()
    assert [(first, block.tolist()) for first, block in blocks(stored)] == (
        [(0, array.tolist())] if len(array) else []
    )


def test_a_slice_is_the_callers_own() -> None:
    stored = Stored()
    stored.append(np.ones(3, np.float32))
    stored[:][:] = 0
    assert stored[:].tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="without a step"):
        stored[::2]


@pytest.mark.parametrize("rate", [16_000, 44_100])
def test_a_file_is_stored_as_it_is_loaded(tmp_path: Path, rate: int) -> None:
    noise = np.random.default_rng(0).normal(0, 0.1, (2 * rate + 7, 2))
    soundfile.write(tmp_path / "a.wav", noise, rate)
    assert np.array_equal(store(tmp_path / "a.wav", 16_000)[:], load(tmp_path / "a.wav", 16_000))
    with pytest.raises(AudioError, match="does not exist"):
        store(tmp_path / "b.wav")


def test_long_samples_come_in_blocks() -> None:
    array = np.arange((1 << 20) + 5, dtype=np.float32)
    found = list(blocks(array))
    assert [first for first, _ in found] == [0, 1 << 20]
    assert np.array_equal(np.concatenate([block for _, block in found]), array)


@pytest.mark.parametrize("rate", [8_000, 16_000])
def test_only_long_recordings_go_to_disk(tmp_path: Path, rate: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = np.random.default_rng(0).uniform(-1, 1, 30_000).astype(np.float32)
    soundfile.write(tmp_path / "a.wav", whole, rate, subtype="FLOAT")
    kept = load(tmp_path / "a.wav", 16_000)
    short, long = (store(tmp_path / "a.wav", 16_000, memory_s) for memory_s in (10.0, 1.0))
    assert isinstance(short, np.ndarray)
    assert isinstance(long, Stored)
    assert np.array_equal(short, kept)
    assert np.array_equal(long[:], kept)
    # a stream whose length is only known at its end
    monkeypatch.setattr(_Spilling, "expect", lambda self, samples: None)
    late = store(tmp_path / "a.wav", 16_000, 1.0)
    assert isinstance(late, Stored)
    assert np.array_equal(late[:], kept)
