"""Files of subtitles with other times, and all else as it was: numbers, styles, settings, comments."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from isotone.format.given import Given
from isotone.format.karaoke import retimed
from isotone.passage import Sheet

# Times within cues of WebVTT, which are those of words.
_INLINE = re.compile(r"<(?:\d+:)?\d\d:\d\d\.\d+>")
# What some programs write between times, and players do not read.
_ARROW = re.compile(r"\s*(?!(?<=\s)-->\s)[-\u2013\u2014]+>\s*")
_PARAGRAPH = re.compile(
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<((?:[\w.-]+:)?p)(?=[\s/>])([^<>]*?)(/?)>", re.DOTALL
)
_SPAN = re.compile(r"<(?:[\w.-]+:)?span\s[^<>]*>")
_TIME = re.compile(r"\s+(?:begin|end|dur)\s*=\s*(?:\"[^\"]*\"|'[^']*')")
_ENCODING = re.compile(r"(<\?xml[^>]*?encoding\s*=\s*)(\"[^\"]*\"|'[^']*')")


def rewritten(sheet: Sheet, cues: Sequence[Given], clock: Callable[[int], str]) -> str | None:
    """Write a file of subtitles with other times.

    Args:
        sheet: The file.
        cues: All its cues.
        clock: Writes milliseconds as the file has times.

    Returns:
        The text; None where the file's own places of times are not found.
    """
    times = {
        one.passages[0].cue.number: (clock(one.cue.start), clock(one.cue.end))
        for one in cues
        if one.passages[0].cue is not None
    }
    if sheet.suffix == ".ttml":
        return _paragraphs(sheet.text, times)
    out, now = [], 0
    for one in cues:
        cue = one.passages[0].cue
        if cue is None or cue.times is None:
            return None
        new = list(zip(cue.times, times[cue.number]))
        new += [(cue.text, retimed(sheet.text[slice(*cue.text)], one.cue))] if cue.text else []
        # the columns of ASS may be in any order
        for (first, last), time in sorted(new):
            between = sheet.text[now:first]
            out += [" --> " if _ARROW.fullmatch(between) else between, time]
            now = last
    text = "".join([*out, sheet.text[now:]])
    return _INLINE.sub("", text) if sheet.suffix == ".vtt" else text


def _paragraphs(text: str, times: Mapping[int, tuple[str, str]]) -> str | None:
    """Write TTML with other times of its paragraphs, and without those of spans, which are those of words."""
    count = 0

    def timed(match: re.Match[str]) -> str:
        nonlocal count
        if match[1] is None:
            return match[0]
        start, end = times.get(count, ("", ""))
        count += 1
        rest = _TIME.sub("", match[2])
        return f'<{match[1]} begin="{start}" end="{end}"{rest}{match[3]}>'

    out = _PARAGRAPH.sub(timed, text)
    if count != len(times):
        return None
    out = _SPAN.sub(lambda match: _TIME.sub("", match[0]), out)
    return _ENCODING.sub(r'\1"UTF-8"', out, count=1)
