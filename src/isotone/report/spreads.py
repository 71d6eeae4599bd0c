"""Spreads of boundaries: the interval in which several systems put the same boundary, or that its margin gives."""

from __future__ import annotations

from collections.abc import Sequence

from isotone.alignment import SILENCE, Margin, Segment, Tier
from isotone.evaluation.matching import pair_by_edits
from isotone.evaluation.tracks import encode

#: Earliest and latest start of a segment, earliest and latest end, in seconds.
Spread = tuple[float, float, float, float]

# Segments that are closer than this share a boundary.
_SAME_S = 0.001


def labelled(tier: Tier) -> list[Segment]:
    """Return the segments of a tier that have a label."""
    return [s for s in tier if s.label]


def touch(before: Segment, after: Segment) -> bool:
    """Tell if a segment begins where the one before it ends."""
    return after.start - before.end < _SAME_S


def spreads(first: Tier, others: Sequence[Tier]) -> list[Spread | None]:
    """Find the interval of every boundary of a tier over other systems.

    Segments are paired by the minimum edit distance of their labels, without case and punctuation; pairs with
    different labels do not count.

    Args:
        first: The tier.
        others: The same tier by other systems.

    Returns:
        The spread of every labelled segment of ``first``; None for one that no other system has, and for silences.
    """
    segments = labelled(first)
    spoken = [i for i, s in enumerate(segments) if s.label not in SILENCE]
    found: dict[int, list[Segment]] = {i: [segments[i]] for i in spoken}
    codes: dict[str, int] = {}
    own = encode(Tier("", tuple(segments[i] for i in spoken)), codes, relabel=_plain)
    for other in others:
        theirs = [s for s in other if s.label not in SILENCE]
        track = encode(Tier("", tuple(theirs)), codes, relabel=_plain)
        for i, j in zip(spoken, pair_by_edits(track, own).tolist()):
            if j >= 0 and _plain(theirs[j].label) == _plain(segments[i].label):
                found[i].append(theirs[j])
    return [_spread(found.get(i, [])) for i in range(len(segments))]


def margins(tier: Tier) -> list[Spread | None] | None:
    """Return the intervals that margins give the boundaries of a tier's labelled segments; None without margins.

    Where segments touch, the first has the interval of both.
    """
    segments = labelled(tier)
    if not any(s.start_margin or s.end_margin for s in segments):
        return None
    found: list[Spread | None] = []
    for i, s in enumerate(segments):
        touches = i > 0 and touch(segments[i - 1], s)
        start = _around(s.start, None if touches else s.start_margin)
        found.append((*start, *_around(s.end, s.end_margin)))
    return found


def _around(time: float, margin: Margin | None) -> tuple[float, float]:
    return (time - margin.before, time + margin.after) if margin else (time, time)


def _spread(same: Sequence[Segment]) -> Spread | None:
    if len(same) < 2:
        return None
    starts, ends = [s.start for s in same], [s.end for s in same]
    return float(min(starts)), float(max(starts)), float(min(ends)), float(max(ends))


def _plain(label: str) -> str:
    """Return a label without case and punctuation; one of punctuation alone stays."""
    return "".join(c for c in label.casefold() if c.isalnum()) or label
