"""Hush: what is far quieter than the speech around scores less as speech, and nothing else does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from isotone.pipeline.activity import quiet
from isotone.pipeline.hush import HUSH_COST, hushed
from isotone.types import Emissions, Grid

RATE = 16_000


def noise(*parts: tuple[float, float]) -> np.ndarray:
    """Noise: seconds and decibels of every part."""
    rng = np.random.default_rng(0)
    return np.concatenate([10 ** (db / 20) * rng.normal(size=round(s * RATE)) for s, db in parts]).astype(
        np.float32
    )


def spans(frames: np.ndarray) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], frames, [0]])))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist()))


def test_long_pauses_are_quiet_and_short_ones_are_speech() -> None:
    # a fifth of a second on both sides of what is loud belongs to it: weak sounds and closures
    samples = noise((1, -20), (0.3, -60), (1, -20), (2, -60), (1, -20))
    assert spans(quiet(samples, RATE)) == [(250, 410)]


@pytest.mark.parametrize("parts", [[(3, -20)], [(1, -20), (2, -35), (1, -20)], [(3, -300)]])
def test_nothing_is_quiet_in_steady_noise(parts: list[tuple[float, float]]) -> None:
    assert not quiet(noise(*parts), RATE).any()


def test_a_voice_that_is_far_from_a_louder_one_is_not_quiet() -> None:
    assert not quiet(noise((2, -10)), RATE).any()
    far = quiet(noise((2, -10), (10, -60), (2, -45), (10, -60)), RATE)
    assert far[250:950].all()
    assert not far[1210:1390].any()


def emissions(frames: int, blank: int, offset_s: float, hop_s: float, size: int = 4) -> Emissions:
    logits = torch.randn(2, frames, size, generator=torch.Generator().manual_seed(0))
    return Emissions(logits, torch.tensor([frames, frames // 2]), Grid(hop_s, offset_s), blank)


def model(silence: int | None, labels: int = 4) -> Any:
    tokenizer = SimpleNamespace(silence_number=silence, labels=["x"] * labels)
    return SimpleNamespace(tokenizer=tokenizer, encoder=SimpleNamespace(sample_rate=RATE))


@pytest.mark.parametrize("size", [4, 8])
def test_speech_scores_less_where_its_own_recording_is_quiet(size: int) -> None:
    audio = [noise((1, -20), (2, -60), (1, -20)), noise((2, -20))]
    heads = {
        "a": emissions(200, 0, 0.0, 0.02, size),
        "b": emissions(400, 3, 0.005, 0.01, size),
    }
    out = hushed(heads, audio, model(2))
    for name, own in heads.items():
        lower = own.logits - out[name].logits
        middles = own.grid.offset_s + (np.arange(own.logits.shape[1]) + 0.5) * own.grid.hop_s
        expected = torch.zeros(own.logits.shape)
        spoken = [v for v in range(size) if v % 4 not in (2, own.blank)]
        expected[0, (middles >= 1.2) & (middles < 2.8)] = torch.tensor(
            [HUSH_COST if v in spoken else 0.0 for v in range(size)]
        )
        torch.testing.assert_close(lower, expected)
        assert (out[name].lengths == own.lengths).all()


def test_without_silence_or_quiet_nothing_changes() -> None:
    heads = {"a": emissions(100, 0, 0.0, 0.02)}
    assert hushed(heads, [noise((2, -20))] * 2, model(2))["a"] is heads["a"]
    assert hushed(heads, [noise((1, -20), (2, -60))] * 2, model(None))["a"] is heads["a"]
