"""Formats of other tools: MFA's, WhisperX's, lhotse's, NeMo's, RTTM, ASS and TTML."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone import formats
from isotone.alignment import Alignment, Segment, Tier
from isotone.format import FormatError
from tests.format.strategies import alignments, close

WORDS = (Segment("So,", 0.25, 0.5, -0.5, 0.75), Segment("it", 0.5, 1.0), Segment("is.", 2.25, 2.5))
ONE = Alignment("u 1", 4.0, (Tier("words", WORDS), Tier("phones", (Segment("s", 0.25, 0.375, None, 0.5),))))
TWO = Alignment(
    "u", 4.0,
    (
        Tier("Ann - words", WORDS), Tier("Ann - phones", (Segment("s", 0.25, 0.375),)),
        Tier("Bob - words", (Segment("mhm", 0.75, 1.25),)), Tier("Bob - phones", ()),
    ),
)  # fmt: skip


def written(name: str, alignment: Alignment, **options: object) -> str:
    return formats.build(name, **options).dumps(alignment)


def test_whisperx_has_whisperxs_keys() -> None:
    found = json.loads(written("whisperx", TWO, language="en"))
    assert list(found) == ["segments", "word_segments", "language"]
    assert [(s["speaker"], s["text"]) for s in found["segments"]] == [
        ("Ann", "So, it"), ("Bob", "mhm"), ("Ann", "is."),
    ]  # fmt: skip
    assert found["segments"][0]["words"][0] == {
        "word": "So,", "start": 0.25, "end": 0.5, "score": 0.75, "speaker": "Ann",
    }  # fmt: skip
    assert found["word_segments"] == [w for s in found["segments"] for w in s["words"]]
    back = formats.build("whisperx").loads(written("whisperx", TWO), "u")
    assert [(t.name, t.labels) for t in back.tiers] == [
        ("Ann - words", ["So,", "it", "is."]), ("Bob - words", ["mhm"]),
    ]  # fmt: skip


def test_words_and_phones_survive_in_lhotse() -> None:
    rows = [json.loads(line) for line in written("lhotse", TWO, language="English").splitlines()]
    assert [(r["id"], r["recording_id"], r["speaker"], r["text"]) for r in rows] == [
        ("u-Ann", "u", "Ann", "So, it is."), ("u-Bob", "u", "Bob", "mhm"),
    ]  # fmt: skip
    assert rows[0]["alignment"]["word"][0] == ["So,", 0.25, 0.25, 0.75]
    assert rows[0]["alignment"]["phone"] == [["s", 0.25, 0.125, None]]
    assert (rows[0]["start"], rows[0]["duration"]) == (0.25, 2.25)
    back = formats.build("lhotse").loads(written("lhotse", ONE), "u 1")
    assert back.tiers == tuple(
        Tier(t.name, tuple(Segment(s.label, s.start, s.end, None, s.confidence) for s in t))
        for t in ONE.tiers
    )


def test_the_montreal_forced_aligners_files() -> None:
    found = json.loads(written("mfa-json", TWO))
    assert (found["start"], found["end"], list(found["tiers"])) == (0, 4.0, [t.name for t in TWO.tiers])
    assert found["tiers"]["Bob - words"] == {"type": "interval", "entries": [[0.75, 1.25, "mhm"]]}
    table = written("mfa-csv", TWO).splitlines()
    assert table[:2] == ["Begin,End,Label,Type,Speaker", '0.25,0.5,"So,",words,Ann']
    for name in ("mfa-json", "mfa-csv"):
        back = formats.build(name).loads(written(name, TWO), "u")
        spoken = [(t.name, t.labels) for t in TWO.tiers if t.segments]
        assert [(t.name, t.labels) for t in back.tiers if t.segments] == spoken


def test_lines_of_nemo_and_rttm() -> None:
    spaced = Alignment("u", 1.0, (Tier("words", (Segment("New York", 0.25, 0.50005, -1.0),)),))
    assert written("nemo-ctm", spaced) == "u 1 0.2500 0.2500 New<space>York\n"
    assert formats.build("nemo-ctm").loads(written("nemo-ctm", spaced), "u").tiers[0].labels == ["New York"]
    assert written("rttm", TWO).splitlines() == [
        "SPEAKER u 1 0.250 0.750 <NA> <NA> Ann <NA> <NA>",
        "SPEAKER u 1 0.750 0.500 <NA> <NA> Bob <NA> <NA>",
        "SPEAKER u 1 2.250 0.250 <NA> <NA> Ann <NA> <NA>",
    ]
    assert written("rttm", ONE, max_gap_s=2.0) == "SPEAKER u_1 1 0.250 2.250 <NA> <NA> speech <NA> <NA>\n"
    with pytest.raises(ValueError, match="max_gap_s of 0 s or more"):
        formats.build("rttm", max_gap_s=-1)


def test_words_of_speakers_are_merged_where_a_format_has_one_tier() -> None:
    starts = [float(line.split()[2]) for line in written("ctm", TWO).splitlines()]
    assert starts == sorted(starts)
    assert len(starts) == 4
    with pytest.raises(ValueError, match=r"overlap .* cannot be read as one tier 'words'"):
        written("audacity", TWO)
    turns = (Tier("A - words", WORDS[:1]), Tier("B - words", WORDS[1:]))
    assert written("audacity", Alignment("u", 4.0, turns)).count("\n") == 3


@given(alignments(names=("words",), silence=True))
@settings(max_examples=25, deadline=None)
def test_karaoke_lasts_as_long_as_its_lines(alignment: Alignment) -> None:
    for line in written("ass", alignment, reading_speed=0).split("[Events]\n")[1].split("\n")[1:-1]:
        start, end = (
            sum(float(part) * unit for part, unit in zip(clock.split(":"), (3600, 60, 1)))
            for clock in re.findall(r"\d:\d\d:\d\d\.\d\d", line)[:2]
        )
        total = sum(int(k) for k in re.findall(r"\{\\k(\d+)\}", line))
        assert total / 100 == pytest.approx(end - start, abs=0.011)


@given(alignments(names=("words",), silence=True))
@settings(max_examples=25, deadline=None)
def test_spans_of_ttml_count_from_their_paragraph(alignment: Alignment) -> None:
    root = ElementTree.fromstring(written("ttml", alignment, reading_speed=0, level="word").encode())
    space = "{http://www.w3.org/ns/ttml}"
    for p in root.iter(f"{space}p"):
        (span,) = p.iter(f"{space}span")
        assert span.get("begin") == "00:00:00.000"
        length = float(span.get("end", "")[6:]) + 60 * int(span.get("end", "")[3:5])
        times = [float(p.get(k, "")[6:]) + 60 * int(p.get(k, "")[3:5]) for k in ("begin", "end")]
        assert length == pytest.approx(times[1] - times[0], abs=1e-6)


LABELS = st.text("abc.,?'\u00e9\u65e5", min_size=1, max_size=5)


@pytest.mark.parametrize("name", ["mfa-json", "mfa-csv", "lhotse", "whisperx", "nemo-ctm"])
@given(alignment=alignments(labels=LABELS, empty=False))
@settings(max_examples=15, deadline=None)
def test_what_is_written_is_read(name: str, alignment: Alignment) -> None:
    back = formats.build(name).loads(written(name, alignment), "utt")
    for tier in back.tiers:
        expected = alignment.tier(tier.name).segments
        assert tier.labels == [s.label for s in expected]
        close(tier.segments, expected, 0.002)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("mfa-json", '{"a": 1}', "other JSON"),
        (
            "mfa-json",
            '{"tiers": {"words": {"entries": [[0, 1]]}}}',
            r"tier 'words', entry 1: expected \[start",
        ),
        (
            "mfa-json",
            '{"tiers": {"w": {"entries": [[0, 2, "a"], [1, 2, "b"]]}}}',
            "entry 2: expected 'b' to start",
        ),
        ("mfa-csv", "a,b\n", "expected the header"),
        ("mfa-csv", "Begin,End,Label,Type,Speaker\n0,x,a,words,A\n", "line 2: expected an end"),
        ("whisperx", "[]", "an object with 'segments'"),
        ("whisperx", '{"segments": [{"words": [{"start": 1}]}]}', "segment 1: expected words with 'word'"),
        (
            "whisperx",
            '{"segments": [{"words": [{"word": "a", "start": "1"}]}]}',
            "'start', a number of 0 or more",
        ),
        ("lhotse", '{"id": "a"}', "line 1: expected a supervision"),
        ("lhotse", '{"recording_id": "a", "alignment": {"word": [["a", 1]]}}', r"expected \[symbol, start"),
        ("lhotse", '{"recording_id": "a"}\n{"recording_id": "b"}', "one recording, or of 'u'; got 2"),
    ],
)
def test_what_is_not_of_a_format_is_refused(name: str, text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        formats.build(name).loads(text, "u")


READ = ["elan", "lhotse", "mfa-csv", "mfa-json", "nemo-ctm", "whisperx"]
PIECES = [
    "",
    '"',
    "[",
    "{",
    "null",
    "-1",
    "1e999",
    "NaN",
    "9" * 400,
    ",",
    "<",
    "\n",
    "\0",
    "\ud800",
    '"a"',
    "[[[1]]]",
]


@pytest.mark.parametrize("name", READ)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_damaged_files_are_read_or_refused(name: str, data: st.DataObject) -> None:
    text = written(name, TWO)
    for _ in range(data.draw(st.integers(1, 3))):
        start, end = sorted(data.draw(st.integers(0, len(text))) for _ in range(2))
        end = data.draw(st.sampled_from([end, start, min(len(text), start + 1)]))
        text = text[:start] + data.draw(st.sampled_from([*PIECES, text[start:end] * 2])) + text[end:]
    try:
        found = formats.build(name).loads(text, "u")
    except FormatError:
        return
    assert isinstance(found, Alignment)


def test_words_of_whisperx_that_overlap_are_cut() -> None:
    words = [
        {"word": "so", "start": 0.1, "end": 0.5},
        {"word": "is", "start": 0.9, "end": 1.2},
        {"word": "it", "start": 0.45, "end": 0.93},
    ]
    found = formats.build("whisperx").loads(json.dumps({"segments": [{"words": words}]}), "u").tier("words")
    assert [(s.label, s.start, s.end) for s in found] == [
        ("so", 0.1, 0.45),
        ("it", 0.45, 0.9),
        ("is", 0.9, 1.2),
    ]
