"""AMI's annotations: words in segments, the rules for texts, splits, headsets, and hostile or damaged XML."""

from __future__ import annotations

import re
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.corpus import reference
from isotone.corpus.ami import AMICorpus, split_of
from isotone.corpus.nxt import Turn, Words, parse, read_turns
from isotone.corpus.rows import CorpusError
from tests.corpus.miniatures import HEAD, TURNS, annotate, headset, write_nxt


@pytest.fixture
def root(tmp_path: Path) -> Path:
    headset(tmp_path / "amicorpus", "ES2002a", 0)
    headset(tmp_path / "amicorpus", "ES2002a", 1)
    annotate(tmp_path / "ami_public_manual_1.6.2", "ES2002a.A")
    return tmp_path


def test_texts_and_times(root: Path) -> None:
    corpus = AMICorpus(root)
    rows = corpus.load("train")
    assert rows["id"][:] == [
        "ES2002a_A_0000090_0000270",
        "ES2002a_A_0000390_0000500",
        "ES2002a_A_0000690_0000820",
    ]
    assert rows["text"][:] == ["Hi I'm Dav T_V", "Caf\u00e9 yes", "Right"]
    assert corpus.skipped == []
    first = reference(rows[0]).tier("words")
    assert first.labels == ["Hi", "I'm", "Dav", "T_V"]
    np.testing.assert_allclose(rows[0]["words"]["start"], [0.1, 0.4, 0.72, 1.2], atol=1e-9)
    np.testing.assert_allclose(rows[0]["words"]["end"], [0.4, 0.72, 1.0, 1.7], atol=1e-9)
    assert (rows[0]["start"], rows[0]["end"]) == (0.9, 2.7)
    assert rows[1]["words"]["label"] == []  # the time of one word is unknown
    assert (rows[2]["start"], rows[2]["end"]) == (6.9, 8.0)  # the recording ends
    assert rows[2]["words"]["end"] == [pytest.approx(1.1)]
    assert rows["speaker"][:] == ["ES2002a_A"] * 3
    assert corpus.counts == {
        "words": 7, "truncated_words": 1, "spelled_words": 1, "punctuation": 2, "other_items": 3,
        "segments_without_words": 1, "segments_without_word_times": 1,
    }  # fmt: skip


def test_truncated_words_can_be_left_out(root: Path) -> None:
    corpus = AMICorpus(root, truncated="drop")
    row = corpus.load("train")[0]
    assert row["text"] == "Hi I'm T_V"
    assert row["words"]["label"] == ["Hi", "I'm", "T_V"]
    assert corpus.counts["truncated_words"] == 1
    with pytest.raises(ValueError, match="to keep or to drop; got 'mark'"):
        AMICorpus(root, truncated="mark")  # type: ignore[arg-type]


def test_a_word_outside_of_its_segment_takes_the_times_away(root: Path) -> None:
    strange = [
        ("words0", "w", 'starttime="1.0" endtime="1.2"', "one"),
        ("words1", "w", 'starttime="6" endtime="7"', "two"),
    ]
    annotate(root / "ami_public_manual_1.6.2", "ES2002a.A", strange, [(0.9, 2.0, "words0", "words1")])
    corpus = AMICorpus(root)
    row = corpus.load("train")[0]
    assert row["text"] == "one two"
    assert row["words"]["label"] == []
    assert corpus.counts["segments_without_word_times"] == 1


def test_headsets_and_names_come_from_meetings_xml(root: Path) -> None:
    one = headset(root / "amicorpus", "ES2002a", 3, 6.0)
    body = (
        '<meeting observation="ES2002a"><speaker nxt_agent="A" channel="3" global_name="FEE005"/></meeting>'
    )
    write_nxt(root / "ami_public_manual_1.6.2" / "corpusResources" / "meetings.xml", body)
    annotate(root / "ami_public_manual_1.6.2", "ES2002a.B", turns=TURNS[:1])
    rows = AMICorpus(root).load("train")
    assert rows["speaker"][:] == ["FEE005", "FEE005", "ES2002a_B"]
    assert [Path(a).name[-5] for a in rows["audio"]] == ["3", "3", "1"]  # channel of B by its letter
    assert Path(rows[0]["audio"]) == one


def test_official_partition() -> None:
    # the list of the full-corpus-ASR partition: 18 meetings of dev and 16 of eval
    dev = [f"{s}{m}" for s in ("ES2011", "IS1008", "TS3004") for m in "abcd"]
    dev += ["IB4001", "IB4002", "IB4003", "IB4004", "IB4010", "IB4011"]
    test = [f"{s}{m}" for s in ("ES2004", "IS1009", "TS3003", "EN2002") for m in "abcd"]
    assert {split_of(m) for m in dev} == {"dev"}
    assert {split_of(m) for m in test} == {"eval"}
    others = [
        "ES2003a",
        "ES2014d",
        "TS3006b",
        "TS3007c",
        "IB4005",
        "EN2001e",
        "EN2009b",
        "IN1001",
        "IS1000a",
        "ES2016d",
    ]
    assert {split_of(m) for m in others} == {"train"}


def test_splits(root: Path) -> None:
    folder = root / "ami_public_manual_1.6.2"
    for meeting in ("ES2011c", "IB4010", "EN2002a"):
        headset(root / "amicorpus", meeting, 0)
        annotate(folder, f"{meeting}.A", turns=TURNS[:1])
    meetings = {
        split: {id.split("_")[0] for id in AMICorpus(root).load(split)["id"]}
        for split in ("train", "dev", "eval", "test", "all")
    }
    assert meetings["train"] == {"ES2002a"}
    assert meetings["dev"] == {"ES2011c", "IB4010"}
    assert meetings["eval"] == meetings["test"] == {"EN2002a"}
    assert meetings["all"] == {"ES2002a", "ES2011c", "IB4010", "EN2002a"}
    with pytest.raises(ValueError, match="no split 'valid'; it has train, dev, eval, test, all"):
        AMICorpus(root).load("valid")


def test_folders_are_found_or_named(root: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (root / "ami_public_manual_1.6.2").rename(elsewhere)
    with pytest.raises(FileNotFoundError, match=r"no annotations: .*ami_public_manual_1.6.2.zip"):
        AMICorpus(root).load("train")
    assert len(AMICorpus(root, annotations=elsewhere).load("train")) == 3
    assert len(AMICorpus(root / "amicorpus", annotations=elsewhere).load("train")) == 3
    with pytest.raises(FileNotFoundError, match=r"no recordings in .*Headset-0\.wav"):
        AMICorpus(elsewhere).load("train")
    with pytest.raises(FileNotFoundError, match=r"no folder .*nowhere"):
        AMICorpus(tmp_path / "nowhere").load("train")


def test_damage_is_left_out_and_named(root: Path) -> None:
    folder = root / "ami_public_manual_1.6.2"
    turns = [
        (float("nan"), 2.0, "words0", "words2"),
        (20.0, 21.0, "words0", "words2"),
        (0.9, 2.0, "words0", "words99"),
    ]
    annotate(folder, "ES2002a.B", turns=[*turns, (0.9, 1.7, "words2", "words2")])
    annotate(folder, "ES2002a.C")
    (folder / "words" / "ES2002a.C.words.xml").write_text("<nite:root>")
    headset(root / "amicorpus", "ES2002a", 2)
    annotate(folder, "ES2002b.A")
    annotate(folder, "ES2002c.A")
    (folder / "words" / "ES2002c.A.words.xml").unlink()
    headset(root / "amicorpus", "ES2002c", 0)
    corpus = AMICorpus(root)
    rows = corpus.load("train")
    assert rows["id"][3:] == ["ES2002a_B_0000090_0000170"]
    assert rows["text"][3] == "I'm"
    expected = [
        ("ES2002a_B, segment 1", "no audio lies from nan s"), ("ES2002a_B, segment 2", "it lasts 8.000 s"),
        ("ES2002a_B, segment 3", "no item 'ES2002a.B.words99'"), ("ES2002a.C", "not XML"),
        ("ES2002b.A", r"ES2002b.Headset-0.wav: does not exist"), ("ES2002c.A", "ES2002c.A.words.xml"),
    ]  # fmt: skip
    assert [id for id, _ in corpus.skipped] == [id for id, _ in expected]
    for (id, reason), (_, pattern) in zip(corpus.skipped, expected):
        assert re.search(pattern, reason), (id, reason)


def test_entity_bombs_do_nothing(tmp_path: Path) -> None:
    entities = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12))
    bomb = tmp_path / "bomb.xml"
    bomb.write_text(f'{HEAD}<!DOCTYPE x [<!ENTITY a0 "ha">{entities}]>\n<x>&a11;</x>')
    file = tmp_path / "file.xml"
    file.write_text(f'<!DOCTYPE x [<!ENTITY e SYSTEM "{tmp_path}/secret">]><x>&e;</x>')
    (tmp_path / "secret").write_text("secret")
    for path in (bomb, file):
        started = time.perf_counter()
        with pytest.raises(CorpusError, match="without a document type"):
            parse(path)
        assert time.perf_counter() - started < 2
    for content in (
        b"",
        b"<x>",
        b"\xff\xfe<",
        b'<?xml version="1.0" encoding="nonsense"?><x/>',
        b"<x>&e;</x>",
    ):
        file.write_bytes(content)
        with pytest.raises(CorpusError, match="not XML"):
            parse(file)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_segments_hold_the_items_between_two_ids(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Segments that partition a file have every item once, in order."""
    words = data.draw(st.lists(st.text("abc'<&\u00e9", min_size=1, max_size=4), min_size=1, max_size=12))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(words)), max_size=4)) | {len(words)})
    folder = tmp_path_factory.mktemp("nxt")
    escaped = [w.replace("&", "&amp;").replace("<", "&lt;") for w in words]
    turns = [(0.0, 1.0, f"words{a}", f"words{b - 1}") for a, b in zip([0, *cuts], cuts)]
    annotate(folder, "X.A", [(f"words{i}", "w", "", w) for i, w in enumerate(escaped)], turns)
    items = Words(folder / "words" / "X.A.words.xml")
    found = read_turns(folder / "segments" / "X.A.segments.xml")
    assert [i.text for turn in found for i in items.of(turn)] == words
    assert items.of(Turn(0.0, 1.0, ())) == []
