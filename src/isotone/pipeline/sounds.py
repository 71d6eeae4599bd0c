"""Sounds of speech: closures that two stops share, sounds that change slowly, and sounds that last too long."""

from __future__ import annotations

from collections.abc import Sequence

from isotone.alignment import SILENCE, Tier
from isotone.text.phones import PHONE_CLASSES
from isotone.text.tokenizer import Tokenizer, Transcript

#: Seconds that a phone or letter seldom lasts. Of TIMIT's sample (8 readers) the longest phone lasts 0.33.
LONG_S = 0.5

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


def stretched_s(tier: Tier) -> float:
    """Return the seconds by which segments last longer than :data:`LONG_S`, silences and stars aside."""
    return sum(max(0.0, s.end - s.start - LONG_S) for s in tier if s.label not in SILENCE)
