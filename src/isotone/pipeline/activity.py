"""What of a recording is lively, as speech and music are, and silence and steady noise are not."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

# Frames a second in which levels are measured.
_RATE = 100
# A frame is lively where the level changes by so much within half a second of it ...
_RANGE_DB = 10.0
# ... when what is further below the loudest frame than this counts as silent.
_DEPTH_DB = 60.0
# Less of it than this, in seconds, may be a click or a cough: then everything counts.
_LEAST_S = 2.0


class Lively:
    """The parts of a recording in which its level changes by 10 dB within half a second.

    How loud it is plays no part, nor how loud others in the recording are. Where there are not two seconds of it, as in
    steady noise, everything counts as lively, but for digital silence: it has no level, and is
    far from what any model was trained on.

    Args:
        samples: ``(N,)`` of the recording.
        sample_rate: Hz.
    """

    def __init__(self, samples: NDArray[np.float32], sample_rate: int) -> None:
        self.size = sample_rate // _RATE
        power = _powers(samples, self.size)
        level, sounds = _levels(power), power > 0
        found = np.flatnonzero((_range_around(level, _RATE // 2) >= _RANGE_DB) & sounds)
        if len(found) < _LEAST_S * _RATE:
            found = np.flatnonzero(sounds) if sounds.any() else np.arange(len(level))
        self.frames = found

    def near(self, first: int, end: int, least_s: float) -> list[slice]:
        """Samples of what is lively from sample ``first`` up to ``end``.

        Where that is less than ``least_s`` seconds, there is more from both sides, as near as there is.
        """
        low, high = np.searchsorted(self.frames, [first // self.size, -(-end // self.size)]).tolist()
        wanted = min(len(self.frames), round(least_s * _RATE))
        if high - low < wanted:
            low = min(max(0, (low + high - wanted) // 2), len(self.frames) - wanted)
            high = low + wanted
        chosen = self.frames[low:high]
        runs = np.split(chosen, np.flatnonzero(np.diff(chosen) > 1) + 1)
        return [slice(int(r[0]) * self.size, (int(r[-1]) + 1) * self.size) for r in runs if len(r)]


def sounding(samples: NDArray[np.float32], sample_rate: int) -> NDArray[np.float32]:
    """The samples but for frames of digital silence; all of them where there is nothing else."""
    size = sample_rate // _RATE
    kept = samples[np.repeat(_powers(samples, size) > 0, size)[: len(samples)]]
    return kept if len(kept) else samples


def _powers(samples: NDArray[np.float32], size: int) -> NDArray[np.float64]:
    """The variance of every frame, the last one of what is left: ``(T,)``."""
    whole = len(samples) // size
    frames = samples[: whole * size].reshape(whole, size)
    # without a copy as large as the recording
    power = np.einsum("ts,ts->t", frames, frames) / size - frames.mean(1).astype(float) ** 2
    if whole * size < len(samples):
        power = np.append(power, samples[whole * size :].astype(float).var())
    return power


def _levels(power: NDArray[np.float64]) -> NDArray[np.float64]:
    """The levels of frames in dB, from their variances: ``(T,)``."""
    floor = power.max(initial=0.0) * 10 ** (-_DEPTH_DB / 10)
    return 10 * np.log10(np.maximum(power, max(floor, 1e-30)))


def _range_around(level: NDArray[np.float64], reach: int) -> NDArray[np.float64]:
    """The highest less the lowest of the levels of the frames at most ``reach`` away: ``(T,)``."""
    if not len(level):
        return level
    values = torch.from_numpy(level)[None]
    highest, negative = (F.max_pool1d(x, 2 * reach + 1, 1, reach)[0] for x in (values, -values))
    return (highest + negative).numpy()
