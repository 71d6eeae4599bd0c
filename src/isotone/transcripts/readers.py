"""The readers of all kinds of transcripts but plain text and data folders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from isotone.alignment import Alignment
from isotone.format.audacity import AudacityFormat
from isotone.format.csv import CSVFormat
from isotone.format.elan import ELANFormat
from isotone.format.mfa import MFACSVFormat
from isotone.format.reading import ForeignFileError
from isotone.format.textgrid import TextGridFormat
from isotone.passage import Passage
from isotone.transcripts import chat, documents, lines, lyrics, markup, subtitles
from isotone.transcripts.kinds import KINDS, LABELS
from isotone.transcripts.passages import of_alignment
from isotone.transcripts.tiers import check_without


def _table(text: str) -> Alignment:
    """Read a table of segments: isotone's or the Montreal Forced Aligner's."""
    try:
        return MFACSVFormat().loads(text, "")
    except ForeignFileError:
        return CSVFormat().loads(text, "")


_PLAIN: dict[str, Callable[[str], Iterable[Passage]]] = {
    KINDS[".srt"]: subtitles.srt,
    KINDS[".vtt"]: subtitles.vtt,
    KINDS[".sbv"]: subtitles.sbv,
    KINDS[".ass"]: subtitles.ass,
    KINDS[".ssa"]: subtitles.ass,
    KINDS[".tsv"]: subtitles.tsv,
    KINDS[".lrc"]: lyrics.lrc,
    KINDS[".ttml"]: markup.ttml,
    KINDS[".xml"]: markup.ttml,
    KINDS[".ctm"]: lines.ctm,
    KINDS[".stm"]: lines.stm,
}
_ELAN = KINDS[".eaf"]
_OF_TIERS: dict[str, Callable[[str], Alignment]] = {
    _ELAN: lambda text: ELANFormat().loads(text, ""),
    KINDS[".csv"]: _table,
    KINDS[".textgrid"]: lambda text: TextGridFormat().loads(text, ""),
    LABELS: lambda text: AudacityFormat().loads(text, ""),
}
_CHAT = KINDS[".cha"]
_DOCUMENTS = (KINDS[".json"], KINDS[".jsonl"])

#: Kinds of files that are read.
READ = frozenset({*_PLAIN, *_OF_TIERS, *_DOCUMENTS, _CHAT})


def passages_of(
    kind: str, text: str, tiers: Sequence[str] = (), note: Callable[[str], None] = lambda warning: None
) -> Iterable[Passage]:
    """Read a transcript of a kind of :data:`READ`.

    Args:
        kind: Its kind.
        text: Its text, with line ends as its kind keeps them.
        tiers, note: See :func:`isotone.transcripts.tiers.spoken`.

    Raises:
        FormatError: it is not as its kind should be, or lacks a tier; the message names the place.
    """
    if kind == _ELAN and tiers:
        return of_alignment(ELANFormat(dependent=True).loads(text, ""), tiers, note)
    if kind in _OF_TIERS:
        return of_alignment(_OF_TIERS[kind](text), tiers, note)
    if kind in _DOCUMENTS:
        return documents.read(text, tiers, note)
    if kind == _CHAT:
        return chat.read(text, tiers)
    check_without(tiers)
    return _PLAIN[kind](text)
