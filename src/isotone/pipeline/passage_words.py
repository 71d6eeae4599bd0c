"""Words of joined texts: which passage each of them belongs to."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from isotone.alignment import Segment
from isotone.pipeline.stars import STAR
from isotone.text.tokenizer import Transcript


@dataclass
class Found:
    """The segments of one passage, by tier."""

    words: list[Segment] = field(default_factory=list)
    units: list[Segment] = field(default_factory=list)


def joined(texts: Sequence[tuple[int, str]], apart: bool) -> tuple[str, list[tuple[int, int | None]]]:
    """Join texts line by line; with ``apart`` stars stand before, between and after them, for other speech.

    Returns:
        The text, and where its parts begin: position, and number of the text; None for a star.
    """
    rows: list[tuple[int | None, str]] = [(None, STAR)] if apart else []
    for number, text in texts:
        rows += [(number, text), (None, STAR)] if apart else [(number, text)]
    bounds, position = [], 0
    for owner, text in rows:
        bounds.append((position, owner))
        position += len(text) + 1
    return "\n".join(text for _, text in rows), bounds


def owners_of(
    words: Sequence[int], transcript: Transcript, bounds: Sequence[tuple[int, int | None]]
) -> list[int | None]:
    """Return the passage of every word; extra speech belongs to that of the word before it."""
    positions = [position for position, _ in bounds]
    owners: list[int | None] = []
    for number in words:
        if number < len(transcript.words):
            start = transcript.words[number].start
            owners.append(bounds[max(0, bisect_right(positions, start) - 1)][1])
        else:
            owners.append(owners[-1] if owners else bounds[0][1])
    return owners


def share_out(
    own: dict[int, Found], owners: Sequence[int | None], words: Sequence[Segment], units: Sequence[Segment]
) -> None:
    """Give every passage its words, and the units within them."""
    parts = iter(units)
    unit = next(parts, None)
    for owner, word in zip(owners, words):
        inside = []
        while unit is not None and _middle(unit) < word.end:
            if within(unit, word):
                inside.append(unit)
            unit = next(parts, None)
        if owner in own:
            own[owner].words.append(word)
            own[owner].units += inside


def moved(word: Segment, characters: int) -> Segment:
    """Move a word's place in the text by so many characters."""
    if (own := word.origin) is None:
        return word
    return replace(word, origin=replace(own, start=own.start + characters, end=own.end + characters))


def _middle(segment: Segment) -> float:
    return (segment.start + segment.end) / 2


def within(unit: Segment, word: Segment) -> bool:
    """Tell if the middle of a unit lies in a word."""
    return word.start <= _middle(unit) < word.end
