"""Times on a format's grid: whole ticks that do not overlap, lose no segment and stay inside the audio."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_FLOOR, Decimal

from isotone.alignment import Segment


def last_tick(duration_s: float, rate: int) -> int:
    """The last tick that does not lie past ``duration_s``, at ``rate`` ticks a second."""
    # the decimal digits of the duration, so that 0.3 s is 300 ms and not 299
    return int((Decimal(repr(float(duration_s))) * rate).to_integral_value(ROUND_FLOOR))


def to_ticks(
    segments: Sequence[Segment], duration_s: float, rate: int, least: int = 0
) -> list[tuple[int, int]]:
    """Start and end of every segment in ticks.

    A time that two segments share becomes one tick, so what touches still touches. A segment that lasts
    keeps one tick at least. Where rounding or ``least`` asks for more room than there is, the following
    segments move by as little as they can, and the preceding ones only where the audio ends.

    Args:
        segments: In order, not overlapping.
        duration_s: Length of the audio; every tick lies inside.
        rate: Ticks a second.
        least: Ticks that a segment of no duration gets, taken from what follows it; longer segments are
            never cut below it. 0 leaves such segments as they are.

    Returns:
        A pair for each segment, in order, none overlapping. Where there are more segments than ticks, some
        are empty after all.
    """
    limit = last_tick(duration_s, rate)
    room = limit // max(1, len(segments))
    least = min(least, room)
    out: list[tuple[int, int]] = []
    widths: list[int] = []
    now = 0
    for segment in segments:
        start, end = round(float(segment.start) * rate), round(float(segment.end) * rate)
        if segment.end > segment.start:
            width = min(max(1, min(end - start, least)), room)
        else:
            width = least
        start = max(start, now)
        now = max(end, start + width)
        widths.append(width)
        out.append((start, now))
    ceiling = limit
    for i in range(len(out) - 1, -1, -1):
        end = min(out[i][1], ceiling)
        ceiling = min(out[i][0], end - widths[i])
        out[i] = (ceiling, end)
    return out


def describe_empty(segments: Sequence[Segment]) -> str:
    """The labelled segments without duration, for a warning; an empty text where there are none."""
    empty = [s for s in segments if s.label and s.end <= s.start]
    if not empty:
        return ""
    shown = ", ".join(f"{s.label!r} at {float(s.start)} s" for s in empty[:3])
    return f"{len(empty)} of no duration ({shown}{' ...' if len(empty) > 3 else ''})"
