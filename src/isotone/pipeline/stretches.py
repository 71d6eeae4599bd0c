"""Stretches of a recording that are aligned by themselves: passages with rough times, joined and cut at gaps.

Neighbouring passages share a stretch, so a word may leave the time of its passage where the audio says so. A stretch
that was cut where the passages had no gap has some of its neighbours as context: they are aligned with it, and their
words are dropped. So the words at a cut have their true neighbours on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, pairwise

#: Most seconds of passages in a stretch, if there is more than one: what is encoded at once.
LONGEST_S = 30.0

#: Seconds of neighbouring passages that are a stretch's context where it was cut without a gap, at least.
CONTEXT_S = 3.0


@dataclass(frozen=True, slots=True)
class Span:
    """The rough time of a passage, in seconds, and its speaker."""

    start: float
    end: float
    speaker: str | None = None


@dataclass(frozen=True)
class Stretch:
    """A part of a recording with its passages.

    Attributes:
        passages: Numbers of the passages that are aligned, in order, with those of the context.
        own: Those whose words are kept.
        start, end: Seconds of the audio.
        apart: True where other speakers talk at the same time: between the passages is other speech.
        around: True where other speech may be before, between and after the passages.
    """

    passages: tuple[int, ...]
    own: frozenset[int]
    start: float
    end: float
    apart: bool = False
    around: bool = False


def stretches(spans: Sequence[Span], seconds: float, slack_s: float) -> Iterator[Stretch]:
    """Divide the passages of a recording into stretches.

    Speakers who talk at the same time are aligned apart from each other.

    Args:
        spans: Times of the passages, in order of their starts; those after the recording's end are left out.
        seconds: Duration of the recording.
        slack_s: Seconds by which a word may be outside of its passage's time.
    """
    spans = [span for span in spans if span.start - slack_s < seconds]
    ends = list(accumulate((span.end for span in spans), max))
    for first, last in _cut(spans, ends, slack_s):
        chosen = range(*_with_context(spans, ends, first, last, slack_s))
        own = frozenset(range(first, last))
        speakers = dict.fromkeys(spans[i].speaker for i in own)
        if len(speakers) > 1 and _at_once(spans, chosen, slack_s):
            for speaker in speakers:
                theirs = [i for i in chosen if spans[i].speaker == speaker]
                yield _stretch(spans, theirs, own & set(theirs), seconds, slack_s, apart=True)
        else:
            yield _stretch(spans, chosen, own, seconds, slack_s)


def _stretch(
    spans: Sequence[Span],
    chosen: Sequence[int],
    own: frozenset[int],
    seconds: float,
    slack_s: float,
    apart: bool = False,
) -> Stretch:
    start = max(0.0, min(spans[i].start for i in chosen) - slack_s)
    end = min(seconds, max(spans[i].end for i in chosen) + slack_s)
    return Stretch(tuple(chosen), own, start, max(start, end), apart)


def _cut(spans: Sequence[Span], ends: Sequence[float], slack_s: float) -> Iterator[tuple[int, int]]:
    """Cut passages at gaps that no word can cross, and longer groups than :data:`LONGEST_S` in the middle half."""
    wide = [i for i in range(1, len(spans)) if spans[i].start - ends[i - 1] > 2 * slack_s]
    groups = list(pairwise([0, *wide, len(spans)]))[::-1] if spans else []
    while groups:
        first, last = groups.pop()
        start, end = spans[first].start, max(span.end for span in spans[first:last])
        if last - first < 2 or end - start <= LONGEST_S:
            yield first, last
            continue

        def rank(i: int, start: float = start, end: float = end) -> tuple[bool, float, float]:
            """Prefer a cut that leaves a quarter on both sides, then a large gap, then the middle."""
            gap = max(0.0, round(spans[i].start - ends[i - 1], 2))
            off = abs(spans[i].start - (start + end) / 2)
            return off <= (end - start) / 4, gap, -off

        cut = max(range(first + 1, last), key=rank)
        groups += [(cut, last), (first, cut)]


def _with_context(
    spans: Sequence[Span], ends: Sequence[float], first: int, last: int, slack_s: float
) -> tuple[int, int]:
    """Return the passages with those whose words may be in a group's audio, and their neighbours, as context."""
    low, high = first, last
    start, end = spans[first].start, ends[last - 1]
    while low > 0 and ends[low - 1] > spans[low].start - 2 * slack_s and start - spans[low].start < CONTEXT_S:
        low -= 1
    while (
        high < len(spans)
        and spans[high].start < ends[high - 1] + 2 * slack_s
        and ends[high - 1] - end < CONTEXT_S
    ):
        high += 1
    return low, high


def _at_once(spans: Sequence[Span], chosen: Sequence[int], slack_s: float) -> bool:
    """Tell if two speakers talk at once: for longer than rough times explain."""
    for a, b in combinations((spans[i] for i in chosen), 2):
        shared = min(a.end, b.end) - max(a.start, b.start)
        shorter = min(a.end - a.start, b.end - b.start)
        if a.speaker != b.speaker and shared > min(slack_s, shorter / 2):
            return True
    return False
