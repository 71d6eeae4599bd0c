"""Sounds of speech: closures that two stops share, and sounds that change slowly."""

from __future__ import annotations

from collections.abc import Sequence

from isotone.text.phones import PHONE_CLASSES
from isotone.text.tokenizer import Tokenizer, Transcript

_SLOW = frozenset({"vowel", "liquid/glide"})


def one_closure(transcript: Transcript, times: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Give the silence of a stop without release and of the stop after it to the first.

    The two closures are one silence, which an aligner divides anywhere. As in TIMIT, the second stop is its release.

    Args:
        transcript: The tokens, of which some are closures.
        times: Start and end of every token, in any unit; equal for a token without frames.
    """
    out, stops = list(times), transcript.stops
    if not stops:
        return out
    placed = [i for i, (start, end) in enumerate(times) if end > start]
    for first, second, release in zip(placed, placed[1:], placed[2:]):
        closes = stops[first] is not None and times[first][1] == times[second][0]
        if closes and stops[second] is not None and transcript.tokens[release] == stops[second]:
            end = times[second][1]
            out[first], out[second] = (times[first][0], end), (end, end)
    return out


def slow(transcript: Transcript, tokenizer: Tokenizer) -> list[bool]:
    """Say of every token whether it is a vowel, a glide or a liquid, whose spectrum changes slowly."""
    if tokenizer.unit != "phones":
        return [False] * len(transcript.tokens)
    return [t >= 0 and PHONE_CLASSES.get(tokenizer.labels[t]) in _SLOW for t in transcript.tokens]
