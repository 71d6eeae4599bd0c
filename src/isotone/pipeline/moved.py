"""Passages whose times are off by more than the slack, moved to where their words are heard.

Subtitles of another cut begin seconds earlier or later, those of another frame rate drift, and after a cut in the
middle the rest is off. So each passage is moved by the median of what its words and its neighbours' are off by, or by
that of its own words where these are somewhere else. Where all medians are within the slack, no passage is moved.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from statistics import median
from typing import NamedTuple

from isotone.alignment import Segment
from isotone.pipeline.passage_times import end_of, start_of
from isotone.transcripts import Passage

#: Share of the words outside of the times of their passages from which on passages may have to be moved.
SUSPICIOUS = 0.1

#: Least share of the words that are within the times of their moved passages.
LEAST_WITHIN = 0.7

#: Number of passages whose words say by how much one of them is moved.
NEIGHBOURS = 9

#: Seconds by which the moves of passages differ at most if they are said to be one.
_ALIKE_S = 0.5


class Moved(NamedTuple):
    """Passages with other times, and a sentence on them."""

    passages: list[Passage]
    note: str


def moved(passages: Sequence[Passage], words: Sequence[Segment], slack_s: float) -> Moved | None:
    """Move passages to where their words are heard.

    Args:
        passages: The passages, all of them with times.
        words: The words as they are heard, with their places in the passages' texts, one per line.
        slack_s: Seconds by which the time of a passage may be wrong.

    Returns:
        The passages with other times; None where these do not explain the words better.
    """
    heard = _heard(passages, words)
    if not heard:
        return None
    off = {n: [_off(passages[n], word, place) for word, place in own] for n, own in heard.items()}
    shifts = [_shift(n, off) for n in range(len(passages))]
    if all(abs(shift) <= slack_s for shift in shifts):
        return None  # a single passage that is heard somewhere else may be said there as well
    share = _within(_later(passages, shifts), heard, slack_s)
    if share < max(LEAST_WITHIN, _within(passages, heard, slack_s)):
        return None
    for n, own in off.items():
        if len(own) > 1 and abs(median(own) - shifts[n]) > slack_s:
            shifts[n] = median(own)
    new = _later(passages, shifts)
    low, high = min(shifts), max(shifts)
    by = f"{median(shifts):+.1f}" if high - low <= _ALIKE_S else f"{low:+.1f} to {high:+.1f}"
    return Moved(new, f"the times of the transcript are off: its passages were moved by {by} s")


#: Words of every passage, with their places in its text.
_Heard = Mapping[int, Sequence[tuple[Segment, int]]]


def _heard(passages: Sequence[Passage], words: Sequence[Segment]) -> _Heard:
    """Give every passage the words that are heard of it."""
    starts = [0, *accumulate(len(p.text) + 1 for p in passages)]
    out: dict[int, list[tuple[Segment, int]]] = {}
    for word in words:
        if word.origin is not None:
            number = min(bisect_right(starts, word.origin.start) - 1, len(passages) - 1)
            out.setdefault(number, []).append((word, word.origin.start - starts[number]))
    return out


def _off(passage: Passage, word: Segment, place: int) -> float:
    """Return the seconds from where a word would be in a passage that is spoken evenly to where it is heard."""
    share = (place + len(word.label) / 2) / max(1, len(passage.text))
    expected = start_of(passage) + share * (end_of(passage) - start_of(passage))
    return (word.start + word.end) / 2 - expected


def _shift(number: int, off: Mapping[int, Sequence[float]]) -> float:
    """Return the median of what the words of the nearest passages are off by."""
    known = sorted(off)
    first = bisect_left(known, number) - NEIGHBOURS // 2
    first = max(0, min(first, len(known) - NEIGHBOURS))
    return median(s for n in known[first : first + NEIGHBOURS] for s in off[n])


def _later(passages: Sequence[Passage], shifts: Sequence[float]) -> list[Passage]:
    """Copy passages with later times, by seconds for each of them."""
    return [
        replace(p, start=max(0.0, start_of(p) + shift), end=max(0.0, end_of(p) + shift))
        for p, shift in zip(passages, shifts)
    ]


def _within(passages: Sequence[Passage], heard: _Heard, slack_s: float) -> float:
    """Return the share of the words that are within the times of their passages, give or take the slack."""
    flags = [
        start_of(passages[n]) - slack_s <= word.start and word.end <= end_of(passages[n]) + slack_s
        for n, own in heard.items()
        for word, _ in own
    ]
    return sum(flags) / len(flags)
