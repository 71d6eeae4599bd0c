"""Corpora in the files of TIMIT: synthetic scenes, and real speech whose labels a model gave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from isotone.corpus.layouts import TimitLayout
from isotone.corpus.voices import SAMPLE_RATE, Speaker, Utterance, speakers
from isotone.files import atomic_folder
from isotone.text.espeak import Engine
from spoken.marks import labelled
from spoken.scenes import scene
from spoken.sharing import share
from spoken.speech import FLITE, Spoken, by_espeak, by_flite
from spoken.texts import spoken_sentences

# Share of the scenes that flite speaks; the rest is espeak-ng's.
_FLITE_SHARE = 0.7
# Longest scene in seconds, about.
_LONGEST_S = 10.0
# Seconds of a shard, which is made by itself: the number of processes does not change the corpus.
_SHARD_S = 900.0
# Hours of scenes that margins are fitted to, and what is added to the seed for them.
_KNOWN_HOURS, _KNOWN_SEED = 0.75, 77
# More than a shard has scenes.
_SHARD_SCENES = 10_000


class _Shard(NamedTuple):
    """A part of one side of the corpus.

    Attributes:
        layout: Where it is written.
        people: The side's voices.
        transcripts: See :func:`spoken.texts.spoken_sentences`.
        seconds: Its least length.
        number: Its number in its side.
        seed: Of everything random in it.
    """

    layout: TimitLayout
    people: list[Speaker]
    transcripts: list[Path]
    seconds: float
    number: int
    seed: tuple[int, ...]


def write_scenes(
    root: Path,
    transcripts: Sequence[Path],
    hours: float,
    test_hours: float,
    seed: int,
    people: int = 60,
    workers: int = 1,
) -> None:
    """Write scenes of many voices.

    Args:
        root: An empty folder.
        transcripts: See :func:`spoken.texts.spoken_sentences`.
        hours, test_hours: Of train, and of dev and test together.
        seed: Of everything random.
        people: Voices of train; dev and test have a fifth of that.
        workers: Processes; their number does not change what is written.
    """
    train, test = speakers(people, max(2, people // 5), seed)
    layout = TimitLayout(root, [s.name for s in train], [s.name for s in test])
    shards = []
    for side, (voices, length) in enumerate(((train, hours), (test, test_hours))):
        starts = np.arange(0.0, length * 3600, _SHARD_S)
        for number, start in enumerate(starts):
            seconds = min(_SHARD_S, length * 3600 - float(start))
            shards.append(_Shard(layout, voices, list(transcripts), seconds, number, (seed, side, number)))
    share(_speak, shards, workers, "speaking")


def write_known(root: Path, transcripts: Sequence[Path], seed: int = 0, workers: int = 1) -> Path:
    """Write scenes of other voices than those of training, to fit margins to; where they are, they stay.

    Args:
        root: The folder; it is returned.
        transcripts: See :func:`spoken.texts.spoken_sentences`.
        seed: Of the training.
        workers: Processes.
    """
    if not root.is_dir():
        with atomic_folder(root) as folder:
            write_scenes(folder, transcripts, _KNOWN_HOURS, 0.01, seed + _KNOWN_SEED, workers=workers)
    return root


def _speak(shard: _Shard) -> None:
    """Write a shard."""
    seconds = 0.0
    scenes = _utterances(shard.people, shard.transcripts, np.random.default_rng(shard.seed))
    while seconds < shard.seconds:
        utterance = next(scenes)
        seconds += len(utterance.samples) / SAMPLE_RATE
        shard.layout.add(replace(utterance, number=utterance.number + shard.number * _SHARD_SCENES))


def _utterances(
    people: Sequence[Speaker], transcripts: Sequence[Path], rng: np.random.Generator
) -> Iterator[Utterance]:
    texts = spoken_sentences(transcripts, rng)
    engine = Engine(int(rng.integers(1 << 31)))
    number = 0
    while True:
        number += 1
        person = people[rng.integers(len(people))]
        # by the voice's name, so that a speaker is flite's or espeak's in all scenes
        voice = np.random.default_rng([*person.name.encode()])
        flite = voice.random() < _FLITE_SHARE
        name = FLITE[voice.integers(len(FLITE))]
        size = float(voice.uniform(0.86, 1.18)) if flite else person.size
        person = replace(person, size=size, noise_db=float(rng.uniform(5, 45)))
        spoken: list[Spoken] = []
        said: list[str] = []
        while not spoken or (_seconds(spoken) < _LONGEST_S / 2 and rng.random() < 0.5):
            text = next(texts)
            try:
                if flite:
                    part = by_flite(
                        text, name, size, float(rng.uniform(0.75, 1.2)), float(rng.uniform(80, 190))
                    )
                else:
                    part = by_espeak(engine, text, person)
            except ValueError:
                continue
            spoken.append(part)
            said.append(text)
        samples, marks = scene(spoken, person, rng)
        yield Utterance(
            person.name,
            number,
            ". ".join(said),
            np.round(samples * 32767).astype(np.int16),
            labelled(marks),
            (),
        )


def _seconds(parts: Sequence[Spoken]) -> float:
    return sum(len(part.samples) for part in parts) / SAMPLE_RATE
