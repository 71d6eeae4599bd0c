"""Subtitles: SubRip and WebVTT."""

from __future__ import annotations

from typing import Any

from isotone.alignment import Alignment
from isotone.format.cues import Cue, Layout, make_cues
from isotone.interfaces import Format


class Subtitles(Format):
    """Base of the formats of subtitles.

    Args:
        tier: The tier to write; with several speakers, the tier of each.
        layout: Options of :class:`isotone.format.cues.Layout`, such as ``level="word"`` or ``max_chars=37``.
    """

    def __init__(self, *, tier: str = "words", **layout: Any) -> None:
        self.tier = tier
        self.layout = Layout(**layout)

    def cues(self, alignment: Alignment) -> list[Cue]:
        """Return the cues of an alignment.

        Raises:
            KeyError: the alignment does not have the tier.
        """
        return make_cues(alignment, self.tier, self.layout)


class SRTFormat(Subtitles):
    """SubRip subtitles. Write-only; options as of :class:`Subtitles`.

    The resolution is 1 ms; a word without duration is shown for 1 ms, with a warning. Silence has no cue. White space
    within a word becomes one space; ``-->``, which SubRip cannot escape, becomes an arrow.
    """

    suffix = ".srt"

    def dumps(self, alignment: Alignment) -> str:
        """Return the text of the file.

        Raises:
            KeyError: the alignment does not have the tier.
        """
        return "\n".join(
            f"{i}\n{clock(cue.start, ',')} --> {clock(cue.end, ',')}\n{cue.text.replace('-->', '→')}\n"
            for i, cue in enumerate(self.cues(alignment), 1)
        )


class VTTFormat(Subtitles):
    """WebVTT subtitles. Write-only; options as of :class:`Subtitles`.

    The resolution is 1 ms; a word without duration is shown for 1 ms, with a warning. Silence has no cue. White space
    within a word becomes one space; ``&``, ``<`` and ``>`` are escaped; a NUL becomes U+FFFD. With several speakers,
    every cue has its voice.

    Args:
        inline: Put the time before every word of a cue except the first, as karaoke players need it.
        options: See :class:`Subtitles`.
    """

    suffix = ".vtt"

    def __init__(self, *, inline: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.inline = inline

    def dumps(self, alignment: Alignment) -> str:
        """Return the text of the file.

        Raises:
            KeyError: the alignment does not have the tier.
        """
        return "\n".join(["WEBVTT\n", *map(self._cue, self.cues(alignment))])

    def _cue(self, cue: Cue) -> str:
        voice = f"<v {_escape(cue.speaker)}>" if cue.speaker else ""
        parts = [f"{clock(cue.start, '.')} --> {clock(cue.end, '.')}\n{voice}"]
        for i, (start, _, word) in enumerate(cue.words):
            time = f"<{clock(start, '.')}>" if i and self.inline else ""
            parts.append(cue.space(i) + time + _escape(word))
        return "".join(parts) + "\n"


def clock(milliseconds: int, point: str) -> str:
    """Write a time as ``01:02:03.450``, with this decimal point."""
    seconds, ms = divmod(milliseconds, 1000)
    minutes, s = divmod(seconds, 60)
    hours, m = divmod(minutes, 60)
    return f"{hours:02d}:{m:02d}:{s:02d}{point}{ms:03d}"


def _escape(text: str) -> str:
    text = text.replace("\0", "\ufffd")
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
