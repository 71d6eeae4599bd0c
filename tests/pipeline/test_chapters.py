"""Chapters by their headings, as texts of Project Gutenberg and others have them."""

from __future__ import annotations

from itertools import pairwise

import pytest

from isotone.pipeline.books import chapters

BODY = "Words of a chapter that go on and on until there are enough of them to count. " * 3


def titles(text: str) -> list[str]:
    return [chapter.title for chapter in chapters(text)]


def test_a_book_of_project_gutenberg() -> None:
    text = (
        "The Project Gutenberg eBook of A Book\n\nCHAPTER 0\n\n" + BODY + "\n\n"
        "*** START OF THE PROJECT GUTENBERG EBOOK A BOOK ***\n\nA BOOK\n\nContents\n\n"
        "  CHAPTER I. The First\n  CHAPTER II. The Second\n CHAPTER III. The Third\n\n\n"
        f"Preface\n\n{BODY}\n\n\nCHAPTER I.\nThe First\n\n{BODY}\n{BODY}\n\n\nCHAPTER II\n\nThe Second\n\n{BODY}\n\n"
        f"*** END OF THE PROJECT GUTENBERG EBOOK A BOOK ***\n\nCHAPTER IV\n\n{BODY}"
    )
    found = chapters(text)
    assert [c.title for c in found] == ["Preface", "CHAPTER I. The First", "CHAPTER II The Second"]
    for chapter in found:
        part = text[chapter.start : chapter.end]
        assert part.startswith(chapter.title.split()[0])
        assert part.endswith("to count.")
    assert all(a.end <= b.start for a, b in pairwise(found))


@pytest.mark.parametrize(
    "heading", ["CHAPTER XIV", "Chapter 3", "chapter the first", "LETTER 4", "Stave One", "Book Second", "IX.",
                "Act II", "Epilogue", "_Chapter Twenty-one_", "CHAPTER 7: Where It Goes On"],
)  # fmt: skip
def test_headings(heading: str) -> None:
    assert titles(f"A Title\n\n{heading}\n\n{BODY}\n") == [heading.strip("_")]


@pytest.mark.parametrize(
    "line",
    [
        "Chapter houses are old.",
        "part of it was gone",
        "The preface says so.",
        "I",
        "He read chapter 2 again.",
    ],
)
def test_lines_that_are_no_headings(line: str) -> None:
    assert titles(f"Before it.\n{line}\n{BODY}") == []


def test_a_sentence_after_a_heading_is_no_title() -> None:
    assert titles(f"CHAPTER I\n\nNobody spoke.\n\n{BODY}") == ["CHAPTER I"]
    assert titles(f"CHAPTER I\n\nA Title\n\n{BODY}") == ["CHAPTER I A Title"]
    assert titles(f"CHAPTER I. The Sea\n\nNot a Title\n\n{BODY}") == ["CHAPTER I. The Sea"]


def test_no_headings() -> None:
    assert titles(BODY) == []
    assert titles("") == []
