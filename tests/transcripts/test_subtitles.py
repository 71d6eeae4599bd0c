"""Subtitles as programs write them: line breaks, marks, times, and names of other kinds."""

from __future__ import annotations

from pathlib import Path

import pytest

from isotone.alignment import Alignment, Tier
from isotone.format.ass import ASSFormat
from isotone.format.subtitles import SRTFormat, Subtitles, VTTFormat
from isotone.format.ttml import TTMLFormat
from isotone.transcripts import TranscriptError, numbered, open_source, subtitles

SRT = "1\n00:00:01,000 --> 00:00:02,500\none\ntwo\n\n2\n00:00:03,000 --> 00:00:04,000\nthree\n"
VTT = "WEBVTT\n\n00:00:01.000 --> 00:00:02.500\none\ntwo\n\n00:00:03.000 --> 00:00:04.000\nthree\n"
ASS = (
    "[Script Info]\n[Events]\nFormat: Start, End, Text\nDialogue: 0:00:01.00,0:00:02.50,one\\Ntwo\n"
    "Dialogue: 0:00:03.00,0:00:04.00,three\n"
)
TTML = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<tt xmlns="http://www.w3.org/ns/ttml"><body><div>\n'
    '<p begin="00:00:01.000" end="00:00:02.500">one\ntwo</p>\n<p begin="00:00:03.000" end="00:00:04.000">three</p>\n'
    "</div></body></tt>\n"
)
KINDS: list[tuple[Subtitles, str]] = [
    (SRTFormat(reading_speed=0), SRT),
    (VTTFormat(reading_speed=0), VTT),
    (ASSFormat(reading_speed=0), ASS),
    (TTMLFormat(reading_speed=0), TTML),
]


def again(path: Path, kind: Subtitles) -> bytes:
    """Write the file of a transcript of which nothing was heard, so that its times stay."""
    passages = numbered(open_source(path).of(Path("a.wav")))
    assert [p.text for p in passages] == ["one\ntwo", "three"]
    return kind.encoded(Alignment("a", 60.0, (Tier("words", ()),), passages=passages))


@pytest.mark.parametrize(("kind", "text"), KINDS, ids=lambda v: getattr(v, "suffix", ""))
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_breaks_and_marks_stay(tmp_path: Path, kind: Subtitles, text: str, mark: str, end: str) -> None:
    path = tmp_path / f"a{kind.suffix}"
    data = (mark + text.replace("\n", end)).encode()
    path.write_bytes(data)
    assert again(path, kind) == data
    path.write_bytes(data.removesuffix(end.encode()))
    assert again(path, kind) == data.removesuffix(end.encode()), "nothing is added at the end"


def test_line_breaks_of_several_kinds_stay(tmp_path: Path) -> None:
    data = SRT.replace("\n", "\r\n", 3).encode()
    (tmp_path / "a.srt").write_bytes(data)
    assert again(tmp_path / "a.srt", SRTFormat(reading_speed=0)) == data


def test_utf_16_becomes_utf_8_with_a_mark(tmp_path: Path) -> None:
    (tmp_path / "a.srt").write_bytes(SRT.replace("\n", "\r\n").encode("utf-16"))
    text = "\ufeff" + SRT.replace("\n", "\r\n")
    assert again(tmp_path / "a.srt", SRTFormat(reading_speed=0)) == text.encode()


@pytest.mark.parametrize(
    ("line", "start"),
    [
        ("00:00:01,500 -> 00:00:02,000", 1.5),
        ("00:00:01,500 \u2013> 00:00:02,000", 1.5),
        ("00:00:01:500 --> 00:00:02:000", 1.5),
        ("0:0:1.5-->0:0:2", 1.5),
        ("-00:00:01,000 --> 00:00:02,000", 0.0),
    ],
)
def test_times_as_programs_write_them(line: str, start: float) -> None:
    found = list(subtitles.srt(SRT + f"\n3\n{line}\nfour\n"))
    assert [p.text for p in found] == ["one\ntwo", "three", "four"]
    assert (found[2].start, found[2].end) == (start, 2.0)
    assert SRTFormat().dumps(
        Alignment("a", 60.0, (Tier("words", ()),), passages=numbered(found))
    ).splitlines()[-2:] == [f"00:00:0{start:.3f} --> 00:00:02,000".replace(".", ","), "four"]


@pytest.mark.parametrize("line", ["00:00:xx,000 --> 00:00:05,000", "00:00:05:12 --> 00:00:06:12"])
def test_times_that_cannot_be_read_are_no_text(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.srt").write_text(SRT + f"\n3\n{line}\nfour\n")
    with pytest.raises(TranscriptError, match="line 11: expected times such as"):
        open_source(tmp_path / "a.srt")


def test_an_arrow_in_a_text_is_text() -> None:
    (cue,) = subtitles.srt("1\n00:00:01,000 --> 00:00:02,000\n5:30 is late --> go\n")
    assert cue.text == "5:30 is late --> go"


def test_subtitles_are_known_by_their_text(tmp_path: Path) -> None:
    for name in ("a.srt", "a.vtt", "a.ass", "a.ttml", "a.sbv"):
        for kind, text in KINDS:
            (tmp_path / name).write_text(text)
            assert again(tmp_path / name, kind) == text.encode(), (name, kind)


def test_breaks_of_sbv_are_line_breaks() -> None:
    (cue,) = subtitles.sbv("0:00:01.000,0:00:02.000\none[br]two\n")
    assert cue.text == "one\ntwo"


def test_drawings_of_ass_are_no_text() -> None:
    rows = [
        r"{\pos(1,2)\p1}m 0 0 l 100 0 100 100{\p0}",
        r"one {\p4}m 0 0{\p0}{\i1}two",
        r"{\an8\p2}m 0 0",
        r"{\pos(1,2)}so",
    ]
    lines = "".join(f"Dialogue: 0:00:01.00,0:00:02.00,{row}\n" for row in rows)
    found = subtitles.ass("[Events]\nFormat: Start, End, Text\n" + lines)
    assert [p.text for p in found] == ["", "one two", "", "so"]
