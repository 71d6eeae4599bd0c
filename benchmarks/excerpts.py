"""Short recordings of a book: how many of them are found in it, and how many recordings of no book.

``python -m benchmarks.excerpts LIBRISPEECH OTHERS...`` prints the table. The book is that of :mod:`benchmarks.books`,
and every utterance a recording. It is found rightly if most of the words that were found are its own. Other folders are
those of :mod:`benchmarks.doubt`: their recordings are not of the book, and none should be found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.console import Console
from rich.progress import track

from benchmarks.books import RATE, book_of, chapters_of
from benchmarks.doubt import spread, transcripts
from isotone.audio import load
from isotone.evaluation import markdown_table
from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.pipeline.books import Book, find

#: Seconds that divide the rows of the table.
EDGES = (0.0, 3.0, 5.0, 8.0, 12.0, 20.0, float("inf"))


class Short(NamedTuple):
    """A recording, and the characters of the book that it holds; none for another book's."""

    path: Path
    place: tuple[int, int] | None


class Tried(NamedTuple):
    """A recording that was looked for: its seconds, if it is of the book, if it was found, and if that is right."""

    seconds: float
    own: bool
    found: bool
    right: bool


def tried(pipeline: Pipeline, book: Book, one: Short) -> Tried:
    """Look for a recording in the book."""
    samples = load(one.path, RATE)
    parts = find(pipeline, book, one.path.stem, samples).parts
    words = [book.words[number].tolist() for part in parts for number in range(part.first, part.last)]
    inside = sum(one.place[0] <= start < one.place[1] for start, _ in words) if one.place else 0
    right = bool(words) and inside > len(words) / 2
    return Tried(len(samples) / RATE, one.place is not None, bool(parts), right)


def rows(found: Sequence[Tried]) -> Iterator[list[str]]:
    """Compute the rows of the table."""
    for low, high in pairwise(EDGES):
        some = [one for one in found if low <= one.seconds < high]
        own, others = [one for one in some if one.own], [one for one in some if not one.own]
        name = f"{low:g} to {high:g}" if high < EDGES[-1] else f"{low:g} and more"
        right, false = sum(one.right for one in own), sum(one.found for one in others)
        wrong = sum(one.found and not one.right for one in own)
        yield [name, str(len(own)), str(right), str(wrong), str(len(others)), str(false)]


def main(
    librispeech: Annotated[Path, typer.Argument(help="Folder of LibriSpeech, or of one of its parts.")],
    others: Annotated[list[Path], typer.Argument(help="Folders of recordings of other texts.")],
    limit: Annotated[int, typer.Option(help="Recordings of each folder, spread over it; 0: all.")] = 60,
) -> None:
    """Look for short recordings in a book, and print a table by their lengths in seconds."""
    text, placed = book_of(chapters_of(librispeech))
    utterances = [one for chapter in placed.values() for one in chapter]
    short = [Short(one.path, (one.start, one.start + len(one.text))) for one in spread(utterances, limit)]
    for folder in others:
        short += [Short(path, None) for path, _ in spread(list(transcripts(folder)), limit)]
    pipeline = Pipeline(Model.load("english"))
    book = Book.of(text, pipeline)
    shown = track(short, transient=True, console=Console(stderr=True))
    found = [tried(pipeline, book, one) for one in shown]
    head = ["seconds", "of the book", "found", "elsewhere", "of no book", "found"]
    typer.echo(f"A book of {len(text.split())} words.\n\n{markdown_table(head, list(rows(found)))}", nl=False)


if __name__ == "__main__":
    typer.run(main)
