"""Subtitles: SubRip and WebVTT."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Literal

from isotone.alignment import Alignment
from isotone.format.ticks import describe_empty, to_ticks
from isotone.interfaces import Format

logger = logging.getLogger(__name__)

Level = Literal["line", "word"]


@dataclass(frozen=True)
class Cue:
    """Words that are shown together, each ``(start_ms, end_ms, text)``."""

    words: tuple[tuple[int, int, str], ...]

    @property
    def text(self) -> str:
        """The words, separated by spaces."""
        return " ".join(word for _, _, word in self.words)


def make_cues(alignment: Alignment, tier: str, level: Level, max_chars: int, max_gap_s: float) -> list[Cue]:
    """Group the words of a tier into cues, in order.

    Args:
        alignment: The alignment.
        tier: The tier of its words.
        level: ``"word"`` for one cue per word, or ``"line"``.
        max_chars: Most characters per line; a longer word is a line of its own.
        max_gap_s: A silence longer than this, in seconds, starts a new line.

    Returns:
        Cues whose times, in milliseconds, do not overlap and are inside the audio.

    Raises:
        KeyError: the alignment does not have the tier.
    """
    segments = [s for s in alignment.tier(tier) if s.label.split()]
    if empty := describe_empty(segments):
        logger.warning("Subtitles of %r, tier %r: segments get 1 ms: %s.", alignment.id, tier, empty)
    ticks = to_ticks(segments, alignment.duration, 1000, least=1)
    cues: list[Cue] = []
    for segment, (start, end) in zip(segments, ticks):
        word = (start, end, " ".join(segment.label.split()))
        if level == "line" and cues:
            last = cues[-1]
            if (
                start - last.words[-1][1] <= max_gap_s * 1000
                and len(last.text) + 1 + len(word[2]) <= max_chars
            ):
                cues[-1] = Cue((*last.words, word))
                continue
        cues.append(Cue((word,)))
    return cues


class _Subtitles(Format):
    """Base of both formats, with their options."""

    def __init__(self, level: Level, tier: str, max_chars: int, max_gap_s: float) -> None:
        if level not in ("line", "word"):
            raise ValueError(f"The level of subtitles is 'line' or 'word'; got {level!r}.")
        if max_chars < 1 or max_gap_s < 0:
            raise ValueError(f"Expected max_chars >= 1 and max_gap_s >= 0; got {max_chars} and {max_gap_s}.")
        self.level = level
        self.tier = tier
        self.max_chars = max_chars
        self.max_gap_s = max_gap_s

    def _cues(self, alignment: Alignment) -> list[Cue]:
        return make_cues(alignment, self.tier, self.level, self.max_chars, self.max_gap_s)


class SRTFormat(_Subtitles):
    """SubRip subtitles. Write-only.

    The resolution is 1 ms; a word without duration is shown for 1 ms, with a warning. Silence has no cue. White space
    within a word becomes one space; ``-->``, which SubRip cannot escape, becomes an arrow.

    Args:
        level: ``"line"`` for words grouped into cues, or ``"word"`` for one cue per word.
        tier: The tier to write.
        max_chars: Most characters per line; a longer word is a line of its own.
        max_gap_s: A silence longer than this, in seconds, starts a new line.
    """

    suffix = ".srt"

    def __init__(
        self, *, level: Level = "line", tier: str = "words", max_chars: int = 42, max_gap_s: float = 0.8
    ) -> None:
        super().__init__(level, tier, max_chars, max_gap_s)

    def dumps(self, alignment: Alignment) -> str:
        """Return the text of the file.

        Raises:
            KeyError: the alignment does not have the tier.
        """
        return "\n".join(
            f"{i}\n{_clock(cue.words[0][0], ',')} --> {_clock(cue.words[-1][1], ',')}\n"
            f"{cue.text.replace('-->', '→')}\n"
            for i, cue in enumerate(self._cues(alignment), 1)
        )


class VTTFormat(_Subtitles):
    """WebVTT subtitles. Write-only.

    The resolution is 1 ms; a word without duration is shown for 1 ms, with a warning. Silence has no cue. White space
    within a word becomes one space; ``&``, ``<`` and ``>`` are escaped; a NUL becomes U+FFFD.

    Args:
        level: ``"line"`` for words grouped into cues, or ``"word"`` for one cue per word.
        tier: The tier to write.
        max_chars: Most characters per line; a longer word is a line of its own.
        max_gap_s: A silence longer than this, in seconds, starts a new line.
        inline: Put the time before every word of a line except the first, as karaoke players need it.
    """

    suffix = ".vtt"

    def __init__(
        self,
        *,
        level: Level = "line",
        tier: str = "words",
        max_chars: int = 42,
        max_gap_s: float = 0.8,
        inline: bool = False,
    ) -> None:
        super().__init__(level, tier, max_chars, max_gap_s)
        self.inline = inline

    def dumps(self, alignment: Alignment) -> str:
        """Return the text of the file.

        Raises:
            KeyError: the alignment does not have the tier.
        """
        cues = self._cues(alignment)
        return "\n".join(["WEBVTT\n", *map(self._cue, cues)])

    def _cue(self, cue: Cue) -> str:
        times = f"{_clock(cue.words[0][0], '.')} --> {_clock(cue.words[-1][1], '.')}"
        words = [_escape(cue.words[0][2])]
        for start, _, word in cue.words[1:]:
            words.append(f"<{_clock(start, '.')}>{_escape(word)}" if self.inline else _escape(word))
        return f"{times}\n{' '.join(words)}\n"


def _escape(text: str) -> str:
    text = text.replace("\0", "\ufffd")
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _clock(milliseconds: int, point: str) -> str:
    seconds, ms = divmod(milliseconds, 1000)
    minutes, s = divmod(seconds, 60)
    hours, m = divmod(minutes, 60)
    return f"{hours:02d}:{m:02d}:{s:02d}{point}{ms:03d}"
