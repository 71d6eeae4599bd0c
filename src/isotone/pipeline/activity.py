"""Activity detection: loud parts of a recording with changing level (speech, music); no silence, noise or breath."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from isotone.audio import Samples

#: Frames per second in which levels are measured.
RATE = 100
# A frame is active where the level changes by this much within half a second of it ...
_RANGE_DB = 10.0
# ... where levels further below the loudest frame than this count as silent.
_DEPTH_DB = 60.0
# ... and which is no farther than this below the loudest tenth of a second around, of seconds at most this far away.
_BELOW_DB, _AROUND_S = 20.0, 8
# Frames this near to one as loud as that are loud as well.
_NEAR = 20
# Farther than this below the loudest frame is silence: muted, gated, or not recorded at all.
_SILENT_DB = 65.0
# Less activity than this, in seconds, may be a click or a cough. Then everything counts as active.
_LEAST_S = 2.0
# Frames that are read at once.
_AT_ONCE = 6000


class Activity:
    """Find the parts of a recording whose level changes by 10 dB within half a second, and comes near to the loudest.

    The level that counts is that of the seconds around, so that quiet voices are active beside loud ones. Where there
    are less than two seconds of activity, as in steady noise, everything counts as active except digital silence, which
    has no level and is far from any training data.

    Args:
        samples: ``(N,)`` of the recording.
        sample_rate: Hz.

    Attributes:
        changing_s: Seconds of changing level, also where they are too few.
    """

    def __init__(self, samples: Samples, sample_rate: int) -> None:
        self.size = sample_rate // RATE
        power = _powers(samples, self.size)
        level, sounds = _levels(power), power > 0
        found = np.flatnonzero((_range_around(level, RATE // 2) >= _RANGE_DB) & sounds)
        self.changing_s = len(found) / RATE
        loud = found[_loud(level)[found]]
        if len(loud) >= _LEAST_S * RATE:
            found = loud
        elif len(found) < _LEAST_S * RATE:
            found = np.flatnonzero(sounds) if sounds.any() else np.arange(len(level))
        self.frames = found

    def near(self, first: int, end: int, least_s: float) -> list[slice]:
        """Find the active samples from sample ``first`` up to ``end``.

        Below ``least_s`` seconds, the nearest active samples on both sides are added.
        """
        low, high = np.searchsorted(self.frames, [first // self.size, -(-end // self.size)]).tolist()
        least = min(len(self.frames), round(least_s * RATE))
        if high - low < least:
            # widen evenly on both sides, as far as there are active frames
            low = min(max(0, (low + high - least) // 2), len(self.frames) - least)
            high = low + least
        chosen = self.frames[low:high]
        runs = np.split(chosen, np.flatnonzero(np.diff(chosen) > 1) + 1)
        return [slice(int(r[0]) * self.size, (int(r[-1]) + 1) * self.size) for r in runs if len(r)]


def quiet(samples: NDArray[np.float32], sample_rate: int) -> NDArray[np.bool_]:
    """Find the frames that are quiet beside the speech of the seconds around.

    Their level is more than 20 dB below the loudest tenth of a second of the 8 s around, for a fifth of a second on
    both sides. So no weak sound within speech is quiet, and in steady noise nothing is.

    Returns:
        ``(T,)``, :data:`RATE` frames per second.
    """
    return ~_loud(_levels(_powers(samples, sample_rate // RATE)))


def without_silence(samples: NDArray[np.float32], sample_rate: int) -> NDArray[np.float32]:
    """Drop frames of silence, 65 dB or more below the loudest; digital silence alone is returned as it is."""
    size = sample_rate // RATE
    power = _powers(samples, size)
    sounds = power > power.max(initial=0.0) * 10 ** (-_SILENT_DB / 10)
    kept = samples[np.repeat(sounds, size)[: len(samples)]]
    return kept if len(kept) else samples


def _powers(samples: Samples, size: int) -> NDArray[np.float64]:
    """Compute the variance of every frame ``(T,)``, of so many at once; the last frame may be shorter."""
    part = size * _AT_ONCE
    found = [_own_powers(samples[first : first + part], size) for first in range(0, len(samples), part)]
    return np.concatenate(found) if found else np.zeros(0)


def _own_powers(samples: NDArray[np.float32], size: int) -> NDArray[np.float64]:
    whole = len(samples) // size
    frames = samples[: whole * size].reshape(whole, size)
    # einsum needs no copy as large as the recording
    power = np.einsum("ts,ts->t", frames, frames) / size - frames.mean(1).astype(float) ** 2
    if whole * size < len(samples):
        power = np.append(power, samples[whole * size :].astype(float).var())
    return power


def _levels(power: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the levels of frames in dB from their variances: ``(T,)``."""
    floor = power.max(initial=0.0) * 10 ** (-_DEPTH_DB / 10)
    return 10 * np.log10(np.maximum(power, max(floor, 1e-30)))


def _loud(level: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Find the frames within a fifth of a second of which the level is near the loudest seconds around: ``(T,)``."""
    if not len(level):
        return np.zeros(0, bool)
    seconds = np.pad(level, (0, -len(level) % RATE), mode="edge").reshape(-1, RATE)
    loudest = np.pad(np.quantile(seconds, 0.9, axis=1), _AROUND_S, constant_values=-np.inf)
    around = sliding_window_view(loudest, 2 * _AROUND_S + 1).max(1)
    near = np.pad(level >= np.repeat(around, RATE)[: len(level)] - _BELOW_DB, _NEAR)
    return np.asarray(sliding_window_view(near, 2 * _NEAR + 1).any(1))


def _range_around(level: NDArray[np.float64], reach: int) -> NDArray[np.float64]:
    """Compute the range of levels in the frames at most ``reach`` away, in dB: ``(T,)``."""
    if not len(level):
        return level
    low, high = (np.pad(level, reach, constant_values=edge) for edge in (np.inf, -np.inf))
    highest, lowest = (sliding_window_view(x, 2 * reach + 1) for x in (high, low))
    return highest.max(1) - lowest.min(1)
