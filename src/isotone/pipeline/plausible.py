"""Words that are too long to be speech: a sign that the recording holds something else there."""

from __future__ import annotations

from collections.abc import Sequence

#: The longest a word of n phones or letters can last is ``PAUSE_S + n * UNIT_S`` seconds. That is three times the
#: duration of slow words in read speech: of 695 words with hand labels (TIMIT, 8 speakers) the longest lasts 0.41 of
#: it.
PAUSE_S, UNIT_S = 0.45, 0.3

_NAMED = 3


def longest(units: int) -> float:
    """Longest duration in seconds of a word of so many phones or letters."""
    return PAUSE_S + units * UNIT_S


def long_words(spans: Sequence[tuple[str, float, int]]) -> tuple[str, ...]:
    """Name the words that are too long: a sentence each for three at most, and one on the number of others.

    Args:
        spans: Words with their seconds and the number of their phones or letters.
    """
    found = [span for span in spans if span[1] > longest(span[2])]
    out = [
        f"the word {label!r} lasts {seconds:.1f} s, and at most {longest(units):.1f} s are likely: "
        "its times are wrong, or the recording holds something else there"
        for label, seconds, units in found[:_NAMED]
    ]
    if more := len(found) - len(out):
        out.append(f"{more} more {'words last' if more > 1 else 'word lasts'} longer than likely")
    return tuple(out)
