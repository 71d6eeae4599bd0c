"""TTML subtitles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from isotone.format.cues import Cue
from isotone.format.elan import xml_text
from isotone.format.subtitles import Subtitles, clock

#: Namespace of metadata, such as agents.
METADATA = "http://www.w3.org/ns/ttml#metadata"


class TTMLFormat(Subtitles):
    """TTML subtitles: a paragraph per cue, with a timed span per word. Write-only.

    The resolution is 1 ms. Times of spans count from the start of their paragraph, as TTML defines them. Characters
    that XML forbids become U+FFFD. With several speakers, each is an agent of the head, and every paragraph has one.

    Args:
        spans: Write a span per word; otherwise the text alone.
        language: ``xml:lang`` of the document; empty: not said.
        options: See :class:`isotone.format.subtitles.Subtitles`.
    """

    suffix = ".ttml"

    def __init__(self, *, spans: bool = True, language: str = "", **options: Any) -> None:
        super().__init__(**options)
        self.spans = spans
        self.language = language

    def written(self, cues: Sequence[Cue]) -> str:
        """Return the text of a file with these cues."""
        speakers = dict.fromkeys(cue.speaker for cue in cues if cue.speaker)
        agents = {speaker: f"speaker{number}" for number, speaker in enumerate(speakers, 1)}
        space = f' xmlns:ttm="{METADATA}"' if agents else ""
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<tt xmlns="http://www.w3.org/ns/ttml"{space} xml:lang={quoteattr(self.language)}>\n'
            f"{_head(agents)}<body>\n<div>\n"
            + "".join(self._paragraph(cue, agents.get(cue.speaker, "")) for cue in cues)
            + "</div>\n</body>\n</tt>\n"
        )

    def clock(self, milliseconds: int) -> str:
        """Write a time as ``01:02:03.450``."""
        return clock(milliseconds, ".")

    def _paragraph(self, cue: Cue, agent: str) -> str:
        parts = []
        for part in cue.parts:
            # markup of SubRip need not be in order with spans
            text = "" if part.tag else escape(xml_text(part.text)).replace("\n", "<br/>")
            if self.spans and part.start is not None and part.end is not None:
                times = (self.clock(max(0, t - cue.start)) for t in (part.start, part.end))
                text = '<span begin="{}" end="{}">{}</span>'.format(*times, text)
            parts.append(text)
        shown = f'begin="{self.clock(cue.start)}" end="{self.clock(cue.end)}"'
        said_by = f' ttm:agent="{agent}"' if agent else ""
        return f"<p {shown}{said_by}>{''.join(parts)}</p>\n"


def _head(agents: Mapping[str, str]) -> str:
    """Return the head that declares agents, by their names; empty without them."""
    rows = ""
    for name, id in agents.items():
        named = f'<ttm:name type="full">{escape(xml_text(name))}</ttm:name>'
        rows += f'<ttm:agent xml:id="{id}" type="person">{named}</ttm:agent>\n'
    return f"<head>\n<metadata>\n{rows}</metadata>\n</head>\n" if agents else ""
