"""Sounds of speech: closures that two stops share, stops that end in silence, and sounds that change slowly."""

from __future__ import annotations

from collections.abc import Sequence

from isotone.text.closures import ClosureRules
from isotone.text.phones import PHONE_CLASSES
from isotone.text.tokenizer import Tokenizer, Transcript

#: Least seconds of the closure of a stop without release before a pause: those between sounds last 50 to 80 ms.
CLOSURE_S = 0.07
#: Longest silence in seconds, with such a closure, that is all closure.
JOINED_S = ClosureRules.longest_s

# A shorter release is none: the aligner gives every release a frame, and then moves the boundary.
_RELEASE_S = 0.005
# Least seconds of a segment: of a frame that both neighbours share, an aligner may leave a fiftieth.
_LEAST_S = 0.005
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


def widened(transcript: Transcript, times: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Give a phone of less than 5 ms as much, half from each neighbour that has it.

    A release after its closure, and a closure before its release, may be shorter: they are parts of a stop.

    Args:
        transcript: The tokens, of which some are closures.
        times: Start and end of every token in seconds; equal for a token without frames.
    """
    out = list(times)
    placed = [i for i, (start, end) in enumerate(times) if end > start]
    for before, own, after in zip([None, *placed], placed, [*placed[1:], None]):
        (start, end), half = out[own], (_LEAST_S - (times[own][1] - times[own][0])) / 2
        if half <= 0 or _makes_a_stop(transcript, before, own) or _makes_a_stop(transcript, own, after):
            continue
        if before is not None and out[before][1] == start and start - out[before][0] > _LEAST_S + half:
            start -= half
            out[before] = (out[before][0], start)
        if after is not None and out[after][0] == end and out[after][1] - end > _LEAST_S + half:
            end += half
            out[after] = (end, out[after][1])
        out[own] = (start, end)
    return out


def _makes_a_stop(transcript: Transcript, first: int | None, second: int | None) -> bool:
    """Tell if two neighbours are the closure and the release of one stop."""
    if not transcript.stops or first is None or second is None:
        return False
    words, closed = transcript.token_words, transcript.stops[first]
    return closed is not None and closed == transcript.tokens[second] and words[first] == words[second]


def closed(
    transcript: Transcript, times: Sequence[tuple[float, float]], end_s: float
) -> list[tuple[float, float]]:
    """Let a stop without release that ends a word last into the silence after it.

    Nothing is heard where such a closure ends, and an aligner ends it where it is least like the silence. All of a
    short silence before the next word is closure. At a pause the closure lasts :data:`CLOSURE_S`, or longer if the
    aligner says so.

    Args:
        transcript: The tokens, of which some are closures.
        times: Start and end of every token in seconds; equal for a token without frames.
        end_s: Seconds of the recording.
    """
    out, stops, words = list(times), transcript.stops, transcript.token_words
    if not stops:
        return out
    placed = [i for i, (start, end) in enumerate(times) if end > start]
    heard = [i for i in placed if words[i] is not None or transcript.tokens[i] < 0]
    for last, after in zip(heard, [*heard[1:], None]):
        if after is not None and words[after] == words[last]:
            continue
        closure = _unreleased(transcript, times, last)
        if closure is None:
            continue
        start, silence = times[closure][0], end_s if after is None else times[after][0]
        if after is None or silence - start > JOINED_S:
            silence = min(silence, start + CLOSURE_S)
        if silence > times[last][1]:
            out[last] = (silence, silence)
            out[closure] = (start, silence)
    return out


def _unreleased(transcript: Transcript, times: Sequence[tuple[float, float]], last: int) -> int | None:
    """Return the closure of a stop that ends a word without release; None where there is none."""
    stops, (start, end) = transcript.stops, times[last]
    if stops[last] is not None:
        return last
    released = end - start >= _RELEASE_S
    return None if released or not last or stops[last - 1] != transcript.tokens[last] else last - 1


def slow(transcript: Transcript, tokenizer: Tokenizer) -> list[bool]:
    """Say of every token whether it is a vowel, a glide or a liquid, whose spectrum changes slowly."""
    if tokenizer.unit != "phones":
        return [False] * len(transcript.tokens)
    return [t >= 0 and PHONE_CLASSES.get(tokenizer.labels[t]) in _SLOW for t in transcript.tokens]
