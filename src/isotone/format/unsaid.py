"""Words of a text that were not said, among those that subtitles show."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from isotone.alignment import Absent, Alignment

#: The end of a sentence.
SENTENCE = re.compile(r"[.!?\u2026\u3002\uff01\uff1f][\"'\u2019\u201d)\]]*$")


class Word(NamedTuple):
    """A word of subtitles: milliseconds, text, and False for one that was not said, which lasts no time."""

    start: int
    end: int
    text: str
    said: bool = True


def with_unsaid(words: Sequence[Word], numbers: Sequence[int], alignment: Alignment, room: int) -> list[Word]:
    """Put words that were not said among the others: at the end of the word before, or the start of the next.

    A run of them that begins a sentence goes with the next word. One that is longer than a cue is not shown: of
    paragraphs that nobody reads there is nothing to show.

    Args:
        words: The words that are shown.
        numbers: For each the number of segments of its tier that are before it.
        alignment: The alignment.
        room: Characters of a cue.
    """
    out = list(words)
    for after, run in reversed(list(_runs(alignment))):
        place = bisect_left(numbers, after)
        if not words or length(run) > room:
            continue
        before = words[place - 1] if place else None
        following = words[place] if place < len(words) else None
        begins = before is None or (SENTENCE.search(before.text) and not SENTENCE.search(run[-1].label))
        if following is not None and place < len(out) and not out[place].said:  # another run, before a star
            begins = begins and out[place].start == following.start
        time = following.start if following and begins else (before or words[0]).end
        out[place:place] = [Word(time, time, word.label, said=False) for word in run]
    return out


def long_runs(alignment: Alignment, room: int) -> list[list[Absent]]:
    """List the runs of words that were not said and are longer than a cue."""
    return [run for _, run in _runs(alignment) if length(run) > room]


def length(run: Sequence[Absent]) -> int:
    """Count the characters of words with spaces between."""
    return sum(len(word.label) + 1 for word in run) - 1


def _runs(alignment: Alignment) -> Iterator[tuple[int, list[Absent]]]:
    """Iterate over the runs of words that were not said, each with the number of segments before it."""
    for after, run in groupby(alignment.absent, lambda word: word.after):
        yield after, list(run)
