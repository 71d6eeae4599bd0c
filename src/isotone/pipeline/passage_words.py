"""Words of joined texts: which passage each of them belongs to, and their tiers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from isotone.alignment import Segment, Tier, tier_from_spans
from isotone.pipeline.passage_times import end_of, start_of
from isotone.pipeline.stars import STAR
from isotone.text.tokenizer import Transcript
from isotone.transcripts import Passage

#: Name of the tiers of passages without a speaker, where others have one.
UNKNOWN = "unknown"


@dataclass
class Found:
    """The segments of one passage, by tier, and words in a row that were likely not said."""

    words: list[Segment] = field(default_factory=list)
    units: list[Segment] = field(default_factory=list)
    unsaid: list[list[Segment]] = field(default_factory=list)

    @property
    def fit(self) -> float:
        """Mean score of the words in nats, by their durations; 0 where none has one."""
        scored = [(word.score, word.duration) for word in self.words if word.score is not None]
        total = sum(duration for _, duration in scored)
        return sum(score * duration for score, duration in scored) / total if total else 0.0


def tiers_of(
    found: Mapping[int, Found],
    speakers: Mapping[int, str | None],
    names: Sequence[str],
    seconds: float,
    named: bool,
) -> tuple[Tier, ...]:
    """Join the segments of passages to tiers; every speaker has their own if there are several.

    Args:
        found: Segments of the passages by their numbers.
        speakers: Speaker of every passage that is shown, in order.
        names: Names of the tiers: of words, if there are any, and of units.
        seconds: Duration of the recording.
        named: Name tiers by their speaker also where there is only one.
    """
    tiers = []
    different = dict.fromkeys(speakers.values())
    for speaker in different:
        own = [found[number] for number, other in speakers.items() if other == speaker]
        before = f"{speaker or UNKNOWN} - " if len(different) > 1 or named else ""
        for name in names:
            segments = [s for one in own for s in (one.words if name == "words" else one.units)]
            tiers.append(tier_of(before + name, segments, seconds))
    return tuple(tiers)


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


def in_passages(
    words: Sequence[Segment],
    owners: Sequence[int | None],
    passages: Mapping[int, Passage],
    bounds: Sequence[tuple[int, int | None]],
) -> list[Segment]:
    """Return the words of a joined text with their places in the texts of their passages, or in the book of these."""
    starts = {owner: position for position, owner in bounds}
    out = []
    for word, owner in zip(words, owners):
        origin = None
        if word.origin is not None and owner is not None:
            first, text = word.origin.start - starts[owner], passages[owner].text
            # a mark at the beginning of the next passage goes with the word, and is not in this one
            written = text[first : word.origin.end - starts[owner]].rstrip()
            place, number = passages[owner].place, passages[owner].number
            if place is not None:
                first, number = first + place, None
            origin = replace(word.origin, text=written, start=first, end=first + len(written), passage=number)
        out.append(replace(word, origin=origin))
    return out


def with_stars(
    found: Mapping[int, Found], passages: Mapping[int, Passage], numbers: Iterable[int]
) -> dict[int, Found]:
    """Give passages that have nothing but unknown speech a star at their own times, beside the words of their speakers.

    Args:
        found: The segments of the other passages.
        passages: All passages, in order of their starts, by their numbers.
        numbers: Those with nothing but unknown speech.
    """
    said: dict[str | None, list[tuple[float, float]]] = {}
    for number, own in found.items():
        said.setdefault(passages[number].speaker, []).extend((s.start, s.end) for s in own.words)
    for spans in said.values():
        spans.sort()
    out = {}
    for number in sorted(numbers):
        passage = passages[number]
        start, end = start_of(passage), end_of(passage)
        spans = said.get(passage.speaker, [])
        after = bisect_right(spans, ((start + end) / 2, 0.0))
        first = max([start, *(last for _, last in spans[after - 1 : after])])
        last = min([end, *(following for following, _ in spans[after : after + 1])])
        out[number] = Found([Segment(STAR, first, last)] if last > first else [])
    return out


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


def _middle(segment: Segment) -> float:
    return (segment.start + segment.end) / 2


def within(unit: Segment, word: Segment) -> bool:
    """Tell if the middle of a unit lies in a word."""
    return word.start <= _middle(unit) < word.end


def sizes(found: Found, pieces: bool) -> Iterator[tuple[str, float, int]]:
    """Iterate over words with units: label, seconds, and number of units, or of characters where these are pieces."""
    for word in found.words:
        units = [len(u.label) if pieces else 1 for u in found.units if within(u, word)]
        if units:
            yield word.label, word.duration, sum(units)


def tier_of(name: str, segments: Sequence[Segment], seconds: float) -> Tier:
    """Make a tier; where two stretches disagree, the earlier segment is cut."""
    tier = tier_from_spans(name, ((s.label, s.start, s.end, s.score) for s in segments), seconds)
    kept = (
        old if (old.start, old.end) == (new.start, new.end) else replace(old, start=new.start, end=new.end)
        for new, old in zip(tier, segments)
    )
    return Tier(name, tuple(kept))


def later(segment: Segment, seconds: float) -> Segment:
    """Copy a segment that starts and ends by so many seconds later."""
    return replace(segment, start=segment.start + seconds, end=segment.end + seconds)
