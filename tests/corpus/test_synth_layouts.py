"""Synthetic corpora in the files of LibriSpeech and AMI, read by the classes of these corpora."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import soundfile

pytest.importorskip("espeakng_loader", reason="espeak-ng is not installed: isotone[synth]")

from typer.testing import CliRunner

from isotone import corpora
from isotone.cli import app
from isotone.corpus.ami import AMICorpus, split_of
from isotone.corpus.layouts import AMILayout
from isotone.corpus.librispeech import LibriSpeechCorpus
from isotone.corpus.synth import generate
from isotone.corpus.voices import speakers
from tests.corpus.synthetic import SMALL, marks, recordings


@pytest.fixture(scope="module")
def root(synth_root):
    return synth_root


@pytest.fixture(scope="module")
def spoken():
    """Return the names of the speakers of SMALL with seed 5, by split."""
    train, test = speakers(SMALL["train_speakers"], SMALL["test_speakers"], 5)
    return {
        "train": [s.name for s in train],
        "dev": [s.name for s in test[1::2]],
        "test": [s.name for s in test[::2]],
    }


def test_librispeech_layout(root, tmp_path, spoken):
    made = generate(tmp_path / "c", layout="librispeech", seed=5, **SMALL)
    corpus = LibriSpeechCorpus(made)
    rows = {split: corpus.load(split) for split in ("train-100", "dev-clean", "test-clean")}
    assert corpus.skipped == []
    assert {split: len(set(data["speaker"])) for split, data in rows.items()} == {
        "train-100": len(spoken["train"]), "dev-clean": len(spoken["dev"]), "test-clean": len(spoken["test"]),
    }  # fmt: skip
    # the same recordings and words as in the files of TIMIT
    timit = {p: soundfile.read(p, dtype="int16")[0].tobytes() for p in recordings(root, "TRAIN")}
    words = {timit[p]: " ".join(w for _, _, w in marks(p.with_suffix(".WRD"))).upper() for p in timit}
    found = {soundfile.read(r["audio"], dtype="int16")[0].tobytes(): r["text"] for r in rows["train-100"]}
    assert found == words
    for row in rows["train-100"]:
        assert re.fullmatch(r"\d+-\d+-\d{4}", row["id"])
        assert re.fullmatch(r"[A-Z' ]+", row["text"])
        assert Path(row["audio"]).name == f"{row['id']}.flac"
        assert Path(row["audio"]).parts[-5:-3] == ("LibriSpeech", "train-clean-100")


@pytest.fixture(scope="module")
def ami(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AMILayout, "_MEETING_S", 20)
        return AMICorpus(generate(tmp_path_factory.mktemp("ami") / "c", layout="ami", seed=5, **SMALL))


@pytest.fixture(scope="module")
def turns(ami):
    """Return (start, end, agent, channel) of the utterances of train in order, by meeting."""
    found = {}
    for row in ami.load("train"):
        meeting, agent = row["id"].split("_")[:2]
        found.setdefault(meeting, []).append((row["start"], row["end"], agent, Path(row["audio"]).stem[-1]))
    return {meeting: sorted(rows) for meeting, rows in found.items()}


def test_ami_layout(ami, spoken):
    for split, side in (("train", "train"), ("dev", "dev"), ("eval", "test")):
        assert set(ami.load(split)["speaker"]) == set(spoken[side])
        assert ami.skipped == []


def test_segments_of_ami_are_the_recordings_of_timit(root, ami):
    timit = {}
    for path in recordings(root, "TRAIN"):
        words = marks(path.with_suffix(".WRD"))
        timit[path.parent.name, " ".join(w for _, _, w in words)] = path, words
    rows = ami.load("train")
    assert len(rows) == len(timit)
    for row in rows:
        path, words = timit.pop((row["speaker"], row["text"]))
        original = soundfile.read(path, dtype="int16")[0]
        at = round(row["start"] * 16000)
        samples = soundfile.read(row["audio"], start=at - 8, stop=at + len(original) + 8, dtype="int16")[0]
        assert any(np.array_equal(samples[i : i + len(original)], original) for i in range(17))
        assert [w for _, _, w in words] == row["words"]["label"]
        for side, column in enumerate(("start", "end")):
            exact = np.array([w[side] for w in words]) / 16000
            np.testing.assert_allclose(row["words"][column], exact, atol=1.1e-3)
    assert not timit


def test_speakers_in_a_meeting_interrupt_each_other_and_never_themselves(turns):
    for meeting, rows in turns.items():
        assert {split_of(meeting)} == {"train"}
        assert any(b[0] < a[1] for a, b in pairwise(rows)), meeting
        for agent in {agent for *_, agent, _ in rows}:
            assert all(b[0] >= a[1] for a, b in pairwise(row for row in rows if row[2] == agent))


def test_every_speaker_has_a_headset_whose_number_is_in_meetings_xml_alone(turns):
    for rows in turns.values():
        assert len({agent for *_, agent, _ in rows}) == len({channel for *_, channel in rows}) > 1
    assert {"ES2002a", "ES2002b"} <= set(turns)
    assert ("A", "0") in {row[2:] for row in turns["ES2002a"]}
    assert ("A", "0") not in {row[2:] for row in turns["ES2002b"]}


def test_the_command_writes_every_layout(tmp_path):
    for layout, file in (("librispeech", "*.trans.txt"), ("ami", "*.words.xml"), ("timit", "*.PHN")):
        options = ["--layout", layout, "--hours", "0.001", "--test-hours", "0.001"]
        done = CliRunner().invoke(app, ["synth", str(tmp_path / layout), *options])
        assert done.exit_code == 0, done.output
        assert list((tmp_path / layout).rglob(file))


def test_the_corpus_plugin_has_every_layout(tmp_path):
    corpus = corpora.build("synth", root=tmp_path, layout="ami", seed=5, **SMALL)
    rows = corpus.load("test")
    assert corpus.counts["words"] == sum(len(r["words"]["label"]) for r in rows)
    assert corpus.skipped == []
    with pytest.raises(ValueError, match="no split 'train-100'"):
        corpus.load("train-100")
    with pytest.raises(ValueError, match="no corpus layout 'buckeye'"):
        corpora.build("synth", layout="buckeye")
