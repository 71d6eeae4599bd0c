"""Lists of what to look at first: the words and boundaries of an alignment that are least sure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from isotone.alignment import SILENCE, Margin, Segment
from isotone.report.spreads import Spread, touch

#: Greatest length of a list.
MOST = 40
#: Confidence below which a word is doubtful, and from which on it is not worth a look.
DOUBTFUL, SURE = 0.5, 0.9
#: Seconds by which systems may differ without being listed.
CLOSE_S = 0.02


@dataclass(frozen=True)
class Doubt:
    """A place to look at.

    Attributes:
        index: Number of the segment in its row.
        label: What it is called.
        time: Seconds.
        reason: The reason in a few words.
        worth: Order of the list: the lowest comes first.
    """

    index: int
    label: str
    time: float
    reason: str
    worth: float


def doubtful_segments(segments: Sequence[Segment]) -> list[Doubt]:
    """List the segments with the lowest confidence, the lowest first; none where confidences are not known."""
    found = [
        Doubt(i, s.label, s.start, f"confidence {c:.2f}", c)
        for i, s in enumerate(segments)
        if (c := confidence(s)) is not None
    ]
    return _worst(found, SURE)


def doubtful_boundaries(segments: Sequence[Segment], spreads: Sequence[Spread | None] | None) -> list[Doubt]:
    """List the boundaries that are least sure, the least first.

    Where there are several systems, these are the boundaries that they put furthest apart. Otherwise their margins
    decide, where they are known, or else the confidences of the segments on both sides: the lower one counts.
    """
    if spreads is not None:
        return _apart(segments, spreads)
    if any(s.start_margin or s.end_margin for s in segments):
        return _unsure(segments)
    found = []
    for i, (a, b) in enumerate(pairwise(segments)):
        confidences = [c for c in map(confidence, (a, b)) if c is not None]
        if confidences and touch(a, b):
            c = min(confidences)
            found.append(Doubt(i + 1, f"{a.label} | {b.label}", b.start, f"confidence {c:.2f}", c))
    return _worst(found, SURE)


def _unsure(segments: Sequence[Segment]) -> list[Doubt]:
    """List the boundaries that are least likely within 20 ms of the true ones, by their margins."""
    found = []

    def add(index: int, label: str, time: float, margin: Margin | None) -> None:
        if margin is not None:
            around = f"-{1000 * margin.before:.0f} to +{1000 * margin.after:.0f} ms"
            found.append(Doubt(index, label, time, around, margin.near))

    for i, segment in enumerate(segments):
        before = _touching(segments, i)
        label = f"{before.label} | {segment.label}" if before else f"start of {segment.label}"
        add(i, label, segment.start, segment.start_margin)
        if i + 1 == len(segments) or _touching(segments, i + 1) is None:
            add(i, f"end of {segment.label}", segment.end, segment.end_margin)
    return _worst(found, SURE)


def _touching(segments: Sequence[Segment], index: int) -> Segment | None:
    """Return the segment that ends where another one starts."""
    before = segments[index - 1] if index else None
    return before if before and touch(before, segments[index]) else None


def _apart(segments: Sequence[Segment], spreads: Sequence[Spread | None]) -> list[Doubt]:
    found = []
    for i, (segment, spread) in enumerate(zip(segments, spreads)):
        if spread is None:
            continue
        start, end = spread[1] - spread[0], spread[3] - spread[2]
        before = _touching(segments, i)
        label = f"{before.label} | {segment.label}" if before else f"start of {segment.label}"
        found.append(Doubt(i, label, segment.start, f"{1000 * start:.0f} ms apart", -start))
        # the end of a segment that touches the next one is that one's start
        if i + 1 == len(segments) or spreads[i + 1] is None or _touching(segments, i + 1) is None:
            reason = f"{1000 * end:.0f} ms apart"
            found.append(Doubt(i, f"end of {segment.label}", segment.end, reason, -end))
    return _worst(found, -CLOSE_S)


def confidence(segment: Segment) -> float | None:
    """Return the confidence of a segment; None for silence, and where it is not known."""
    c = segment.confidence
    return None if c is None or not math.isfinite(c) or segment.label in SILENCE else float(c)


def _worst(found: list[Doubt], below: float) -> list[Doubt]:
    return sorted((d for d in found if d.worth < below), key=lambda d: (d.worth, d.time))[:MOST]
