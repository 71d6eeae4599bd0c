"""TTML subtitles."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape, quoteattr

from isotone.alignment import Alignment
from isotone.format.cues import Cue
from isotone.format.elan import xml_text
from isotone.format.subtitles import Subtitles, clock


class TTMLFormat(Subtitles):
    """TTML subtitles: a paragraph per cue, with a timed span per word. Write-only.

    The resolution is 1 ms. Times of spans count from the start of their paragraph, as TTML defines them. Characters
    that XML forbids become U+FFFD.

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

    def dumps(self, alignment: Alignment) -> str:
        """Return the text of the file.

        Raises:
            KeyError: the alignment does not have the tier.
        """
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<tt xmlns="http://www.w3.org/ns/ttml" xml:lang={quoteattr(self.language)}>\n<body>\n<div>\n'
            + "".join(map(self._paragraph, self.cues(alignment)))
            + "</div>\n</body>\n</tt>\n"
        )

    def _paragraph(self, cue: Cue) -> str:
        parts = []
        for i, (start, end, word) in enumerate(cue.words):
            text = escape(xml_text(word))
            if self.spans:
                times = (clock(t - cue.start, ".") for t in (start, end))
                text = '<span begin="{}" end="{}">{}</span>'.format(*times, text)
            parts.append(cue.space(i).replace("\n", "<br/>") + text)
        return f'<p begin="{clock(cue.start, ".")}" end="{clock(cue.end, ".")}">{"".join(parts)}</p>\n'
