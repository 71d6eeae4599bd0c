"""Reading of lyrics with times: LRC."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from isotone.format.reading import FormatError, numbered_lines
from isotone.passage import LYRICS, MARK, Cued, Passage, Sheet
from isotone.transcripts.passages import passage

_TIME = r"(\d{1,4}):(\d{1,2})(?:[.:](\d{1,3}))?"
_LINE = re.compile(rf"(?P<times>(?:\[{_TIME}\]\s*)+)(?P<text>.*)", re.DOTALL)
_STAMP = re.compile(rf"\[{_TIME}\]")
# times of words, of enhanced LRC
_WORD = re.compile(rf"<{_TIME}>")
_TAG = re.compile(r"\[([a-z#]+):([^\]]*)\]\s*", re.IGNORECASE)


def lrc(text: str) -> Iterator[Passage]:
    """Read LRC: a passage for each time of a line, until the next line; times of words are left out.

    Lines without times go with the line before; above the first time they are a title, and left out. The offset
    counts, and all other tags are left out.

    Raises:
        FormatError: no line has a time.
    """
    rows: list[tuple[float, str, int]] = []  # start, text and number of the line
    offset_s = 0.0
    last: list[int] = []  # the rows of the line before
    for number, line in numbered_lines(text.removeprefix(MARK)):
        if found := _LINE.fullmatch(line.strip()):
            last = []
            for stamp in _STAMP.finditer(found["times"]):
                last.append(len(rows))
                rows.append((_seconds(stamp), found["text"], number))
        elif tag := _TAG.fullmatch(line.strip()):
            if tag[1].lower() == "offset" and re.fullmatch(r"[+-]?\d{1,9}", tag[2].strip()):
                offset_s = int(tag[2]) / 1000
        else:
            for i in last:
                rows[i] = rows[i][0], f"{rows[i][1]}\n{line}", rows[i][2]
    if not rows:
        raise FormatError("expected times of lines such as [00:12.50]; got none.")
    rows.sort(key=lambda row: row[0])
    sheet = Sheet(LYRICS, text)
    # an empty line ends the one before
    for count, ((start, said, number), (end, _, _)) in enumerate(pairwise([*rows, (-1.0, "", 0)])):
        if said := re.sub(" +", " ", _WORD.sub("", said)).strip():
            times = [max(0.0, time - offset_s) for time in (start, end)]
            until = None if end < 0 else times[1]
            yield passage(said, times[0], until, f"line {number}", cue=Cued(sheet, count))


def _seconds(stamp: re.Match[str]) -> float:
    minutes, seconds, part = stamp.groups()
    return 60 * int(minutes) + float(f"{seconds}.{part or 0}")
