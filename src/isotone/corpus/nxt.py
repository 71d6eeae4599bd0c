"""XML of the NITE toolkit (NXT), the format of AMI's annotations: words, segments of words, and participants."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from isotone.corpus.rows import CorpusError

_NITE = "{http://nite.sourceforge.net/}"
_RANGE = re.compile(r"#id\(([^()]+)\)(?:\.\.id\(([^()]+)\))?")


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a speaker's transcript: a word, or something else.

    Attributes:
        kind: ``w`` for words and punctuation; ``vocalsound``, ``gap``, ``disfmarker`` ...
        text: The text of words and punctuation.
        span: Start and end, seconds from the start of the meeting; None if unknown.
        punctuation: True for a punctuation mark.
        truncated: True for a word that was broken off.
    """

    kind: str
    text: str
    span: tuple[float, float] | None
    punctuation: bool
    truncated: bool


@dataclass(frozen=True, slots=True)
class Turn:
    """A transcribed segment of a speaker's speech.

    Attributes:
        start, end: Seconds from the start of the meeting; NaN if not given.
        ranges: (first, last) ids of the items in it.
    """

    start: float
    end: float
    ranges: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Participant:
    """The speaker behind an agent of a meeting.

    Attributes:
        name: The same in all meetings; empty if unknown.
        channel: Number of the headset.
    """

    name: str
    channel: int


class Words:
    """The items of one speaker in one meeting, from ``words/MEETING.AGENT.words.xml``.

    Raises:
        CorpusError: the file is not XML of this kind.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.items: list[Item] = []
        self._index: dict[str, int] = {}
        for element in parse(path):
            self._index[element.get(f"{_NITE}id", "")] = len(self.items)
            self.items.append(_item(element))

    def of(self, turn: Turn) -> list[Item]:
        """Return the items of a segment.

        Raises:
            CorpusError: it refers to items that do not exist.
        """
        out: list[Item] = []
        for first, last in turn.ranges:
            if absent := [id for id in (first, last) if id not in self._index]:
                raise CorpusError(f"{self.path} has no item {absent[0]!r}, which a segment refers to.")
            out += self.items[self._index[first] : self._index[last] + 1]
        return out


def read_turns(path: Path) -> list[Turn]:
    """Read the segments of one speaker in one meeting from ``segments/MEETING.AGENT.segments.xml``, in their order.

    Raises:
        CorpusError: the file is not XML of this kind.
    """
    turns = []
    for element in parse(path).iter("segment"):
        hrefs = [child.get("href", "") for child in element.iter(f"{_NITE}child")]
        found = [match for href in hrefs if (match := _RANGE.search(href))]
        ranges = tuple((m[1], m[2] or m[1]) for m in found)
        turns.append(
            Turn(_number(element.get("transcriber_start")), _number(element.get("transcriber_end")), ranges)
        )
    return turns


def read_participants(path: Path) -> Mapping[tuple[str, str], Participant]:
    """Read the participants by (meeting, agent) from ``corpusResources/meetings.xml``.

    Raises:
        CorpusError: the file is not XML of this kind.
    """
    found = {}
    for meeting in parse(path).iter("meeting"):
        for speaker in meeting.iter("speaker"):
            channel = speaker.get("channel", "")
            if channel.isdecimal():
                who = Participant(speaker.get("global_name", ""), int(channel))
                found[meeting.get("observation", ""), speaker.get("nxt_agent", "")] = who
    return found


def parse(path: Path) -> ElementTree.Element:
    """Parse an XML file and return its root; a document type is refused, since entity bombs need one and NXT none.

    Raises:
        CorpusError: not XML, or XML with a document type.
    """
    try:
        parser = ElementTree.XMLParser(target=_Plain())
        return ElementTree.parse(path, parser).getroot()
    except (ElementTree.ParseError, LookupError) as error:  # LookupError: unknown encoding
        raise CorpusError(f"{path}: not XML ({error}); get the file again.") from None
    except _DocumentType:
        raise CorpusError(
            f"{path}: expected XML without a document type; this file is of another kind."
        ) from None


class _DocumentType(Exception):
    pass


class _Plain(ElementTree.TreeBuilder):
    """Tree builder that stops at a document type, before its declarations take effect."""

    def doctype(self, name: str, public: str | None, system: str | None) -> None:
        raise _DocumentType


def _item(element: ElementTree.Element) -> Item:
    start, end = _number(element.get("starttime")), _number(element.get("endtime"))
    return Item(
        element.tag,
        " ".join((element.text or "").split()),
        (start, end) if 0 <= start <= end else None,
        element.get("punc") == "true",
        element.get("trunc") == "true",
    )


def _number(text: str | None) -> float:
    try:
        value = float(text or "nan")
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan
