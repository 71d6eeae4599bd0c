"""Activity of a recording: the definition in plain loops, and the nearest active samples."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from isotone.pipeline.activity import Activity, without_silence

RATE = 1600  # frames of 16 samples, whose level varies more than that of longer ones
SIZE = 16

levels = st.lists(st.tuples(st.integers(1, 150), st.sampled_from([0.0, 1e-4, 1e-3, 0.01, 0.1])), max_size=8)


def noise(parts: list[tuple[int, float]], seed: int, rest: int = 0, size: int = SIZE) -> np.ndarray:
    """Frames of noise: how many, and how loud; and some samples more."""
    rng = np.random.default_rng(seed)
    loud = np.repeat([level for _, level in parts], [frames * size for frames, _ in parts])
    loud = np.append(loud, np.full(rest, loud[-1] if len(loud) else 0.1))
    return (rng.normal(size=len(loud)) * loud).astype(np.float32)


def by_loops(samples: np.ndarray) -> list[int]:
    """Frames within half a second of which the level changes by 10 dB, of what is within 60 dB of the loudest.

    Of these the ones within a fifth of a second of a frame at most 20 dB below the loudest tenth of any of the
    seventeen seconds around; all of them where that is little, and all that sounds where they are few."""
    power = [float(np.var(samples[i : i + SIZE].astype(float))) for i in range(0, len(samples), SIZE)]
    floor = max([*power, 0.0]) * 1e-6
    level = [10 * np.log10(max(p, floor, 1e-31)) for p in power]
    around = [level[max(0, t - 50) : t + 51] for t in range(len(level))]
    ranges = [max(near) - min(near) for near in around]
    assume(all(abs(r - 10) > 1e-3 for r in ranges))
    found = [t for t, r in enumerate(ranges) if r >= 10 and power[t] > 0]
    seconds = [level[t : t + 100] for t in range(0, len(level), 100)]
    loudest = [float(np.quantile(s + s[-1:] * (100 - len(s)), 0.9)) for s in seconds]
    limit = [max(loudest[max(0, t // 100 - 8) : t // 100 + 9]) - 20 for t in range(len(level))]
    assume(all(abs(x - y) > 1e-3 for x, y in zip(level, limit)))
    near = [any(x >= y for x, y in list(zip(level, limit))[max(0, t - 20) : t + 21]) for t in found]
    loud = [t for t, is_near in zip(found, near) if is_near]
    if len(loud) >= 200:
        return loud
    sounds = [t for t, p in enumerate(power) if p > 0] or list(range(len(power)))
    return found if len(found) >= 200 else sounds


@given(parts=levels, seed=st.integers(0, 99), rest=st.integers(0, 15))
@settings(deadline=None)
def test_frames_by_their_definition(parts: list[tuple[int, float]], seed: int, rest: int) -> None:
    samples = noise(parts, seed, rest)
    expected = by_loops(samples)
    found = Activity(samples, RATE).frames.tolist()
    assert found == expected
    assert Activity(samples * np.float32(0.25), RATE).frames.tolist() == found  # loudness plays no part


@given(
    parts=levels,
    seed=st.integers(0, 99),
    ends=st.tuples(st.integers(0, 12_000), st.integers(0, 12_000)).map(sorted),
    least_s=st.floats(0.1, 6.0),
)
@settings(deadline=None)
def test_what_is_near(parts: list[tuple[int, float]], seed: int, ends: list[int], least_s: float) -> None:
    samples = noise(parts, seed)
    lively = Activity(samples, RATE)
    runs = lively.near(*ends, least_s)
    frames = [t for run in runs for t in range(run.start // SIZE, run.stop // SIZE)]
    assert all(a.stop < b.start for a, b in pairwise(runs))
    inside = [t for t in lively.frames.tolist() if ends[0] // SIZE <= t < -(-ends[1] // SIZE)]
    assert set(inside) <= set(frames) <= set(lively.frames.tolist())
    required = min(round(least_s * 100), len(lively.frames))
    assert len(frames) == max(len(inside), required)
    if frames:  # without gaps but for what is not lively
        between = [t for t in lively.frames.tolist() if frames[0] <= t <= frames[-1]]
        assert between == frames
    assert sum(len(samples[run]) for run in runs) <= len(samples)


@pytest.mark.parametrize("level", [0.0, 1e-4, 1e-2])
def test_silence_and_steady_noise_are_not(level: float) -> None:
    """Three seconds of words, whose level changes, between half minutes of nothing, of hiss, hum and an offset."""
    words = [(20, 0.1), (10, 0.02)] * 10
    samples = noise([(3000, 0.0), *words, (3000, 0.0)], 0, size=160)
    samples += np.random.default_rng(1).normal(0, level, len(samples)).astype(np.float32)
    samples += level * np.sin(2 * np.pi * 60 / 16_000 * np.arange(len(samples))).astype(np.float32) + 0.05
    found = Activity(samples, 16_000).frames
    assert 2950 <= found.min() <= 3000
    assert 3299 <= found.max() <= 3350
    assert len(found) >= 300


def test_where_little_is_lively_everything_counts() -> None:
    steady = noise([(2000, 0.1)], 0, size=160)
    assert len(Activity(steady, 16_000).frames) == 2000
    click = noise([(1000, 0.001), (1, 0.5), (1000, 0.001)], 0, size=160)
    assert len(Activity(click, 16_000).frames) == 2001
    assert Activity(np.zeros(16_000, np.float32), 16_000).near(0, 8000, 0.1) == [slice(0, 8000)]
    assert Activity(np.zeros(0, np.float32), 16_000).near(0, 0, 10.0) == []


def test_what_is_far_below_the_loudest_does_not_sound() -> None:
    quiet = noise([(30, 0.1), (50, 1e-5), (20, 1e-3)], 0)
    np.testing.assert_array_equal(
        without_silence(quiet, RATE), np.append(quiet[: 30 * SIZE], quiet[80 * SIZE :])
    )


def test_digital_silence_does_not_sound() -> None:
    samples = noise([(3, 0.0), (2, 0.1), (4, 0.0), (1, 0.2)], 0, rest=5)
    np.testing.assert_array_equal(without_silence(samples, RATE), samples[samples != 0])
    np.testing.assert_array_equal(without_silence(np.zeros(99, np.float32), RATE), np.zeros(99))
