"""Times on a format's grid: whole ticks that do not overlap, keep every segment, and are inside the audio."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_FLOOR, Decimal

from isotone.alignment import Segment


def last_tick(duration_s: float, rate: int) -> int:
    """Return the last tick that is not past ``duration_s``, at ``rate`` ticks per second."""
    # by decimal digits, so that 0.3 s is 300 ms and not 299
    return int((Decimal(repr(float(duration_s))) * rate).to_integral_value(ROUND_FLOOR))


def to_ticks(
    segments: Sequence[Segment], duration_s: float, rate: int, least: int = 0
) -> list[tuple[int, int]]:
    """Convert the start and the end of every segment to ticks.

    A time shared by two segments becomes one tick, so touching segments still touch. A segment with a duration keeps at
    least one tick. If rounding or ``least`` needs more room than there is, the following segments move by as little as
    possible; the preceding ones move only at the end of the audio.

    Args:
        segments: Segments in order, without overlap.
        duration_s: Length of the audio; every tick is inside.
        rate: Ticks per second.
        least: Ticks for a segment without duration, taken from the time after it; longer segments are never cut below
            it. 0 leaves such segments as they are.

    Returns:
        A pair per segment, in order, without overlap. If there are more segments than ticks, some are empty.
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
    # second pass, from the end: segments pushed past the audio move back into it
    ceiling = limit
    for i in range(len(out) - 1, -1, -1):
        end = min(out[i][1], ceiling)
        ceiling = min(out[i][0], end - widths[i])
        out[i] = (ceiling, end)
    return out


def describe_empty(segments: Sequence[Segment]) -> str:
    """Describe the labelled segments without duration, for a warning; empty if there are none."""
    empty = [s for s in segments if s.label and s.end <= s.start]
    if not empty:
        return ""
    shown = ", ".join(f"{s.label!r} at {float(s.start)} s" for s in empty[:3])
    return f"{len(empty)} of no duration ({shown}{' ...' if len(empty) > 3 else ''})"
