"""Syllables of ASS get the times of their words."""

from __future__ import annotations

import re

import pytest

from isotone.alignment import Alignment, Origin, Segment, Tier
from isotone.format.ass import ASSFormat
from isotone.format.karaoke import shown
from isotone.transcripts import numbered, subtitles

HEAD = "[Script Info]\n[Events]\nFormat: Start, End, Text\n"


def written(text: str, said: str) -> str:
    """Write a line of ASS whose words are said one after the other, from 3 s on, .4 s each with .1 s between."""
    given = numbered(subtitles.ass(f"{HEAD}Dialogue: 0:00:01.00,0:00:02.00,{text}\n"))
    words, now = [], 0
    for i, word in enumerate(said.split()):
        first = given[0].text.index(word, now)
        now = first + len(word)
        words.append(
            Segment(word, 3 + i / 2, 3.4 + i / 2, origin=Origin(word, first, now, word, given[0].number))
        )
    alignment = Alignment("a", 60.0, (Tier("words", tuple(words)),), passages=given)
    (line,) = re.findall(
        r"Dialogue: 0:00:03.00,0:00:0.\...,(.*)", ASSFormat(reading_speed=0).dumps(alignment)
    )
    return str(line)


@pytest.mark.parametrize(
    ("text", "said", "expected"),
    [
        (r"{\k1}so {\k2}it {\k3}is", "so it is", r"{\k50}so {\k50}it {\k40}is"),
        (
            r"{\an8\kf1\c&H0&}so{\i1} it{\i0}\N{\K7}is",
            "so it is",
            r"{\an8\kf100\c&H0&}so{\i1} it{\i0}\N{\K40}is",
        ),
        (r"{\k5}con{\k5}sider {\k5}it", "consider it", r"{\k15}con{\k35}sider {\k40}it"),
        (r"so {\k1}it is", "so it is", r"{\k50}so {\k90}it is"),
        (
            r"{\k1}{\k2}so {\k3}{\k4}it{\k5} {\k6}is",
            "so it is",
            r"{\k0}{\k40}so {\k10}{\k40}it{\k10} {\k40}is",
        ),
        (r"{\k1}♪ {\k2}so {\k9}♪", "so", r"{\k0}♪ {\k40}so {\k0}♪"),
        (r"{\k1}so {\p1}m 0 0{\p0}{\k2}it", "so it", r"{\k50}so {\p1}m 0 0{\p0}{\k40}it"),
        (r"{\fad(9,9)}so it", "so it", r"{\fad(9,9)}so it"),
    ],
)
def test_syllables_begin_with_their_words(text: str, said: str, expected: str) -> None:
    assert written(text, said) == expected


def test_what_has_no_times_stays() -> None:
    given = numbered(subtitles.ass(HEAD + r"Dialogue: 0:00:01.00,0:00:02.00,{\k5}so {\k7}it"))
    text = ASSFormat().dumps(Alignment("a", 9.0, (Tier("words", ()),), passages=given))
    assert text.endswith(r",{\k5}so {\k7}it")


def test_what_is_shown_has_no_commands() -> None:
    assert shown(r" {\an8}so\N{\p2}m 0 0{\p0}it\his \z ") == "so\nit is \\z"
