"""Coverage of a book: what each recording holds, and what of each chapter was read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

from isotone.pipeline.books.book import Book
from isotone.pipeline.books.chapters import Chapter
from isotone.pipeline.books.finding import Finding

#: Share of a chapter's words from which on it counts as read, and from which on as read to the end.
READ, WHOLE = 0.05, 0.95

_NAMED = 8


class Reading(NamedTuple):
    """The parts of the book that a recording holds, as plain values.

    Attributes:
        parts: Seconds and characters of every part: start, end, first character, one past the last.
        other: Spans of speech in seconds that is not in the book.
    """

    parts: list[tuple[float, float, int, int]]
    other: list[tuple[float, float]]

    @classmethod
    def of(cls, found: Finding, book: Book) -> Self:
        """Make the values of a finding."""
        parts = [(round(p.start, 2), round(p.end, 2), *book.places(p.first, p.last)) for p in found.parts]
        return cls(parts, [(round(start, 2), round(end, 2)) for start, end in found.other])

    def shown(self, chapters: Sequence[Covered]) -> dict[str, Any]:
        """Return the values with names, and the chapters of every part, for JSON."""
        names = ("start", "end", "start_char", "end_char")
        parts = [
            {
                **dict(zip(names, part)),
                "chapters": [c.title for c in chapters if c.start_char < part[3] and part[2] < c.end_char],
            }
            for part in self.parts
        ]
        return {"parts": parts, "other_speech": [{"start": a, "end": b} for a, b in self.other]}


class Covered(NamedTuple):
    """A chapter, and what of it was read.

    Attributes:
        title: Its heading.
        start_char, end_char: Its characters.
        words: Number of its words, as spaces divide them, without the heading.
        read: Share of these words that some recording holds, 0 to 1.
        recordings: The recordings that hold at least :data:`READ` of it, in order of its text.
        unread: Ranges of characters that no recording holds.
    """

    title: str
    start_char: int
    end_char: int
    words: int
    read: float
    recordings: list[str]
    unread: list[tuple[int, int]]


def covered(text: str, chapters: Sequence[Chapter], readings: Mapping[str, Reading]) -> list[Covered]:
    """Compute what of every chapter was read."""
    return [_covered(text, chapter, readings) for chapter in chapters]


def _covered(text: str, chapter: Chapter, readings: Mapping[str, Reading]) -> Covered:
    spans = sorted(
        (max(first, chapter.body), min(last, chapter.end), id)
        for id, reading in readings.items()
        for _, _, first, last in reading.parts
        if first < chapter.end and chapter.body < last
    )
    now, unread = chapter.body, []
    for first, last, _ in [*spans, (chapter.end, chapter.end, "")]:
        if _words(text[now:first]):
            unread.append((now, first))
        now = max(now, last)
    words = _words(text[chapter.body : chapter.end])
    missing = sum(_words(text[first:last]) for first, last in unread)
    own = {id: sum(b - a for a, b, other in spans if other == id) for _, _, id in spans}
    size = chapter.end - chapter.body
    recordings = [id for id, characters in own.items() if characters >= READ * size]
    return Covered(
        chapter.title,
        chapter.start,
        chapter.end,
        words,
        round(1 - missing / max(1, words), 4),
        recordings,
        unread,
    )


def _words(text: str) -> int:
    """Count the words of a text, as spaces divide them; marks by themselves are none."""
    return sum(any(map(str.isalnum, word)) for word in text.split())


def summary(chapters: Sequence[Covered], readings: Mapping[str, Reading]) -> Iterator[str]:
    """Iterate over lines for people: counts, and the chapters that were not read or only in part."""
    parts = sum(len(reading.parts) for reading in readings.values())
    other = sum(end - start for reading in readings.values() for start, end in reading.other)
    yield f"Book: {len(readings)} recordings hold {parts} parts of it, and {other:.0f} s of other speech"
    if not chapters:
        yield "No headings of chapters were found in its text."
        return
    unread = [c.title for c in chapters if c.read < READ]
    partly = [f"{c.title} ({c.read:.0%})" for c in chapters if READ <= c.read < WHOLE]
    whole = len(chapters) - len(unread) - len(partly)
    yield f"Chapters: {whole} of {len(chapters)} are read to the end"
    if partly:
        yield f"Read in part: {_named(partly)}"
    if unread:
        yield f"No recording: {_named(unread)}"


def _named(titles: Sequence[str]) -> str:
    rest = len(titles) - _NAMED
    return "; ".join(titles[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
