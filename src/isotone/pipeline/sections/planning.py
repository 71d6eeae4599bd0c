"""Sections of a recording and of its text: what was read where, in which order, and what was read again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotone.kernels.excerpts import excerpts
from isotone.pipeline.books.book import Book
from isotone.pipeline.books.hearing import PER_NAT, Heard
from isotone.pipeline.books.tracks import LEAST_GAIN, UNMATCHED, Matched

#: Sounds per label from which on words that nothing matches may have been said; with fewer there is no room for them.
ROOM = 0.5

#: Words that are read again, at least. Fewer belong to the excerpt that holds more of their neighbours.
LEAST_AGAIN = 3

# Share of their gain in another excerpt below which words are there by chance: a second take gains about as much.
_MUCH = 0.7

# Words from either end of others at which these may be divided.
_NEAR = 12

# Other speech: seconds at least, and sounds per second.
_OTHER_S, _OTHER_RATE = 2.0, 2.0


class Take(NamedTuple):
    """Words that were read one after the other.

    Attributes:
        first, last: Words of the text: the first, and one past the last.
        labels: ``(k,)`` positions in the text's labels that were heard; they increase.
        times: ``(k,)`` seconds; they increase.
        again: The words were read before.
    """

    first: int
    last: int
    labels: NDArray[np.int64]
    times: NDArray[np.float64]
    again: bool = False

    @property
    def start(self) -> float:
        """Seconds at which the first label was heard."""
        return float(self.times[0])

    @property
    def end(self) -> float:
        """Seconds at which the last label was heard."""
        return float(self.times[-1])


def takes(book: Book, heard: Heard, found: Sequence[NDArray[np.int64]]) -> list[Take]:
    """List what was read in order of time; neighbours are one take where the text goes on and nothing else was said.

    Args:
        book: The text in labels.
        heard: The sounds of the recording.
        found: Pairs ``(k, 2)`` of sounds and labels, of every excerpt of the text, in order of time.
    """
    matched = [Matched.of(book, heard, pairs) for pairs in found]
    read = np.zeros(len(book.words), bool)
    parts: list[Take] = []
    for number, one in enumerate(matched):
        others = matched[:number] + matched[number + 1 :]
        parts += _new_and_again(book, heard.times, one, _worse(book, one, others), read)
    return _joined(book, _with_neighbours(book, heard, parts), heard.times)


def _worse(book: Book, one: Matched, others: Sequence[Matched]) -> NDArray[np.bool_]:
    """Find the pairs at the ends of an excerpt whose words fit much better in another one: ``(k,)`` bool.

    Excerpts reach into other speech where that resembles the text by chance.
    """
    owners = book.owners[one.labels]
    out = np.zeros(len(owners), bool)
    for other in others:
        theirs = book.owners[other.labels]
        begin, end = int(max(owners[0], theirs[0])), int(min(owners[-1], theirs[-1])) + 1
        if begin >= end:
            continue

        def lost(first: int, last: int, other: Matched = other) -> float:
            """Compute by how much words fit better there, a share of which could be chance."""
            return _MUCH * other.gain(book, first, last) - one.gain(book, first, last)

        cuts = range(begin, end + 1)
        if end == owners[-1] + 1:
            cut = max(cuts, key=lambda word: lost(word, end))
            out |= owners >= cut
        if begin == owners[0]:
            cut = max(cuts, key=lambda word: lost(begin, word))
            out |= owners < cut
    return out


def _new_and_again(
    book: Book, sounds: NDArray[np.float64], one: Matched, worse: NDArray[np.bool_], read: NDArray[np.bool_]
) -> Iterator[Take]:
    """Divide an excerpt into words that are read for the first time, and others; mark all of them as read."""
    owners = book.owners[one.labels]
    kind = np.where(worse, 2, read[owners].astype(int))
    edges = [0, *(np.flatnonzero(np.diff(kind)) + 1).tolist(), len(kind)]
    for low, high in pairwise(edges):
        first, last = int(owners[low]), int(owners[high - 1]) + 1
        again = bool(kind[low] == 1)
        if kind[low] < 2 and (not again or last - first >= LEAST_AGAIN):
            yield Take(first, last, one.labels[low:high], sounds[one.rows[low:high]], again)
            read[first:last] = True


def _with_neighbours(book: Book, heard: Heard, parts: Sequence[Take]) -> list[Take]:
    """Give words that nothing matches to the take before or after them in the text, where it has room for them."""
    out = list(parts)
    new = sorted((k for k, part in enumerate(out) if not part.again), key=lambda k: out[k].first)
    edges = [(None, new[0]), *pairwise(new), (new[-1], None)] if new else []
    for left, right in edges:
        if left is not None and right is not None and right != left + 1:
            out[left], out[right] = _shortened(book, out[left], -1), _shortened(book, out[right], 0)
        first = 0 if left is None else out[left].last
        last = len(book.words) if right is None else out[right].first
        after = slice(0, 0) if left is None else _gap(out, left, heard.times)
        before = slice(0, 0) if right is None else _gap(out, right - 1, heard.times)
        end, begin = _divided(book, heard, first, last, after, before)
        if left is not None:
            out[left] = out[left]._replace(last=end)
        if right is not None:
            out[right] = out[right]._replace(first=begin)
    return out


def _shortened(book: Book, take: Take, end: int) -> Take:
    """Take off the first word of a take (0) or its last (-1): where takes meet it may be there by chance."""
    word = int(book.owners[take.labels[end]])
    kept = book.owners[take.labels] != word
    if not kept.any():
        return take
    first, last = (word + 1, take.last) if end == 0 else (take.first, word)
    return take._replace(first=first, last=last, labels=take.labels[kept], times=take.times[kept])


def _gap(parts: Sequence[Take], k: int, sounds: NDArray[np.float64]) -> slice:
    """Return the sounds between take k, or the beginning at -1, and the next one."""
    start = parts[k].end if k >= 0 else -np.inf
    end = parts[k + 1].start if k + 1 < len(parts) else np.inf
    return slice(int(np.searchsorted(sounds, start, "right")), int(np.searchsorted(sounds, end, "left")))


def _divided(book: Book, heard: Heard, first: int, last: int, after: slice, before: slice) -> tuple[int, int]:
    """Divide words between the gap after the take before them, and that before the take after them.

    Returns:
        One past the last word of the first gap, and the first word of the second. Words between them were not said.
    """

    def gain(begin: int, end: int, gap: slice) -> float:
        """Compute what words gain above the least gain of what is said."""
        labels = book.labels[slice(*book.labels_of(begin, end))]
        cost = round(PER_NAT * UNMATCHED)
        found = excerpts(heard.scores[gap], labels, gap=cost, skip=cost, entry=1)
        return sum(e.value for e in found) - PER_NAT * LEAST_GAIN * len(labels)

    def room(begin: int, end: int, gap: slice) -> bool:
        low, high = book.labels_of(begin, end)
        return gap.stop - gap.start >= ROOM * (high - low)

    if after != before:
        ends = range(first, min(first + _NEAR, last + 1))
        begins = range(last, max(last - _NEAR, first - 1), -1)
        end = max(ends, key=lambda word: gain(first, word, after))
        begin = max(begins, key=lambda word: gain(word, last, before))
        if end > begin:
            between = range(begin, end + 1)
            end = begin = max(between, key=lambda word: gain(first, word, after) + gain(word, last, before))
    else:
        end, begin = first, last
    if end < begin and room(first, begin, after):
        return begin, begin
    return (end, end) if end < begin and room(end, last, before) else (end, begin)


def _between(sounds: NDArray[np.float64], start: float, end: float) -> NDArray[np.float64]:
    """Return the sounds between two times, without those at them."""
    low, high = np.searchsorted(sounds, start, "right"), np.searchsorted(sounds, end, "left")
    return sounds[low:high]


def _joined(book: Book, parts: Sequence[Take], sounds: NDArray[np.float64]) -> list[Take]:
    out: list[Take] = []
    for part in parts:
        before = out[-1] if out else None
        # words that were left out between two takes are not said: their labels are in neither
        goes_on = before and before.again == part.again and before.last == part.first
        if before and goes_on and gap_of(book, sounds, before, part).other is None:
            labels = np.concatenate([before.labels, part.labels])
            times = np.concatenate([before.times, part.times])
            out[-1] = Take(before.first, part.last, labels, times, part.again)
        else:
            out.append(part)
    return out


class Gap(NamedTuple):
    """Pauses and other speech between two takes.

    Attributes:
        cuts: Pauses in which they end and begin, as the sounds before and after each in seconds: one, or two with
            other speech between them.
        other: The first and the last sound of other speech, where there is any.
    """

    cuts: list[tuple[float, float]]
    other: tuple[float, float] | None


def gap_of(book: Book, sounds: NDArray[np.float64], before: Take, after: Take) -> Gap:
    """Find the pauses and other speech between two takes; both may have words at their ends that were not heard."""
    inside = _between(sounds, before.end, after.start)
    times, count = [before.end, *inside.tolist(), after.start], len(inside)
    tail = book.labels_of(before.first, before.last)[1] - 1 - int(before.labels[-1])
    head = int(after.labels[0]) - book.labels_of(after.first, after.last)[0]

    def longest(low: int, high: int) -> int:
        return max(range(low, high), key=lambda k: times[k + 1] - times[k])

    left = longest(0, min(count, 2 * tail) + 1)
    right = longest(max(left, count - 2 * head), count + 1)
    length = times[right] - times[left + 1] if right > left else 0.0
    if length >= _OTHER_S and count - tail - head >= _OTHER_RATE * length:
        cuts = [(times[k], times[k + 1]) for k in (left, right)]
        return Gap(cuts, (times[left + 1], times[right]))
    only = longest(0, count + 1)
    return Gap([(times[only], times[only + 1])], None)


def moved(parts: Sequence[Take]) -> list[Take]:
    """List the takes that are not in the order of the text: those of the fewest words."""
    new = [part for part in parts if not part.again]
    best: list[tuple[int, list[int]]] = []
    for k, part in enumerate(new):
        chains = [best[i] for i in range(k) if new[i].last <= part.first]
        words, chain = max(chains, key=lambda one: one[0], default=(0, []))
        best.append((words + part.last - part.first, [*chain, k]))
    kept = set(max(best, key=lambda one: one[0])[1]) if best else set()
    return [part for k, part in enumerate(new) if k not in kept]
