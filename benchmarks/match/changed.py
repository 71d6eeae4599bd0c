"""The same recording at another, changing speed, and in noise: every time is known exactly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import soxr
from numpy.typing import NDArray

from benchmarks.match.systems import System
from isotone import audio as sound
from isotone.batch.inputs import find_audio
from isotone.warping import TimeMap

_SECONDS, _CLIP_S = 60, 10


def changed(
    samples: NDArray[np.float32], rng: np.random.Generator, snr_db: float = 20.0, part_s: float = 5.0
) -> tuple[NDArray[np.float32], TimeMap]:
    """Play a recording faster or slower by up to 15 %, at another speed every few seconds, in white noise.

    Pitch changes with the speed, as on a tape.

    Returns:
        Samples, and the map of times to those of the original.
    """
    parts, source, target = [], [0.0], [0.0]
    step = round(part_s * 16_000)
    for start in range(0, len(samples), step):
        part = samples[start : start + step]
        played = soxr.resample(part, rng.uniform(0.87, 1.15), 1.0)
        parts.append(played)
        source.append(source[-1] + len(played) / 16_000)
        target.append(target[-1] + len(part) / 16_000)
    whole = np.concatenate(parts)
    noise = rng.standard_normal(len(whole)) * np.sqrt(np.mean(whole**2) / 10 ** (snr_db / 10))
    return (whole + noise).astype(np.float32), TimeMap(np.array(source), np.array(target))


def pieces(folder: Path) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """The recordings of a folder, a minute of each at most."""
    for path in find_audio([folder]):
        yield path.stem, sound.load(path, 16_000)[: _SECONDS * 16_000]


def errors(system: System, folder: Path, *, clips: bool, seed: int = 0) -> list[float]:
    """Errors in seconds of ten times per second.

    Args:
        system: The system under test; for clips, one that leaves the ends of the second recording free.
        folder: Recordings.
        clips: Match three clips of 10 s with the whole piece, instead of the whole changed piece.
        seed: Seed of speeds, noise and clips.
    """
    rng = np.random.default_rng(seed)
    out: list[float] = []
    for _, samples in pieces(folder):
        played, truth = changed(samples, rng)
        seconds = len(played) / 16_000
        for _ in range(3 if clips else 1):
            length = min(_CLIP_S, seconds) if clips else seconds
            start = rng.uniform(0, seconds - length) if clips else 0.0
            first = round(start * 16_000)
            found = system(played[first : first + round(length * 16_000)], samples)
            times = np.arange(0.5, length - 0.5, 0.1)
            out += (found(times) - truth(first / 16_000 + times)).tolist()
    return out
