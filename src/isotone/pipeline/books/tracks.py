"""Tracks: excerpts of a book as whole sentences, as far as these were said, with the times of their labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isotone.pipeline.books.book import Book
from isotone.pipeline.books.hearing import PER_NAT, Heard

#: Cost in nats of a sound or a label that matches nothing within an excerpt.
UNMATCHED = 1.5

#: Least gain in nats per label of a sentence in which an excerpt begins or ends: below, the sentence is left out. What
#: is said gains 1.6 on average.
LEAST_GAIN = 0.5

#: Least gain in nats of all labels of such a sentence, if it is longer than so many: short ones, such as headings, fit
#: something else by chance. Shorter ones gain twice as much per label.
LEAST_SUM = 8.0

#: Least gain in nats of the words of a sentence of which the others were not said. They gain twice as much per label.
PART_GAIN = 15.0

# Seconds that a label takes at most where a reader is slow, and sounds that are heard for each of them at least.
_SLOW_S, _SOUNDS = 0.15, 0.5

# A sentence within an excerpt was left out if it has fewer sounds per label, and its gain is below 0; sentences of
# fewer labels are not judged.
_CROSSED, _LEAST_LABELS = 0.6, 5


class Track(NamedTuple):
    """Words of the book with the times of some of their labels.

    Attributes:
        first, last: The words: the first, and one past the last.
        labels: ``(k,)`` positions in the book's labels; they increase.
        times: ``(k,)`` seconds; they increase.
    """

    first: int
    last: int
    labels: NDArray[np.int64]
    times: NDArray[np.float64]

    def seconds(self, label: int) -> float:
        """Estimate the time of a label, between its neighbours or at the pace of slow readers beyond them."""
        beyond = min(0, label - self.labels[0]) + max(0, label - self.labels[-1])
        return max(0.0, float(np.interp(label, self.labels, self.times)) + _SLOW_S * float(beyond))

    def span(self, book: Book, first: int, last: int) -> tuple[float, float]:
        """Estimate start and end of words ``first`` up to ``last``."""
        low, high = book.labels_of(first, last)
        return self.seconds(low), self.seconds(max(low, high - 1)) + _SLOW_S


class Matched(NamedTuple):
    """The pairs of an excerpt.

    Attributes:
        rows, labels: ``(k,)`` sounds of the recording, and positions in the book's labels.
        sums: ``(k + 1,)`` sums of their gains in nats.
    """

    rows: NDArray[np.int64]
    labels: NDArray[np.int64]
    sums: NDArray[np.float64]

    @classmethod
    def of(cls, book: Book, heard: Heard, pairs: NDArray[np.int64]) -> Self:
        """Compute the gains of pairs ``(k, 2)`` of sounds and labels."""
        rows, labels = pairs.T
        gains = heard.scores[rows, book.labels[labels]] / PER_NAT
        gains[1:] -= UNMATCHED * (np.diff(rows) + np.diff(labels) - 2)
        return cls(rows, labels, np.concatenate([[0.0], np.cumsum(gains)]))

    def inside(self, book: Book, begin: int, end: int) -> slice:
        """Return the pairs of words ``begin`` up to ``end``."""
        return slice(*np.searchsorted(self.labels, book.labels_of(begin, end)).tolist())

    def gain(self, book: Book, begin: int, end: int) -> float:
        """Return the gain of words ``begin`` up to ``end``."""
        inside = self.inside(book, begin, end)
        return float(self.sums[inside.stop] - self.sums[inside.start])

    def said(self, book: Book, begin: int, end: int, least: float = LEAST_GAIN) -> bool:
        """Tell if words gain as much per label as what is said."""
        low, high = book.labels_of(begin, end)
        labels = high - low
        return self.gain(book, begin, end) >= max(least * labels, min(2 * LEAST_GAIN * labels, LEAST_SUM))

    def said_partly(self, book: Book, begin: int, end: int) -> bool:
        """Tell if the words of a sentence that are matched gain so much that they alone were said."""
        return self.gain(book, begin, end) >= PART_GAIN and self.said(book, begin, end, 2 * LEAST_GAIN)


def tracks_of(book: Book, heard: Heard, found: Sequence[NDArray[np.int64]]) -> Iterator[Track]:
    """Make tracks of excerpts.

    Args:
        book: The book.
        heard: The sounds of the recording.
        found: Pairs ``(k, 2)`` of every excerpt, in order: sounds and labels.
    """
    before = (-1, -1)  # the last row and label of the excerpt before
    for number, pairs in enumerate(found):
        one = Matched.of(book, heard, pairs)
        following = found[number + 1][0].tolist() if number + 1 < len(found) else (len(heard.times), -1)
        first = _first(book, heard, one, before)
        last = _last(book, heard, one, (following[0], following[1]))
        before = int(one.rows[-1]), int(one.labels[-1])
        for begin, end in _without_crossed(book, one, first, last):
            inside = one.inside(book, begin, end)
            if begin < end and inside.start < inside.stop:
                yield Track(begin, end, one.labels[inside], heard.times[one.rows[inside]])


def _first(book: Book, heard: Heard, one: Matched, before: tuple[int, int]) -> int:
    """Return the first word of an excerpt: that of its first sentence that was said, or the first one matched."""
    at = 0
    word = int(book.owners[one.labels[at]])
    begin, end = book.sentence(word)
    while not one.said(book, begin, end):
        if one.said_partly(book, word, end):
            return word
        at = one.inside(book, begin, end).stop
        if at == len(one.labels):
            return end
        word = int(book.owners[one.labels[at]])
        begin, end = book.sentence(word)
    if before[1] < one.labels[0]:  # the text goes on: words of the excerpt before are not said again
        begin = max(begin, int(book.owners[before[1]]) + 1 if before[1] >= 0 else 0)
    missing = one.labels[at] - book.labels_of(begin, end)[0]
    since = heard.times[one.rows[at]] - _SLOW_S * (missing + 1)
    room = one.rows[at] - max(before[0] + 1, int(np.searchsorted(heard.times, since)))
    return begin if room >= _SOUNDS * missing else word


def _last(book: Book, heard: Heard, one: Matched, after: tuple[int, int]) -> int:
    """Return one past the last word of an excerpt, in the manner of :func:`_first`."""
    at = len(one.labels) - 1
    word = int(book.owners[one.labels[at]])
    begin, end = book.sentence(word)
    while not one.said(book, begin, end):
        if one.said_partly(book, begin, word + 1):
            return word + 1
        at = one.inside(book, begin, end).start - 1
        if at < 0:
            return begin
        word = int(book.owners[one.labels[at]])
        begin, end = book.sentence(word)
    if after[1] > one.labels[-1]:
        end = min(end, int(book.owners[after[1]]))
    missing = book.labels_of(begin, end)[1] - 1 - one.labels[at]
    until = heard.times[one.rows[at]] + _SLOW_S * (missing + 1)
    room = min(after[0] - 1, int(np.searchsorted(heard.times, until))) - one.rows[at]
    return end if room >= _SOUNDS * missing else word + 1


def _without_crossed(book: Book, one: Matched, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Divide the words of an excerpt at sentences that were left out: an excerpt crosses them where they are short."""
    inside = book.sentences[slice(*np.searchsorted(book.sentences, [first, last + 1]).tolist())]
    for begin, end in pairwise(inside.tolist()):
        low, high = book.labels_of(begin, end)
        own = one.rows[one.inside(book, begin, end)]
        judged = len(own) and high - low >= _LEAST_LABELS
        if judged and own[-1] - own[0] + 1 < _CROSSED * (high - low) and one.gain(book, begin, end) < 0:
            yield first, begin
            first = end
    yield first, last
