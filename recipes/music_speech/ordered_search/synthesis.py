"""Synthetic recordings: espeak-ng voices that read sentences, and tunes of oscillators."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import soxr
from numpy.typing import NDArray

from isotone.corpus.notes import add_note, pitch_hz, timbre

Audio = NDArray[np.float32]

# Semitones above the tonic.
_SCALES = ((0, 2, 4, 5, 7, 9, 11), (0, 2, 3, 5, 7, 8, 10), (0, 3, 5, 7, 10), (0, 2, 3, 5, 7, 9, 10))
_PROGRESSIONS = ((0, 4, 5, 3), (0, 5, 3, 4), (0, 3, 4, 0), (1, 4, 0, 5), (0, 0, 3, 4), (5, 3, 0, 4))


def speech(count: int, seconds: float, sample_rate: int, seed: int) -> Iterator[tuple[str, Audio]]:
    """Synthesise speakers, each one recording of the sentences in an order of its own.

    Args:
        count: Recordings, one per voice.
        seconds: Of each.
        sample_rate: Hz.
        seed: Of voices and texts.

    Yields:
        Name and samples, full scale [-1, 1].

    Raises:
        EspeakNotInstalled: ``espeakng-loader`` is absent.
    """
    from isotone.corpus.synth import sentences
    from isotone.corpus.voices import speakers
    from isotone.text.espeak import SAMPLE_RATE, Engine

    texts, engine = sentences(), Engine(seed)
    for speaker in speakers(count, 0, seed)[0]:
        rng = np.random.default_rng([seed, len(speaker.name), *speaker.name.encode()])
        parts: list[Audio] = []
        length, order = 0, iter(())
        while length < seconds * SAMPLE_RATE:
            number = next(order, None)
            if number is None:
                order = iter(rng.permutation(len(texts)).tolist())
                continue
            sentence = engine.say(
                texts[number], voice=f"en-us+{speaker.variant}", rate=speaker.rate, pitch=speaker.pitch,
                pitch_range=speaker.pitch_range,
            )  # fmt: skip
            parts.append(sentence.samples.astype(np.float32) / 32768)
            length += len(parts[-1])
        samples = soxr.resample(np.concatenate(parts), SAMPLE_RATE, sample_rate)[
            : round(seconds * sample_rate)
        ]
        yield speaker.name, (0.5 * samples / np.abs(samples).max()).astype(np.float32)


def music(count: int, seconds: float, sample_rate: int, seed: int) -> Iterator[tuple[str, Audio]]:
    """Synthesise tunes, each with its own key, scale, tempo, chords, timbres and drums.

    Arguments and results as in :func:`speech`.
    """
    for number in range(count):
        yield f"tune{number:04d}", _tune(np.random.default_rng([seed, number]), seconds, sample_rate)


def _tune(rng: np.random.Generator, seconds: float, rate: int) -> Audio:
    total = round(seconds * rate)
    out = np.zeros(total)
    tonic, scale = int(rng.integers(45, 57)), _SCALES[rng.integers(len(_SCALES))]
    beat_s = 60 / float(rng.uniform(70, 150))
    chords = _PROGRESSIONS[rng.integers(len(_PROGRESSIONS))]
    lead, pad, bass = (timbre(rng) for _ in range(3))
    degree, start_s = int(rng.integers(7)), 0.0
    beats = int(seconds / beat_s) + 1
    for beat in range(beats):
        chord = chords[beat // 4 % len(chords)]
        if beat % 4 == 0:
            for third in (0, 2, 4):
                pitch = pitch_hz(tonic, scale, chord + third)
                add_note(out, pad, pitch, beat * beat_s, 4 * beat_s, 0.12, rate)
        add_note(out, bass, pitch_hz(tonic - 12, scale, chord), beat * beat_s, beat_s, 0.25, rate)
        if beat % 2 == 0:
            _drum(out, rng, beat * beat_s, 0.2, rate)
    while start_s < seconds:
        length = beat_s * float(rng.choice((0.25, 0.5, 0.5, 1.0, 1.5)))
        degree = int(np.clip(degree + rng.integers(-3, 4), -3, 12))
        if rng.random() > 0.12:
            add_note(out, lead, pitch_hz(tonic + 12, scale, degree), start_s, length, 0.35, rate)
        start_s += length
    return (0.5 * out / np.abs(out).max()).astype(np.float32)


def _drum(
    out: NDArray[np.float64], rng: np.random.Generator, start_s: float, level: float, rate: int
) -> None:
    first = round(start_s * rate)
    size = min(len(out) - first, round(0.1 * rate))
    if size > 0:
        t = np.arange(size) / rate
        out[first : first + size] += level * rng.standard_normal(size) * np.exp(-t / 0.03)
