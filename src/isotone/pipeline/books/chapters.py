"""Chapters of a book, by the headings of its text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_NUMBER = (
    r"(?:[IVXLC]+|\d+|the\s+\w+|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|"
    r"(?:twenty|thirty|forty|fifty)(?:[- ]\w+)?|first|second|third|last)"
)
_KINDS = r"chapter|book|part|volume|letter|stave|canto|act|scene|section|chapitre|kapitel"
_ALONE = r"preface|foreword|prologue|epilogue|introduction|conclusion|afterword|appendix|postscript"
_HEADING = re.compile(
    rf"[ \t_*]*(?:(?:{_KINDS})[ \t]+{_NUMBER}\b[^\n]{{0,80}}|(?:{_ALONE})[.:]?[_*]*[ \t]*)(?=\n|$)",
    re.IGNORECASE,
)
_ROMAN = re.compile(r"[ \t]*[IVXLC]+\.?[ \t]*(?=\n|$)")
# Project Gutenberg puts its licence around the book
_BEGIN = re.compile(r"^\*\*\* ?START OF .*$", re.MULTILINE)
_END = re.compile(r"^(?:\*\*\* ?END OF|End of (?:the )?Project Gutenberg).*$", re.MULTILINE)

_PARAGRAPHS = re.compile(r"(?:^|\n)[ \t]*\n|\A")
_BESIDE = re.compile(r"\n[ \t]*([^\s][^\n]*)(?=\n[ \t]*(?:\n|$)|$)")
# a paragraph that ends as a sentence does is no title
_BELOW = re.compile(r"\n(?:[ \t]*\n){1,2}[ \t]*([^\s][^\n]*[^\s.!?\"\u201d,;:])[ \t]*(?=\n[ \t]*(?:\n|$)|$)")
_LONGEST_TITLE = 80

#: Fewest words of a chapter. Headings with fewer words after them are those of a table of contents.
LEAST_WORDS = 40


class Chapter(NamedTuple):
    """A chapter.

    Attributes:
        title: Its heading in one line.
        start: First character of its heading.
        body: First character after its heading.
        end: One past its last character.
    """

    title: str
    start: int
    body: int
    end: int


def chapters(text: str) -> list[Chapter]:
    """Find the chapters of a book: headings such as ``CHAPTER I`` or ``Preface`` after an empty line, and their text.

    A heading's second line, or the short paragraph after a heading without a title, is its title. Tables of contents
    and the licence of Project Gutenberg belong to no chapter.
    """
    begin, end = _BEGIN.search(text), _END.search(text)
    first = begin.end() if begin else 0
    last = end.start() if end and end.start() > first else len(text)
    headings = list(_headings(text, first, last))
    edges = [*(start for start, _, _ in headings[1:]), last]
    found = [(start, after, title, stop) for (start, after, title), stop in zip(headings, edges)]
    return [
        Chapter(title, start, after, start + len(text[start:stop].rstrip()))
        for start, after, title, stop in found
        if _body(text[after:stop]) >= LEAST_WORDS
    ]


def _body(text: str) -> int:
    """Count the words that are in no headings, such as those of a table of contents."""
    return sum(len(line.split()) for line in text.splitlines() if not _HEADING.match(line))


def _headings(text: str, first: int, last: int) -> Iterator[tuple[int, int, str]]:
    """Iterate over the headings: first character, first character after, and title."""
    for gap in _PARAGRAPHS.finditer(text, first, last):
        start = re.compile(r"\s*").match(text, gap.end()).end()  # type: ignore[union-attr]
        start = text.rfind("\n", 0, start) + 1
        found = _HEADING.match(text, start, last) or _ROMAN.match(text, start, last)
        if found:
            after = _titled(text, found.end(), last, bare=len(found[0].split()) <= 2)
            yield start, after, " ".join(text[start:after].split()).strip(" _*")


def _titled(text: str, end: int, last: int, bare: bool) -> int:
    """Return the end of a heading with its title: its next line or, if it has none yet, a short paragraph after it."""
    beside = _BESIDE.match(text, end, last)
    title = beside or (_BELOW.match(text, end, last) if bare else None)
    if title is None or len(title[1]) > _LONGEST_TITLE or _HEADING.match(text, title.start(1), last):
        return end
    return title.end()
