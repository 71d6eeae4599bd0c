"""Where in a book a recording lies: its excerpts, as whole sentences, and as passages with rough times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotone.audio import Samples
from isotone.kernels.excerpts import excerpts
from isotone.pipeline.books.book import Book
from isotone.pipeline.books.hearing import PER_NAT, Heard, hear
from isotone.pipeline.forced import ForcedPipeline
from isotone.transcripts import Passage

#: Cost in nats of an excerpt, and of a sound or a label that matches nothing within one. Measured on two hours of
#: LibriSpeech against a text of 65,000 words that they do not hold: no excerpt. Their own text gains 15 nats per second.
ENTRY, UNMATCHED = 60.0, 1.5

#: Share of a sentence's labels that are matched where an excerpt begins or ends in it: below, it is left out.
_LEAST_SHARE = 0.3

# Seconds that a label takes at most where a reader is slow, and sounds that are heard for each of them at least.
_SLOW_S, _SOUNDS = 0.15, 0.5

# A sentence within an excerpt was left out if it has fewer sounds per label, and its score is below 0; sentences of
# fewer labels are not judged.
_CROSSED, _LEAST_LABELS = 0.6, 5

# Seconds of passages: they end with a sentence from the first number on, and with any word from the second on.
_SHORT_S, _LONG_S = 3.0, 8.0

# Other speech: seconds at least, and sounds per second.
_OTHER_S, _OTHER_RATE = 2.0, 2.0


class Part(NamedTuple):
    """A part of a recording that reads a part of the book.

    Attributes:
        first, last: Its words: the first, and one past the last.
        start, end: Its rough time in seconds.
    """

    first: int
    last: int
    start: float
    end: float


@dataclass(frozen=True)
class Finding:
    """The parts of a book that a recording holds.

    Attributes:
        parts: In order of time; none where the recording is not of the book.
        passages: Their text in pieces, with rough times and their places in the book.
        other: Spans in seconds of other speech, before, between and after the parts.
    """

    parts: tuple[Part, ...]
    passages: tuple[Passage, ...]
    other: tuple[tuple[float, float], ...]


def find(pipeline: ForcedPipeline, book: Book, id: str, samples: Samples) -> Finding:
    """Find the parts of a book that a recording holds.

    Memory does not depend on the product of their lengths, and hardly on that of the recording.

    Args:
        pipeline: The model.
        book: The book, of the same model.
        id: Utterance id, for errors.
        samples: ``(N,)`` at the model's sample rate.

    Raises:
        AlignmentError: the recording is too short for a frame.
    """
    counts = np.bincount(book.labels, minlength=len(pipeline.tokenizer.labels))
    heard = hear(pipeline, id, samples, counts / counts.sum())
    unmatched = round(PER_NAT * UNMATCHED)
    found = excerpts(
        heard.scores, book.labels, gap=unmatched, skip=unmatched, entry=round(PER_NAT * ENTRY)
    )
    tracks = list(_tracks(book, heard, [one.pairs for one in found]))
    passages = [passage for track in tracks for passage in _passages(book, track)]
    seconds = len(samples) / pipeline.model.encoder.sample_rate
    parts = tuple(Part(t.first, t.last, *t.span(book)) for t in tracks)
    return Finding(parts, tuple(passages), tuple(_other(heard, parts, seconds)))


class _Track(NamedTuple):
    """Words of the book with the times of some of their labels: labels ``(k,)`` and seconds ``(k,)`` increase."""

    first: int
    last: int
    labels: NDArray[np.int64]
    times: NDArray[np.float64]

    def seconds(self, label: int) -> float:
        """Estimate the time of a label, between its neighbours or at the pace of slow readers beyond them."""
        beyond = min(0, label - self.labels[0]) + max(0, label - self.labels[-1])
        return max(0.0, float(np.interp(label, self.labels, self.times)) + _SLOW_S * float(beyond))

    def span(self, book: Book, first: int | None = None, last: int | None = None) -> tuple[float, float]:
        """Estimate start and end of words, by default of all."""
        low, high = book.labels_of(
            self.first if first is None else first, self.last if last is None else last
        )
        return self.seconds(low), self.seconds(max(low, high - 1)) + _SLOW_S


def _tracks(book: Book, heard: Heard, found: Sequence[NDArray[np.int64]]) -> Iterator[_Track]:
    """Make whole sentences of excerpts, as far as their beginnings and ends were said."""
    before = (-1, -1)  # the last row and label of the excerpt before
    for number, pairs in enumerate(found):
        rows, labels = pairs.T
        after = tuple(found[number + 1][0].tolist()) if number + 1 < len(found) else (len(heard.times), -1)
        first = _whole(book, heard, pairs, before)
        last = _whole_to_the_end(book, heard, pairs, after)
        before = int(rows[-1]), int(labels[-1])
        for begin, end in _said(book, heard, pairs, first, last):
            inside = slice(*np.searchsorted(labels, book.labels_of(begin, end)).tolist())
            if begin < end and len(labels[inside]):
                yield _Track(begin, end, labels[inside], heard.times[rows[inside]])


def _whole(book: Book, heard: Heard, pairs: NDArray[np.int64], before: tuple[int, int]) -> int:
    """Return the first word of an excerpt: that of its first sentence, of the next one, or the first one matched."""
    row, label = pairs[0].tolist()
    word = int(book.owners[label])
    begin, end = book.sentence(word)
    if _share(book, pairs, begin, end) < _LEAST_SHARE:
        return end
    if before[1] < label:  # the text goes on: words of the excerpt before are not said again
        begin = max(begin, int(book.owners[before[1]]) + 1 if before[1] >= 0 else 0)
    missing = label - book.labels_of(begin, end)[0]
    since = heard.times[row] - _SLOW_S * missing - _SLOW_S
    room = row - max(before[0] + 1, int(np.searchsorted(heard.times, since)))
    return begin if room >= _SOUNDS * missing else word


def _whole_to_the_end(book: Book, heard: Heard, pairs: NDArray[np.int64], after: tuple[int, int]) -> int:
    """Return one past the last word of an excerpt, in the manner of :func:`_whole`."""
    row, label = pairs[-1].tolist()
    word = int(book.owners[label])
    begin, end = book.sentence(word)
    if _share(book, pairs, begin, end) < _LEAST_SHARE:
        return begin
    if after[1] > label:
        end = min(end, int(book.owners[after[1]]))
    missing = book.labels_of(begin, end)[1] - 1 - label
    until = heard.times[row] + _SLOW_S * missing + _SLOW_S
    room = min(after[0] - 1, int(np.searchsorted(heard.times, until))) - row
    return end if room >= _SOUNDS * missing else word + 1


def _said(
    book: Book, heard: Heard, pairs: NDArray[np.int64], first: int, last: int
) -> Iterator[tuple[int, int]]:
    """Divide the words of an excerpt at sentences that were left out: an excerpt crosses them where they are short."""
    rows, labels = pairs.T
    values = heard.scores[rows, book.labels[labels]] / PER_NAT
    values[1:] -= UNMATCHED * (np.diff(rows) + np.diff(labels) - 2)
    totals = np.concatenate([[0.0], np.cumsum(values)])
    for begin, end in pairwise(book.sentences[slice(*np.searchsorted(book.sentences, [first, last + 1]))].tolist()):
        low, high = book.labels_of(begin, end)
        one, two = np.searchsorted(labels, [low, high]).tolist()
        if one == two or high - low < _LEAST_LABELS:
            continue
        sounds = rows[two - 1] - rows[one] + 1
        if totals[two] < totals[one] and sounds < _CROSSED * (high - low):
            yield first, begin
            first = end
    yield first, last


def _share(book: Book, pairs: NDArray[np.int64], begin: int, end: int) -> float:
    """Compute the share of the labels of words that an excerpt matches."""
    low, high = book.labels_of(begin, end)
    matched = np.searchsorted(pairs[:, 1], [low, high])
    return float(matched[1] - matched[0]) / max(1, high - low)


def _passages(book: Book, track: _Track) -> Iterator[Passage]:
    """Divide a track into passages, at sentences where they are short enough."""
    sentences = set(book.sentences.tolist())
    first = track.first
    begin = track.span(book, first, first + 1)[0]
    for word in range(track.first + 1, track.last + 1):
        end = track.span(book, word - 1, word)[1]
        long = end - begin >= (_SHORT_S if word in sentences else _LONG_S)
        if long or word == track.last:
            places = book.places(first, word)
            where = f"characters {places[0]} to {places[1]}"
            text = book.text[places[0] : places[1]]
            yield Passage(text, begin, max(begin, end), where=where, place=places[0])
            first = word
            begin = track.span(book, word, word + 1)[0] if word < track.last else end


def _other(heard: Heard, parts: Sequence[Part], seconds: float) -> Iterator[tuple[float, float]]:
    """Iterate over the spans between parts that hold other speech, from its first to its last sound."""
    edges = [0.0, *(edge for part in parts for edge in (part.start, part.end)), seconds]
    for start, end in list(pairwise(edges))[::2]:
        inside = heard.times[(heard.times >= start) & (heard.times < end)]
        if len(inside) >= 2 and (length := float(inside[-1] - inside[0])) >= _OTHER_S:
            if len(inside) >= _OTHER_RATE * length:
                yield float(inside[0]), float(inside[-1])
