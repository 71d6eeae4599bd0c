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

from benchmarks.processes import timed
from isotone.audio import load
from isotone.batch.environment import ONE_THREAD
from isotone.corpus.librispeech import LibriSpeechCorpus
from isotone.evaluation import markdown_table
from isotone.model import Model
from isotone.pipeline import Pipeline

RATE = 16_000

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


def found_words(path: Path) -> dict[int, tuple[float, float]]:
    """Read the words of an alignment: start and end by their first character in the book."""
    if not path.is_file():
        return {}
    words = json.loads(path.read_text())["tiers"][0]["segments"]
    return {word["start_char"]: (word["start"], word["end"]) for word in words if "start_char" in word}


def compared(
    one: Recording, found: dict[int, tuple[float, float]], alone: dict[Path, list[tuple[int, float, float]]]
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


def measure(
    name: str, some: Sequence[Recording], book: Path, folder: Path, alone: dict[Path, list[tuple[int, float, float]]]
) -> list[str]:
    """Align recordings with the book in a process of its own, and return a row of the table."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "isotone", "align", str(folder), "--book", str(book), "--out", out]
        spent = timed([*command, "--format", "json", "--quiet"], {**os.environ, **ONE_THREAD}, allowed=(0, 1))
        rows = [compared(one, found_words(Path(out, f"{one.id}.json")), alone) for one in some]
        right = sum(_right(one, errors, false) for one, (errors, false) in zip(some, rows))
    errors = np.concatenate([errors for errors, _ in rows])
    false = sum(count for _, count in rows)
    hours = sum(soundfile.info(folder / f"{one.id}.flac").duration for one in some) / 3600
    near = [f"{100 * (errors <= limit).mean():.2f}" for limit in WITHIN]
    cost = [f"{spent.cpu_s / hours:.0f}", f"{spent.mib:.0f}"]
    return [name, f"{hours:.2f}", f"{right} of {len(some)}", str(len(errors)), *near, str(false), *cost]


def _right(one: Recording, errors: NDArray[np.float64], false: int) -> bool:
    """Tell if a recording is assigned rightly: most of its words are where they are, or it has none."""
    return bool((errors <= WITHIN[-1]).mean() > 0.5 and false < len(errors) / 10) if len(errors) else not false


def sets(placed: dict[str, list[Utterance]], stranger: Sequence[Utterance], root: Path) -> Iterator[tuple[str, Path, list[Recording]]]:
    """Make the sets of recordings: by chapters, and all of them in one."""
    read = {name: said for i, (name, said) in enumerate(placed.items(), 1) if i % EVERY}
    for name in ("by chapters", "in one"):
        folder = root / name.replace(" ", "-")
        folder.mkdir()
        if name == "in one":
            yield name, folder, [recorded("all", [*stranger[:STRANGER], *(u for said in read.values() for u in said)], folder)]
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
    pipeline = Pipeline(Model.load("english"))
    alone = {one.path: oracle(pipeline, one) for said in placed.values() for one in said}
    head = ["recordings", "hours", "rightly assigned", "words"]
    head += [f"within {1000 * limit:.0f} ms, %" for limit in WITHIN]
    head += ["words that nobody said", "processor s per hour", "peak MiB"]
    with tempfile.TemporaryDirectory() as folder:
        book = Path(folder, "book.txt")
        book.write_text(text, encoding="utf-8")
        rows = [
            measure(name, some, book, audio, alone) for name, audio, some in sets(placed, chapters[other], Path(folder))
        ]
    typer.echo(f"A book of {len(text.split())} words.\n\n{markdown_table(head, rows)}", nl=False)


if __name__ == "__main__":
    typer.run(main)
