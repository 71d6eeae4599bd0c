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


def test_ami_layout(root, tmp_path, spoken, monkeypatch):
    monkeypatch.setattr(AMILayout, "_MEETING_S", 20)
    made = generate(tmp_path / "c", layout="ami", seed=5, **SMALL)
    corpus = AMICorpus(made)
    rows = {split: corpus.load(split) for split in ("train", "dev", "eval")}
    assert corpus.skipped == []
    for split, side in (("train", "train"), ("dev", "dev"), ("eval", "test")):
        assert set(rows[split]["speaker"]) == set(spoken[side])
    # segments are the recordings of the TIMIT files, with the same word times to a millisecond
    timit = {}
    for path in recordings(root, "TRAIN"):
        words = marks(path.with_suffix(".WRD"))
        timit[path.parent.name, " ".join(w for _, _, w in words)] = path, words
    assert len(rows["train"]) == len(timit)
    turns = {}
    for row in rows["train"]:
        path, words = timit.pop((row["speaker"], row["text"]))
        original = soundfile.read(path, dtype="int16")[0]
        at = round(row["start"] * 16000)
        samples = soundfile.read(row["audio"], start=at - 8, stop=at + len(original) + 8, dtype="int16")[0]
        assert any(np.array_equal(samples[i : i + len(original)], original) for i in range(17))
        assert [w for _, _, w in words] == row["words"]["label"]
        for side, column in enumerate(("start", "end")):
            exact = np.array([w[side] for w in words]) / 16000
            np.testing.assert_allclose(row["words"][column], exact, atol=1.1e-3)
        meeting, agent = row["id"].split("_")[:2]
        turns.setdefault(meeting, []).append((row["start"], row["end"], agent, Path(row["audio"]).stem[-1]))
    assert not timit
    for meeting, said in turns.items():
        said.sort()
        assert {split_of(meeting)} == {"train"}
        assert len({agent for *_, agent, _ in said}) == len({channel for *_, channel in said}) > 1
        assert any(b[0] < a[1] for a, b in pairwise(said)), (
            meeting
        )  # speakers interrupt each other, never themselves
        for agent in {turn[2] for turn in said}:
            assert all(b[0] >= a[1] for a, b in pairwise(t for t in said if t[2] == agent))
    assert {"ES2002a", "ES2002b"} <= set(turns)
    channels = {meeting: {t[2:] for t in said} for meeting, said in turns.items()}
    assert ("A", "0") in channels["ES2002a"]
    assert ("A", "0") not in channels["ES2002b"]  # the order of channels is in meetings.xml alone


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
