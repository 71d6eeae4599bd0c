"""Recordings of a book against its whole text: words near their places, text that nobody read, memory and time.

``python -m benchmarks.books LIBRISPEECH`` makes a book of a folder of LibriSpeech. Its chapters are LibriSpeech's, with
a licence, a table of contents and headings. Every fourth chapter has no recording. Each other recording begins with
speech of a stranger, from a chapter that is not in the book; the rest of that chapter is a recording of no book. Words
are compared with the alignment of every utterance with its own text.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import soundfile
import typer
from numpy.typing import NDArray

from benchmarks.processes import Spent, timed
from isotone.audio import load
from isotone.batch.environment import ONE_THREAD
from isotone.evaluation import markdown_table
from isotone.model import Model
from isotone.pipeline import Pipeline

RATE = 16_000

#: Start and end in seconds of words, by their first character in the book.
Words = dict[int, tuple[float, float]]

#: Every so many chapters one is without a recording.
EVERY = 4

#: Utterances of the stranger before a recording.
STRANGER = 2

#: Seconds within which words are counted.
WITHIN = (0.1, 0.25, 1.0)

LICENCE = (
    "This book is for the use of anyone anywhere at no cost and with almost no restrictions whatsoever. "
    "You may copy it, give it away or use it again under the terms of the licence included with this book.\n"
)


@dataclass(frozen=True)
class Utterance:
    """An utterance: its file, its text, and the characters of the text in the book."""

    path: Path
    text: str
    start: int = -1


@dataclass(frozen=True)
class Recording:
    """A recording: utterances with their seconds, the stranger's first; those in the book have a place."""

    id: str
    said: list[tuple[float, Utterance]]


def chapters_of(folder: Path) -> dict[str, list[Utterance]]:
    """Read the chapters of a folder of LibriSpeech by their names, each sentence with a capital and a full stop."""
    found: dict[str, list[Utterance]] = {}
    for path in sorted(folder.rglob("*.trans.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            id, text = line.split(maxsplit=1)
            audio = next(path.parent.glob(f"{id}.*"))
            found.setdefault(path.name.split(".")[0], []).append(Utterance(audio, f"{text.capitalize()}."))
    return found


def book_of(chapters: dict[str, list[Utterance]]) -> tuple[str, dict[str, list[Utterance]]]:
    """Write the book; return its text, and the utterances with their places in it."""
    titles = {name: f"CHAPTER {number}" for number, name in enumerate(chapters, 1)}
    text = f"{LICENCE}\n*** START OF THE BOOK ***\n\nCONTENTS\n\n"
    text += "".join(f"{title}. As read by {name.split('-')[0]}\n" for name, title in titles.items())
    placed: dict[str, list[Utterance]] = {}
    for name, utterances in chapters.items():
        text += f"\n\n\n{titles[name]}\n\nAs read by {name.split('-')[0]}\n\n"
        placed[name] = []
        for one in utterances:
            placed[name].append(Utterance(one.path, one.text, len(text)))
            text += f"{one.text}\n\n"
    return text + f"\n*** END OF THE BOOK ***\n\n{LICENCE * 5}", placed


def recorded(id: str, utterances: Sequence[Utterance], folder: Path) -> Recording:
    """Write the recording of utterances, one after the other."""
    said, now = [], 0.0
    with soundfile.SoundFile(folder / f"{id}.flac", "w", RATE, 1) as file:
        for one in utterances:
            samples = load(one.path, RATE)
            file.write(samples)
            said.append((now, one))
            now += len(samples) / RATE
    return Recording(id, said)


def oracle(pipeline: Pipeline, one: Utterance) -> list[tuple[int, float, float]]:
    """Align an utterance with its own text: first character, start and end in seconds of every word."""
    result = pipeline.align(
        one.path.stem, load(one.path, RATE), pipeline.encode(one.text), judged=False
    ).alignment
    return [(w.origin.start, w.start, w.end) for w in result.tier("words") if w.origin is not None]


def found_words(path: Path) -> Words:
    """Read the words of an alignment: start and end by their first character in the book."""
    if not path.is_file():
        return {}
    words = json.loads(path.read_text())["tiers"][0]["segments"]
    return {word["start_char"]: (word["start"], word["end"]) for word in words if "start_char" in word}


def compared(
    one: Recording, found: Words, alone: dict[Path, list[tuple[int, float, float]]]
) -> tuple[NDArray[np.float64], int]:
    """Return the error of every word that was said, infinite where it has no times, and the number of false words."""
    truth = {
        said.start + place: (now + start, now + end)
        for now, said in one.said
        if said.start >= 0
        for place, start, end in alone[said.path]
    }
    none = (np.inf, np.inf)
    errors = [max(abs(a - b) for a, b in zip(times, found.get(at, none))) for at, times in truth.items()]
    return np.array(errors), len(found.keys() - truth.keys())


@dataclass(frozen=True)
class Run:
    """A set of recordings that was aligned: its name, hours, what the process took, and the words that it found."""

    name: str
    hours: float
    spent: Spent
    found: list[tuple[Recording, Words]]


def aligned(name: str, some: Sequence[Recording], book: Path, folder: Path) -> Run:
    """Align recordings with the book in a process of its own; that of the stranger is an error."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "isotone", "align", folder, "--book", book, "--out", out]
        allowed = (1,) if any(_strange(one) for one in some) else (0,)
        spent = timed([*command, "--format", "json", "--quiet"], {**os.environ, **ONE_THREAD}, allowed)
        found = [(one, found_words(Path(out, f"{one.id}.json"))) for one in some]
    return Run(name, sum(soundfile.info(path).duration for path in folder.iterdir()) / 3600, spent, found)


def row(run: Run, alone: dict[Path, list[tuple[int, float, float]]]) -> list[str]:
    """Compare a set of recordings, and return its row of the table."""
    rows = [(one, *compared(one, found, alone)) for one, found in run.found]
    right = sum(_right(errors, false) for _, errors, false in rows)
    errors = np.concatenate([errors for _, errors, _ in rows])
    near = [f"{100 * (errors <= limit).mean():.2f}" for limit in WITHIN]
    false = sum(false for _, _, false in rows)
    cost = [f"{run.spent.cpu_s / run.hours:.0f}", f"{run.spent.mib:.0f}"]
    return [
        run.name,
        f"{run.hours:.2f}",
        f"{right} of {len(rows)}",
        str(len(errors)),
        *near,
        str(false),
        *cost,
    ]


def _strange(one: Recording) -> bool:
    return all(said.start < 0 for _, said in one.said)


def _right(errors: NDArray[np.float64], false: int) -> bool:
    """Tell if a recording is assigned rightly: most of its words are where they are, or it has none."""
    return (
        bool((errors <= WITHIN[-1]).mean() > 0.5 and false < len(errors) / 10) if len(errors) else not false
    )


def sets(
    placed: dict[str, list[Utterance]], stranger: Sequence[Utterance], root: Path
) -> Iterator[tuple[str, Path, list[Recording]]]:
    """Make the sets of recordings: by chapters, and all of them in one."""
    read = {name: said for i, (name, said) in enumerate(placed.items(), 1) if i % EVERY}
    for name in ("by chapters", "in one"):
        folder = root / name.replace(" ", "-")
        folder.mkdir()
        if name == "in one":
            yield (
                name,
                folder,
                [
                    recorded(
                        "all", [*stranger[:STRANGER], *(u for said in read.values() for u in said)], folder
                    )
                ],
            )
            continue
        before = (stranger[i % len(stranger) :][:STRANGER] for i in range(len(read)))
        some = [recorded(id, [*first, *said], folder) for first, (id, said) in zip(before, read.items())]
        yield name, folder, [*some, recorded("stranger", stranger, folder)]


def main(
    librispeech: Annotated[Path, typer.Argument(help="Folder of LibriSpeech, or of one of its parts.")],
    most: Annotated[int, typer.Option(help="Chapters to take, at most; 0: all.")] = 0,
) -> None:
    """Align recordings of a book with its whole text, and print a table."""
    chapters = chapters_of(librispeech)
    *names, other = list(chapters)[: most or None]
    text, placed = book_of({name: chapters[name] for name in names})
    head = ["recordings", "hours", "rightly assigned", "words"]
    head += [f"within {1000 * limit:.0f} ms, %" for limit in WITHIN]
    head += ["words that nobody said", "processor s per hour", "peak MiB"]
    with tempfile.TemporaryDirectory() as folder:
        book = Path(folder, "book.txt")
        book.write_text(text, encoding="utf-8")
        # before a model is loaded here: the memory of a new process counts that of its parent at first
        runs = [
            aligned(name, some, book, audio)
            for name, audio, some in sets(placed, chapters[other], Path(folder))
        ]
    pipeline = Pipeline(Model.load("english"))
    alone = {one.path: oracle(pipeline, one) for said in placed.values() for one in said}
    table = markdown_table(head, [row(run, alone) for run in runs])
    typer.echo(f"A book of {len(text.split())} words.\n\n{table}", nl=False)


if __name__ == "__main__":
    typer.run(main)
