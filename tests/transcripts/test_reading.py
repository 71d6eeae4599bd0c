"""Transcripts of every kind are read as the passages that they hold."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isotone import formats
from isotone.alignment import Alignment, Segment, Tier
from isotone.transcripts import Passage, TranscriptError, documents, open_source, subtitles
from isotone.transcripts.reading import MANY, TIMED
from tests.paths import ROOT

FIXTURES = ROOT / "tests" / "fixtures" / "transcripts"
TALK = Path("talk.wav")
SAID = [("She had your dark suit.", 0.5, 2.0, "Ann"), ("Don't ask me to carry it.", 2.4, 3.6, "Bob")]

#: Fixtures with a passage per utterance, and those with one per word; and if they know the speakers.
UTTERANCES = {
    "whisper.json": False, "whisper.srt": False, "whisper.vtt": False, "whisper.tsv": False, "srt.srt": False,
    "webvtt.vtt": True, "lhotse.jsonl": True, "lhotse.jsonl.gz": True, "pympi.eaf": True, "pympi.TextGrid": True,
    "praatio.TextGrid": True, "whisper_cpp.json": False, "whisperx.json": True, "faster_whisper.json": False,
    "nemo.jsonl": True, "sclite.stm": True, "kaldi": True, "aegisub.ass": True, "youtube.sbv": False, "chat.cha": True,
}  # fmt: skip
WORDS = ["sclite.ctm", "mfa.json", "mfa.csv"]
OTHERS = ["transformers.json", "espnet", "w3c.ttml", "README.md"]


def read(name: str) -> list[Passage]:
    return open_source(FIXTURES / name).of(TALK)


def test_every_fixture_is_tested() -> None:
    assert {p.name for p in FIXTURES.iterdir()} == {*UTTERANCES, *WORDS, *OTHERS}


@pytest.mark.parametrize("name", UTTERANCES)
def test_utterances(name: str) -> None:
    found = sorted(read(name), key=lambda p: p.start or 0.0)
    expected = [(t, a, b, s if UTTERANCES[name] else None) for t, a, b, s in SAID]
    assert [(p.text.strip(), p.start, p.end, p.speaker) for p in found] == expected
    assert all(p.where for p in found)


@pytest.mark.parametrize("name", WORDS)
def test_words(name: str) -> None:
    found = read(name)
    for text, start, end, speaker in SAID:
        own = [p for p in found if p.speaker == speaker]
        assert [p.text for p in own] == text.split()
        assert own[0].start == pytest.approx(start, abs=0.01)
        assert own[-1].end == pytest.approx(end, abs=0.01)


def test_what_a_source_leaves_out_stays_unknown() -> None:
    first, second = read("transformers.json")
    assert (first.start, first.end, second.start, second.end) == (0.5, 2.0, 2.4, None)
    (espnet,) = read("espnet")
    assert (espnet.text, espnet.start, espnet.speaker) == (SAID[0][0], None, "Ann")
    first, second = read("w3c.ttml")
    assert (first.text, first.start, first.end) == ("She\nhad your dark suit.", 0.5, 2.0)
    (plain,) = read("README.md")
    assert (plain.start, plain.end, plain.speaker) == (None, None, None)


def test_a_command_of_a_data_folder_is_not_run(tmp_path: Path) -> None:
    for name, content in (("text", "a so\n"), ("wav.scp", f"a touch {tmp_path / 'ran'} |\n")):
        (tmp_path / name).write_text(content)
    assert open_source(tmp_path).of(Path("a.wav"))[0].recordings == ("a",)
    assert not (tmp_path / "ran").exists()


def test_a_data_folder_has_the_encodings_of_other_transcripts(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes("a café\n".encode("cp1252"))
    (tmp_path / "utt2spk").write_bytes("a Zoë\n".encode("utf-16"))
    (tmp_path / "wav.scp").write_text("a a.wav\n")
    source = open_source(tmp_path)
    (found,) = source.of(Path("a.wav"))
    assert (found.text, found.speaker) == ("café", "Zoë")
    assert source.warning.startswith("text is not UTF-8, and is read as Windows-1252")
    (tmp_path / "text").write_bytes(b"a so\n\x81\xfe\x00\n")
    os.utime(tmp_path / "text", ns=(1, 1))
    with pytest.raises(TranscriptError, match="text, line 2: expected UTF-8"):
        open_source(tmp_path)


def test_rolling_captions_are_read_once() -> None:
    text = (
        "WEBVTT\nKind: captions\n\n00:00:00.080 --> 00:00:02.000 align:start position:0%\n \n"
        "she<00:00:00.500><c> had</c>\n\n00:00:02.000 --> 00:00:02.010\nshe had\n \n\n"
        "00:00:02.010 --> 00:00:04.000\nshe had\nyour<00:00:02.500><c> suit</c>\n\n"
    )
    found = " ".join(subtitles._TAG.sub("", p.text) for p in subtitles.vtt(text))
    assert found.split() == ["she", "had", "your", "suit"]


def test_line_separators_of_unicode_end_no_line(tmp_path: Path) -> None:
    said = "so\u2028it\x85is"
    (tmp_path / "a.tsv").write_text(f"start\tend\ttext\n0\t500\t{said}\n", encoding="utf-8")
    ass = f"[Events]\nFormat: Start, End, Text\nDialogue: 0:00:00.00,0:00:00.50,{said}\n"
    (tmp_path / "a.ass").write_text(ass, encoding="utf-8")
    (tmp_path / "a.srt").write_text(f"1\n00:00:00,000 --> 00:00:00,500\n{said}\n", encoding="utf-8")
    for name in ("a.tsv", "a.ass", "a.srt"):
        (found,) = open_source(tmp_path / name).of(Path("a.wav"))
        assert (found.text.split(), found.end) == (["so", "it", "is"], 0.5), name


def test_subtitles_in_the_wild() -> None:
    text = (
        "\n1\n00:00:01,000 --> 00:00:02,000\none\n\nafter a blank line\n\n2\n"
        "0:00:03.5 --> 0:00:04.0 X1:40\n<i>two</i>\n3\n00:00:05,000 --> 00:00:04,000\n1984\n"
    )
    found = list(subtitles.srt(text))
    assert [p.text for p in found] == ["one\n\nafter a blank line", "<i>two</i>", "1984"]
    assert [(p.start, p.end) for p in found] == [(1.0, 2.0), (3.5, 4.0), (5.0, None)]
    assert [p.note for p in found[:2]] == ["", ""]
    assert "ends at 4 s, before its start at 5 s" in found[2].note
    voices = list(
        subtitles.vtt("WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ann &amp; Bob>so &lt;3\n<v.loud Eve>it\n")
    )
    assert [(p.speaker, p.text) for p in voices] == [("Ann & Bob", "so <3"), ("Eve", "it")]
    assert subtitles.clock("1:02:03,45", "") == 3723.45


def test_recordings_are_told_by_their_names(tmp_path: Path) -> None:
    rows = [("a/x.wav", "first"), ("b/x.wav", "second"), ("y.flac", "third"), ("y.flac", "more")]
    path = tmp_path / "manifest.jsonl"
    path.write_text(
        "".join(json.dumps({"audio_filepath": f, "text": t, "duration": 1}) + "\n" for f, t in rows)
    )
    source = open_source(path)
    assert [p.text for p in source.of(Path("/elsewhere/b/x.mp3"))] == ["second"]
    assert [p.text for p in source.of(Path("y.wav"))] == ["third", "more"]
    with pytest.raises(TranscriptError, match=r"transcripts of 3 recordings, from 'a/x.wav' on.*'z'"):
        source.of(Path("z.wav"))
    (tmp_path / "one.ctm").write_text("u1 1 0.0 0.5 so\n")
    assert [p.text for p in open_source(tmp_path / "one.ctm").of(Path("z.wav"))] == ["so"]
    with pytest.raises(TranscriptError, match="transcripts of 1 recordings"):
        open_source(tmp_path / "one.ctm").of(Path("z.wav"), only=False)


def test_a_recording_that_two_names_may_mean_is_an_error(tmp_path: Path) -> None:
    rows = [{"audio_filepath": f"/data/{folder}/rec.wav", "text": folder} for folder in "ab"]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = open_source(tmp_path / "m.jsonl")
    assert [p.text for p in source.of(Path("/other/b/rec.flac"))] == ["b"]
    assert [p.text for p in source.of(Path("/other/b/rec.snd"))] == ["b"]
    for only in (True, False):
        with pytest.raises(
            TranscriptError,
            match=r"m.jsonl has '/data/a/rec.wav' and '/data/b/rec.wav', and /new/rec.wav may be either: put it into",
        ):
            source.of(Path("/new/rec.wav"), only)


def test_of_two_names_the_one_with_the_recordings_ending_counts(tmp_path: Path) -> None:
    rows = [{"recording_id": name, "text": name} for name in ("x", "x.flac", "x.wav", "x.01")]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = open_source(tmp_path / "m.jsonl")
    for name in ("x.flac", "x.wav", "x.01"):
        assert [p.text for p in source.of(Path(name))] == [name]
    with pytest.raises(TranscriptError, match=r"x\.mp3 may be either"):
        source.of(Path("x.mp3"))


def test_only_endings_of_audio_are_endings_of_names(tmp_path: Path) -> None:
    words = "".join(f"{id} 1 0.0 0.5 {id[-1]}\n" for id in ("lecture.01", "lecture.02", "talk.wav"))
    (tmp_path / "a.ctm").write_text(words)
    source = open_source(tmp_path / "a.ctm")
    assert [p.text for p in source.of(Path("lecture.02.wav"))] == ["2"]
    assert [p.text for p in source.of(Path("talk.flac"))] == ["v"]
    with pytest.raises(TranscriptError, match="none is named 'lecture'"):
        source.of(Path("lecture.wav"))


def test_the_first_of_alternatives_counts(tmp_path: Path) -> None:
    rows = ("<ALT_BEGIN>", "um", "<ALT>", "uh", "<ALT_END>", "<b>", "<b>old", "yes")
    (tmp_path / "a.ctm").write_text("".join(f"a 1 {i}.0 0.5 {word}\n" for i, word in enumerate(rows)))
    found = open_source(tmp_path / "a.ctm").of(Path("a.wav"))
    assert [p.text for p in found] == ["um", "<b>old", "yes"]
    (tmp_path / "b.ctm").write_text(
        "a 1 * * <alt_begin>\na 1 0 1 um\na 1 * * <ALT>\na 1 0 1 uh\na 1 1 1 yes\n"
    )
    with pytest.raises(TranscriptError, match="line 3: expected <ALT_END> after this alternative"):
        open_source(tmp_path / "b.ctm")


def test_segments_of_kaldi_may_last_to_the_end(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a so it is\nb as you were\n")
    (tmp_path / "segments").write_text("a talk 0 1.5\nb talk 1.5 -1\n")
    found = open_source(tmp_path).of(Path("talk.wav"))
    assert [(p.start, p.end) for p in found] == [(0.0, 1.5), (1.5, None)]
    (tmp_path / "segments").write_text("a talk 0 -1.00\nb talk 1.5 -x\n")
    with pytest.raises(TranscriptError, match="line 2 of text: expected a time in seconds; got '-x'"):
        open_source(tmp_path)


def test_a_source_is_read_again_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("so")
    assert open_source(path) is open_source(path)
    path.write_text("it is")
    os.utime(path, ns=(1, 1))
    assert open_source(path).passages[0].text == "it is"


def test_tiers_of_utterances_come_before_words_and_phones(tmp_path: Path) -> None:
    def tiers(*names: str) -> list[Passage]:
        made = Alignment(
            "u", 2.0, tuple(Tier(n, (Segment("sil", 0, 0.5), Segment("so", 0.5, 1))) for n in names)
        )
        (tmp_path / "a.TextGrid").write_text(formats.build("textgrid").dumps(made) + "\n" * len(names))
        return list(open_source(tmp_path / "a.TextGrid").passages)

    assert [(p.text, p.speaker) for p in tiers("words", "phones")] == [("so", None)]
    assert [p.speaker for p in tiers("Ann - words", "Ann - phones", "Bob - words")] == ["Ann", "Bob"]
    assert [p.where for p in tiers("words", "utterances")] == ["tier 'utterances', interval 2"]
    assert [p.speaker for p in tiers("Ann", "Bob", "phones")] == ["Ann", "Bob"]


ROUND_TRIPS = {name: 0.0011 for name in formats.names() if name not in ("timit", "lrc")} | {"ass": 0.0051}


@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_what_is_written_is_read(name: str, tmp_path: Path) -> None:
    words = (Segment("so,", 0.25, 0.5), Segment("it", 0.5, 1.0), Segment("is.", 1.25, 1.5))
    alignment = Alignment("u", 4.0, (Tier("words", words), Tier("phones", (Segment("s", 0.25, 0.5),))))
    options = {"level": "word"} if name in ("srt", "vtt", "ass", "ttml") else {}
    if name == "rttm":
        pytest.skip("it holds no text")
    path = tmp_path / f"u{formats.build(name, **options).suffix}"
    path.write_text(formats.build(name, **options).dumps(alignment))
    found = open_source(path).of(Path("u.wav"))
    if name in ("whisperx", "lhotse"):  # a passage per segment
        assert [p.text for p in found] == ["so, it is."]
        words = (Segment("", 0.25, 1.5),)
    else:
        assert [p.text for p in found] == ["so,", "it", "is."]
    for passage, word in zip(found, words):
        assert passage.start == pytest.approx(word.start, abs=ROUND_TRIPS[name])
        assert passage.end == pytest.approx(word.end, abs=ROUND_TRIPS[name])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", '{"a": 1}', "the document: expected a transcript of Whisper"),
        ("a.json", "[1]", "item 1: expected a transcript"),
        (
            "a.json",
            '{"segments": [{"start": "x", "text": "so"}]}',
            r"segments\[0\]: expected a time in seconds",
        ),
        ("a.json", '{"chunks": [{"text": "so", "timestamp": 1}]}', r"chunks\[0\]: expected 'timestamp'"),
        ("a.json", '{"segments": [{"text": 5}]}', "expected a text; got 5"),
        ("a.json", "[" * 100_000, "nested too deeply"),
        ("a.json", "1" * 5000, "cannot be read"),
        ("a.jsonl", '{"text": "so"}\n{"text": ', "line 2: expected JSON"),
        ("a.srt", "1\n00:00:01 -> 2\n1\n00:00:xx --> 00:00:02\nso", "line 4: expected times such as"),
        ("a.srt", "hello", "no passages were found in it; expected SRT subtitles"),
        ("a.ctm", "u 1 0.5\n", "line 1: expected 'id channel start duration word"),
        ("a.stm", "u 1 Ann zero 2.0 so\n", "line 1: expected a time in seconds; got 'zero'"),
        ("a.tsv", "a\tb\n", "header of Whisper's TSV"),
        ("a.ass", "[Events]\nDialogue: 0,0:00:01.00\n", "expected Start, End and Text"),
        ("a.ttml", "<tt><p begin='soon'>so</p></tt>", "paragraph 1: expected a time such as"),
        ("a.ttml", "<!DOCTYPE tt [<!ENTITY a 'so'>]><tt><p>&a;</p></tt>", "without a document type"),
        ("a.xml", "<html/>", "expected TTML; got XML with <html>"),
        ("a.csv", "a,b\n", "expected the header"),
        ("a.TextGrid", "so", "expected"),
        ("a.srt.gz", b"\x1f\x8b\x08damaged", "is damaged"),
        ("a.rtf", "so", "RTF, a document with formatting"),
    ],
)
def test_what_cannot_be_read_is_an_error_that_names_the_place(
    tmp_path: Path, name: str, content: str | bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(TranscriptError, match=message) as error:
        open_source(tmp_path / name)
    assert str(tmp_path / name) in str(error.value)


def test_a_data_folder_that_lacks_a_segment_or_is_none(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="no data folder of Kaldi"):
        open_source(tmp_path)
    (tmp_path / "text").write_text("a so\n")
    (tmp_path / "segments").write_text("b talk 0 1\n")
    with pytest.raises(TranscriptError, match="expected 'a' in segments"):
        open_source(tmp_path)


def test_a_result_in_memory_is_read_like_its_file() -> None:
    found = json.loads((FIXTURES / "whisper.json").read_text())
    assert list(documents.of(found)) == read("whisper.json")
    (half,) = documents.of({"text": "so \ud83d"})
    assert half.text == "so \ufffd"


NAMES = sorted({*TIMED, *MANY, ".txt", ".jsonl", ".csv", ".xml"})
DATA = [p.read_bytes() for p in sorted(FIXTURES.iterdir()) if p.is_file()]
PIECES = [
    b"",
    b"\n",
    b"{",
    b"[",
    b'"',
    b"-1",
    b"1e999",
    b"NaN",
    b"null",
    b"-->",
    b"<p>",
    b"\xff",
    b"0",
    b"," * 9,
]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    data = draw(st.sampled_from(DATA))
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    for _ in range(draw(st.integers(0, 4))):
        start, end = sorted(draw(st.integers(0, len(data))) for _ in range(2))
        end = draw(st.sampled_from([end, start, min(len(data), start + 1)]))
        data = data[:start] + draw(st.sampled_from([*PIECES, data[start:end] * 2])) + data[end:]
    return data


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.one_of(damaged(), st.binary(max_size=60)), suffix=st.sampled_from(NAMES))
def test_any_bytes_give_passages_or_a_clear_error(tmp_path: Path, data: bytes, suffix: str) -> None:
    path = tmp_path / f"talk{suffix}"
    path.write_bytes(data)
    os.utime(path, ns=(hash(data), hash(data)))
    try:
        found = open_source(path).of(TALK)
    except TranscriptError:
        return
    for passage in found:
        passage.text.encode()
        assert passage.start is None or passage.start >= 0
        assert passage.start is None or passage.end is None or passage.end >= passage.start


TTML = '<tt xmlns="http://www.w3.org/ns/ttml" xmlns:ttm="http://www.w3.org/ns/ttml#metadata">{}</tt>'
AGENTS = (
    '<head><metadata><ttm:agent xml:id="a" type="person"><ttm:name type="alias">A.</ttm:name>'
    '<ttm:name type="full">Ann  Lee</ttm:name></ttm:agent><ttm:agent xml:id="b" type="person"/></metadata></head>'
)


def test_agents_of_ttml(tmp_path: Path) -> None:
    """The name of an agent counts, else its id; what holds a paragraph may have it, and spans may have their own."""
    body = (
        '<body ttm:agent="a"><div><p begin="1s" end="4s">so <span>it</span></p><p begin="5s" end="6s" ttm:agent="a b">'
        'is</p><p begin="7s" end="9s"><metadata><ttm:desc>x</ttm:desc></metadata>on '
        '<span ttm:agent="b" begin="1s" dur="0.5s">at</span> <span ttm:agent="b" begin="1.6s" end="2s">in</span>'
        '<span ttm:agent="c">if</span></p></div></body>'
    )
    path = tmp_path / "a.ttml"
    path.write_text(TTML.format(AGENTS + body))
    found = [(p.text, p.start, p.end, p.speaker) for p in open_source(path).passages]
    assert found == [
        ("so it", 1.0, 4.0, "Ann Lee"),
        ("is", 5.0, 6.0, "Ann Lee, b"),
        ("on", 7.0, 9.0, "Ann Lee"),
        ("at in", 8.0, 9.0, "b"),
        ("if", 7.0, 9.0, "c"),
    ]


def test_ttml_keeps_the_speakers_that_it_is_written_with(tmp_path: Path) -> None:
    names = ["Ann", 'Bob <"&> Ümit', "speaker1"]
    tiers = [Tier(f"{name} - words", (Segment(f"w{i}", i, i + 0.5),)) for i, name in enumerate(names)]
    path = tmp_path / "a.ttml"
    path.write_text(formats.build("ttml").dumps(Alignment("a", 4.0, tuple(tiers))), encoding="utf-8")
    assert [(p.text, p.speaker) for p in open_source(path).passages] == [
        (f"w{i}", name) for i, name in enumerate(names)
    ]
    alone = formats.build("ttml").dumps(Alignment("a", 4.0, (Tier("words", tiers[0].segments),)))
    assert "agent" not in alone
    assert "<head>" not in alone
