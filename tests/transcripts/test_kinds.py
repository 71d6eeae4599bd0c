"""Files with times are distinguished from plain text."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone import formats
from isotone.alignment import Alignment, Segment, Tier
from isotone.transcripts.kinds import kind_of_bytes, kind_of_name, kind_of_text

WORDS = (Segment("so", 0.25, 0.5), Segment("it", 0.5, 1.0))
ALIGNMENT = Alignment("u", 1.5, (Tier("words", WORDS), Tier("phones", WORDS)))


@pytest.mark.parametrize("name", [n for n in formats.names() if n != "timit"])
def test_every_format_written_here_is_told_from_text(name: str) -> None:
    """CSV and LRC are recognised by their names alone, since texts may have commas, and times of their lines."""
    assert (kind_of_text(formats.build(name).dumps(ALIGNMENT)) is None) == (name in ("csv", "mfa-csv", "lrc"))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1\n00:00:01,000 --> 00:00:02,500\nHello.\n", "SRT"),
        ("00:01.000 --> 00:02.500\nHello.\n", "SRT"),
        ("0:00:01.000,0:00:02.000\nHello\n", "SBV"),
        ("WEBVTT - a title\n\n00:01.000 --> 00:02.000\nHello", "WebVTT"),
        ('{"text": "Hello", "segments": []}', "JSON"),
        ('{"text": "a"}\n{"text": "b"}\n', "JSON"),
        ('{"text": "a\u2028b"}\n{"text": "c"}\n', "JSON"),
        ('File type = "ooTextFile"\nObject class = "TextGrid"\n', "TextGrid"),
        ('<?xml version="1.0"?>\n<ANNOTATION_DOCUMENT AUTHOR="">', "ELAN"),
        ('<?xml version="1.0"?>\n<tt xmlns="http://www.w3.org/ns/ttml">', "TTML"),
        ("<!DOCTYPE html>\n<html><body>Hello", "HTML"),
        ("[Script Info]\nTitle: x\n", "ASS"),
        ("{\\rtf1\\ansi Hello}", "RTF"),
        (";; comment\nu1 1 0.50 0.25 hello\nu1 1 0.75 0.25 you 0.9\n", "CTM"),
        ("u1 A speaker 0.00 2.50 <o,f0> hello you\n", "STM"),
        ("0.5\t1.25\thello\n1.25\t2.0\tyou\n", "Audacity"),
        (
            "0.5\t1.25\thello\n\\\t100.0\t8000.0\n1.25\t2.0\t\n",
            "Audacity",
        ),  # of frequencies, and an empty one
        ("0.5\t1.25\thello\u2028you\n1.25\t2.0\n", "Audacity"),
        ("0.5\t1.25\r\n1.25\t2.0\tyou\r\n", "Audacity"),
        ("0 2260 h#\n2260 4000 sh\n", "TIMIT"),
    ],
)
def test_kinds_by_their_text(text: str, kind: str) -> None:
    for mark in ("", "\n\n"):
        found = kind_of_text(mark + text)
        assert found is not None
        assert kind in found


@pytest.mark.parametrize(
    "text",
    [
        "She had your dark suit.", "[laughs] hello", "{sic} hello", "[]hello", "0 46797 She had your dark suit.",
        "take 5 10 20 minutes", "1\n2\n3", "At 10:30 --> home", "web vtt", "WEBVTTER", "take a break 10 20 minutes",
        "", "12 14 16", "\u4f60\u597d", "[00:12.00] hello",
    ],
)  # fmt: skip
def test_plain_text_is_plain(text: str) -> None:
    assert kind_of_text(text) is None


@given(text=st.text())
def test_no_text_is_too_odd(text: str) -> None:
    assert kind_of_text(text) is None or kind_of_text(text)


def test_kinds_by_name_and_bytes() -> None:
    for name, kind in (("a.SRT", "SRT"), ("a.docx", "Word"), ("b.TextGrid", "TextGrid"), ("a.json", "JSON")):
        found = kind_of_name(Path(name))
        assert found is not None
        assert kind in found
    assert [kind_of_name(Path(name)) for name in ("a.txt", "a.lab", "a", "srt")] == [None] * 4
    for data, kind in ((b"%PDF-1.7", "PDF"), (b"PK\x03\x04..", "DOCX"), (b"\xd0\xcf\x11\xe0\xa1", "Word")):
        found = kind_of_bytes(data)
        assert found is not None
        assert kind in found
    assert kind_of_bytes(b"Package") is None
