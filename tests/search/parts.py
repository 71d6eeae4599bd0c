"""Parts that the tests of searching share: a small collection of sounds, and a small OPAS model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import soundfile
import torch
from isotone_opas.model import OPAS

from isotone.search.searcher import LogMelSearcher

RATE = 16_000
LOG_MEL = LogMelSearcher()


def sounds(seconds: float, seed: int, rate: int = RATE) -> np.ndarray:
    """Return tones with overtones that change every few tenths of a second, in little noise: ``(N,)`` float32."""
    rng = np.random.default_rng(seed)
    parts, size = [], round(seconds * rate)
    while sum(map(len, parts)) < size:
        time = np.arange(int(rate * rng.uniform(0.15, 0.5))) / rate
        pitch = rng.uniform(120, 900)
        tone = sum(rng.uniform(0, 1) * np.sin(2 * np.pi * pitch * k * time) for k in range(1, 9))
        parts.append(tone * np.hanning(len(time)) * rng.uniform(0.05, 0.2))
    whole = np.concatenate(parts)[:size]
    return (whole + 0.001 * rng.standard_normal(size)).astype(np.float32)


def write(path: Path, samples: np.ndarray, rate: int = RATE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, samples, rate)
    return path


def collection(folder: Path, seconds: tuple[float, ...] = (9.0, 30.0, 6.5, 4.0)) -> Path:
    for number, length in enumerate(seconds):
        write(folder / f"sound{number}.wav", sounds(length, number))
    return folder


def save_opas(folder: Path, seed: int = 0) -> Path:
    """Save an untrained model of windows of 1000 samples: items of 8 windows, queries of 3."""
    torch.manual_seed(seed)
    model = OPAS(
        {"name": "lrl", "input_size": 1000, "size": 16, "hidden": 32},
        {"name": "convolutional", "rows": 3, "columns": 8, "bins": 4},
        columns=8,
    )
    model.save(folder)
    return folder


class Killed(BaseException):
    """Exception in place of a kill; nothing in the package catches it."""
