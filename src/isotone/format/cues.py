"""Cues of subtitles: words grouped into lines that can be read."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, NamedTuple

from isotone.alignment import STAR, Alignment, Segment, Tier
from isotone.format.ticks import describe_empty, last_tick, to_ticks
from isotone.format.tier_names import parse_name, voices
from isotone.format.unsaid import SENTENCE, Word, with_unsaid

logger = logging.getLogger(__name__)

Level = Literal["line", "word"]

_CLAUSE = re.compile(r"[,;:\u2013\u2014\u3001\uff0c][\"'\u2019\u201d)\]]*$")

# Costs of a cue: that it is there; that it is short; every sentence that ends within it, where it ends with a sentence
# as well and where it does not; an end within a sentence, and within a clause.
_CUE, _SHORT, _WITHIN, _MIXED, _BREAK, _NO_CLAUSE = 1.0, 1.0, 0.3, 2.0, 0.5, 0.3
# That none of its words was said, so that it has no times: only where it fits into none of its neighbours.
_UNSAID = 1000.0


@dataclass(frozen=True)
class Layout:
    """The form of subtitles that are made anew.

    Attributes:
        level: ``"word"`` for one cue per word, or ``"line"``.
        max_chars: Most characters per line; a longer word is a line of its own.
        max_lines: Most lines per cue.
        max_gap_s: A silence longer than this, in seconds, starts a new cue.
        max_s: Most seconds of speech in a cue, unless it is one word.
        reading_speed: Characters per second that people read: shorter cues stay until they are read, or the next one
            begins. 0: cues end with their last word. It counts for given cues, too.
        min_s: Fewest seconds that a cue stays, unless the next one begins or ``reading_speed`` is 0. It counts for
            given cues, too.
        unsaid: Show words of the text that were not said, where a run of them fits into a cue; without times, they are
            in the cue of their neighbours. With a cue per word they are not shown.
        star: Text to show for speech that is not in the text, such as ``[...]``; empty: nothing is shown.

    Raises:
        ValueError: an option out of range.
    """

    level: Level = "line"
    max_chars: int = 42
    max_lines: int = 2
    max_gap_s: float = 0.8
    max_s: float = 7.0
    reading_speed: float = 17.0
    min_s: float = 1.0
    unsaid: bool = True
    star: str = ""

    def __post_init__(self) -> None:
        if self.level not in ("line", "word"):
            raise ValueError(f"The level of subtitles is 'line' or 'word'; got {self.level!r}.")
        for name in ("max_chars", "max_lines", "max_gap_s", "max_s", "reading_speed", "min_s"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ValueError(f"The option {name} of subtitles is a number; got {value!r}.")
        rest = (self.max_gap_s, self.max_s, self.reading_speed, self.min_s)
        if min(self.max_chars, self.max_lines) < 1 or min(rest) < 0:
            raise ValueError(
                f"Expected max_chars and max_lines >= 1, and seconds and speeds >= 0; got {self.max_chars}, "
                f"{self.max_lines}, {self.max_gap_s}, {self.max_s}, {self.reading_speed} and {self.min_s}."
            )
        if not isinstance(self.unsaid, bool) or not isinstance(self.star, str):
            raise ValueError(
                f"Expected unsaid, true or false, and star, a text; got {self.unsaid!r} and {self.star!r}."
            )

    @property
    def room(self) -> int:
        """Characters of a full cue."""
        return self.max_chars * self.max_lines


class Part(NamedTuple):
    """A part of a cue's text.

    Attributes:
        text: The text.
        start, end: Milliseconds in which it is spoken; None for a space, a line break, and a word without times.
        tag: True for markup, in the form of SubRip.
    """

    text: str
    start: int | None = None
    end: int | None = None
    tag: bool = False


@dataclass(frozen=True)
class Cue:
    """Words that are shown together.

    Attributes:
        parts: The parts of its text, in order.
        start, end: Milliseconds in which it is shown.
        speaker: Who says them; empty if unknown.
    """

    parts: tuple[Part, ...]
    start: int
    end: int
    speaker: str = ""

    @property
    def text(self) -> str:
        """The text, in lines, with its markup."""
        return "".join(part.text for part in self.parts)

    @property
    def words(self) -> list[tuple[int, int, str]]:
        """The words with times, each ``(start_ms, end_ms, text)``."""
        return [(p.start, p.end, p.text) for p in self.parts if p.start is not None and p.end is not None]


def make_cues(alignment: Alignment, tier: str, layout: Layout) -> list[Cue]:
    """Group the words of a tier, or of every speaker's tier of the kind, into cues.

    Args:
        alignment: The alignment.
        tier: The tier of its words.
        layout: The form of the cues.

    Returns:
        Cues in order of their starts, inside the audio. Those of one speaker do not overlap.

    Raises:
        KeyError: the alignment does not have the tier.
    """
    cues: list[Cue] = []
    limit = last_tick(alignment.duration, 1000)
    for speaker, voice in voices(alignment, tier).items():
        numbers, segments = _shown(voice, layout)
        if empty := describe_empty(segments):
            logger.warning("Subtitles of %r, tier %r: segments get 1 ms: %s.", alignment.id, tier, empty)
        ticks = to_ticks(segments, alignment.duration, 1000, least=1)
        words = [Word(start, end, " ".join(s.label.split())) for s, (start, end) in zip(segments, ticks)]
        if layout.level == "word":
            cues += [Cue((Part(w.text, w.start, w.end),), w.start, w.end, speaker) for w in words]
            continue
        if layout.unsaid and parse_name(voice.name).kind == "words" and not speaker:
            words = with_unsaid(words, numbers, alignment, layout.room)
        own = [_cue(group, speaker, layout) for group in _groups(words, layout)]
        cues += until_read(own, layout, limit)
    return sorted(cues, key=lambda cue: (cue.start, cue.end))


def _shown(tier: Tier, layout: Layout) -> tuple[list[int], list[Segment]]:
    """Return the segments that are shown, with their numbers: those with a label, and stars as the layout says."""
    named = ((i, replace(s, label=layout.star) if s.label == STAR else s) for i, s in enumerate(tier))
    shown = [(i, s) for i, s in named if s.label.split()]
    return [i for i, _ in shown], [s for _, s in shown]


def _cue(words: Sequence[Word], speaker: str, layout: Layout) -> Cue:
    """Make a cue of words: a part for each, and one for what is between."""
    breaks = _breaks([word.text for word in words], layout)
    parts: list[Part] = []
    for i, word in enumerate(words):
        parts += [Part("\n" if i in breaks else " ")] if i else []
        parts.append(Part(word.text, word.start, word.end) if word.said else Part(word.text))
    return Cue(tuple(parts), words[0].start, words[-1].end, speaker)


def until_read(cues: Sequence[Cue], layout: Layout, limit: int) -> list[Cue]:
    """Show cues until they can have been read, the next one begins, or the audio ends.

    Args:
        cues: The cues, in order.
        layout: How fast people read, and how long a cue stays at least; where its reading speed is 0, cues stay as
            they are.
        limit: Milliseconds of the audio.
    """
    if not layout.reading_speed:
        return list(cues)
    out = []
    for cue, following in zip(cues, [*(c.start for c in cues[1:]), limit]):
        plain = sum(len(part.text) for part in cue.parts if not part.tag)
        wanted = cue.start + round(1000 * max(layout.min_s, plain / layout.reading_speed))
        out.append(replace(cue, end=max(cue.end, min(wanted, following))))
    return out


def _groups(words: Sequence[Word], layout: Layout) -> list[Sequence[Word]]:
    """Divide words into the cues of least cost, between the silences."""
    stops = [i for i, (a, b) in enumerate(pairwise(words), 1) if b.start - a.end > layout.max_gap_s * 1000]
    edges = [0, *stops, len(words)]
    groups: list[Sequence[Word]] = []
    for first, last in pairwise(edges):
        groups += _joined(_cheapest(words[first:last], layout))
    return groups


def _joined(groups: Sequence[Sequence[Word]]) -> list[Sequence[Word]]:
    """Join groups of which nothing was said to a neighbour, though it does not fit: they have no times of their own."""
    out: list[Sequence[Word]] = []
    for group in groups:
        if out and not (_said(group) and _said(out[-1])):
            out[-1] = [*out[-1], *group]
        else:
            out.append(group)
    return out


def _cheapest(words: Sequence[Word], layout: Layout) -> list[Sequence[Word]]:
    best: list[tuple[float, int]] = [(0.0, 0)]
    for last in range(1, len(words) + 1):
        choices = []
        for first in range(last - 1, -1, -1):
            part = words[first:last]
            if len(part) > 1 and not _fits(part, layout):
                break
            choices.append((best[first][0] + _cost(part, last == len(words), layout), first))
        best.append(min(choices))
    groups, last = [], len(words)
    while last:
        groups.append(words[best[last][1] : last])
        last = best[last][1]
    return groups[::-1]


def _fits(part: Sequence[Word], layout: Layout) -> bool:
    texts = [word.text for word in part]
    if part[-1].end - part[0].start > layout.max_s * 1000 or len(texts) > layout.room:
        return False
    return len(_wrapped(texts, layout.max_chars)) < layout.max_lines


def _cost(part: Sequence[Word], ends: bool, layout: Layout) -> float:
    filled = min(1.0, sum(len(word.text) + 1 for word in part) / layout.room)
    cost = _CUE + _SHORT * (1 - filled) ** 2 + (0.0 if _said(part) else _UNSAID)
    last = part[-1].text
    whole = ends or bool(SENTENCE.search(last))
    cost += (_WITHIN if whole else _MIXED) * sum(bool(SENTENCE.search(word.text)) for word in part[:-1])
    if not whole:
        cost += _BREAK + (0.0 if _CLAUSE.search(last) else _NO_CLAUSE)
    return cost


def _said(part: Sequence[Word]) -> bool:
    return any(word.said for word in part)


def _wrapped(texts: Sequence[str], width: int) -> tuple[int, ...]:
    """Return the words that begin new lines, where every line is as long as it can be."""
    breaks, length = [], -1
    for i, text in enumerate(texts):
        if i and length + 1 + len(text) > width:
            breaks.append(i)
            length = -1
        length += 1 + len(text)
    return tuple(breaks)


def _breaks(texts: Sequence[str], layout: Layout) -> tuple[int, ...]:
    """Return the words that begin new lines: two lines are balanced, and break after punctuation if that is near."""
    greedy = _wrapped(texts, layout.max_chars)
    if len(greedy) != 1:
        return greedy
    lengths = [len(" ".join(texts[:i])) for i in range(len(texts) + 1)]
    whole = lengths[-1]

    def uneven(i: int) -> float:
        first, second = lengths[i], whole - lengths[i] - 1
        clause = SENTENCE.search(texts[i - 1]) or _CLAUSE.search(texts[i - 1])
        return max(first, second) - (layout.max_chars / 4 if clause else 0)

    fitting = [i for i in range(1, len(texts)) if max(lengths[i], whole - lengths[i] - 1) <= layout.max_chars]
    return (min(fitting, key=uneven),) if fitting else greedy
