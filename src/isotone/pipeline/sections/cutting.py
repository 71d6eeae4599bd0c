"""Cuts between sections: in pauses, where the recording is quietest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from isotone.audio import Samples
from isotone.pipeline.books.book import Book
from isotone.pipeline.books.hearing import Heard
from isotone.pipeline.sections.planning import Take, gap_of

#: Seconds of a section if there is a pause in time, at least and at most.
SHORT_S, LONG_S = 20.0, 60.0

#: Seconds between the sounds of two words with a pause between them, at least.
PAUSE_S = 0.4

# Seconds that the last sound of a word lasts at least, and by which a sound may be heard late.
_LASTS_S, _LATE_S = 0.08, 0.02

# Seconds of which the loudness is measured.
_FRAME_S = 0.03


class Section(NamedTuple):
    """A part of a recording, and the words that are aligned with it.

    Attributes:
        first, last: Words of the text: the first, and one past the last; equal where none of them was said.
        start, end: Seconds.
        again: The words were read before.
    """

    first: int
    last: int
    start: float
    end: float
    again: bool = False


def sections(
    book: Book, heard: Heard, takes: Sequence[Take], samples: Samples, rate: int, hop: int = 1
) -> list[Section]:
    """Divide a recording into sections: takes, which are cut where they are long, and other speech between them.

    What lies before the first take belongs to it, and to the last one what lies after it. Sections begin at whole hops,
    so that their frames are those of the recording. With frames that begin elsewhere, one word of twenty moves by more
    than 20 ms.

    Args:
        book: The text in labels.
        heard: The sounds of the recording.
        takes: What was read, in order of time.
        samples: ``(N,)`` the recording.
        rate: Hz.
        hop: Samples between frames.
    """
    out: list[Section] = []
    start = 0.0

    def quiet(before: float, after: float) -> float:
        return round(quietest(samples, rate, before, after) * rate / hop) * hop / rate

    for take, following in zip(takes, [*takes[1:], None]):
        cuts = gap_of(book, heard.times, take, following).cuts if following else []
        ends = [quiet(*cut) for cut in cuts] or [len(samples) / rate]
        out += _short(book, take, start, ends[0], quiet)
        if ends[1:]:
            out.append(Section(take.last, take.last, ends[0], ends[1]))
        start = ends[-1]
    return out


def _short(
    book: Book, take: Take, start: float, end: float, quiet: Callable[[float, float], float]
) -> Iterator[Section]:
    """Divide a take from one time to another at its pauses, where they are quiet."""
    first = take.first
    for word, before, after in [] if take.again else _chosen(_pauses(book, take), start, end):
        cut = quiet(before, after)
        yield Section(first, word, start, cut)
        first, start = word, cut
    yield Section(first, take.last, start, end, take.again)


def _pauses(book: Book, take: Take) -> list[tuple[int, float, float]]:
    """List the pauses of a take: the word after each, and the sounds before and after it in seconds."""
    pairs = zip(pairwise(take.labels.tolist()), pairwise(take.times.tolist()))
    return [
        (int(book.owners[later]), *times)
        for (label, later), times in pairs
        if later == label + 1 and book.owners[later] != book.owners[label] and times[1] - times[0] >= PAUSE_S
    ]


def _chosen(
    pauses: Sequence[tuple[int, float, float]], start: float, end: float
) -> Iterator[tuple[int, float, float]]:
    """Choose pauses between sections: the longest in time, or else the next."""
    now, left = start, list(pauses)
    while end - now > LONG_S:
        left = [pause for pause in left if pause[1] - now >= SHORT_S and end - pause[2] >= SHORT_S / 2]
        if not left:
            return
        near = [pause for pause in left if pause[1] - now <= LONG_S] or left[:1]
        best = max(near, key=lambda pause: pause[2] - pause[1])
        yield best
        now = best[2]


def quietest(samples: Samples, rate: int, before: float, after: float) -> float:
    """Find the quietest time between two sounds.

    Args:
        samples: ``(N,)`` the recording.
        rate: Hz.
        before, after: Seconds in which the two sounds begin.

    Returns:
        Seconds.
    """
    start, end = before + _LASTS_S, after - _LATE_S
    size = round(_FRAME_S * rate)
    own = np.asarray(samples[round(start * rate) : round(end * rate)], np.float32)
    count = len(own) // size
    if count < 1:
        return (before + after) / 2
    power = np.square(own[: count * size].reshape(count, size)).mean(1)
    return start + (int(power.argmin()) + 0.5) * _FRAME_S
