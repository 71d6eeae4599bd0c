import html
import logging
import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.alignment import Absent, Alignment, Segment, Tier
from isotone.format.ass import ASSFormat
from isotone.format.cues import Layout, make_cues
from isotone.format.subtitles import SRTFormat, VTTFormat
from isotone.format.ticks import last_tick
from isotone.format.ttml import TTMLFormat
from isotone.registry import OptionError
from tests.format.strategies import alignments

SENTENCE = Alignment(
    "u",
    3700.0,
    (
        Tier(
            "words",
            (
                Segment("she", 0.5, 0.7004),
                Segment("had", 0.7004, 1.0),
                Segment("", 1.0, 2.5),
                Segment("R&B", 2.5, 3.0),
                Segment("suits", 3661.25, 3662.0),
            ),
        ),
    ),
)


def test_srt_golden():
    assert SRTFormat(reading_speed=0).dumps(SENTENCE) == (
        "1\n00:00:00,500 --> 00:00:01,000\nshe had\n\n"
        "2\n00:00:02,500 --> 00:00:03,000\nR&B\n\n"
        "3\n01:01:01,250 --> 01:01:02,000\nsuits\n"
    )


def test_vtt_golden():
    assert VTTFormat(inline=True, max_gap_s=2.0, reading_speed=0).dumps(SENTENCE) == (
        "WEBVTT\n\n"
        "00:00:00.500 --> 00:00:03.000\nshe <00:00:00.700>had <00:00:02.500>R&amp;B\n\n"
        "01:01:01.250 --> 01:01:02.000\nsuits\n"
    )
    assert VTTFormat(level="word").dumps(SENTENCE).count("-->") == 4
    assert VTTFormat().dumps(Alignment("u", 1.0, (Tier("words", ()),))) == "WEBVTT\n"


def milliseconds(clock):
    hours, minutes, seconds, ms = map(int, re.split("[:.,]", clock))
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + ms


def cues(blocks):
    """Read times and text of every cue, line by line."""
    for block in blocks:
        times, *lines = block.removesuffix("\n").split("\n")
        start, end = times.split(" --> ")
        yield milliseconds(start), milliseconds(end), " ".join(lines)


def check_times(found, duration):
    flat = [t for start, end, _ in found for t in (start, end)]
    assert flat == sorted(flat)
    assert all(start < end for start, end, _ in found)
    assert all(t <= duration * 1000 + 1e-6 for t in flat)


def shown(alignment):
    """Return the words that subtitles show: speech that is not in the text (*) is not among them."""
    return [" ".join(s.label.split()) for s in alignment.tier("words") if s.label.split() and s.label != "*"]


OPTIONS = {
    "level": st.sampled_from(["line", "word"]),
    "max_chars": st.integers(1, 40),
    "max_lines": st.integers(1, 3),
    "max_gap_s": st.floats(0, 0.5),
    "reading_speed": st.sampled_from([0, 17]),
}


@given(alignments(names=("words",), silence=True), st.fixed_dictionaries(OPTIONS))
@settings(max_examples=60, deadline=None)
def test_srt_shows_every_word_once_in_order(alignment, options):
    text = SRTFormat(**options).dumps(alignment)
    blocks = text.split("\n\n") if text else []
    assert [block.split("\n", 1)[0] for block in blocks] == [str(i + 1) for i in range(len(blocks))]
    found = list(cues(block.split("\n", 1)[1] for block in blocks))
    check_times(found, alignment.duration)
    assert " ".join(t for _, _, t in found) == " ".join(shown(alignment)).replace("-->", "→")


@given(alignments(names=("words",), silence=True), st.fixed_dictionaries(OPTIONS | {"inline": st.booleans()}))
@settings(max_examples=60, deadline=None)
def test_vtt_shows_every_word_once_in_order(alignment, options):
    header, *blocks = VTTFormat(**options).dumps(alignment).split("\n\n")
    assert header.strip() == "WEBVTT"
    found = list(cues(blocks))
    check_times(found, alignment.duration)
    plain = [html.unescape(re.sub(r"<[\d:.]+>", "", text)) for _, _, text in found]
    assert " ".join(plain) == " ".join(shown(alignment)).replace("\0", "\ufffd")
    for start, end, text in found:
        assert "-->" not in text
        stamps = [start, *map(milliseconds, re.findall(r"<([\d:.]+)>", text)), end]
        assert all(a < b for a, b in pairwise(stamps))
        if not options["inline"]:
            assert len(stamps) == 2


LAYOUTS = st.builds(
    Layout, max_chars=st.integers(1, 20), max_lines=st.integers(1, 3), max_gap_s=st.floats(0, 0.5),
    max_s=st.floats(0.5, 3), reading_speed=st.sampled_from([0.0, 5.0, 17.0]),
)  # fmt: skip


@given(alignments(names=("words",), labels=st.text("ab.,", min_size=1, max_size=6)), LAYOUTS)
@settings(max_examples=60, deadline=None)
def test_cues_can_be_read(alignment, layout):
    found = make_cues(alignment, "words", layout)
    for cue, following in zip(found, [*found[1:], None]):
        lines = cue.text.split("\n")
        alone = len(cue.words) == 1
        assert len(lines) <= layout.max_lines or alone
        assert all(len(line) <= layout.max_chars or " " not in line for line in lines)
        assert cue.words[-1][1] - cue.start <= layout.max_s * 1000 or alone
        assert all(b[0] - a[1] <= layout.max_gap_s * 1000 for a, b in pairwise(cue.words))
        assert cue.end >= cue.words[-1][1]
        if layout.reading_speed:
            limit = following.start if following else last_tick(alignment.duration, 1000)
            assert cue.end in (limit, max(cue.words[-1][1], cue.end))
            least = max(layout.min_s, len(cue.text) / layout.reading_speed)
            assert cue.end == limit or (cue.end - cue.start) / 1000 >= least - 0.001
        else:
            assert cue.end == cue.words[-1][1]


def spoken(text):
    """Words of 0.25 s, one after the other."""
    words = [Segment(w, i / 4, (i + 1) / 4) for i, w in enumerate(text.split())]
    return Alignment("u", 60.0, (Tier("words", tuple(words)),))


def test_short_cues_stay_a_second_unless_the_next_one_begins():
    words = (Segment("Yes.", 1.0, 1.2), Segment("No.", 3.0, 3.2), Segment("Oh.", 3.9, 4.0))
    alignment = Alignment("u", 4.5, (Tier("words", words),))

    def ends(**options):
        return [
            cue.end for cue in make_cues(alignment, "words", Layout(max_chars=4, max_gap_s=0.1, **options))
        ]

    assert ends() == [2000, 3900, 4500]
    assert ends(min_s=0.5) == [1500, 3500, 4400]
    assert ends(min_s=0) == [1235, 3200, 4076]
    assert ends(reading_speed=0) == [1200, 3200, 4000]
    with pytest.raises(ValueError, match="seconds and speeds >= 0"):
        Layout(min_s=-1)


def test_cues_end_with_sentences_and_lines_are_balanced():
    alignment = spoken(
        "It rained all night, and nobody had thought of closing the windows. So we were wet. Nobody was surprised by "
        "that, least of all the man who had come to mend the roof yesterday. Yes. No. Well, I never said that."
    )
    found = make_cues(alignment, "words", Layout())
    assert [cue.text for cue in found] == [
        "It rained all night, and nobody\nhad thought of closing the windows.",
        "So we were wet.",
        "Nobody was surprised by that,\nleast of all the man who had come",
        "to mend the roof yesterday. Yes.\nNo. Well, I never said that.",
    ]
    assert found[0].end == found[1].start, "shown until the next one"
    assert found[-1].end == found[-1].start + round(1000 * len(found[-1].text) / 17), "shown until it is read"


def test_speakers_have_cues_of_their_own():
    tiers = (
        Tier("Ann - words", (Segment("so", 0.0, 1.0), Segment("it", 1.0, 2.0))),
        Tier("Bob - words", (Segment("is", 0.5, 1.5),)),
    )
    text = VTTFormat(reading_speed=0).dumps(Alignment("u", 3.0, tiers))
    assert text.split("\n\n")[1:] == [
        "00:00:00.000 --> 00:00:02.000\n<v Ann>so it",
        "00:00:00.500 --> 00:00:01.500\n<v Bob>is\n",
    ]


def test_what_players_take_for_syntax_is_escaped():
    alignment = Alignment("u", 1.0, (Tier("words", (Segment("<b>--> &amp;\n\nx", 0.0, 1.0),)),))
    assert VTTFormat().dumps(alignment).endswith("\n&lt;b&gt;--&gt; &amp;amp; x\n")
    assert SRTFormat().dumps(alignment).endswith("\n<b>→ &amp; x\n")


def test_a_word_without_duration_is_shown_with_a_warning(caplog):
    alignment = Alignment("u", 1.0, (Tier("words", (Segment("a", 0.5, 0.5),)),))
    with caplog.at_level(logging.WARNING):
        assert "00:00:00,500 --> 00:00:00,501\na\n" in SRTFormat(reading_speed=0).dumps(alignment)
    assert "'a' at 0.5 s" in caplog.text


@pytest.mark.parametrize("kind", [SRTFormat, VTTFormat])
def test_refuses_options_that_make_no_sense_and_reading(kind):
    with pytest.raises(ValueError, match="'line' or 'word'; got 'phone'"):
        kind(level="phone")
    with pytest.raises(ValueError, match="max_chars and max_lines >= 1"):
        kind(max_chars=0)
    with pytest.raises(NotImplementedError, match="writes only"):
        kind().loads("", "u")
    with pytest.raises(KeyError, match="no tier 'phones'"):
        kind(tier="phones").dumps(SENTENCE)


def unsaid(*words, after):
    return tuple(Absent(word, after, 0.01) for word in words)


def test_words_that_were_not_said_stay_in_the_text():
    said = spoken("It rained. We were wet * yes.").tiers
    absent = (*unsaid("very", after=0), *unsaid("hard.", after=2), *unsaid("So", "it", after=2))
    alignment = Alignment("u", 60.0, said, absent=(*absent, *unsaid("and", "cold,", after=5)))
    text = "very It rained. hard. So it We were wet and cold, yes."
    assert [cue.text.replace("\n", " ") for cue in make_cues(alignment, "words", Layout())] == [text]
    srt = SRTFormat(reading_speed=0).dumps(alignment)
    assert "00:00:00,000 --> 00:00:01,750" in srt, "they take no time"
    assert not SRTFormat().notes(alignment)
    assert "hard" not in SRTFormat(unsaid=False).dumps(alignment)
    assert "hard" not in SRTFormat(level="word").dumps(alignment)
    ass = ASSFormat(max_chars=80).dumps(alignment)
    assert r"very {\k25}It {\k25}rained. hard. So it {\k25}We" in ass


def test_a_sentence_that_was_not_said_is_in_a_cue_of_its_neighbours():
    words = [Segment(w, i / 4, (i + 1) / 4) for i, w in enumerate(["No.", "Yes."])]
    tier = Tier("words", (words[0], replace(words[1], start=9.0, end=9.5)))
    run = unsaid(
        *["This", "is", "a", "whole", "sentence", "that", "nobody", "has", "said", "at", "all."], after=1
    )
    found = make_cues(Alignment("u", 60.0, (tier,), absent=run), "words", Layout(reading_speed=0))
    assert [" ".join(cue.text.split()) for cue in found] == [
        "No. This is a whole sentence that nobody has said at all.",
        "Yes.",
    ]
    narrow = Layout(max_chars=14, max_lines=4)
    found = make_cues(Alignment("u", 60.0, (tier,), absent=run), "words", narrow)
    assert " ".join(" ".join(cue.text for cue in found).split()).count("nobody") == 1
    assert all(cue.words for cue in found), "no cue has unsaid words alone"


def test_paragraphs_that_nobody_reads_are_not_shown_and_that_is_said():
    run = unsaid(*(f"w{i}" for i in range(100)), after=1)
    alignment = Alignment("u", 60.0, spoken("So it is.").tiers, absent=run)
    assert SRTFormat().dumps(alignment).count("w") == 0
    assert list(SRTFormat().notes(alignment)) == [
        "not in the subtitles, for it was not said and fits into no cue: 'w0 ... w99'"
    ]


def test_speech_that_is_not_in_the_text_is_not_shown_unless_that_is_asked_for():
    alignment = spoken("So * it is.")
    assert SRTFormat().dumps(alignment).splitlines()[2] == "So it is."
    assert SRTFormat(star="[...]").dumps(alignment).splitlines()[2] == "So [...] it is."
    assert VTTFormat(level="word").dumps(alignment).count("-->") == 3


@pytest.mark.parametrize("kind", [SRTFormat, VTTFormat, ASSFormat, TTMLFormat])
def test_an_unknown_option_is_named_with_those_there_are(kind):
    with pytest.raises(
        OptionError, match=r"no option 'levle'\. Did you mean 'level'.*It takes: .*tier, cues, level"
    ):
        kind(levle="word")
    with pytest.raises(ValueError, match="max_chars of subtitles is a number; got 'many'"):
        kind(max_chars="many")
    with pytest.raises(ValueError, match="unsaid, true or false"):
        kind(unsaid="no")
