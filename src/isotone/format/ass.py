"""ASS subtitles with karaoke."""

from __future__ import annotations

from collections.abc import Sequence

from isotone.format.cues import Cue
from isotone.format.subtitles import Subtitles, without_classes

_HEAD = """[Script Info]
ScriptType: v4.00+
WrapStyle: 0
ScaledBorderAndShadow: yes
PlayResX: 1920
PlayResY: 1080

[V4+ Styles]
Format: Name, Fontname, Fontsize, PrimaryColour, SecondaryColour, OutlineColour, BackColour, Bold, Italic, Underline, \
StrikeOut, ScaleX, ScaleY, Spacing, Angle, BorderStyle, Outline, Shadow, Alignment, MarginL, MarginR, MarginV, Encoding
Style: Default,Arial,72,&H0000FFFF,&H00FFFFFF,&H00000000,&H80000000,0,0,0,0,100,100,0,0,1,3,1,2,60,60,60,1

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
"""

# braces and backslashes begin commands
_PLAIN = str.maketrans("{}\\\0", "[]/\ufffd")


_TAGS = {f"<{off}{name}>": f"{{\\{name}{int(not off)}}}" for name in "biu" for off in ("", "/")}


class ASSFormat(Subtitles):
    """ASS subtitles in which every word has its time, as karaoke (``\\k``). Write-only; options as of the base.

    The resolution is 10 ms. Braces of the text, which ASS cannot escape, become brackets, and a backslash a slash.
    """

    suffix = ".ass"

    def written(self, cues: Sequence[Cue]) -> str:
        """Return the text of a file with these cues."""
        return _HEAD + "".join(_dialogue(cue) for cue in cues)

    def clock(self, milliseconds: int) -> str:
        """Write a time as ``1:02:03.45``."""
        return _clock(milliseconds)


def _dialogue(cue: Cue) -> str:
    now = round(cue.start / 10)
    parts = []
    for part in cue.parts:
        if part.start is not None and part.end is not None:
            first, last = max(now, round(part.start / 10)), max(now, round(part.end / 10))
            parts += [f"{{\\k{first - now}}}"] if first > now else []
            parts.append(f"{{\\k{last - first}}}")
            now = last
        parts.append(_tag(part.text) if part.tag else _plain(part.text).replace("\n", "\\N"))
    name = _plain(cue.speaker).replace(",", " ")
    # an event without duration is not shown
    shown = f"{_clock(cue.start)},{_clock(max(cue.end, cue.start + 10))}"
    return f"Dialogue: 0,{shown},Default,{name},0,0,0,,{''.join(parts)}\n"


def _tag(text: str) -> str:
    """Return markup of SubRip in ASS; other markup than it knows is left out."""
    return text if text.startswith("{") else _TAGS.get(without_classes(text).lower(), "")


def _plain(text: str) -> str:
    return text.translate(_PLAIN)


def _clock(milliseconds: int) -> str:
    seconds, cs = divmod(round(milliseconds / 10), 100)
    return f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{cs:02d}"
