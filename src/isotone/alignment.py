"""Alignments as people read and write them: labelled segments on tiers, in seconds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import overload

from isotone.passage import Passage

#: Labels that stand for silence, in any corpus or file; folded phones write ``sil``.
SILENCE = frozenset({"", "sil", "h#", "pau", "epi", "sp", "spn", "<eps>", "<sil>", "#"})

#: Label of speech that is not in the text.
STAR = "*"


class AlignmentError(ValueError):
    """A sequence cannot be aligned, or segments do not make a valid tier; the message says which and why.

    Attributes:
        reason: The message without the row or the id.
        row: Number of the batch's row that cannot be aligned; None where the error is not about a batch.
    """

    def __init__(self, reason: str, *, row: int | None = None, id: str = "") -> None:
        where = id or ("" if row is None else f"Row {row}")
        super().__init__(f"{where}: {reason}" if where else reason)
        self.reason = reason
        self.row = row


@dataclass(frozen=True, slots=True)
class Origin:
    """The place of a word in the text that was given, and what was read there.

    Attributes:
        text: The word as written, with its punctuation: the characters of the text from ``start`` to ``end``. It is the
            label, unless markup inside of the word was left out of that.
        start, end: Position in the text, in characters from 0; ``end`` is one past the last. Where the text has
            passages with times, it is that in the text of the passage.
        reading: The words that were said, of the readings that the word has: ``nineteen eighty four``. Empty for a
            word that is aligned as unknown speech.
        passage: Number of the passage among those of the recording, from 0 on; None for a text without times.
    """

    text: str
    start: int
    end: int
    reading: str = ""
    passage: int | None = None


@dataclass(frozen=True, slots=True)
class Margin:
    """The place of a boundary, as sure as the model is of it.

    Attributes:
        before, after: Seconds. In nine of ten cases the true boundary is not earlier than ``before`` before this one,
            and not later than ``after`` after it.
        near: Probability, 0 to 1, that it is within 20 ms of this one.
    """

    before: float
    after: float
    near: float

    def __post_init__(self) -> None:
        if not (0 <= self.before < math.inf and 0 <= self.after < math.inf and 0 <= self.near <= 1):
            raise AlignmentError(
                "A margin expects seconds of 0 or more before and after, and a probability; got "
                f"{self.before}, {self.after} and {self.near}."
            )


@dataclass(frozen=True, slots=True)
class Segment:
    """A label between two times.

    Attributes:
        label: Word, phone or character; an empty label is silence.
        start, end: Seconds, ``0 <= start <= end``.
        score: Mean log-probability per frame of the label over its segment, nats (<= 0), where known.
        confidence: Probability, 0 to 1, that the segment's frames belong to the label, given the text: the mean
            over its frames; where known.
        origin: The place of a word in a given text, where known.
        presence: Probability, 0 to 1, that the label was said at all; where known.
        start_margin, end_margin: How sure start and end are; where known.
    """

    label: str
    start: float
    end: float
    score: float | None = None
    confidence: float | None = None
    origin: Origin | None = None
    presence: float | None = None
    start_margin: Margin | None = None
    end_margin: Margin | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.start) and math.isfinite(self.end) and 0 <= self.start <= self.end):
            raise AlignmentError(
                f"Segment {self.label!r} expects 0 <= start <= end in seconds; got {self.start} .. {self.end}."
            )

    @property
    def duration(self) -> float:
        """Seconds."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Tier:
    """A named row of segments in order of time that do not overlap; gaps are silence.

    It is a sequence: ``len(tier)``, ``tier[0]``, ``tier[-1]``, ``for segment in tier``, ``reversed(tier)``. A slice,
    such as ``tier[:10]``, is a tier of the same name.

    Raises:
        AlignmentError: segments overlap or run backwards.
    """

    name: str
    segments: tuple[Segment, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "segments", tuple(self.segments))
        for a, b in zip(self.segments, self.segments[1:]):
            if b.start < a.end:
                raise AlignmentError(
                    f"Tier {self.name!r}: {b.label!r} starts at {b.start} s, before {a.label!r} ends at {a.end} s."
                )

    def __len__(self) -> int:
        return len(self.segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self.segments)

    @overload
    def __getitem__(self, place: int) -> Segment: ...

    @overload
    def __getitem__(self, place: slice) -> Tier: ...

    def __getitem__(self, place: int | slice) -> Segment | Tier:
        if not isinstance(place, slice):
            return self.segments[place]
        if place.step is not None and place.step < 0:
            raise ValueError(
                f"A tier is in order of time: reversed(tier) runs backwards, [{_shown(place)}] cannot."
            )
        return Tier(self.name, self.segments[place])

    @property
    def labels(self) -> list[str]:
        """The labels in order."""
        return [s.label for s in self.segments]

    def filled(self, duration: float) -> Tier:
        """The tier with empty-labelled segments in all gaps up to ``duration`` (seconds), as TextGrids have it."""
        out: list[Segment] = []
        now = 0.0
        for s in self.segments:
            if s.start > now:
                out.append(Segment("", now, s.start))
            out.append(s)
            now = s.end
        if now < duration:
            out.append(Segment("", now, duration))
        return Tier(self.name, tuple(out))


@dataclass(frozen=True, slots=True)
class Absent:
    """A word of the text that was not said, and so has no times.

    Attributes:
        label: The word.
        after: Number of segments of the tier of words that come before it.
        presence: Probability that it was said after all, 0 to 1.
        origin: Its place in the given text, where known.
    """

    label: str
    after: int
    presence: float
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Alignment:
    """Tiers over one recording: its words, phones or characters with their times.

    Attributes:
        id: Utterance id.
        duration: Seconds of audio.
        tiers: In order of display: words first, then phones or characters.
        score: Fit of the text to the audio, nats per token (<= 0), where known: the log-likelihood ratio of the text
            against the best labels of every frame. See :class:`isotone.pipeline.scores.Scores`.
        audio: File of the recording, where known, for formats that link it. Comparisons ignore it.
        absent: Words of the text that were not said, in order.
        passages: Passages of the transcript that was given, in its order, where known; subtitles are written by them
            (:mod:`isotone.format.given`). Comparisons ignore them, and no file holds them.
        verdict: Verdict on the whole text, where known: ``right``, ``partly``, ``wrong``, ``another language`` or
            ``no speech``; see :mod:`isotone.pipeline.verdict` and :mod:`isotone.pipeline.language`.

    Raises:
        AlignmentError: two tiers share a name, a segment runs past the audio, or the duration is negative.
    """

    id: str
    duration: float
    tiers: tuple[Tier, ...] = field(default=())
    score: float | None = None
    audio: Path | None = field(default=None, compare=False)
    absent: tuple[Absent, ...] = ()
    verdict: str = ""
    passages: tuple[Passage, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tiers", tuple(self.tiers))
        if not (math.isfinite(self.duration) and self.duration >= 0):
            raise AlignmentError(
                f"Alignment {self.id!r} expects a duration of 0 s or more; got {self.duration}."
            )
        names = [t.name for t in self.tiers]
        if len(set(names)) < len(names):
            raise AlignmentError(f"Alignment {self.id!r}: two tiers share a name: {names}.")
        for tier in self.tiers:
            if tier.segments and tier.segments[-1].end > self.duration + 1e-6:
                last = tier.segments[-1]
                raise AlignmentError(
                    f"Alignment {self.id!r}, tier {tier.name!r}: {last.label!r} ends at {last.end} s, "
                    f"after the audio ({self.duration} s)."
                )

    def tier(self, name: str) -> Tier:
        """The tier of that name.

        Raises:
            KeyError: no such tier; the message lists what there is.
        """
        for tier in self.tiers:
            if tier.name == name:
                return tier
        raise KeyError(f"Alignment {self.id!r} has no tier {name!r}; it has {[t.name for t in self.tiers]}.")

    @property
    def has_margins(self) -> bool:
        """True where the margins of boundaries are known."""
        return any(s.start_margin or s.end_margin for tier in self.tiers for s in tier)

    def has(self, name: str) -> bool:
        """Tell if there is a tier of that name."""
        return any(t.name == name for t in self.tiers)


def _shown(place: slice) -> str:
    """Write a slice as Python has it in brackets."""
    return ":".join("" if part is None else str(part) for part in (place.start, place.stop, place.step))


def tier_from_spans(
    name: str, spans: Iterable[tuple[str, float, float, float | None]], duration: float
) -> Tier:
    """A valid tier from (label, start, end, score) in seconds, clipped to ``[0, duration]`` and kept in order.

    Overlaps by rounding are cut where the later segment starts; nothing is dropped.

    Raises:
        AlignmentError: a time is not a number.
    """
    rows = (_clipped(name, span, duration) for span in spans)
    row = next(rows, None)
    segments: list[Segment] = []
    floor = 0.0
    while row is not None:
        label, start, end, score = row
        row = next(rows, None)
        start = max(start, floor)
        if row is not None:
            end = min(end, max(row[1], start))
        floor = max(start, end)
        segments.append(Segment(label, start, floor, score))
    return Tier(name, tuple(segments))


def _clipped(
    name: str, span: tuple[str, float, float, float | None], duration: float
) -> tuple[str, float, float, float | None]:
    """Clip a span of a tier to ``[0, duration]``."""
    label, start, end, score = span
    if math.isnan(start) or math.isnan(end):
        raise AlignmentError(f"Tier {name!r} expects times in seconds; {label!r} has {start} .. {end}.")
    return label, min(max(0.0, start), duration), min(max(0.0, end), duration), score
