"""Cues of subtitles: words grouped into lines that can be read."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from isotone.alignment import Alignment
from isotone.format.ticks import describe_empty, last_tick, to_ticks
from isotone.format.tier_names import voices

logger = logging.getLogger(__name__)

Level = Literal["line", "word"]

_SENTENCE = re.compile(r"[.!?\u2026\u3002\uff01\uff1f][\"'\u2019\u201d)\]]*$")
_CLAUSE = re.compile(r"[,;:\u2013\u2014\u3001\uff0c][\"'\u2019\u201d)\]]*$")

# Costs of a cue: that it is there; that it is short; every sentence that ends within it, where it ends with a sentence
# as well and where it does not; an end within a sentence, and within a clause.
_CUE, _SHORT, _WITHIN, _MIXED, _BREAK, _NO_CLAUSE = 1.0, 1.0, 0.3, 2.0, 0.5, 0.3


@dataclass(frozen=True)
class Layout:
    """The form of subtitles.

    Attributes:
        level: ``"word"`` for one cue per word, or ``"line"``.
        max_chars: Most characters per line; a longer word is a line of its own.
        max_lines: Most lines per cue.
        max_gap_s: A silence longer than this, in seconds, starts a new cue.
        max_s: Most seconds of speech in a cue, unless it is one word.
        reading_speed: Characters per second that people read: shorter cues stay until they are read, or the next one
            begins. 0: cues end with their last word.

    Raises:
        ValueError: an option out of range.
    """

    level: Level = "line"
    max_chars: int = 42
    max_lines: int = 2
    max_gap_s: float = 0.8
    max_s: float = 7.0
    reading_speed: float = 17.0

    def __post_init__(self) -> None:
        if self.level not in ("line", "word"):
            raise ValueError(f"The level of subtitles is 'line' or 'word'; got {self.level!r}.")
        if min(self.max_chars, self.max_lines) < 1 or min(self.max_gap_s, self.max_s, self.reading_speed) < 0:
            raise ValueError(
                f"Expected max_chars and max_lines >= 1, and seconds and speeds >= 0; got {self.max_chars}, "
                f"{self.max_lines}, {self.max_gap_s}, {self.max_s} and {self.reading_speed}."
            )


@dataclass(frozen=True)
class Cue:
    """Words that are shown together.

    Attributes:
        words: Each ``(start_ms, end_ms, text)``.
        end: Milliseconds until which it is shown.
        breaks: Numbers of the words that begin a new line.
        speaker: Who says them; empty if unknown.
    """

    words: tuple[tuple[int, int, str], ...]
    end: int
    breaks: tuple[int, ...] = ()
    speaker: str = ""

    @property
    def start(self) -> int:
        """Milliseconds from which it is shown."""
        return self.words[0][0]

    def space(self, number: int) -> str:
        """Return what stands before a word: nothing, a space or a line break."""
        return "" if number == 0 else "\n" if number in self.breaks else " "

    @property
    def text(self) -> str:
        """The words, in lines."""
        return "".join(self.space(i) + word for i, (_, _, word) in enumerate(self.words))


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
    for speaker, voice in voices(alignment, tier).items():
        segments = [s for s in voice if s.label.split()]
        if empty := describe_empty(segments):
            logger.warning("Subtitles of %r, tier %r: segments get 1 ms: %s.", alignment.id, tier, empty)
        ticks = to_ticks(segments, alignment.duration, 1000, least=1)
        words = [(start, end, " ".join(s.label.split())) for s, (start, end) in zip(segments, ticks)]
        groups = [[word] for word in words] if layout.level == "word" else _groups(words, layout)
        own = [Cue(tuple(g), g[-1][1], _breaks([w for *_, w in g], layout), speaker) for g in groups]
        cues += _read(own, layout, last_tick(alignment.duration, 1000))
    return sorted(cues, key=lambda cue: (cue.start, cue.end))


def _read(cues: Sequence[Cue], layout: Layout, limit: int) -> list[Cue]:
    """Show cues until they can have been read, the next one begins, or the audio ends."""
    if layout.level == "word" or not layout.reading_speed:
        return list(cues)
    out = []
    for cue, following in zip(cues, [*(c.start for c in cues[1:]), limit]):
        wanted = cue.start + round(1000 * len(cue.text) / layout.reading_speed)
        out.append(replace(cue, end=max(cue.end, min(wanted, following))))
    return out


def _groups(words: Sequence[tuple[int, int, str]], layout: Layout) -> list[Sequence[tuple[int, int, str]]]:
    """Divide words into the cues of least cost, between the silences."""
    stops = [i for i, (a, b) in enumerate(pairwise(words), 1) if b[0] - a[1] > layout.max_gap_s * 1000]
    edges = [0, *stops, len(words)]
    groups: list[Sequence[tuple[int, int, str]]] = []
    for first, last in pairwise(edges):
        groups += _cheapest(words[first:last], layout)
    return groups


def _cheapest(words: Sequence[tuple[int, int, str]], layout: Layout) -> list[Sequence[tuple[int, int, str]]]:
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


def _fits(part: Sequence[tuple[int, int, str]], layout: Layout) -> bool:
    texts = [word for _, _, word in part]
    if part[-1][1] - part[0][0] > layout.max_s * 1000 or len(texts) > layout.max_chars * layout.max_lines:
        return False
    return len(_wrapped(texts, layout.max_chars)) < layout.max_lines


def _cost(part: Sequence[tuple[int, int, str]], ends: bool, layout: Layout) -> float:
    filled = min(1.0, sum(len(word) + 1 for *_, word in part) / (layout.max_chars * layout.max_lines))
    cost = _CUE + _SHORT * (1 - filled) ** 2
    last = part[-1][2]
    whole = ends or bool(_SENTENCE.search(last))
    cost += (_WITHIN if whole else _MIXED) * sum(bool(_SENTENCE.search(word)) for *_, word in part[:-1])
    if not whole:
        cost += _BREAK + (0.0 if _CLAUSE.search(last) else _NO_CLAUSE)
    return cost


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
        clause = _SENTENCE.search(texts[i - 1]) or _CLAUSE.search(texts[i - 1])
        return max(first, second) - (layout.max_chars / 4 if clause else 0)

    fitting = [i for i in range(1, len(texts)) if max(lengths[i], whole - lengths[i] - 1) <= layout.max_chars]
    return (min(fitting, key=uneven),) if fitting else greedy
