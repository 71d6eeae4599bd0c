"""ASS subtitles with karaoke."""

from __future__ import annotations

from isotone.alignment import Alignment
from isotone.format.cues import Cue
from isotone.format.subtitles import Subtitles

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


class ASSFormat(Subtitles):
    """ASS subtitles in which every word has its time, as karaoke (``\\k``). Write-only; options as of the base.

    The resolution is 10 ms. Braces of the text, which ASS cannot escape, become brackets, and a backslash a slash.
    """

    suffix = ".ass"

    def dumps(self, alignment: Alignment) -> str:
        """Return the text of the file.

        Raises:
            KeyError: the alignment does not have the tier.
        """
        return _HEAD + "".join(_dialogue(cue) for cue in self.cues(alignment))


def _dialogue(cue: Cue) -> str:
    now = round(cue.start / 10)
    parts = []
    for i, (start, end, word) in enumerate(cue.words):
        first, last = max(now, round(start / 10)), max(now, round(end / 10))
        pause = f"{{\\k{first - now}}}" if first > now else ""
        space = cue.space(i).replace("\n", "\\N")
        parts.append(f"{space}{pause}{{\\k{last - first}}}{_plain(word)}")
        now = last
    name = _plain(cue.speaker).replace(",", " ")
    return f"Dialogue: 0,{_clock(cue.start)},{_clock(cue.end)},Default,{name},0,0,0,,{''.join(parts)}\n"


def _plain(text: str) -> str:
    return text.translate(_PLAIN)


def _clock(milliseconds: int) -> str:
    seconds, cs = divmod(round(milliseconds / 10), 100)
    return f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{cs:02d}"
