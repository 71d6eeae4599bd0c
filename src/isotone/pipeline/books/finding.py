"""Recordings found in a book: their excerpts as whole sentences, and as passages with rough times."""

from __future__ import annotations

import math
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
from isotone.pipeline.books.tracks import UNMATCHED, Track, tracks_of
from isotone.pipeline.forced import ForcedPipeline
from isotone.transcripts import Passage

#: Cost in nats of an excerpt in a recording of :data:`LONG` sounds or more. Measured on two hours of LibriSpeech
#: against a text of 65,000 words that they do not hold: no excerpt. Their own text gains 15 nats per second.
ENTRY = 60.0

#: Number of sounds of two hours, and nats by which an excerpt costs less in a recording with 1/e of a number of sounds.
#: The best of many chances grows with the logarithm of their number. In 90 recordings of 2 to 27 s it had a standard
#: deviation of 3.5 nats, which is 1.28 times this scale, and was 25 nats on average.
LONG, SCALE = 70_000, 2.7

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
    heard, found = excerpts_of(pipeline, book, id, samples)
    tracks = list(tracks_of(book, heard, found))
    passages = [passage for track in tracks for passage in _passages(book, track)]
    seconds = len(samples) / pipeline.model.encoder.sample_rate
    parts = tuple(Part(t.first, t.last, *t.span(book, t.first, t.last)) for t in tracks)
    return Finding(parts, tuple(passages), tuple(_other(heard, parts, seconds)))


def excerpts_of(
    pipeline: ForcedPipeline, book: Book, id: str, samples: Samples
) -> tuple[Heard, list[NDArray[np.int64]]]:
    """Hear a recording, and find its excerpts of a book: pairs ``(k, 2)`` of sounds and labels, in order of time.

    Arguments and errors as of :func:`find`.
    """
    counts = np.bincount(book.labels, minlength=len(pipeline.tokenizer.labels))
    heard = hear(pipeline, id, samples, counts / counts.sum())
    unmatched = round(PER_NAT * UNMATCHED)
    entry = round(PER_NAT * entry_of(len(heard.times)))
    found = excerpts(heard.scores, book.labels, gap=unmatched, skip=unmatched, entry=entry)
    return heard, [one.pairs for one in found]


def entry_of(sounds: int) -> float:
    """Return the cost in nats of an excerpt of a recording with so many sounds.

    A wrong excerpt is then as likely in a short recording as in one of two hours.
    """
    return ENTRY - SCALE * math.log(max(1.0, LONG / max(1, sounds)))


def _passages(book: Book, track: Track) -> Iterator[Passage]:
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
        length = float(inside[-1] - inside[0]) if len(inside) else 0.0
        if length >= _OTHER_S and len(inside) >= _OTHER_RATE * length:
            yield float(inside[0]), float(inside[-1])
