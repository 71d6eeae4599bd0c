"""Lyrics are written line by line, as the text or a given file has them, and are read again."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from isotone.alignment import Alignment, Origin, Segment, Tier
from isotone.format.lrc import LRCFormat
from isotone.testing import check_format
from isotone.transcripts import Passage, numbered
from isotone.transcripts.lyrics import lrc

SONG = "So it\n\n- is on\nnever sung\nat (ooh) noon"


def sung(text: str, said: str, passages: Sequence[Passage] = ()) -> Alignment:
    """Align words of a text, or of passages, which take .4 s each, with .1 s between, from 1 s on."""
    passages = numbered(passages or [Passage(text)])
    words, now, place = [], 0, 0
    for i, word in enumerate(said.split()):
        while (found := passages[place].text.find(word, now)) < 0:
            place, now = place + 1, 0
        now = found + len(word)
        number = None if passages[0].start is None else passages[place].number
        words.append(Segment(word, 1 + i / 2, 1.4 + i / 2, origin=Origin(word, found, now, word, number)))
    return Alignment("a", 60.0, (Tier("words", tuple(words)),), passages=passages)


def test_the_lines_of_a_text() -> None:
    found = LRCFormat(reading_speed=0).dumps(sung(SONG, "So it is on at noon"))
    assert found == "[00:01.00]So it\n[00:02.00]- is on\n[00:03.00]at (ooh) noon\n[00:03.90]\n"


def test_times_of_words() -> None:
    found = LRCFormat(inline=True, reading_speed=0).dumps(sung(SONG, "So it is on at noon")).split("\n")
    assert found[0] == "[00:01.00]<00:01.00>So <00:01.50>it<00:01.90>"
    assert found[2] == "[00:03.00]<00:03.00>at (ooh) <00:03.50>noon<00:03.90>"


def test_a_given_file_keeps_its_lines_and_tags() -> None:
    text = (
        "\ufeff[ti:A song]\r\n[offset:500]\r\n[01:00.50]at noon\r\n[00:10.50]so it\r\n(is on)\r\n[00:20]\r\n"
    )
    alignment = sung("", "so it is on at noon", list(lrc(text)))
    found = LRCFormat(reading_speed=0).dumps(alignment)
    assert found == "[ti:A song]\n[00:01.00]so it (is on)\n[00:03.00]at noon\n[00:03.90]\n"


def test_new_lines_and_gaps() -> None:
    words = tuple(Segment(f"word{i}", i + 9.0 * (i > 5), i + 9.0 * (i > 5) + 1.0) for i in range(9))
    alignment = Alignment("a", 7000.0, (Tier("words", (*words, Segment("end", 6000.0, 6001.006))),))
    found = LRCFormat(reading_speed=0).dumps(alignment).split("\n")
    assert [line.count("word") for line in found] == [6, 0, 3, 0, 0, 0, 0]
    assert [line[:10] for line in found[1:5]] == ["[00:06.00]", "[00:15.00]", "[00:18.00]", "[100:00.00"]
    assert found[5] == "[100:01.01]"
    single = LRCFormat(level="word").dumps(alignment).split("\n")
    assert single[0] == "[00:00.00]word0"
    assert [p.text for p in lrc("\n".join(single))] == [f"word{i}" for i in range(9)] + ["end"]
    assert all(len(line) < 22 for line in LRCFormat(max_chars=8).dumps(alignment).split("\n"))


def test_where_no_word_is_heard_lines_are_made_anew() -> None:
    words = (Segment("*", 1.0, 2.0), Segment("so", 2.0, 3.0, origin=Origin("so", 0, 2, "so")))
    alignment = Alignment(
        "a", 9.0, (Tier("words", words),), verdict="wrong", passages=numbered([Passage(SONG)])
    )
    assert LRCFormat(reading_speed=0).dumps(alignment) == "[00:02.00]so\n[00:03.00]\n"


def test_the_laws_of_formats() -> None:
    for options in ({}, {"inline": True}, {"level": "word"}):
        check_format(LRCFormat(**options))


@pytest.mark.parametrize("label", ["[00:01.00]", "<00:01.00>", "a\nb", "\0", "a\u2028b", "[ar:x]"])
def test_a_line_is_a_line_whatever_it_says(label: str) -> None:
    text = LRCFormat(inline=True).dumps(Alignment("a", 9.0, (Tier("words", (Segment(label, 1.0, 2.0),)),)))
    assert re.fullmatch(r"(\[\d\d:\d\d\.\d\d\][^\n]*\n)+", text)
    assert "\0" not in text
