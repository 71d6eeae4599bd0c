"""Verdicts on texts: words that were not said, speech that is not in the text, and the text as a whole.

A wrong word moves its neighbours, which then look wrong as well. So words are left out in rounds, with stars beside all
that is suspicious: first the inner ones of a run of words that were not said, and of its ends those that are the least
likely. Words that may not have been said keep their times, and are told. Where speech is missing in what is left, a
star takes it.

Verdicts are ``right``; ``partly`` (:mod:`isotone.pipeline.deviations`); ``wrong``, by the text's agreement
(:mod:`isotone.pipeline.doubt`), or where no word was said; and ``no speech``. Of a text that is wrong as a whole
nothing is left out; it may be in another language (:mod:`isotone.pipeline.language`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from isotone.alignment import Absent, AlignmentError
from isotone.model.check import Check, Presence, usable
from isotone.pipeline.deviations import Deviations
from isotone.pipeline.doubt import doubtful
from isotone.pipeline.presence import Evidence, least_odds, log_odds, most_odds, probabilities
from isotone.pipeline.result import Result, origin_of
from isotone.pipeline.stars import STAR_NUMBER, with_extra_speech
from isotone.pipeline.texts import TextToAlign

RIGHT, PARTLY, WRONG, NO_SPEECH = "right", "partly", "wrong", "no speech"

#: Most nats per frame that stars cost where something is suspicious, see :data:`isotone.pipeline.stars.STAR_COST`.
STAR_COST = 1.0

#: Seconds that speech which is not in the text lasts at least; shorter stars are not shown.
LEAST_EXTRA_S = 0.1

#: Least log-odds against a word that is left out. The probabilities are those of texts in which one word of twelve is
#: wrong (:data:`isotone.training.presence.RATE`). Where one of fifty is, as in most transcripts, these are even odds.
SURE = 1.5

#: Most seconds of a recording that is judged: a suspicious text is aligned again as a whole, several times.
LONGEST_S = 300.0

#: Most rounds in which words are left out.
ROUNDS = 4

#: Warning of recordings without speech.
NOTHING = "the recording holds no speech: the times mean nothing"


class Judged(NamedTuple):
    """Judgement on the words of a text.

    Attributes:
        words: Probability of every word's number that it was said.
        unlikely: Numbers of the words that fit much worse than the others of the text.
        absent: Those of them that were not said.
        extra: Places of speech that is not in the text, as :func:`isotone.pipeline.stars.with_extra_speech` takes them.
        places: For every word the number of words with tokens before it.
    """

    words: dict[int, float]
    unlikely: frozenset[int]
    absent: frozenset[int]
    extra: frozenset[int]
    places: dict[int, int]

    @property
    def suspicious(self) -> bool:
        """True where a word may not have been said, or there is speech that is not in the text."""
        return bool(self.unlikely or self.extra)


def judge(presence: Presence, evidence: Evidence) -> Judged:
    """Judge the words of a text by their evidence."""
    odds, gaps = log_odds(presence.said, evidence.said), log_odds(presence.extra, evidence.gaps)
    least, most = least_odds(presence, odds), most_odds(presence, odds)
    return Judged(
        dict(zip(evidence.words, probabilities(presence.said, evidence.said).tolist())),
        frozenset(number for number, one in zip(evidence.words, odds) if one < least),
        frozenset(number for number, one in zip(evidence.words, odds) if one < min(least, -SURE)),
        frozenset(place for place, one in zip(evidence.places, gaps) if one > most),
        dict(zip(evidence.words, evidence.places)),
    )


def settled(
    check: Check | None,
    presence: Presence,
    text: TextToAlign,
    first: Result,
    again: Callable[[TextToAlign], Result],
) -> Result:
    """Judge a text, and align it again without the words that were not said, where there are any.

    Args:
        check: The threshold of doubtful texts.
        presence: How words are judged.
        text: The text, with all its readings.
        first: Its alignment.
        again: Aligns another version of the text.

    Returns:
        The first alignment or another one, with the verdict, the presence of words, and the absent ones. Without
        evidence on the words the text is judged as a whole: wrong, or without a verdict.
    """
    wrong = bool(doubtful(first.agreement, usable(check)))
    if first.evidence is None:
        return replace(first, alignment=replace(first.alignment, verdict=WRONG)) if wrong else first
    judged = judge(presence, first.evidence)
    if wrong or not judged.suspicious:
        return _told(first, text, judged, wrong=wrong)
    try:
        rest, absent, left = _rounds(presence, text, judged, again)
        if len(absent) == len(judged.words):
            none = (*first.warnings, "none of the words was said: the transcript is likely not what is said")
            return _told(replace(first, warnings=none), text, judged, wrong=True)
        last = again(rest) if absent else first
        if absent and last.evidence:
            left = judge(presence, last.evidence)
        if left.extra:
            last = again(_with_stars(rest, left.extra))
            left = judge(presence, last.evidence) if last.evidence else left
    except AlignmentError:  # with stars the text may be too long for its recording
        return _told(first, text, judged)
    found = _told(last, text, left, absent)
    # stars that are too short for speech do not move the words
    changed = absent or any(number >= len(text.transcript.words) for number in found.words)
    return found if changed else _told(first, text, left)


def _rounds(
    presence: Presence, text: TextToAlign, judged: Judged, again: Callable[[TextToAlign], Result]
) -> tuple[TextToAlign, dict[int, float], Judged]:
    """Leave out words that were not said.

    Returns:
        The rest of the text, the presence of the words that were left out by their numbers, and the last judgement.
    """
    rest, absent = text, dict[int, float]()
    places = judged.extra | _beside(judged, judged.unlikely)
    for _ in range(ROUNDS):
        found = again(_with_stars(rest, places)).evidence
        if found is None:
            break
        judged = judge(presence, found)
        worst = _worst(judged)
        absent |= {number: judged.words[number] for number in worst}
        if not worst or len(worst) == len(judged.words):
            break
        rest = without(rest, worst)
        kept = judged.extra | _beside(judged, judged.unlikely - worst)
        moved = (place - sum(judged.places[number] < place for number in worst) for place in kept)
        places = frozenset(moved) | _left_out(rest, absent)
    return rest, absent, judged


def _worst(judged: Judged) -> frozenset[int]:
    """Return the absent words, without those at the ends of runs of them that are likelier than their neighbour."""
    numbers, out = list(judged.words), set()
    for i, number in enumerate(numbers):
        beside = [judged.words[other] for other in numbers[max(0, i - 1) : i + 2] if other in judged.absent]
        if number in judged.absent and (len(beside) == 3 or judged.words[number] == min(beside)):
            out.add(number)
    return frozenset(out)


def without(text: TextToAlign, words: Collection[int]) -> TextToAlign:
    """Leave out words, and of the pauses on both sides one."""
    transcript, optional = text
    kept: list[tuple[int, int | None, bool]] = []
    for row in zip(transcript.tokens, transcript.token_words, optional):
        if not (row[1] in words or (row[1] is None and row[2] and kept and kept[-1] == row)):
            kept.append(row)
    tokens, owners, skips = zip(*kept)
    return TextToAlign(replace(transcript, tokens=tokens, token_words=owners), list(skips))


def _beside(judged: Judged, words: Collection[int]) -> frozenset[int]:
    """Return the places on both sides of words."""
    return frozenset(judged.places[number] + side for number in words for side in (0, 1))


def _left_out(rest: TextToAlign, absent: Collection[int]) -> frozenset[int]:
    """Return the places in a text of the words that were left out of it."""
    owners = sorted({owner for owner in rest.transcript.token_words if owner is not None})
    return frozenset(bisect_left(owners, number) for number in absent)


def _with_stars(text: TextToAlign, places: Collection[int]) -> TextToAlign:
    """Put optional stars into gaps, except before and after the text where stars of no word are already."""
    rows = list(zip(text.transcript.tokens, text.transcript.token_words))
    count = len({word for _, word in rows if word is not None})
    edges = ((rows[0], 0), (rows[-1], count))
    taken = {place for row, place in edges if row == (STAR_NUMBER, None)}
    return with_extra_speech(text, set(places) - taken)


def _told(
    result: Result,
    text: TextToAlign,
    judged: Judged,
    absent: Mapping[int, float] = MappingProxyType({}),
    *,
    wrong: bool = False,
) -> Result:
    """Add presence, absent words, the verdict and warnings to a result.

    Args:
        result: The last alignment.
        text: The text that was given.
        judged: The judgement on the words that are left.
        absent: The presence of the words that were left out, by their numbers.
        wrong: The text is wrong as a whole.
    """
    given = len(text.transcript.words)
    rows = [
        (replace(segment, presence=judged.words.get(number)), number)
        for segment, number in zip(result.alignment.tiers[0], result.words)
        if number < given or segment.duration >= LEAST_EXTRA_S
    ]
    segments, numbers = tuple(segment for segment, _ in rows), tuple(number for _, number in rows)
    first, *others = result.alignment.tiers
    missing = _absent(numbers, text, absent)
    speech = result.frames - sum(end - start for start, end in result.quiet)
    verdict = NO_SPEECH if speech < given else WRONG if wrong else ""
    unlikely = frozenset[int]() if verdict else judged.unlikely
    deviations = Deviations.among(segments, numbers, given, missing, unlikely)
    verdict = verdict or (PARTLY if deviations.of(given) else RIGHT)
    tiers = (replace(first, segments=segments), *others)
    alignment = replace(result.alignment, tiers=tiers, absent=missing, verdict=verdict)
    nothing = (NOTHING,) if verdict == NO_SPEECH else ()
    told = (*result.warnings, *nothing, *deviations.notes(segments))
    return replace(result, alignment=alignment, words=numbers, unlikely=unlikely, warnings=told)


def _absent(numbers: Sequence[int], text: TextToAlign, absent: Mapping[int, float]) -> tuple[Absent, ...]:
    """List the words that were left out, with the numbers of the segments before them."""
    transcript = text.transcript
    out = []
    for number in sorted(absent):
        after = max((i for i, other in enumerate(numbers, 1) if other < number), default=0)
        label = " ".join(transcript.words[number].text.split())
        out.append(Absent(label, after, absent[number], origin_of(transcript, number)))
    return tuple(out)
