"""Recordings of spoken digits: finding them, cutting their ends, and joining them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from isotone.audio import load

#: Sample rate in Hz of the recordings and of the sequences.
SAMPLE_RATE = 8000

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")

#: Numbers of the recordings of test (as in the data set) and dev; all others are train.
HELD_OUT = {"test": range(5), "dev": range(5, 10)}

_FRAME = SAMPLE_RATE // 100

Samples = NDArray[np.float32]


@dataclass(frozen=True)
class Recording:
    """One digit by one speaker: ``{digit}_{speaker}_{index}.wav``."""

    path: Path
    digit: int
    speaker: str
    index: int

    @property
    def split(self) -> str:
        """Name of its split, which its number alone decides."""
        return next((name for name, indices in HELD_OUT.items() if self.index in indices), "train")


def find_recordings(folder: Path) -> tuple[list[Recording], list[tuple[str, str]]]:
    """Find the recordings of the data set, by speaker, digit and number, and (name, reason) of other files.

    Args:
        folder: The data set's folder, or its ``recordings``.

    Raises:
        FileNotFoundError: no recordings in the folder.
    """
    source = folder / "recordings" if (folder / "recordings").is_dir() else folder
    found, odd = [], []
    for path in sorted(source.iterdir()) if source.is_dir() else ():
        match = re.fullmatch(r"(\d)_([^_]+)_(\d+)\.wav", path.name)
        if match:
            found.append(Recording(path, int(match[1]), match[2], int(match[3])))
        elif path.suffix.lower() == ".wav":
            odd.append((path.name, "its name is not DIGIT_SPEAKER_NUMBER.wav, such as 7_jackson_32.wav."))
    if not found:
        raise FileNotFoundError(
            f"No spoken digits in {source}: looked for DIGIT_SPEAKER_NUMBER.wav, such as 7_jackson_32.wav. Give the "
            "folder of the Free Spoken Digit Dataset (github.com/Jakobovski/free-spoken-digit-dataset)."
        )
    return sorted(found, key=lambda r: (r.speaker, r.digit, r.index)), odd


def join_words(
    words: Sequence[Samples], pauses: Sequence[int], snr_db: float, rng: np.random.Generator
) -> tuple[Samples, list[tuple[int, int]]]:
    """Join words with pauses, and add noise.

    Args:
        words: Samples ``(N_w,)`` of each word.
        pauses: Samples before the first word, between words and after the last: one more than words.
        snr_db: Level of the quietest word over the noise, which is white.
        rng: Random numbers of the noise.

    Returns:
        The samples ``(N,)``, and the span of every word: its first sample and one past its last.

    Raises:
        ValueError: the pauses are not one more than the words.
    """
    if len(pauses) != len(words) + 1:
        raise ValueError(f"{len(words)} words have {len(words) + 1} pauses around them; got {len(pauses)}.")
    level = min(_rms(word) for word in words) * 10 ** (-snr_db / 20)
    starts = np.cumsum(pauses[:-1]) + np.cumsum([0, *(len(word) for word in words[:-1])])
    spans = [(int(start), int(start) + len(word)) for start, word in zip(starts, words)]
    samples = rng.normal(0.0, level, spans[-1][1] + pauses[-1]).astype(np.float32)
    for (start, end), word in zip(spans, words):
        samples[start:end] += word
    return samples, spans


def cut_ends(word: Samples, below_db: float) -> Samples:
    """Cut quiet ends off a word, in steps of 10 ms.

    Args:
        word: Samples ``(N,)``.
        below_db: Threshold, in dB below the word's root mean square.

    Returns:
        Samples ``(N',)``; empty for digital silence.
    """
    if not word.any():
        return word[:0]
    edges = np.arange(0, len(word), _FRAME)
    power = np.add.reduceat(word.astype(np.float64) ** 2, edges) / np.diff([*edges, len(word)])
    (loud,) = np.nonzero(power >= (_rms(word) * 10 ** (-below_db / 20)) ** 2)
    return word[edges[loud[0]] : edges[loud[-1]] + _FRAME]


def _rms(samples: Samples) -> float:
    return float(np.sqrt(np.mean(samples.astype(np.float64) ** 2)))


def read_words(
    recordings: Sequence[Recording], trim_db: float
) -> tuple[dict[Recording, Samples], list[tuple[str, str]]]:
    """Read recordings and cut their ends; return the words, and (name, reason) of those that cannot be used."""
    words, skipped = {}, []
    for recording in recordings:
        try:
            samples = cut_ends(load(recording.path, SAMPLE_RATE), trim_db)
        except ValueError as error:
            skipped.append((recording.path.name, str(error)))
            continue
        if len(samples):
            words[recording] = samples
        else:
            skipped.append((recording.path.name, "it is silent."))
    return words, skipped
