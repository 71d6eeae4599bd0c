"""Reading of subtitles: SubRip, WebVTT, SBV, ASS and Whisper's TSV."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

from isotone.format.karaoke import shown
from isotone.format.reading import FormatError
from isotone.passage import MARK, Cued, Passage, Sheet
from isotone.transcripts.passages import passage

_CLOCK = r"(?:\d+:)?\d{1,2}:\d{1,2}(?:[.,]\d{1,9})?"
# as programs write it: below 0 after a shift, with milliseconds after a colon, with a short arrow
_LOOSE = rf"-?(?:\d+:\d\d:\d\d:\d{{3}}(?!\d)|{_CLOCK})"
_ARROW = re.compile(rf"\s*({_LOOSE})\s*[-\u2013\u2014]+>\s*({_LOOSE})(?:\s.*)?")
_MEANT = re.compile(r"\s*[-+]?\d+\s*:.*[-\u2013\u2014]>\s*[-+]?\d+\s*:.*")
_COMMA = re.compile(rf"\s*({_CLOCK}),({_CLOCK})\s*")
_VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]+)>")
_TAG = re.compile(r"<[^<>\n]*>")
# inline times of YouTube's captions, which show every line twice
_ROLLING = re.compile(r"<\d+:\d\d:\d\d\.\d+><c>")
_BREAK = re.compile(r"(\r\n?|\n)")


class _Cue(NamedTuple):
    """A cue: its times in seconds, its lines up to the next times, and its place in the file."""

    start: float
    end: float
    lines: list[str]
    cued: Cued

    def passage(self, text: str, speaker: str | None = None, cued: bool = True) -> Passage:
        """Return the passage of the cue, or of a part of it."""
        where = f"cue {self.cued.number + 1}"
        return passage(text, self.start, self.end, where, speaker, cue=self.cued if cued else None)


def srt(text: str) -> Iterator[Passage]:
    """Read SubRip; a cue may hold blank lines, and its number may be missing."""
    cues = list(_cues(text, _ARROW, ".srt"))
    for number, cue in enumerate(cues, 1):
        lines = cue.lines
        # before the times of the next cue stands its number
        last = lines[-1].strip() if lines and number < len(cues) else ""
        if last.isdecimal() and (last == str(number + 1) or not "".join(lines[-2:-1]).strip()):
            lines.pop()
        yield cue.passage("\n".join(lines).strip())


def vtt(text: str) -> Iterator[Passage]:
    """Read WebVTT; a voice is the speaker, and lines that rolling captions repeat are read once."""
    rolling, last = bool(_ROLLING.search(text)), ""
    for cue in _cues(text, _ARROW, ".vtt"):
        own = _before_blank(cue.lines)
        if rolling:
            fresh = [line for line in own if _TAG.sub("", line).strip() not in ("", last)]
            last = _TAG.sub("", fresh[-1]).strip() if fresh else last
            own = fresh
        parts = _VOICE.split("\n".join(own).strip())
        turns = list(zip([None, *parts[1::2]], parts[0::2]))
        # a cue without words is kept: it has a time
        for speaker, part in [turn for turn in turns if turn[1].strip()] or turns[-1:]:
            voice = None if speaker is None else html.unescape(speaker)
            # rolling captions are no cues that anybody has cut
            yield cue.passage(html.unescape(part).strip(), voice, cued=not rolling)


def sbv(text: str) -> Iterator[Passage]:
    """Read SBV, as YouTube exports it."""
    for cue in _cues(text, _COMMA, ".sbv"):
        yield cue.passage("\n".join(_before_blank(cue.lines)).replace("[br]", "\n"))


def ass(text: str) -> Iterator[Passage]:
    """Read the dialogue of ASS and SSA, without what it draws; a name is the speaker."""
    sheet, columns, count = Sheet(".ass", text), list[str](), 0
    for number, place, line in _lines(text):
        key, _, value = line.partition(":")
        if key.strip() == "Format":
            columns = [name.strip().lower() for name in value.split(",")]
        if key.strip() != "Dialogue":
            continue
        fields = value.split(",", max(0, len(columns) - 1))
        row = dict(zip(columns, fields))
        if not {"start", "end", "text"} <= row.keys():
            raise FormatError(
                f"line {number}: expected Start, End and Text as its Format says; got {line[:80]!r}."
            )
        where = f"line {number}"
        start, end = clock(row["start"], where), clock(row["end"], where)
        places = _places(fields, place + len(line) - len(value))
        at, until, said = (places[columns.index(name)] for name in ("start", "end", "text"))
        cued = Cued(sheet, count, (at, until), said)
        count += 1
        yield passage(shown(row["text"]), start, end, where, row.get("name") or row.get("actor"), cue=cued)


def _places(fields: list[str], place: int) -> list[tuple[int, int]]:
    """Return the places of fields that commas separate, without white space; the first begins at this place."""
    out = []
    for value in fields:
        first = place + len(value) - len(value.lstrip())
        out.append((first, first + len(value.strip())))
        place += len(value) + 1
    return out


def tsv(text: str) -> Iterator[Passage]:
    """Read Whisper's TSV: start and end in milliseconds, and text."""
    for number, _, line in _lines(text):
        fields = line.split("\t", 2)
        if number == 1:
            if fields != ["start", "end", "text"]:
                raise FormatError(
                    f"line 1: expected the header of Whisper's TSV, start, end and text; got {line[:80]!r}."
                )
            continue
        if len(fields) < 3 or not all(f.strip().isdecimal() for f in fields[:2]):
            raise FormatError(
                f"line {number}: expected milliseconds, milliseconds and text; got {line[:80]!r}."
            )
        yield passage(fields[2].strip(), int(fields[0]) / 1000, int(fields[1]) / 1000, f"line {number}")


def _lines(text: str) -> Iterator[tuple[int, int, str]]:
    """Iterate over all lines, with their numbers and first characters; Unicode's line separators end none."""
    place = len(text) - len(text.removeprefix(MARK))
    *rows, last = _BREAK.split(text[place:])
    rows += [last, ""] if last else []
    for number, (line, end) in enumerate(zip(rows[::2], rows[1::2]), 1):
        yield number, place, line
        place += len(line) + len(end)


def clock(text: str, where: str) -> float:
    """Read a time such as ``01:02:03,450`` or ``2:03.4``, in seconds.

    Raises:
        FormatError: another text.
    """
    if not re.fullmatch(_CLOCK, text.strip()):
        raise FormatError(f"{where}: expected a time such as 00:01:02.500; got {text[:40]!r}.")
    seconds = 0.0
    for part in text.strip().replace(",", ".").split(":"):
        seconds = 60 * seconds + float(part)
    return seconds


def _cues(text: str, times: re.Pattern[str], suffix: str) -> Iterator[_Cue]:
    """Iterate over the cues of a file of this kind."""
    sheet = Sheet(suffix, text)
    cue: _Cue | None = None
    for number, place, line in _lines(text):
        if match := times.fullmatch(line):
            if cue is not None:
                yield cue
            start, end = (_loose(part, f"line {number}") for part in match.groups())
            spans = [(place + first, place + last) for first, last in (match.span(1), match.span(2))]
            count = 0 if cue is None else cue.cued.number + 1
            cue = _Cue(start, end, [], Cued(sheet, count, (spans[0], spans[1])))
        elif times is _ARROW and (_MEANT.fullmatch(line) or ("-->" in line and cue is None)):
            raise FormatError(
                f"line {number}: expected times such as 00:00:01,000 --> 00:00:02,500; got {line[:80]!r}."
            )
        elif cue is not None:
            cue.lines.append(line)
    if cue is not None:
        yield cue


def _loose(text: str, where: str) -> float:
    """Read a time as programs write it, in seconds; below 0 it is 0."""
    text = re.sub(r"(:\d\d:\d\d):(\d{3})$", r"\1.\2", text)
    return 0.0 if text.startswith("-") else clock(text, where)


def _before_blank(lines: list[str]) -> list[str]:
    """Keep the lines of a cue: those before a blank one, which ends it."""
    # a line of spaces is not blank: rolling captions begin with one
    return lines[: lines.index("")] if "" in lines else lines
