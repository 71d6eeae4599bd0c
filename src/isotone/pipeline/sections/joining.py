"""Results of the sections of a recording, joined to one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from isotone.alignment import Absent, Alignment, Origin, Segment
from isotone.pipeline import verdict
from isotone.pipeline.deviations import Deviations, listed, named_by
from isotone.pipeline.edges import edges_left_out
from isotone.pipeline.language import ANOTHER_LANGUAGE
from isotone.pipeline.means import mean_of, mean_of_known
from isotone.pipeline.passage_words import later, tier_of
from isotone.pipeline.result import Result, origin_of
from isotone.pipeline.sections.cutting import Section
from isotone.pipeline.sections.planning import Take
from isotone.pipeline.stars import STAR
from isotone.text.tokenizer import Transcript

# Verdicts on sections with a text that is not what is said.
_UNFIT = {verdict.WRONG, verdict.NO_SPEECH, ANOTHER_LANGUAGE}

# Seconds that the last sound of other speech lasts at least.
_LASTS_S = 0.1


class Part(NamedTuple):
    """A section with its alignment.

    Attributes:
        section: The section.
        spoken: Its first and its last sound, in seconds.
        result: The alignment of its words with its part of the recording; None where none of them was said in it.
        place: First character of its text.
    """

    section: Section
    spoken: tuple[float, float]
    result: Result | None = None
    place: int = 0


@dataclass
class _Rows:
    """Segments of the words with their numbers, of the tokens, absent words, and numbers of unlikely ones."""

    words: list[tuple[Segment, int]]
    units: list[Segment]
    absent: list[Absent]
    unlikely: set[int]


def join(
    id: str,
    seconds: float,
    transcript: Transcript,
    parts: Sequence[Part],
    absent: Sequence[tuple[int, int]],
    strange: Sequence[tuple[list[str], Take]],
) -> Result:
    """Join the results of sections.

    Args:
        id: Utterance id.
        seconds: Duration of the recording.
        transcript: The whole text.
        parts: The sections, in order of time.
        absent: Words that no section holds: the first, and one past the last.
        strange: What is read again or in another place, with its words.
    """
    rows = _rows(transcript, parts, absent)
    results = [part.result for part in parts if part.result is not None]
    words, unit = (tier.name for tier in results[0].alignment.tiers)
    tiers = (
        tier_of(words, [segment for segment, _ in rows.words], seconds),
        tier_of(unit, rows.units, seconds),
    )
    given, numbers = len(transcript.words), tuple(number for _, number in rows.words)
    deviations = Deviations.among(tiers[0].segments, numbers, given, rows.absent, rows.unlikely)
    verdicts = {result.alignment.verdict for result in results}
    # every section has fewer words than the whole text, of which it may lack one
    judged = verdicts <= {verdict.RIGHT, verdict.PARTLY}
    unlike = bool(strange or verdicts & _UNFIT) or deviations.of(given)
    one = verdict.PARTLY if unlike else verdict.RIGHT if judged else ""
    score = mean_of([(result.score, len(result.words)) for result in results])
    alignment = Alignment(id, seconds, tiers, score, absent=tuple(rows.absent), verdict=one)
    warnings = (
        *_places(parts),
        *_timeless(parts),
        *deviations.notes(tiers[0].segments),
    )
    return Result(
        alignment,
        " ".join(word.text for word in transcript.words),
        round(seconds / results[0].grid.hop_s),
        tuple(_quiet(parts)),
        results[0].grid,
        score,
        mean_of([(result.frameless, len(result.words)) for result in results]),
        (*(_order(words, take) for words, take in strange), *warnings),
        mean_of_known((result.agreement, len(result.words)) for result in results),
        numbers,
        frozenset(rows.unlikely),
    )


def _rows(transcript: Transcript, parts: Sequence[Part], absent: Sequence[tuple[int, int]]) -> _Rows:
    rows = _Rows([], [], [], set())
    total, missing = len(transcript.words), list(absent)
    for section, (start, end), result, place in parts:
        if result is None:
            star = Segment(STAR, start, min(section.end, end + _LASTS_S))
            rows.words.append((star, total))
            if not section.again and section.first < section.last:
                missing.append((section.first, section.last))
            continue
        alignment = result.alignment
        own = section.last - section.first
        rows.absent += [
            replace(word, after=word.after + len(rows.words), origin=_moved(word.origin, place))
            for word in alignment.absent
        ]
        rows.words += [
            (_later(segment, section.start, place), section.first + n if n < own else total)
            for segment, n in zip(alignment.tiers[0], result.words)
        ]
        rows.unlikely |= {section.first + n for n in result.unlikely}
        rows.units += [_later(segment, section.start, place) for segment in alignment.tiers[1]]
    for first, last in missing:
        before = [i for i, (_, number) in enumerate(rows.words, 1) if number < first]
        after = max(before, key=lambda i: rows.words[i - 1][1], default=0)
        rows.absent += [
            Absent(" ".join(transcript.words[n].text.split()), after, 0.0, origin_of(transcript, n))
            for n in range(first, last)
        ]
    rows.absent.sort(key=lambda word: word.after)
    return rows


def _moved(origin: Origin | None, place: int) -> Origin | None:
    return origin and replace(origin, start=origin.start + place, end=origin.end + place)


def _later(segment: Segment, seconds: float, place: int) -> Segment:
    return replace(later(segment, seconds), origin=_moved(segment.origin, place))


def _quiet(parts: Sequence[Part]) -> Iterator[tuple[int, int]]:
    for part in parts:
        if part.result:
            first = round(part.section.start / part.result.grid.hop_s)
            yield from ((start + first, end + first) for start, end in part.result.quiet)


def _timeless(parts: Sequence[Part]) -> Iterator[str]:
    """Iterate over the warnings of sections that name no times, which are the sections' own."""
    for section, _, result, _ in parts:
        if result is None:
            continue
        own, given = result.alignment, section.last - section.first
        segments = own.tiers[0].segments
        deviations = Deviations.among(segments, result.words, given, own.absent, result.unlikely)
        timed = {edges_left_out(own), verdict.NOTHING, *deviations.notes(segments)}
        yield from (warning for warning in result.warnings if warning not in timed)


def _places(parts: Sequence[Part]) -> Iterator[str]:
    """Iterate over warnings of sections that name times, with those of the recording."""
    left_out, wrong = [], []
    for section, _, result, _ in parts:
        if result is None:
            continue
        own = result.alignment
        if edges_left_out(own) in result.warnings and own.tiers[0].segments:
            first, last = own.tiers[0].segments[0].start, own.tiers[0].segments[-1].end
            edges = (0.0, first), (last, section.end - section.start)
            left_out += [_span(section.start + a, section.start + b) for a, b in edges if b - a >= 1.0]
        if own.verdict in _UNFIT:
            wrong.append(_span(section.start, section.end))
    if left_out:
        yield f"left out, for there is something else than the text: {listed(left_out)}"
    if wrong:
        yield f"the text is likely not what is said: {listed(wrong)}"


def _span(start: float, end: float) -> str:
    return f"{start:.2f} to {end:.2f} s"


def _order(words: Sequence[str], take: Take) -> str:
    where = f"{named_by(words)} at {_span(take.start, take.end)}"
    return f"read again: {where}" if take.again else f"in another place than in the text: {where}"
