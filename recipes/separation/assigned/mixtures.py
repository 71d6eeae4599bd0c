"""Mixtures of voices: clips of speakers, added at random levels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import soxr
import torch
from torch import Tensor

from isotone import audio
from isotone.corpus import voices as synthetic_voices
from isotone.corpus.synth import sentences
from isotone.text.espeak import Engine

#: Samples per second of all mixtures.
SAMPLE_RATE = 8000

_SUFFIXES = {".wav", ".flac", ".mp3", ".ogg"}
# A clip whose root mean square is below this share of its recording's is a pause.
_QUIET = 0.3

#: Recordings by speaker.
Voices = list[list[np.ndarray]]


def synthetic(
    *, seconds: float, speakers: int = 16, test_speakers: int = 8, clips: int = 24, seed: int = 0
) -> tuple[Voices, Voices]:
    """Synthesise clips of espeak-ng voices; the test has voices and sentences of its own.

    Args:
        seconds: Length of a clip.
        speakers, test_speakers: Their numbers.
        clips: Of each speaker.
        seed: Of everything random.

    Raises:
        EspeakNotInstalled: espeak-ng is absent.
    """
    engine, texts = Engine(seed), sentences()
    rng = np.random.default_rng([seed, 21])
    order = rng.permutation(len(texts)).tolist()
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    sides: list[Voices] = []
    for people, numbers in zip(synthetic_voices.speakers(speakers, test_speakers, seed), halves):
        side: Voices = []
        for person in people:
            said: list[np.ndarray] = []
            while len(said) < clips:
                text = texts[int(rng.choice(numbers))]
                spoken = synthetic_voices.record(engine, person, 1, text, rng)
                samples = spoken.samples.astype(np.float32) / 32768
                samples = soxr.resample(samples, synthetic_voices.SAMPLE_RATE, SAMPLE_RATE)
                said += _cut(samples, seconds)
            side.append(said[:clips])
        sides.append(side)
    return sides[0], sides[1]


def folder(
    *, seconds: float, root: str | Path, test_speakers: int = 4, seed: int = 0
) -> tuple[Voices, Voices]:
    """Read recordings below a folder; a recording's speaker is the first folder of its path.

    Args:
        seconds: Length of the clips they are cut into.
        root: Folder with one folder per speaker.
        test_speakers: Speakers of the test, drawn at random.
        seed: Of the draw.

    Raises:
        FileNotFoundError: not enough speakers.
    """
    found: dict[str, list[np.ndarray]] = {}
    for path in sorted(Path(root).rglob("*")):
        parts = path.relative_to(root).parts
        if path.suffix.lower() in _SUFFIXES and len(parts) > 1:
            clips = _cut(audio.load(path, SAMPLE_RATE), seconds)
            if clips:
                found.setdefault(parts[0], []).extend(clips)
    if len(found) < test_speakers + 2 or test_speakers < 2:
        raise FileNotFoundError(
            f"Expected recordings by {max(2, test_speakers) + 2} speakers or more below {root}, a folder each, of "
            f"{seconds:g} s at least; got {len(found)}, with {test_speakers} for the test."
        )
    names = np.random.default_rng([seed, 22]).permutation(sorted(found)).tolist()
    return [found[n] for n in names[test_speakers:]], [found[n] for n in names[:test_speakers]]


#: Sources of voices by the name that a configuration gives.
SOURCES: dict[str, Callable[..., tuple[Voices, Voices]]] = {"synthetic": synthetic, "folder": folder}


def _cut(samples: np.ndarray, seconds: float) -> list[np.ndarray]:
    """Cut a recording into clips without those that are mostly pause."""
    size = round(seconds * SAMPLE_RATE)
    level = float(np.sqrt(np.mean(samples**2))) if len(samples) else 0.0
    clips = [samples[i : i + size] for i in range(0, len(samples) - size + 1, size)]
    return [clip for clip in clips if np.sqrt(np.mean(clip**2)) > _QUIET * level]


def mix(voices: Voices, count: int, size: int, level_db: float, rng: np.random.Generator) -> Tensor:
    """Draw mixtures of different speakers.

    Args:
        voices: Clips by speaker, of one length.
        count: M.
        size: K, voices of a mixture.
        level_db: Each voice is louder or softer than the others by up to so much.
        rng: Of the draws.

    Returns:
        The voices of the mixtures ``(M, K, N)``; a mixture is their sum, of mean square 1 / 100 at most.

    Raises:
        ValueError: fewer speakers than voices.
    """
    if len(voices) < size:
        raise ValueError(f"Mixtures of {size} voices need as many speakers; got {len(voices)}.")
    drawn = []
    for _ in range(count):
        people = rng.permutation(len(voices))[:size]
        clips = np.stack([_pick(voices[p], rng) for p in people])
        clips /= np.sqrt(np.mean(clips**2, axis=1, keepdims=True)) + 1e-8
        clips *= 10 ** (rng.uniform(-level_db, level_db, (size, 1)) / 20)
        drawn.append(0.1 * clips / np.sqrt(size))
    return torch.from_numpy(np.stack(drawn).astype(np.float32))


def _pick(clips: Sequence[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    return clips[int(rng.integers(len(clips)))]
