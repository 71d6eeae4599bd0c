"""Subtitles with the cues that were given, and the times of their words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.alignment import Alignment, Origin, Segment, Tier
from isotone.format.ass import ASSFormat
from isotone.format.subtitles import SRTFormat, Subtitles, VTTFormat
from isotone.format.ttml import TTMLFormat
from isotone.transcripts import Passage, documents, markup, numbered, subtitles

WORD = re.compile(r"[A-Za-z']+[,.;]?")
SRT = r"""1
00:00:00,700 --> 00:00:04,000
<i>And Mister John
had then</i>

2
00:00:04,000 --> 00:00:04,500 X1:40
[music]

7
00:00:05,000 --> 00:00:06,000
JOHN: He was not & <b>so</b> {\an8}was

he?
"""
#: What is said of the cues above.
SAID = {0: "And Mister John had then", 2: "He was not so was"}


def aligned(passages: Iterable[Passage], said: Mapping[int, str], at: Mapping[int, float]) -> Alignment:
    """An alignment in which the words of a passage follow each other from its time on, half a second each."""
    given = numbered(passages)
    words: dict[str, list[Segment]] = {} if said else {"": []}
    for number, text in said.items():
        now = 0
        for i, word in enumerate(text.split()):
            first = given[number].text.index(word, now)
            now = first + len(word)
            start = at[number] + i / 2
            origin = Origin(word, first, now, word, number)
            words.setdefault(given[number].speaker or "", []).append(
                Segment(word, start, start + 0.5, origin=origin)
            )
    tiers = [
        Tier(
            f"{speaker or 'unknown'} - words" if len(words) > 1 else "words",
            tuple(sorted(own, key=lambda s: s.start)),
        )
        for speaker, own in words.items()
    ]
    return Alignment("talk", 60.0, tuple(tiers), passages=given)


def talk(at: Mapping[int, float] | None = None) -> Alignment:
    return aligned(subtitles.srt(SRT), SAID, at or {0: 1.0, 2: 6.0})


def without_times(text: str, times: str = r"[\d:]+[.,]\d+") -> str:
    return re.sub(times, "T", text)


def test_the_file_stays_as_it_was_but_for_the_times() -> None:
    text = SRTFormat(reading_speed=0).dumps(talk())
    assert without_times(text) == without_times(SRT)
    assert re.findall(r"(\S+) --> (\S+)", text) == [
        ("00:00:01,000", "00:00:03,500"),
        ("00:00:04,837", "00:00:05,337"),
        ("00:00:06,000", "00:00:08,500"),
    ]


def test_a_cue_is_shown_until_it_is_read_or_the_next_begins() -> None:
    text = SRTFormat(reading_speed=5).dumps(talk())
    assert re.findall(r"--> (\S+)", text) == ["00:00:04,837", "00:00:05,337", "00:00:12,000"]


def test_a_short_cue_stays_a_second() -> None:
    given = "1\n00:00:01,000 --> 00:00:02,000\nno\n\n2\n00:00:03,000 --> 00:00:04,000\nso\n"
    alignment = aligned(subtitles.srt(given), {0: "no", 1: "so"}, {0: 5.0, 1: 5.8})
    assert re.findall(r"--> (\S+)", SRTFormat().dumps(alignment)) == ["00:00:05,800", "00:00:06,800"]
    text = SRTFormat(min_s=0).dumps(alignment)
    assert re.findall(r"--> (\S+)", text) == ["00:00:05,500", "00:00:06,300"]


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ({0: 1.0, 2: 4.0}, (3.5, 4.0)),  # the silence is as long as the cue
        ({0: 1.0, 2: 3.6}, (2.995, 3.495)),  # there is no room, so it is shown with its neighbour
        ({0: 11.0, 2: 15.5}, (14.453, 14.953)),  # as far as its neighbours
    ],
)
def test_a_cue_without_words_moves_with_its_neighbours(
    at: Mapping[int, float], expected: tuple[float, float]
) -> None:
    cue = SRTFormat(reading_speed=0).dumps(talk(at)).split("\n\n")[1]
    times = [float(t.replace(",", ".")) for t in re.findall(r"00:00:(\S+)", cue)]
    assert times == [pytest.approx(t, abs=0.002) for t in expected]
    assert cue.endswith("[music]")


def test_a_cue_without_words_moves_by_time_also_where_the_file_has_another_order() -> None:
    rows = [(20, 21, "last"), (1, 5, "first"), (2, 4, "[sign]"), (6, 7, "[music]"), (9, 10, "then")]
    text = "\n".join(f"{i}\n00:00:{a:02},000 --> 00:00:{b:02},000\n{t}\n" for i, (a, b, t) in enumerate(rows))
    said = {0: "last", 1: "first", 4: "then"}
    found = SRTFormat(reading_speed=0).dumps(aligned(subtitles.srt(text), said, {0: 22.0, 1: 3.0, 4: 11.0}))
    times = re.findall(r"00:00:(\d\d,\d)\d\d --> 00:00:(\d\d,\d)", found)
    assert times[2] == ("04,0", "06,0"), "it was shown together with the first, and still is"
    assert times[3] == ("08,0", "09,0")
    vtt = VTTFormat(reading_speed=0).dumps(aligned(subtitles.srt(text), said, {0: 22.0, 1: 3.0, 4: 11.0}))
    starts = re.findall(r"(\S+) -->", vtt)
    assert starts == sorted(starts), "another file is in order of time"


def test_cues_of_which_nothing_is_said_keep_their_times() -> None:
    wrong = replace(talk(), verdict="wrong")
    assert SRTFormat().dumps(wrong) == SRT
    (note,) = SRTFormat().notes(wrong)
    assert note == "the cues keep the times that they had: none has a word whose time is known"


def test_events_of_ass_have_a_duration() -> None:
    alignment = aligned(subtitles.srt("1\n00:00:05,000 --> 00:00:05,000\n[music]\n"), {}, {})
    assert ",0:00:05.00,0:00:05.01," in ASSFormat().dumps(alignment)


def test_people_are_told_of_cues_without_words() -> None:
    assert list(SRTFormat().notes(talk())) == [
        "1 of 3 cues has no word with a time and moved with the cues around: cue 2"
    ]
    nobody = "\n".join(f"{i}\n00:00:{i:02},000 --> 00:00:{i:02},500\nno\n" for i in range(30))
    (note,) = SRTFormat().notes(aligned(subtitles.srt(nobody), {0: "no"}, {0: 0.0}))
    assert note.startswith("29 of 30 cues have")
    assert note.endswith("cue 21 and 9 more")


def test_other_formats_have_the_same_cues() -> None:
    vtt = VTTFormat(reading_speed=0).dumps(talk())
    assert vtt.split("\n\n", 1)[1] == (
        "00:00:01.000 --> 00:00:03.500\n<i>And Mister John\nhad then</i>\n\n"
        "00:00:04.837 --> 00:00:05.337\n[music]\n\n"
        "00:00:06.000 --> 00:00:08.500\nJOHN: He was not &amp; <b>so</b> was\nhe?\n"
    )
    assert "And <00:00:01.500>Mister" in VTTFormat(inline=True).dumps(talk())
    lines = [
        line.split(",,", 2)[2] for line in ASSFormat().dumps(talk()).splitlines() if line[:9] == "Dialogue:"
    ]
    assert lines[0] == r"{\i1}{\k50}And {\k50}Mister {\k50}John\N{\k50}had {\k50}then{\i0}"
    assert r"{\b1}{\k50}so{\b0} {\an8}{\k50}was" in lines[2]
    ttml = TTMLFormat(spans=False, reading_speed=0).dumps(talk())
    assert '<p begin="00:00:01.000" end="00:00:03.500">And Mister John<br/>had then</p>' in ttml
    back = [p.text for p in markup.ttml(ttml)]
    assert back[1:2] == ["[music]"]
    assert len(back) == 3


VTT = """WEBVTT - talk

STYLE
::cue { color: red }

NOTE one --- two

intro
00:01.000 --> 00:02.000 align:start position:10%
<v Ann>And <00:01.400>Mister
<v.loud Bob>John &amp; had

00:03.000 --> 00:04.000
<v Ann>
"""


def test_webvtt_keeps_styles_comments_settings_and_voices() -> None:
    alignment = aligned(subtitles.vtt(VTT), {0: "And Mister", 1: "John had"}, {0: 5.0, 1: 5.7})
    text = VTTFormat(reading_speed=0).dumps(alignment)
    assert without_times(text, r"(\d\d:)+\d\d\.\d+") == without_times(VTT, r"(\d\d:)+\d\d\.\d+").replace(
        "<T>", ""
    )
    assert "00:00:05.000 --> 00:00:06.700 align:start" in text, (
        "a cue of two speakers ends with the last of them"
    )
    assert "00:00:07.000 --> 00:00:08.000" in text


def test_markup_that_webvtt_alone_has_is_not_in_other_formats() -> None:
    text = "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ann>And <c.red>Mister</c></v> <i.loud>John</i> <b>&lt;had</b>\n"
    alignment = aligned(subtitles.vtt(text), {0: "And Mister John"}, {0: 1.0})
    assert "\nAnd Mister <i>John</i> <b><had</b>\n" in SRTFormat().dumps(alignment)
    assert r"Mister {\i1}{\k50}John{\i0}" in ASSFormat().dumps(alignment)
    assert "<c.red>Mister</c></v> <i.loud>" in VTTFormat().dumps(alignment)


ASS = r"""[Script Info]
; by hand
[V4+ Styles]
Style: Sign,Arial,20
[Events]
Format: Layer, End, Start, Style, Name, Text
Comment: 0,0:00:01.00,0:00:00.00,Sign,,no
Dialogue: 0,0:00:02.00, 0:00:01.00,Sign,Ann,{\i1}And{\i0} Mister, John\Nhad then
Dialogue: 0,0:00:04.00,0:00:03.00,Sign,,{\fad(1,2)}He was
"""


def test_ass_keeps_styles_and_overrides() -> None:
    alignment = aligned(subtitles.ass(ASS), {0: "And Mister", 1: "He was"}, {0: 5.0, 1: 8.0})
    text = ASSFormat(reading_speed=0).dumps(alignment)
    assert text == ASS.replace("0:00:02.00, 0:00:01.00", "0:00:06.00, 0:00:05.00").replace(
        "0:00:04.00,0:00:03.00", "0:00:09.00,0:00:08.00"
    )


TTML = """<?xml version="1.0" encoding="utf-16"?>
<tt:tt xmlns:tt="http://www.w3.org/ns/ttml" xmlns:tts="http://www.w3.org/ns/ttml#styling">
<tt:body><tt:div><!-- <tt:p begin="0s"/> -->
<tt:p xml:id="a" begin='1s' dur="2s" tts:color="red">And
<tt:span begin="0s" tts:fontStyle="italic">Mister</tt:span><tt:br/>John</tt:p>
<tt:p begin="3s" end="4s"/>
</tt:div></tt:body></tt:tt>
"""


def test_ttml_keeps_its_elements() -> None:
    alignment = aligned(markup.ttml(TTML), {0: "And Mister John"}, {0: 5.0})
    text = TTMLFormat(reading_speed=0).dumps(alignment)
    assert '<tt:p begin="00:00:05.000" end="00:00:06.500" xml:id="a" tts:color="red">' in text
    assert '<tt:span tts:fontStyle="italic">Mister</tt:span><tt:br/>John</tt:p>' in text
    assert '<tt:p begin="00:00:07.000" end="00:00:08.000"/>' in text
    assert '<!-- <tt:p begin="0s"/> -->' in text
    assert 'encoding="UTF-8"' in text
    assert [p.text for p in markup.ttml(text)] == [p.text for p in markup.ttml(TTML)]


def test_options_of_new_cues_make_new_cues() -> None:
    assert SRTFormat(cues="new").dumps(talk()).count("-->") == 2
    assert SRTFormat(level="word").dumps(talk()).count("-->") == 10
    assert "<i>" not in SRTFormat(max_chars=30).dumps(talk())
    assert "X1:40" in SRTFormat(reading_speed=0).dumps(talk())
    with pytest.raises(ValueError, match="max_chars is of new cues: leave it out"):
        SRTFormat(cues="given", max_chars=30)
    with pytest.raises(ValueError, match="'auto', 'given' or 'new'; got 'old'"):
        SRTFormat(cues="old")  # type: ignore[arg-type]


def test_other_transcripts_with_times_are_cues_where_that_is_asked_for() -> None:
    rows = [{"start": 0.0, "end": 2.0, "text": " And Mister"}, {"start": 2.0, "end": 3.0, "text": "He was"}]
    alignment = aligned(documents.of({"segments": rows}), {0: "And Mister", 1: "He was"}, {0: 1.0, 1: 2.0})
    assert SRTFormat().dumps(alignment).count("-->") == 1
    text = SRTFormat(cues="given").dumps(alignment)
    assert [line for line in text.splitlines() if line[:1].isalpha()] == ["And Mister", "He was"]
    plain = Alignment("talk", 9.0, (Tier("words", (Segment("And", 0.0, 1.0),)),))
    with pytest.raises(ValueError, match=r"talk: no cues were given.*leave out cues: given"):
        SRTFormat(cues="given").dumps(plain)


def test_rolling_captions_are_no_cues_to_keep() -> None:
    text = (
        "WEBVTT\n\n00:00:00.000 --> 00:00:01.000\n \nAnd<00:00:00.500><c> Mister</c>\n\n"
        "00:00:01.000 --> 00:00:02.000\nAnd Mister\nJohn<00:00:01.500><c> had</c>\n"
    )
    alignment = aligned(subtitles.vtt(text), {0: "And Mister", 1: "John had"}, {0: 0.0, 1: 1.0})
    assert VTTFormat(reading_speed=0).dumps(alignment).split("\n", 2)[2] == (
        "00:00:00.000 --> 00:00:02.000\nAnd Mister John had\n"
    )


READ = {SRTFormat: subtitles.srt, VTTFormat: subtitles.vtt, ASSFormat: subtitles.ass, TTMLFormat: markup.ttml}
LINES = st.text("ab .,-\n<i>{&♪", max_size=12).map(lambda s: re.sub(r"\n\s*\n", "\n", s).strip())


@pytest.mark.parametrize("kind", [SRTFormat, VTTFormat, ASSFormat, TTMLFormat])
@given(
    texts=st.lists(LINES, min_size=1, max_size=6),
    heard=st.sets(st.integers(0, 5)),
    gaps=st.lists(st.integers(0, 3), min_size=6, max_size=6),
)
@settings(max_examples=40, deadline=None)
def test_no_cue_is_lost(kind: type[Subtitles], texts: list[str], heard: set[int], gaps: list[int]) -> None:
    rows = [f"{i}\n00:00:{2 * i:02},000 --> 00:00:{2 * i + 1:02},000\n{t}\n" for i, t in enumerate(texts, 1)]
    passages = list(subtitles.srt("\n".join(rows)))
    at = {i: 2.0 * i + sum(gaps[:i]) for i in range(len(texts))}
    said = {i: re.findall("[ab]+", passages[i].text)[:3] for i in heard if i < len(passages)}
    words = {i: " ".join(own) for i, own in said.items() if own}
    text = kind().dumps(aligned(passages, words, at))
    assert len(list(READ[kind](text))) == len(passages)
    if kind is SRTFormat:
        found = list(subtitles.srt(text))
        assert [p.text for p in found] == [p.text for p in passages]
        assert all(p.start is not None and p.end is not None and p.end > p.start for p in found)
        if words:
            starts = [found[i].start or 0.0 for i in sorted(words)]
            assert starts == [at[i] for i in sorted(words)]
            assert all(a <= b for a, b in pairwise(starts))
