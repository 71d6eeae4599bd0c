"""Books as labels, and the parts of them that recordings hold."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.pipeline import Pipeline
from isotone.pipeline.books import Book, Chapter
from isotone.pipeline.books import finding as module
from isotone.pipeline.books.coverage import Reading, covered, summary
from isotone.pipeline.books.finding import ENTRY, LONG, entry_of, find
from isotone.pipeline.books.hearing import PER_NAT, Heard, hear
from isotone.pipeline.books.tracks import Matched
from isotone.text.normalize import TextError
from tests.pipeline.parts import noise

SENTENCES = (
    "There lived a man named Tom.", "He had seven brown dogs and no cat!", "Why did they never bark at night?",
    "Nobody in our town knew that.", "Some said it was because of his songs.",
    "His songs were very long and very slow.",
    "On Sunday morning they all went to the river.", "Then a storm came over the hills.",
)  # fmt: skip
TEXT = "\n\n".join(SENTENCES)


@pytest.fixture(scope="module")
def book(characters: Pipeline) -> Book:
    return Book.of(TEXT, characters)


def said(pipeline: Pipeline, parts: list[str | int], wrong: float = 0.2) -> Heard:
    """What is heard where texts are said at ten letters per second, with some wrong, and so many other sounds."""
    rng = np.random.default_rng(0)
    tokens: list[int] = []
    letters = pipeline.encode("abcdefghijklmnopqrstuvwxyz").tokens
    for part in parts:
        if isinstance(part, int):
            tokens += rng.choice(letters, part).tolist()
        else:
            heard = [t for t, w in zip(*_tokens(pipeline, part)) if w is not None]
            tokens += [int(rng.choice(letters)) if rng.random() < wrong else t for t in heard]
    scores = np.full((len(tokens), len(pipeline.tokenizer.labels)), -2 * PER_NAT, np.int16)
    scores[np.arange(len(tokens)), tokens] = 3 * PER_NAT
    return Heard(scores, 0.1 * np.arange(len(tokens)))


def _tokens(pipeline: Pipeline, text: str) -> tuple[tuple[int, ...], tuple[int | None, ...]]:
    transcript = pipeline.encode(text)
    return transcript.tokens, transcript.token_words


def found_in(
    monkeypatch: pytest.MonkeyPatch, pipeline: Pipeline, book: Book, parts: list[str | int]
) -> module.Finding:
    heard = said(pipeline, parts)
    monkeypatch.setattr(module, "hear", lambda *_: heard)
    return find(pipeline, book, "a", np.zeros(int(16_000 * (heard.times[-1] + 0.1)), np.float32))


def test_words_keep_their_places(characters: Pipeline, book: Book) -> None:
    words = [TEXT[start:end] for start, end in book.words]
    assert words == TEXT.split()
    letters = "".join(characters.tokenizer.labels[label] for label in book.labels)
    assert letters == "".join(c for c in TEXT.lower() if c.isalpha())
    begins = [TEXT[slice(*book.places(*book.sentence(word)))] for word in book.sentences[:-1]]
    assert begins == list(SENTENCES)


@settings(max_examples=20)
@given(st.integers(1, 30), st.integers(0, 3))
def test_a_long_book_is_that_of_its_parts(characters: Pipeline, repeats: int, gaps: int) -> None:
    text = "\n" * gaps + (TEXT + "\n\n* * *\n\n") * repeats
    book = Book.of(text, characters)
    assert [text[start:end].split()[0] for start, end in book.words] == TEXT.split() * repeats
    assert (np.diff(book.owners) >= 0).all()


def test_a_text_without_words_is_refused(characters: Pipeline, phones: Pipeline) -> None:
    for pipeline, text in ((characters, " \n\n--\n\n"), (characters, ""), (phones, "sil")):
        with pytest.raises(TextError, match="no words"):
            Book.of(text, pipeline)


def test_a_recording_that_skips_sentences(
    monkeypatch: pytest.MonkeyPatch, characters: Pipeline, book: Book
) -> None:
    found = found_in(monkeypatch, characters, book, [60, *SENTENCES[1:3], *SENTENCES[5:7], 50])
    parts = [TEXT[slice(*book.places(p.first, p.last))].split("\n\n") for p in found.parts]
    assert parts == [list(SENTENCES[1:3]), list(SENTENCES[5:7])]
    assert found.parts[0].start == pytest.approx(6.0, abs=0.6)
    assert np.array(found.other) == pytest.approx(np.array([(0, 6), (18.5, 23.5)]), abs=1)


def test_parts_in_another_order(monkeypatch: pytest.MonkeyPatch, characters: Pipeline, book: Book) -> None:
    found = found_in(monkeypatch, characters, book, [*SENTENCES[5:], 40, *SENTENCES[:3]])
    parts = [TEXT[slice(*book.places(p.first, p.last))].split("\n\n") for p in found.parts]
    assert parts == [list(SENTENCES[5:]), list(SENTENCES[:3])]


def test_another_text_is_not_found(monkeypatch: pytest.MonkeyPatch, characters: Pipeline, book: Book) -> None:
    found = found_in(monkeypatch, characters, book, [400])
    assert (found.parts, found.passages) == ((), ())
    assert len(found.other) == 1


@pytest.mark.parametrize("first", [0, 2, 5])
def test_passages_are_the_parts_in_pieces(
    monkeypatch: pytest.MonkeyPatch, characters: Pipeline, book: Book, first: int
) -> None:
    found = found_in(monkeypatch, characters, book, [30, *SENTENCES[first:]])
    assert len(found.parts) == 1
    shown = [TEXT[p.place : p.place + len(p.text)] for p in found.passages if p.place is not None]
    assert shown == [p.text for p in found.passages]
    assert " ".join(shown).split() == " ".join(SENTENCES[first:]).split()
    times = [(p.start, p.end) for p in found.passages]
    assert all(a <= b <= 1 + c for (a, b), (c, _) in pairwise(times))
    assert all(b - a <= 9 for a, b in times)


def test_hearing_does_not_depend_on_the_parts(characters: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = noise(9.0)
    even = np.full(len(characters.tokenizer.labels), 1 / len(characters.tokenizer.labels))
    whole = hear(characters, "a", samples, even)
    monkeypatch.setattr("isotone.pipeline.books.hearing._PART_S", 3.0)
    parts = hear(characters, "a", samples, even)
    assert whole.scores.shape == (len(whole.times), len(characters.tokenizer.labels))
    assert (np.diff(parts.times) > 0).all()
    assert parts.times[-1] < 9
    assert abs(len(parts.times) - len(whole.times)) <= 0.3 * len(whole.times) + 3


def test_an_excerpt_costs_less_in_a_short_recording() -> None:
    assert entry_of(LONG) == entry_of(10 * LONG) == ENTRY
    costs = [entry_of(sounds) for sounds in (0, 1, 100, 1000, LONG)]
    assert costs == sorted(costs)
    assert 25 < costs[0] == costs[1] < costs[2] - 10
    # ten times as many chances: as many nats everywhere
    assert entry_of(1000) - entry_of(100) == pytest.approx(entry_of(10_000) - entry_of(1000))


def test_coverage_is_by_words() -> None:
    text = "Preface\n\none two three four\n\nCHAPTER I\n\nfive six seven eight\n\n"
    second = text.index("CHAPTER")
    given = [Chapter("Preface", 0, 7, second - 2), Chapter("CHAPTER I", second, second + 9, len(text) - 2)]
    end = text.index(" three")
    readings = {
        "a": Reading([(0.0, 2.0, 9, end)], []),
        "b": Reading([(0.0, 1.0, end, end + 6)], [(1.0, 9.0)]),
    }
    first, other = covered(text, given, readings)
    assert (first.words, first.read, first.recordings) == (4, 0.75, ["a", "b"])
    assert [text[a:b].strip() for a, b in first.unread] == ["four"]
    assert (other.read, other.recordings) == (0.0, [])
    lines = list(summary([first, other], readings))
    assert lines == [
        "Book: 2 recordings hold 2 parts of it, and 8 s of other speech",
        "Chapters: 0 of 2 are read to the end", "Read in part: Preface (75%)", "No recording: CHAPTER I",
    ]  # fmt: skip
    shown = readings["a"].shown([first, other])
    assert shown["parts"][0]["chapters"] == ["Preface"]


@pytest.mark.parametrize(
    ("labels", "gain", "expected"),
    [(8, 7.9, False), (8, 8.0, True), (40, 19.9, False), (40, 20.0, True), (4, 4.0, True)],
)
def test_a_short_sentence_such_as_a_heading_needs_more_to_be_said(
    labels: int, gain: float, expected: bool
) -> None:
    sums = np.linspace(0, gain, labels + 1)
    one = Matched(np.arange(labels), np.arange(labels), sums)
    book = SimpleNamespace(labels_of=lambda begin, end: (0, labels))
    assert one.said(book, 0, 1) is expected  # type: ignore[arg-type]
