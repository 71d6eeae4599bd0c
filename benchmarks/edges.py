"""Errors of an aligner where a recording begins and ends with other sound than its text: music, noise, silence.

``python -m benchmarks.edges MODEL SPEECH MUSIC`` puts edges around the recordings of a folder, aligns each with its
transcript, and prints the distance of the words from their times in the recording alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from isotone import audio as sound
from isotone.batch.inputs import find_audio, find_transcript, read_text
from isotone.evaluation import markdown_table
from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.pipeline.result import Result

Samples = NDArray[np.float32]

#: A word that begins or ends at least so many seconds from its true time is lost.
LOST_S = 0.25

_BABBLE = 8  # voices


@dataclass(frozen=True)
class Spoken:
    """A recording, its text, and the words of its alignment alone: ``(n, 2)`` seconds."""

    id: str
    samples: Samples
    text: str
    words: NDArray[np.float64]


def words_of(result: Result) -> NDArray[np.float64]:
    """Return starts and ends of the words in seconds: ``(n, 2)``."""
    return np.array([(word.start, word.end) for word in result.alignment.tier("words")]).reshape(-1, 2)


def spoken(pipeline: Pipeline, folder: Path, most: int) -> Iterator[Spoken]:
    """Choose at most so many recordings of a folder, evenly spaced, each with its transcript beside it."""
    found = find_audio([folder])
    rate = pipeline.model.encoder.sample_rate
    for path in found[:: max(1, len(found) // most)][:most]:
        samples = sound.load(path, rate)
        text = read_text(find_transcript(path, None).path, len(samples) / rate)
        yield Spoken(
            path.stem, samples, text, words_of(pipeline.align(path.stem, samples, pipeline.encode(text)))
        )


def sources(some: Sequence[Spoken], music: Path, rate: int) -> dict[str, Samples]:
    """Return the sounds of the edges by name."""
    random = np.random.default_rng(0)
    size = 60 * rate
    clicks = random.normal(size=size) * (random.random(size) < 0.02) * random.random(size)
    swell = np.repeat(random.uniform(0.3, 1, size // 800 + 1), 800)[:size]
    voices = [np.resize(one.samples, size) for one in some[:_BABBLE]]
    made = {
        "white noise": random.normal(size=size),
        "applause": np.convolve(clicks, np.exp(-np.arange(400) / 80), "same") * swell,
        "babble": sum(np.roll(voice, 9973 * i) for i, voice in enumerate(voices)),
        "silence": np.zeros(size),
    }
    pieces = {path.stem[:24]: sound.load(path, rate) for path in find_audio([music])}
    return pieces | {name: np.asarray(samples, np.float32) for name, samples in made.items()}


def level(samples: Samples) -> float:
    """Compute the root mean square."""
    return float(np.sqrt(np.mean(np.square(samples, dtype=np.float64))))


def between(speech: Samples, edge: Samples, samples: int, db: float) -> Samples:
    """Put so many samples before and after speech, so many decibels louder; the edge is repeated as needed."""
    loud = level(edge)
    gain = 0.0 if loud == 0 else level(speech) / loud * 10 ** (db / 20)
    whole = np.resize(edge, 2 * samples) * gain
    return np.concatenate([whole[:samples], speech, whole[samples:]]).astype(np.float32)


def errors(result: Result, one: Spoken, shift_s: float) -> NDArray[np.float64]:
    """Return every word's errors of start and end in seconds: ``(n, 2)``; infinite where words are missing."""
    found = words_of(result) - shift_s
    return np.abs(found - one.words) if found.shape == one.words.shape else np.full(one.words.shape, np.inf)


def measure(
    pipeline: Pipeline, some: Sequence[Spoken], edges: Mapping[str, Samples], seconds: float, db: float
) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Measure the errors of all words, by the name of the edge."""
    rate = pipeline.model.encoder.sample_rate
    size = round(seconds * rate)
    others = {one.id: some[i - 1].samples for i, one in enumerate(some)}
    for name in [*edges, "other speech"]:
        found = []
        for one in some:
            samples = between(one.samples, edges[name] if name in edges else others[one.id], size, db)
            result = pipeline.align(one.id, samples, pipeline.encode(one.text))
            found.append(errors(result, one, size / rate))
        yield name, np.concatenate(found)


def main(
    model: Annotated[str, typer.Argument(help="Model or run folder, or a hub id.")],
    speech: Annotated[Path, typer.Argument(help="Folder of recordings with transcripts beside them.")],
    music: Annotated[Path, typer.Argument(help="Folder of recordings that are not speech.")],
    sentences: Annotated[int, typer.Option(min=2, help="Recordings to take, at most.")] = 8,
    seconds: Annotated[list[float], typer.Option(help="Seconds before and after.")] = [20.0],  # noqa: B006
    db: Annotated[list[float], typer.Option(help="Level beside the speech's, dB.")] = [0.0],  # noqa: B006
    whole: Annotated[bool, typer.Option(help="Align as if the recording were its text alone.")] = False,
) -> None:
    """Put edges around recordings, and print the distance of their words from their times without edges."""
    pipeline = Pipeline(Model.load(model))
    some = list(spoken(pipeline, speech, sentences))
    pipeline.finds_edges &= not whole
    edges = sources(some, music, pipeline.model.encoder.sample_rate)
    head = ["edges", "seconds", "dB", "median error of starts, ms", "of ends, ms", "words lost %"]
    rows = []
    for length, level in itertools.product(seconds, db):
        for name, off in measure(pipeline, some, edges, length, level):
            start, end = np.median(off, 0) * 1000
            lost = 100 * (off.max(1) > LOST_S).mean()
            rows.append([name, f"{length:g}", f"{level:g}", f"{start:.0f}", f"{end:.0f}", f"{lost:.1f}"])
    typer.echo(markdown_table(head, rows), nl=False)


if __name__ == "__main__":
    typer.run(main)
