"""Passages: parts of a transcript, with rough times and a speaker where the source has them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from isotone.alignment import SILENCE, Alignment
from isotone.format.reading import FormatError
from isotone.passage import Cued, Passage
from isotone.transcripts.tiers import spoken

# By how much an end before its start is a rounding error, in seconds.
_ROUNDED_S = 0.001


def passage(
    text: Any,
    start: Any,
    end: Any,
    where: str,
    speaker: Any = None,
    recordings: Iterable[Any] = (),
    cue: Cued | None = None,
) -> Passage:
    """Make a passage of values as they are in a file.

    A text that is no string, and times that are no numbers of 0 or more, are errors. A start below 0 becomes 0, an end
    before the start is unknown, with a note, and a missing time stays unknown.

    Raises:
        FormatError: such a value; the message names the place.
    """
    if not isinstance(text, str):
        raise FormatError(f"{where}: expected a text; got {text!r:.60}.")
    first, last = seconds(start, where), seconds(end, where)
    note = ""
    if first is not None and last is not None and last < first - _ROUNDED_S:
        note = f"it ends at {last:g} s, before its start at {first:g} s; it is taken to end where the next one starts"
        last = None
    elif first is not None and last is not None:
        last = max(first, last)
    named = " ".join(_whole(str(speaker)).split()) if speaker is not None else ""
    names = tuple(str(r) for r in recordings if r)
    return Passage(_whole(text), first, last, named or None, where, names, note=note, cue=cue)


def numbered(passages: Iterable[Passage]) -> tuple[Passage, ...]:
    """Return the passages of a recording with their numbers."""
    return tuple(p if p.number is not None else replace(p, number=i) for i, p in enumerate(passages))


def _whole(text: str) -> str:
    """Return text that UTF-8 can hold; JSON can write halves of characters."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def seconds(value: Any, where: str) -> float | None:
    """Read a time in seconds, a number or its text; None for none."""
    if value is None or value == "":
        return None
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise FormatError(f"{where}: expected a time in seconds; got {value!r:.60}.")
    return max(0.0, number)


def of_alignment(
    alignment: Alignment, tiers: Sequence[str] = (), note: Callable[[str], None] = lambda warning: None
) -> Iterator[Passage]:
    """Iterate over the passages of the tiers that hold speech; see :func:`isotone.transcripts.tiers.spoken`."""
    speakers = spoken([tier.name for tier in alignment.tiers], tiers, note)
    for tier in alignment.tiers:
        for number, s in enumerate(tier if tier.name in speakers else (), 1):
            if s.label.strip() not in SILENCE:
                where = f"tier {tier.name!r}, interval {number}"
                yield passage(s.label, s.start, s.end, where, speakers[tier.name])
