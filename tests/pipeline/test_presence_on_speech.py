"""Words that were not said, in real recordings with corrupted transcripts, by the English pack."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.presence import KINDS, Found, loaded, measure, recordings, rows
from isotone import audio, formats
from isotone.model import Model
from isotone.pipeline import Pipeline
from tests.paths import DATA
from tests.tiny_models import isotone

LJSPEECH, TIMIT = DATA / "ljspeech", DATA / "timit_sample"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not LJSPEECH.is_dir() or not TIMIT.is_dir(), reason="no sample data (ISOTONE_TEST_DATA)"),
]  # fmt: skip


@pytest.fixture(scope="module")
def model() -> Model:
    return Model.load("english")


@pytest.mark.parametrize("folder", [LJSPEECH, TIMIT])
def test_single_wrong_words_are_told_from_right_ones(model: Model, folder: Path) -> None:
    heard = recordings(folder, 24, 1)
    found = measure(Pipeline(model), folder.name, heard, loaded(heard, model.encoder.sample_rate))
    assert set(found) >= {"right", "added", "replaced", "removed", "wrong"}
    clean: Found = found["right"]
    assert np.mean([lost for _, lost, _ in clean.judged]) <= 0.01
    table = {kind: row for _, _, kind, *row in rows(folder.name, "clean", found)}
    assert min(float(table[KINDS[kind]][1]) for kind in ("added", "replaced")) >= 90
    assert "right" not in found["wrong"].verdicts
    assert clean.verdicts.count("right") >= 0.85 * len(clean.verdicts)


def test_a_clean_text_has_the_same_times_and_a_strange_word_none(model: Model) -> None:
    path = LJSPEECH / "LJ001-0010.flac"
    rows = (line.split("|")[:2] for line in (LJSPEECH / "metadata.csv").read_text("utf-8").splitlines())
    text = dict(rows)[path.stem]
    samples, judging, plain = audio.load(path, 16_000), Pipeline(model), Pipeline(model, presence=False)
    one, other = (p.align("a", samples, p.encode(text)).alignment for p in (judging, plain))
    textgrid = formats.build("textgrid")
    assert one.verdict == "right"
    assert textgrid.dumps(one) == textgrid.dumps(other)
    assert other.verdict == ""
    first, *rest = text.split()
    found = judging.align("a", samples, judging.encode(" ".join([first, "hippopotamus", *rest]))).alignment
    assert [word.label for word in found.absent] == ["hippopotamus"]
    assert found.verdict == "partly"
    assert found.tier("words").labels == one.tier("words").labels
    assert judging.align("a", samples, judging.encode(text), judged=False).alignment.verdict == ""


def test_strict_ends_with_2_where_a_text_is_partly_wrong(tmp_path: Path) -> None:
    path = LJSPEECH / "LJ001-0010.flac"
    rows = (line.split("|")[:2] for line in (LJSPEECH / "metadata.csv").read_text("utf-8").splitlines())
    first, *rest = dict(rows)[path.stem].split()
    (tmp_path / "a.txt").write_text(" ".join([first, "hippopotamus", *rest]))
    command = ("align", path, tmp_path / "a.txt", "--format", "json", "--strict")
    result = isotone(*command, "--out", tmp_path / "out", code=2)
    assert "the text is partly not what is said in 1" in result.stderr
    assert "hippopotamus" in (tmp_path / "out" / "warnings.jsonl").read_text()
    (file,) = (tmp_path / "out").glob("*.json")
    assert json.loads(file.read_text())["absent"][0]["text"] == "hippopotamus"
    isotone(*command, "--no-presence", "--out", tmp_path / "all")
