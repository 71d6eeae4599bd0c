"""Signs that a recording holds something else than its text: words that are too long, and digital silence."""

from __future__ import annotations

from collections.abc import Sequence

from isotone.audio import Samples, blocks

#: A word of n phones or letters lasts at most ``PAUSE_S + n * UNIT_S`` seconds: three times the duration of slow words
#: in read speech. Of 695 words with hand labels (TIMIT, 8 speakers) the longest lasts 0.41 of it.
PAUSE_S, UNIT_S = 0.45, 0.3

_NAMED = 3


def longest(units: int) -> float:
    """Return the longest likely duration in seconds of a word of ``units`` phones or letters."""
    return PAUSE_S + units * UNIT_S


def long_words(spans: Sequence[tuple[str, float, int]]) -> tuple[str, ...]:
    """Report the words that are too long: one sentence per word for up to three, and one on the number of others.

    Args:
        spans: Words with their duration in seconds and their number of phones or letters.
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


def silence(samples: Samples) -> tuple[str, ...]:
    """Return a warning if every sample is 0, else nothing."""
    return (
        ()
        if any(block.any() for _, block in blocks(samples))
        else ("its audio is silent, every sample is 0: the times mean nothing",)
    )
