"""Kinds of files that hold a transcript but are not plain text, by their names and their first characters."""

from __future__ import annotations

import json
import re
from pathlib import Path

from isotone.format.reading import numbered_lines

_ANNOTATION = "an annotation file with times"
_DOCUMENT = "a document with formatting"

#: Descriptions by suffix, in lower case.
KINDS = {
    ".srt": "SRT subtitles", ".vtt": "WebVTT subtitles", ".sbv": "SBV subtitles", ".lrc": "lyrics with times (LRC)",
    ".ass": "ASS subtitles", ".ssa": "SSA subtitles", ".ttml": "TTML subtitles", ".dfxp": "TTML subtitles",
    ".xml": "XML", ".json": "JSON", ".jsonl": "JSON lines", ".textgrid": "a Praat TextGrid", ".eaf": "an ELAN file",
    ".ctm": f"CTM, {_ANNOTATION}", ".stm": f"STM, {_ANNOTATION}", ".trs": f"Transcriber's, {_ANNOTATION}",
    ".phn": f"TIMIT's phones, {_ANNOTATION}", ".wrd": f"TIMIT's words, {_ANNOTATION}", ".cha": "a CHAT transcript",
    ".rttm": "RTTM, turns of speakers without text",
    ".csv": "a table (CSV)", ".tsv": "a table (TSV)", ".rtf": f"RTF, {_DOCUMENT}", ".doc": f"Word's, {_DOCUMENT}",
    ".docx": f"Word's (DOCX), {_DOCUMENT}", ".odt": f"ODT, {_DOCUMENT}", ".pdf": "PDF", ".html": "HTML", ".htm": "HTML",
}  # fmt: skip

#: The kind of Audacity's labels, whose suffix is that of plain text.
LABELS = "labels of Audacity, with times"

_CLOCK = r"(?:\d+:)?\d{1,2}:\d\d[.,]\d{1,3}"
_BEGINNINGS = (
    (re.compile(r"WEBVTT\b"), KINDS[".vtt"]),
    (re.compile(rf"(?:\d+\s*\n)?\s*{_CLOCK}\s*-->\s*{_CLOCK}"), KINDS[".srt"]),
    (re.compile(rf"{_CLOCK},{_CLOCK}\s*\n"), KINDS[".sbv"]),
    (re.compile(r"\[Script Info\]", re.IGNORECASE), KINDS[".ass"]),
    (re.compile(r'File type = "oo|"?ooTextFile'), KINDS[".textgrid"]),
    (re.compile(r"(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)?<ANNOTATION_DOCUMENT\b", re.DOTALL), KINDS[".eaf"]),
    (re.compile(r"(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)?<tt\b", re.DOTALL), KINDS[".ttml"]),
    (re.compile(r"\s*<(?:!doctype html|html)\b", re.IGNORECASE), KINDS[".html"]),
    (re.compile(r"<\?xml\b"), KINDS[".xml"]),
    (re.compile(r"\{\\rtf"), KINDS[".rtf"]),
    (re.compile(r"@(?:UTF8|Begin)\b"), KINDS[".cha"]),
)
_NUMBER = r"\d+\.\d+"
#: Files in which every line has one form.
_LINES = (
    (re.compile(rf"SPEAKER\s+\S+\s+\S+\s+{_NUMBER}\s+{_NUMBER}\s+<NA>\s.*"), KINDS[".rttm"]),
    (re.compile(rf"\S+\s+\w\s+{_NUMBER}\s+{_NUMBER}\s+\S+(?:\s+[\d.]+)?"), KINDS[".ctm"]),
    (re.compile(rf"\S+\s+\w\s+\S+\s+{_NUMBER}\s+{_NUMBER}\s+(?:<\S*>\s+)?\S.*"), KINDS[".stm"]),
    (re.compile(r"\d+\.\d+\t\d+\.\d+(?:\t.*)?"), LABELS),  # without one where a label is empty
)
_SAMPLES = re.compile(r"\d+ +\d+ +\S+")
_BYTES = (
    (b"%PDF-", KINDS[".pdf"]), (b"PK\x03\x04", "a zip file, as documents (DOCX, ODT) are"),
    (b"\xd0\xcf\x11\xe0", KINDS[".doc"]), (b"ooBinaryFile", "a binary Praat file"),
)  # fmt: skip


def kind_of_name(path: Path) -> str | None:
    """Return the kind of a file by its name; None for plain text."""
    return KINDS.get(path.suffix.lower())


def kind_of_bytes(data: bytes) -> str | None:
    """Return the kind of a binary file by its first bytes; None if it may be text."""
    return next((kind for start, kind in _BYTES if data.startswith(start)), None)


def kind_of_text(text: str) -> str | None:
    """Return the kind of a text by its form; None for plain text."""
    text = text.strip()
    if kind := next((kind for pattern, kind in _BEGINNINGS if pattern.match(text)), None):
        return kind
    if text[:1] in ("{", "[") and _is_json(text):
        return KINDS[".json"]
    # comments, and the frequencies of Audacity's spectral labels, are lines of their own
    lines = [line for _, line in numbered_lines(text) if not line.startswith((";;", "\\\t"))]
    if len(lines) > 1 and all(_SAMPLES.fullmatch(line.strip()) for line in lines):
        return "labels with sample numbers, as TIMIT's .phn and .wrd"
    return next(
        (kind for form, kind in _LINES if lines and all(form.fullmatch(line) for line in lines)), None
    )


def _is_json(text: str) -> bool:
    for part in (text, text.split("\n", 1)[0]):  # the first line alone: JSON lines
        try:
            if isinstance(json.loads(part), dict | list):
                return True
        except (ValueError, RecursionError):
            continue
    return False
