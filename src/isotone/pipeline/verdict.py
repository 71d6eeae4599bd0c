"""Verdicts on texts: words that were not said, speech that is not in the text, and the text as a whole.

A wrong word moves its neighbours, which then look wrong as well. So a suspicious text is aligned again with stars
beside all that is suspicious, and judged again; what is still not there is left out of the last alignment.

Verdicts are ``right``; ``partly``, with words that were not said or speech that is not in the text; ``wrong``; and
``no speech``. Of a text that is wrong as a whole nothing is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from isotone.alignment import Absent, AlignmentError, Segment
from isotone.model.check import Presence
from isotone.pipeline.attempt import Attempt
from isotone.pipeline.presence import Evidence, probabilities
from isotone.pipeline.result import Result
from isotone.pipeline.stars import STAR, STAR_NUMBER, with_extra_speech
from isotone.pipeline.texts import TextToAlign

RIGHT, PARTLY, WRONG, NO_SPEECH = "right", "partly", "wrong", "no speech"

#: Most nats per frame that stars cost where something is suspicious, see :data:`isotone.pipeline.stars.STAR_COST`.
STAR_COST = 1.0

#: Seconds that speech which is not in the text lasts at least; shorter stars are not shown.
LEAST_EXTRA_S = 0.1

_NAMED = 5


class Judged(NamedTuple):
    """Judgement on the words of a text.

    Attributes:
        words: Probability of every word's number that it was said.
        absent: Numbers of the words that were not said.
        extra: Places of speech that is not in the text, as :func:`isotone.pipeline.stars.with_extra_speech` takes them.
        places: For every word the number of words with tokens before it.
        share: Mean probability.
    """

    words: dict[int, float]
    absent: frozenset[int]
    extra: frozenset[int]
    places: dict[int, int]
    share: float

    @property
    def suspicious(self) -> bool:
        """True where a word was not said, or there is speech that is not in the text."""
        return bool(self.absent or self.extra)


def judge(presence: Presence, evidence: Evidence) -> Judged:
    """Judge the words of a text by their evidence."""
    said = probabilities(presence.said, evidence.said)
    extra = probabilities(presence.extra, evidence.gaps)
    words = dict(zip(evidence.words, said.tolist()))
    return Judged(
        words,
        frozenset(number for number, p in words.items() if p < presence.least),
        frozenset(place for place, p in zip(evidence.places, extra) if p > presence.most),
        dict(zip(evidence.words, evidence.places)),
        float(said.mean()) if len(said) else 1.0,
    )


def settled(
    presence: Presence,
    first: Attempt,
    again: Callable[[TextToAlign], Attempt],
    labels: Sequence[str],
    *,
    everywhere: bool = False,
) -> Attempt:
    """Judge a text, and align it again without the words that were not said, where there are any.

    Args:
        presence: How words are judged.
        first: The alignment of the whole text.
        again: Aligns another version of the text.
        labels: The words that were given.
        everywhere: Allow stars in all gaps, also where nothing is suspicious.
    """
    if first.evidence is None:
        return first
    judged = judge(presence, first.evidence)
    whole = judged.share < presence.wrong

    def kept(judged: Judged) -> Attempt:
        return replace(first, result=told(first.result, labels, judged, wrong=whole))

    if whole or not judged.suspicious:
        return kept(judged)
    try:
        second = again(with_stars_beside(first.text, judged, everywhere)).evidence
        after = judge(presence, second) if second else judged
        if not after.suspicious or len(after.absent) == len(after.words):
            return kept(after)
        last = again(without_absent(first.text, after, everywhere))
    except AlignmentError:  # with stars the text may be too long for its recording
        return kept(judged)
    left = judge(presence, last.evidence) if last.evidence else after
    return replace(last, result=told(last.result, labels, left, after))


def with_stars_beside(text: TextToAlign, judged: Judged, everywhere: bool = False) -> TextToAlign:
    """Put optional stars where there may be other speech, and on both sides of the words that may not be there."""
    beside = {
        place + side for number in judged.absent for place in [judged.places[number]] for side in (0, 1)
    }
    return _with_stars(text, judged.extra | beside, everywhere)


def without_absent(text: TextToAlign, judged: Judged, everywhere: bool = False) -> TextToAlign:
    """Leave out words that were not said, with optional stars in their places and where there is other speech."""
    dropped = sorted(judged.places[number] for number in judged.absent)
    places = {place - sum(d < place for d in dropped) for place in (*judged.extra, *dropped)}
    return _with_stars(_without(text, judged.absent), places, everywhere)


def _with_stars(text: TextToAlign, places: Collection[int], everywhere: bool) -> TextToAlign:
    """Put optional stars into gaps, except before and after the text where stars of no word are already."""
    if everywhere:  # the stars are there already
        return text
    transcript = text.transcript
    rows = list(zip(transcript.tokens, transcript.token_words))
    count = len({word for _, word in rows if word is not None})
    edges = ((rows[0], 0), (rows[-1], count))
    taken = {place for row, place in edges if row == (STAR_NUMBER, None)}
    return with_extra_speech(text, set(places) - taken)


def _without(text: TextToAlign, words: Collection[int]) -> TextToAlign:
    """Take out the tokens of words; of the pauses on both sides one is left."""
    transcript, optional = text
    kept: list[tuple[int, int | None, bool]] = []
    for row in zip(transcript.tokens, transcript.token_words, optional):
        if row[1] in words or (row[1] is None and row[2] and kept and kept[-1] == row):
            continue
        kept.append(row)
    tokens, owners, skips = zip(*kept)
    return TextToAlign(replace(transcript, tokens=tokens, token_words=owners), list(skips))


def told(
    result: Result, labels: Sequence[str], judged: Judged, absent: Judged | None = None, wrong: bool = False
) -> Result:
    """Add presence, absent words, the verdict and warnings to a result.

    Args:
        result: The last alignment.
        labels: The words of the text that was given.
        judged: The judgement on the words that are left.
        absent: The judgement by which words were left out, if any were.
        wrong: The text is wrong as a whole.
    """
    result = _without_short_stars(result, len(labels))
    alignment = result.alignment
    speech = result.frames - sum(end - start for start, end in result.quiet)
    tiers = alignment.tiers
    if tiers[0].name == "words":
        probable = (judged.words.get(number) for number in result.words)
        segments = tuple(replace(s, presence=p) for s, p in zip(tiers[0], probable))
        tiers = (replace(tiers[0], segments=segments), *tiers[1:])
    missing = _absent(result, labels, absent) if absent else ()
    extra = [s for s, number in zip(tiers[0], result.words) if number >= len(labels)]
    verdict = RIGHT
    if speech < len(labels):
        verdict = NO_SPEECH
    elif wrong:
        verdict = WRONG
    elif missing or extra:
        verdict = PARTLY
    notes = tuple(_notes(result, verdict, missing, extra))
    alignment = replace(alignment, tiers=tiers, absent=missing, verdict=verdict)
    return replace(result, alignment=alignment, warnings=(*result.warnings, *notes))


def _notes(
    result: Result, verdict: str, missing: Sequence[Absent], extra: Sequence[Segment]
) -> Iterator[str]:
    if verdict == NO_SPEECH:
        yield "the recording holds no speech: the times mean nothing"
    if verdict == WRONG:
        yield "the text is wrong: few of its words are said, and the times mean little"
    if missing:
        named = (f"{word.label!r} {_where(word, result)}" for word in missing)
        yield f"words that were not said, left out: {_listed(named, len(missing))}"
    if extra:
        spans = (f"{s.start:.2f} to {s.end:.2f} s" for s in extra)
        yield f"speech that is not in the text, marked {STAR}: {_listed(spans, len(extra))}"


def _without_short_stars(result: Result, given: int) -> Result:
    """Drop the segments of stars that are too short for speech."""
    tier, *others = result.alignment.tiers
    rows = list(zip(tier, result.words))
    kept = [(s, number) for s, number in rows if number < given or s.duration >= LEAST_EXTRA_S]
    if len(kept) == len(rows):
        return result
    tier = replace(tier, segments=tuple(s for s, _ in kept))
    alignment = replace(result.alignment, tiers=(tier, *others))
    return replace(result, alignment=alignment, words=tuple(number for _, number in kept))


def _absent(result: Result, labels: Sequence[str], judged: Judged) -> tuple[Absent, ...]:
    """List the words that were left out, with their positions among the segments that are there."""
    out = []
    for number in sorted(judged.absent):
        before = [i for i, other in enumerate(result.words) if other < number]
        out.append(Absent(labels[number], before[-1] + 1 if before else 0, judged.words[number]))
    return tuple(out)


def _where(word: Absent, result: Result) -> str:
    segments = result.alignment.tiers[0].segments
    if word.position == 0:
        return f"(before {segments[0].start:.2f} s)" if segments else ""
    return f"(after {segments[word.position - 1].end:.2f} s)"


def _listed(named: Iterable[str], count: int) -> str:
    first = [text for text, _ in zip(named, range(_NAMED))]
    more = f" and {count - len(first)} more" if count > len(first) else ""
    return ", ".join(first) + more
