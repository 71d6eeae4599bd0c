"""Reading of subtitles: SubRip, WebVTT, SBV, ASS and Whisper's TSV."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from isotone.format.reading import FormatError
from isotone.transcripts.passages import Passage, passage

_CLOCK = r"(?:\d+:)?\d{1,2}:\d{1,2}(?:[.,]\d{1,9})?"
_ARROW = re.compile(rf"\s*({_CLOCK})\s*-->\s*({_CLOCK})(?:\s.*)?")
_COMMA = re.compile(rf"\s*({_CLOCK}),({_CLOCK})\s*")
_VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]+)>")
_TAG = re.compile(r"<[^<>\n]*>")
# inline times of YouTube's captions, which show every line twice
_ROLLING = re.compile(r"<\d+:\d\d:\d\d\.\d+><c>")
_OVERRIDE = re.compile(r"\{[^{}]*\}")


def srt(text: str) -> Iterator[Passage]:
    """Read SubRip; a cue may hold blank lines, and its number may be missing."""
    cues = list(_cues(text, _ARROW))
    for number, (start, end, lines) in enumerate(cues, 1):
        # before the times of the next cue stands its number
        last = lines[-1].strip() if lines and number < len(cues) else ""
        if last.isdecimal() and (last == str(number + 1) or not "".join(lines[-2:-1]).strip()):
            lines.pop()
        yield passage("\n".join(lines).strip(), start, end, f"cue {number}")


def vtt(text: str) -> Iterator[Passage]:
    """Read WebVTT; a voice is the speaker, and lines that rolling captions repeat are read once."""
    rolling, last = bool(_ROLLING.search(text)), ""
    for number, (start, end, lines) in enumerate(_cues(text, _ARROW), 1):
        own = _before_blank(lines)
        if rolling:
            fresh = [line for line in own if _TAG.sub("", line).strip() not in ("", last)]
            last = _TAG.sub("", fresh[-1]).strip() if fresh else last
            own = fresh
        parts = _VOICE.split("\n".join(own).strip())
        for speaker, part in zip([None, *parts[1::2]], parts[0::2]):
            if part.strip() or len(parts) == 1:
                voice = None if speaker is None else html.unescape(speaker)
                plain = html.unescape(part).strip()
                yield passage(plain, start, end, f"cue {number}", voice)


def sbv(text: str) -> Iterator[Passage]:
    """Read SBV, as YouTube exports it."""
    for number, (start, end, lines) in enumerate(_cues(text, _COMMA), 1):
        yield passage("\n".join(_before_blank(lines)), start, end, f"cue {number}")


def ass(text: str) -> Iterator[Passage]:
    """Read the dialogue of ASS and SSA; a name is the speaker."""
    columns: list[str] = []
    for number, line in _lines(text):
        key, _, value = line.partition(":")
        if key.strip() == "Format":
            columns = [name.strip().lower() for name in value.split(",")]
        if key.strip() != "Dialogue":
            continue
        row = dict(zip(columns, value.split(",", max(0, len(columns) - 1))))
        if not {"start", "end", "text"} <= row.keys():
            raise FormatError(
                f"line {number}: expected Start, End and Text as its Format says; got {line[:80]!r}."
            )
        said = _OVERRIDE.sub("", row["text"]).replace(r"\N", "\n").replace(r"\n", "\n").replace(r"\h", " ")
        where = f"line {number}"
        start, end = clock(row["start"], where), clock(row["end"], where)
        yield passage(said.strip(), start, end, where, row.get("name") or row.get("actor"))


def tsv(text: str) -> Iterator[Passage]:
    """Read Whisper's TSV: start and end in milliseconds, and text."""
    for number, line in _lines(text):
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


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Iterate over all lines, with their numbers; Unicode's line separators end none."""
    return enumerate(text.removesuffix("\n").split("\n"), 1)


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


def _cues(text: str, times: re.Pattern[str]) -> Iterator[tuple[float, float, list[str]]]:
    """Iterate over the cues: start, end, and the lines up to the next times."""
    start = end = 0.0
    lines: list[str] | None = None
    for number, line in _lines(text):
        if match := times.fullmatch(line):
            if lines is not None:
                yield start, end, lines
            start, end = (clock(part, f"line {number}") for part in match.groups())
            lines = []
        elif "-->" in line and times is _ARROW and lines is None:
            raise FormatError(
                f"line {number}: expected times such as 00:00:01,000 --> 00:00:02,500; got {line[:80]!r}."
            )
        elif lines is not None:
            lines.append(line)
    if lines is not None:
        yield start, end, lines


def _before_blank(lines: list[str]) -> list[str]:
    """Keep the lines of a cue: those before a blank one, which ends it."""
    # a line of spaces is not blank: rolling captions begin with one
    return lines[: lines.index("")] if "" in lines else lines
