"""Readings of numbers, abbreviations and signs that are chosen by the audio, and the times of their words.

``python -m benchmarks.numbers`` prints the table: 200 sentences, in each of which a synthetic voice says one reading of
a written form. The text that is aligned has the written form. The reading is right if its words are those that were
said. The times of all words are compared with the synthesiser's, and with those of the same text written out.

``--flite`` takes Debian's ``flite`` for a second synthesiser, of which the readings alone are judged.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from isotone import audio as sound
from isotone.alignment import SILENCE, Tier
from isotone.corpus.voices import SAMPLE_RATE, record, speakers
from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.text.espeak import Engine

ITEMS = Path(__file__).with_suffix(".txt")


class Sentence(NamedTuple):
    """A sentence to be said.

    Attributes:
        kind: What is written in it.
        before, after: Its words around the written form.
        written, said: The written form, and the reading that is said.
    """

    kind: str
    before: list[str]
    after: list[str]
    written: str
    said: str


class Measured(NamedTuple):
    """The alignment of one sentence, with its text as written and as said.

    Attributes:
        right: The reading chosen is the one that is said.
        chosen: The reading chosen.
        errors: ``(words, 2)`` ms off at both ends of words, for the text as written.
        plain: The same for the text as said, of the same words.
    """

    right: bool
    chosen: str
    errors: np.ndarray
    plain: np.ndarray


def sentences(most: int) -> list[Sentence]:
    """List the sentences: of every item its first reading, then the second ones, and so on, over again for others."""
    lines = ITEMS.read_text(encoding="utf-8").splitlines()[1:]
    rows = [[field.strip() for field in line.split("|")] for line in lines]
    found = []
    for rank in range(4):
        for kind, frame, forms in rows:
            written, _, said = forms.partition(" = ")
            readings = said.split(";")
            if rank < len(readings):
                before, after = (part.split() for part in frame.split("{}"))
                found.append(Sentence(kind, before, after, written.strip(), readings[rank].strip()))
    return [found[i % len(found)] for i in range(most)]


def spans(tier: Tier) -> list[tuple[float, float]]:
    """List the times of a tier's words in seconds."""
    return [(s.start, s.end) for s in tier if s.label not in SILENCE]


def joined(rows: list[tuple[float, float]], sizes: list[int]) -> np.ndarray:
    """Join neighbouring spans to ``(len(sizes), 2)``: groups of the given sizes, each from its first to its last."""
    ends = np.cumsum(sizes)
    return np.array([(rows[end - size][0], rows[end - 1][1]) for end, size in zip(ends, sizes)])


def measured(
    pipeline: Pipeline, sentence: Sentence, samples: np.ndarray, true: list[tuple[float, float]] | None
) -> Measured:
    """Align a sentence as written and as said; ``true`` are the times of the words that are said."""
    before, after, said = sentence.before, sentence.after, sentence.said.split()
    written = sentence.written.split()

    def align(words: list[str]) -> Tier:
        return pipeline.align("", samples, pipeline.encode(" ".join(words))).alignment.tier("words")

    tier = align([*before, *written, *after])
    own = tier.segments[len(before) : len(before) + len(written)]
    chosen = " ".join(s.origin.reading for s in own if s.origin)
    right = chosen == sentence.said.lower()
    if true is None:
        return Measured(right, chosen, np.zeros((0, 2)), np.zeros((0, 2)))
    shown, spoken = ([*(1 for _ in before), len(form), *(1 for _ in after)] for form in (written, said))
    of_written = joined(spans(tier), shown)
    of_spoken = joined(spans(align([*before, *said, *after])), spoken)
    expected = joined(true, spoken)
    return Measured(right, chosen, 1000 * abs(of_written - expected), 1000 * abs(of_spoken - expected))


def by_espeak(rows: list[Sentence]) -> Iterator[tuple[np.ndarray, list[tuple[float, float]] | None]]:
    """Say sentences with espeak-ng, by voices that the pack was not trained with; with the times of the words."""
    engine, people = Engine(11), speakers(4, 8, 2024)[1]
    for number, row in enumerate(rows):
        text = " ".join([*row.before, row.said, *row.after])
        heard = record(engine, people[number % len(people)], number, text, np.random.default_rng(number))
        times = [(word.start / SAMPLE_RATE, word.end / SAMPLE_RATE) for word in heard.words]
        yield heard.samples.astype(np.float32) / 32768, times


def by_flite(rows: list[Sentence]) -> Iterator[tuple[np.ndarray, list[tuple[float, float]] | None]]:
    """Say sentences with flite's voices, which do not tell the times of words."""
    voices = ("slt", "rms", "awb")
    with tempfile.TemporaryDirectory() as folder:
        for number, row in enumerate(rows):
            path = Path(folder) / "said.wav"
            text = " ".join([*row.before, row.said, *row.after])
            subprocess.run(["flite", "-voice", voices[number % 3], "-t", text, "-o", str(path)], check=True)
            yield sound.load(path, SAMPLE_RATE), None


def table(rows: list[Sentence], found: list[Measured]) -> Table:
    """Make the table: a row for each kind, and one for all."""
    kinds: dict[str, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        kinds[row.kind].append(i)
    shown = Table("kind", "sentences", "right %", "written: mean ms", "20 ms %", "said: mean ms", "20 ms %")
    for kind, own in [*kinds.items(), ("all", list(range(len(rows))))]:
        errors = [
            np.concatenate([getattr(found[i], name) for i in own]).ravel() for name in ("errors", "plain")
        ]
        cells = [f"{x:.1f}" for e in errors for x in ((np.mean(e), 100 * np.mean(e < 20)) if len(e) else ())]
        right = 100 * np.mean([found[i].right for i in own])
        shown.add_row(kind, str(len(own)), f"{right:.1f}", *cells)
    return shown


def main() -> None:
    """Print the table, and the sentences whose reading is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.numbers", description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="english", help="the model")
    parser.add_argument("--sentences", type=int, default=200, help="number of sentences")
    parser.add_argument("--flite", action="store_true", help="voices of flite instead of espeak-ng's")
    options = parser.parse_args()
    pipeline = Pipeline(Model.load(options.model))
    rows = sentences(options.sentences)
    said = (by_flite if options.flite else by_espeak)(rows)
    found = [
        measured(pipeline, row, *heard)
        for row, heard in track(zip(rows, said), "Aligning", total=len(rows), transient=True)
    ]
    console = Console()
    console.print(table(rows, found))
    for row, one in zip(rows, found):
        if not one.right:
            console.print(f"{row.written}: said {row.said!r}, chosen {one.chosen!r}", markup=False)


if __name__ == "__main__":
    main()
