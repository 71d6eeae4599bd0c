"""Reading of TTML subtitles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from xml.etree import ElementTree

from isotone.format.reading import FormatError, parse_xml
from isotone.passage import MARK, Cued, Passage, Sheet
from isotone.transcripts.passages import passage
from isotone.transcripts.subtitles import clock

_OFFSET = re.compile(r"(\d+(?:\.\d+)?)(h|m|s|ms|f|t)")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_FRAMES = re.compile(r"(\d+:\d\d:\d\d):(\d+)")


def ttml(text: str) -> Iterator[Passage]:
    """Read the paragraphs of TTML; an agent, of a paragraph or of what holds it, is the speaker.

    A paragraph whose spans have different agents is a passage for each turn, at the times of its spans, if it has such.

    Raises:
        FormatError: not TTML, or a time that cannot be read.
    """
    root = parse_xml(text.removeprefix(MARK))
    if _name(root) != "tt":
        raise FormatError(f"expected TTML; got XML with <{_name(root)}>.")
    rates, names, sheet = _rates(root), _agents(root), Sheet(".ttml", text)
    for number, (p, agent) in enumerate(_paragraphs(root), 1):
        where = f"paragraph {number}"
        start, end = _times(p, rates, where)
        turns: list[tuple[str | None, list[_Part]]] = []
        for part in _parts(p, agent, None):
            if turns and (turns[-1][0] == part.agent or not part.text.strip()):
                turns[-1][1].append(part)
            elif part.text.strip():
                turns.append((part.agent, [part]))
        for said_by, parts in turns or [(agent, [])]:
            first, last = start, end
            if len(turns) > 1 and (spans := [p.span for p in parts if p.span is not None]):
                first, last = _times(spans[0], rates, where)[0], _times(spans[-1], rates, where)[1]
                first = start if first is None else (start or 0.0) + first
                last = end if last is None else (start or 0.0) + last
            speaker = ", ".join(names.get(id, id) for id in (said_by or "").split())
            said = re.sub(r"[ \t\r\n]*\n[ \t\r\n]*", "\n", "".join(part.text for part in parts))
            cue = Cued(sheet, number - 1)
            yield passage(said.strip(), first, last, where, speaker or None, cue=cue)


class _Part(NamedTuple):
    """A text within a paragraph, with its agents and its span; None for none."""

    text: str
    agent: str | None
    span: ElementTree.Element | None


def _paragraphs(root: ElementTree.Element) -> Iterator[tuple[ElementTree.Element, str | None]]:
    """Iterate over the paragraphs of a document, each with its own agents or those of what holds it."""
    rest: list[tuple[ElementTree.Element, str | None]] = [(root, None)]
    while rest:
        element, above = rest.pop()
        agent = _about(element).get("agent", above)
        if _name(element) == "p":
            yield element, agent
        else:
            rest += [(child, agent) for child in reversed(element)]


def _parts(
    element: ElementTree.Element, agent: str | None, span: ElementTree.Element | None
) -> Iterator[_Part]:
    """Iterate over the texts within an element; a break is a line end."""
    yield _Part(element.text or "", agent, span)
    for child in element:
        if _name(child) == "br":
            yield _Part("\n", agent, span)
        elif _name(child) != "metadata" and "#metadata}" not in str(child.tag):
            yield from _parts(child, _about(child).get("agent", agent), child if span is None else span)
        yield _Part(child.tail or "", agent, span)


def _agents(root: ElementTree.Element) -> dict[str, str]:
    """Return the names of the agents of a document by their ids: the full one, else the first."""
    out = {}
    for agent in (element for element in root.iter() if _name(element) == "agent"):
        names = [
            (n.get("type") != "full", " ".join((n.text or "").split())) for n in agent if _name(n) == "name"
        ]
        if id := _about(agent).get("id"):
            out[id] = next((name for _, name in sorted(names, key=lambda n: n[0]) if name), id)
    return out


def _times(
    element: ElementTree.Element, rates: dict[str, float], where: str
) -> tuple[float | None, float | None]:
    """Return begin and end of an element in seconds, from the beginning of what holds it."""
    about = _about(element)
    start, end, length = (_time(about.get(key), rates, where) for key in ("begin", "end", "dur"))
    if end is None and start is not None and length is not None:
        end = start + length
    return start, end


def _about(element: ElementTree.Element) -> dict[str, str]:
    """Return the attributes of an element by their names without namespaces."""
    return {key.rpartition("}")[2]: value for key, value in element.attrib.items()}


def _rates(root: ElementTree.Element) -> dict[str, float]:
    """Return seconds by unit, with the frames and ticks that the document declares."""
    about = {key.rpartition("}")[2]: value for key, value in root.attrib.items()}
    out = dict(_UNITS)
    for unit, key, default in (("f", "frameRate", "30"), ("t", "tickRate", "1")):
        try:
            out[unit] = 1 / float(about.get(key, default))
        except (ValueError, ZeroDivisionError):
            raise FormatError(f"expected {key}, a number above 0; got {about[key]!r:.40}.") from None
    return out


def _time(value: str | None, seconds: dict[str, float], where: str) -> float | None:
    if value is None:
        return None
    if match := _OFFSET.fullmatch(value.strip()):
        return float(match[1]) * seconds[match[2]]
    if match := _FRAMES.fullmatch(value.strip()):
        return clock(match[1], where) + int(match[2]) * seconds["f"]
    return clock(value, where)


def _name(element: ElementTree.Element) -> str:
    return str(element.tag).rpartition("}")[2]
