"""Reading of XML: ELAN's annotations and TTML subtitles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from isotone.format.elan import ELANFormat
from isotone.format.reading import FormatError, parse_xml
from isotone.transcripts.passages import Passage, of_alignment, passage
from isotone.transcripts.subtitles import clock

_OFFSET = re.compile(r"(\d+(?:\.\d+)?)(h|m|s|ms|f|t)")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_FRAMES = re.compile(r"(\d+:\d\d:\d\d):(\d+)")


def elan(text: str) -> Iterator[Passage]:
    """Read ELAN's annotations; a tier is a speaker, or of one."""
    yield from of_alignment(ELANFormat().loads(text, ""))


def ttml(text: str) -> Iterator[Passage]:
    """Read the paragraphs of TTML; an agent is the speaker.

    Raises:
        FormatError: not TTML, or a time that cannot be read.
    """
    root = parse_xml(text)
    if _name(root) != "tt":
        raise FormatError(f"expected TTML; got XML with <{_name(root)}>.")
    rates = _rates(root)
    number = 0
    for p in root.iter():
        if _name(p) != "p":
            continue
        number += 1
        where = f"paragraph {number}"
        about = {key.rpartition("}")[2]: value for key, value in p.attrib.items()}
        start, end = (_time(about.get(key), rates, where) for key in ("begin", "end"))
        if (
            end is None
            and start is not None
            and (length := _time(about.get("dur"), rates, where)) is not None
        ):
            end = start + length
        yield passage(_text(p).strip(), start, end, where, about.get("agent"))


def _text(element: ElementTree.Element) -> str:
    """Join the text within an element; a break is a line end."""
    parts = [element.text or ""]
    for child in element:
        parts += ["\n" if _name(child) == "br" else _text(child), child.tail or ""]
    return re.sub(r"[ \t\r\n]*\n[ \t\r\n]*", "\n", "".join(parts))


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
