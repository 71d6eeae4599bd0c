"""Audio whose times are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray

RATE = 16_000


def melody(seconds: float, seed: int = 0) -> NDArray[np.float32]:
    """Tones of random pitch and length, as music or vowels."""
    rng = np.random.default_rng(seed)
    parts: list[NDArray[np.float64]] = []
    while sum(map(len, parts)) < seconds * RATE:
        time = np.arange(int(rng.uniform(0.08, 0.3) * RATE)) / RATE
        pitch, tone = rng.uniform(150, 900), np.zeros(len(time))
        for harmonic in range(1, 6):
            tone += rng.uniform() * np.sin(2 * np.pi * harmonic * pitch * time)
        parts.append(0.1 * tone * np.hanning(len(time)) ** 0.3)
    noise = 1e-3 * rng.standard_normal(round(seconds * RATE))
    return (np.concatenate(parts)[: len(noise)] + noise).astype(np.float32)


def save_melody(path: Path, *parts: NDArray[np.float32]) -> Path:
    """Write melodies one after the other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, np.concatenate(parts), RATE)
    return path
