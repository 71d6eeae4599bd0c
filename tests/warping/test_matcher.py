"""Matching of recordings: known changes of time, clips, and stretches that one of them does not have."""

from __future__ import annotations

import numpy as np
import pytest
import soxr
import torch

from isotone.alignment import AlignmentError
from isotone.types import Grid
from isotone.warping import Features, Matcher, open_features
from isotone.warping.features import _on_grid, log_mel
from isotone.warping.mismatch import mismatches, places_back, stretches
from tests.warping.parts import RATE, melody


@pytest.mark.parametrize("warper", ["dtw", "soft-dtw", "opas"])
def test_a_change_of_speed_is_found(warper: str) -> None:
    piece = melody(6.0)
    halves = [soxr.resample(part, factor, 1.0) for part, factor in zip(np.split(piece, 2), (1.1, 0.92))]
    turn = len(halves[0]) / RATE
    played = np.concatenate(halves)
    found = Matcher(warper=warper)(played, piece)
    times = np.arange(0.2, len(played) / RATE - 0.2, 0.05)
    truth = np.where(times < turn, times / turn * 3, 3 + (times - turn) * 3 / (len(halves[1]) / RATE))
    assert np.abs(found.map(times) - truth).mean() < 0.02
    assert found.map(0.0) == 0.0
    assert found.map(len(played) / RATE) == pytest.approx(6.0, abs=1e-3)
    assert not found.doubtful
    assert found.only_reference == found.only_other == ()


@pytest.mark.parametrize("warper", ["dtw", "soft-dtw", "opas"])
def test_a_clip_is_found_on_either_side(warper: str) -> None:
    piece = melody(12.0)
    clip = piece[5 * RATE : 8 * RATE]
    inside = Matcher(warper=warper, part="reference")(clip, piece)
    np.testing.assert_allclose(inside.map([0.0, 1.0, 3.0]), [5.0, 6.0, 8.0], atol=0.03)
    around = Matcher(warper=warper, part="other")(piece, clip)
    np.testing.assert_allclose(around.map([5.0, 6.0, 8.0]), [0.0, 1.0, 3.0], atol=0.03)
    assert around.map.covers(6.0)
    assert not around.map.covers(4.0)
    assert not around.only_reference


def test_what_one_of_them_does_not_have_is_told() -> None:
    piece, other = melody(6.0), melody(2.0, seed=9)
    longer = np.concatenate([piece[: 3 * RATE], other, piece[3 * RATE :]])
    found = Matcher()(piece, longer)
    ((start, end),) = found.only_other
    assert start == pytest.approx(3.0, abs=0.5)
    assert end == pytest.approx(5.0, abs=0.5)
    assert found.only_reference == ()
    ((start, end),) = Matcher()(longer, piece).only_reference
    assert start == pytest.approx(3.0, abs=0.5)


def test_recordings_of_other_content_are_doubtful() -> None:
    found = Matcher()(melody(5.0), melody(5.0, seed=3))
    assert "hardly matches the reference: a mismatch of" in found.doubtful
    assert found.only_reference or found.only_other


def test_loudness_colour_and_silence_before_do_not_matter() -> None:
    piece = melody(4.0)
    quiet = np.concatenate([1e-4 * np.random.default_rng(1).standard_normal(RATE), 0.1 * piece])
    found = Matcher()(piece, quiet.astype(np.float32))
    np.testing.assert_allclose(found.map([1.0, 2.0, 3.0]), [2.0, 3.0, 4.0], atol=0.03)


def test_errors() -> None:
    with pytest.raises(AlignmentError, match=r"0\.010 s of audio is too short"):
        Matcher()(melody(1.0), np.zeros(160, np.float32))
    with pytest.raises(ValueError, match="none, reference, other"):
        Matcher(part="both")  # type: ignore[arg-type]
    with pytest.raises(LookupError, match="nothing"):
        Matcher(warper="nothing")
    for name in ("mel", "log-mel:3", "layer", "layer:x", ""):
        with pytest.raises(ValueError, match="there are log-mel, phones"):
            open_features(name, "model")
    with pytest.raises(ValueError, match="give one"):
        open_features("phones")


def test_log_mel_lies_on_the_grid_and_is_level() -> None:
    values, grid = log_mel(melody(2.0))
    assert grid == Features.grid
    assert values.shape == (198, 80)
    silent, _ = log_mel(np.zeros(RATE, np.float32))
    assert silent.abs().max() < 1e-3


def test_frames_are_interpolated_between_their_middles() -> None:
    values = torch.arange(5.0)[:, None]
    # frames of 20 ms from 0: the middles are 10, 30, 50, 70, 90 ms; those wanted 12.5, 22.5 ...
    out = _on_grid(values, Grid(0.02), Features.grid, 9)
    torch.testing.assert_close(out[:3, 0], torch.tensor([0.125, 0.625, 1.125]))
    assert out[-1, 0] == 4.0


def test_mismatch_is_0_for_equal_and_1_for_random_vectors() -> None:
    draw = torch.Generator().manual_seed(0)
    x, y = (torch.randn(4000, 8, generator=draw) for _ in range(2))
    places = torch.arange(4000, dtype=torch.float64)
    assert not mismatches(x, places, x).any()
    assert mismatches(x, places, y).mean() == pytest.approx(1.0, abs=0.05)
    first, back = places_back(torch.tensor([2.0, 2.0, 4.0], dtype=torch.float64), 9)
    assert first == 2
    assert back.tolist() == [1.0, 1.5, 2.0]


def test_stretches_are_long_and_unlike_or_squeezed() -> None:
    places = torch.arange(100, dtype=torch.float64)
    mismatch = np.full(100, 0.2)
    assert stretches(mismatch, places, 10, 0.8) == []
    mismatch[40:60] = 1.0
    ((start, stop),) = stretches(mismatch, places, 10, 0.8)
    assert abs(start - 40) <= 3
    assert abs(stop - 60) <= 3
    # at a quarter of the speed half of the mismatch is enough
    slow = torch.cat([places[:50], 49 + torch.arange(50) / 4.0])
    assert stretches(np.full(100, 0.45), slow, 10, 0.8)[0][1] == 98
    assert stretches(np.full(100, 0.45), places, 10, 0.8) == []
    assert stretches(mismatch[:5], places[:5], 10, 0.8) == []
