"""Times of passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from isotone.transcripts import Passage


def timed(passages: Sequence[Passage], seconds: float) -> list[Passage]:
    """Return passages in order of time, numbered; those without a time get that between their neighbours.

    Args:
        passages: The passages, in order of the source.
        seconds: Duration of the recording.
    """
    out: list[Passage] = []
    following = [seconds]  # the next known start after each passage, from the last one on
    for passage in passages[:0:-1]:
        following.append(following[-1] if passage.start is None else passage.start)
    now = 0.0
    for number, passage in enumerate(passages):
        start = now if passage.start is None else passage.start
        end = passage.end if passage.end is not None else max(start, following[-1 - number])
        own = number if passage.number is None else passage.number
        out.append(replace(passage, start=start, end=max(start, end), number=own))
        now = max(now, start_of(out[-1]) if passage.end is None else end_of(out[-1]))
    return sorted(out, key=start_of)


def start_of(passage: Passage) -> float:
    """Return the start of a passage in seconds, 0 where it is unknown."""
    return passage.start or 0.0


def end_of(passage: Passage) -> float:
    """Return the end of a passage in seconds, 0 where it is unknown."""
    return passage.end or 0.0
