"""Spoken digits in the same order by two speakers, with pauses of random length: times are known exactly.

From the Free Spoken Digit Dataset: files DIGIT_SPEAKER_NUMBER.wav.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.match.systems import System
from isotone import audio as sound

_DIGITS, _SEQUENCES = 10, 4

Sequence = tuple[NDArray[np.float32], NDArray[np.float64]]


def sequences(root: Path, seed: int = 0) -> Iterator[tuple[Sequence, Sequence]]:
    """Pairs of sequences: samples, and the starts and ends of the digits in seconds."""
    rng = np.random.default_rng(seed)
    speakers = sorted({path.stem.split("_")[1] for path in root.rglob("[0-9]_*_*.wav")})
    if len(speakers) < 2:
        raise FileNotFoundError(f"No recordings DIGIT_SPEAKER_NUMBER.wav of two speakers below {root}.")
    for _ in range(_SEQUENCES):
        digits = rng.permutation(_DIGITS)
        for pair in permutations(speakers, 2):
            yield tuple(_sequence(root, speaker, digits, rng) for speaker in pair)  # type: ignore[misc]


def _sequence(root: Path, speaker: str, digits: NDArray[np.int64], rng: np.random.Generator) -> Sequence:
    parts, edges, now = [], [], 0
    for digit in digits:
        pause = rng.integers(1_600, 9_600)
        files = sorted(root.rglob(f"{digit}_{speaker}_*.wav"))
        samples = sound.load(files[rng.integers(len(files))], 16_000)
        parts += [np.zeros(pause, np.float32), samples]
        edges += [now + pause, now + pause + len(samples)]
        now = edges[-1]
    whole = np.concatenate([*parts, np.zeros(rng.integers(1_600, 9_600), np.float32)])
    noise = 1e-3 * rng.standard_normal(len(whole)).astype(np.float32)
    return whole + noise, np.array(edges) / 16_000


def errors(system: System, pairs: list[tuple[Sequence, Sequence]]) -> list[float]:
    """Errors in seconds of the digits' edges."""
    return [e for (a, x), (b, y) in pairs for e in (system(a, b)(x) - y).tolist()]
