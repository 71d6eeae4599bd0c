"""Sequences of spoken digits: their words, times and recordings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone import corpora
from isotone.corpus.digit_recordings import (
    HELD_OUT,
    SAMPLE_RATE,
    WORDS,
    cut_ends,
    find_recordings,
    join_words,
)
from isotone.corpus.digits import DigitsCorpus
from isotone.corpus.manifest import prepare
from tests.corpus.miniatures import speak_digits
from tests.paths import DATA

FEW = {"train": 12, "dev": 3, "test": 5}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return speak_digits(tmp_path_factory.mktemp("digits") / "fsdd")


def load(corpus: DigitsCorpus, split: str) -> Iterator[tuple[dict, np.ndarray]]:
    for row in corpus.load(split):
        yield row, soundfile.read(row["audio"])[0]


def source(root: Path, row: dict, label: str, heard: np.ndarray) -> int:
    """Return the number of the only recording that matches the samples up to noise."""
    found = []
    for path in (root / "recordings").glob(f"{WORDS.index(label)}_{row['speaker']}_*.wav"):
        word = np.trim_zeros(soundfile.read(path)[0])
        fits = 0 <= len(heard) - len(word) < 80  # to whole frames of 10 ms
        if fits and np.abs(word - heard[: len(word)]).max() < 0.06:
            found.append(int(path.stem.rpartition("_")[2]))
    assert len(found) == 1, (row["id"], label)
    return found[0]


def spans_of(row: dict) -> np.ndarray:
    """Return first samples and ends ``(words, 2)``, which word times fit exactly."""
    edges = np.array([row["words"]["start"], row["words"]["end"]]).T * SAMPLE_RATE
    np.testing.assert_allclose(edges, edges.round(), atol=1e-4)
    return edges.round().astype(int)


def test_words_are_at_their_times_with_noise_between(root: Path, tmp_path: Path) -> None:
    corpus = corpora.build("digits", root=root, cache=tmp_path, length=[2, 4], **FEW)
    pauses: list[float] = []
    for split, count in FEW.items():
        rows = list(load(corpus, split))
        assert len(rows) == count
        assert {row["speaker"] for row, _ in rows} == {"ann", "bob"}
        for row, samples in rows:
            labels, spans = row["words"]["label"], spans_of(row)
            assert row["text"] == " ".join(labels)
            assert 2 <= len(labels) <= 4
            assert row["end"] == len(samples) / SAMPLE_RATE
            between = np.ones(len(samples), bool)
            for label, (a, b) in zip(labels, spans):
                between[a:b] = False
                source(root, row, label, samples[a:b])  # raises unless one recording fits
            # low noise, never digital silence for long
            assert np.abs(samples[between]).max(initial=0) < 0.06
            assert between.sum() < 100 or samples[between].std() > 1e-3
            starts, ends = [*spans[:, 0], len(samples)], [0, *spans[:, 1]]
            pauses += [(a - b) / SAMPLE_RATE for a, b in zip(starts, ends)]
        assert corpus.skipped == []
    assert 0 <= min(pauses) < 0.05
    assert 0.4 < max(pauses) <= 0.5


def test_no_recording_is_in_two_splits(root: Path, tmp_path: Path) -> None:
    corpus = corpora.build("digits", root=root, cache=tmp_path, length=[2, 4], **FEW)
    for split, count in FEW.items():
        used = {
            (row["speaker"], label, source(root, row, label, samples[a:b]))
            for row, samples in load(corpus, split)
            for label, (a, b) in zip(row["words"]["label"], spans_of(row))
        }
        assert {number for *_, number in used} <= set(HELD_OUT.get(split, range(10, 12)))
        assert len(used) > count  # most are used once


def test_recordings_are_used_about_equally_often(root: Path, tmp_path: Path) -> None:
    corpus = DigitsCorpus(root, cache=tmp_path, length=[5, 5], train=24, dev=1, test=1)
    said: dict[tuple[str, str, int], int] = {}
    for row, samples in load(corpus, "train"):
        for label, a, b in zip(*(row["words"][k] for k in ("label", "start", "end"))):
            key = (
                row["speaker"],
                label,
                source(root, row, label, samples[round(a * SAMPLE_RATE) : round(b * SAMPLE_RATE)]),
            )
            said[key] = said.get(key, 0) + 1
    assert len(said) == 40  # 2 speakers, 10 digits, numbers 10 and 11
    assert set(said.values()) == {3}  # 24 sequences of 5


def contents(folder: Path) -> dict[str, bytes]:
    files = (p for p in folder.rglob("*") if p.is_file() and p.suffix != ".json")
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def test_sequences_depend_on_the_options_alone(root: Path, tmp_path: Path) -> None:
    first, again, other = (
        DigitsCorpus(root, cache=tmp_path / name, seed=seed, **FEW)
        for name, seed in (("a", 1), ("b", 1), ("a", 2))
    )
    for corpus in (first, again, other):
        corpus.load("test")
    assert first.root.name == again.root.name != other.root.name
    assert contents(first.root) == contents(again.root) != contents(other.root)
    # more sequences of one split do not change the others
    more = DigitsCorpus(root, cache=tmp_path / "a", seed=1, **FEW | {"train": 14})
    more.load("test")
    assert contents(more.root / "test") == contents(first.root / "test")


def test_they_are_made_once_and_again_when_the_data_set_changes(tmp_path: Path) -> None:
    root = speak_digits(tmp_path / "fsdd", indices=(0, 4, 5, 10))
    corpus = DigitsCorpus(root, cache=tmp_path / "cache", **FEW)
    manifest = corpus.root / "manifest.json"
    prepared = prepare(
        {"name": "digits", "root": root, "cache": tmp_path / "cache", **FEW}, "test", tmp_path / "m"
    )
    assert len(prepared.rows) == FEW["test"]
    made = manifest.stat().st_mtime_ns
    corpus.load("train")
    assert manifest.stat().st_mtime_ns == made
    manifest.write_text("{")
    corpus.load("train")
    made = manifest.stat().st_mtime_ns
    (root / "recordings" / "0_ann_0.wav").unlink()
    corpus.load("train")
    assert manifest.stat().st_mtime_ns != made
    assert not any("0_ann_0" in str(reason) for _, reason in corpus.skipped)


def test_what_cannot_be_used_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    root = speak_digits(tmp_path / "fsdd", indices=(0, 4, 5, 10))
    place = root / "recordings"
    (place / "seven_ann_1.wav").write_bytes((place / "7_ann_0.wav").read_bytes())
    (place / "README.md").write_text("not a recording")
    (place / "1_ann_40.wav").write_bytes(b"no audio")
    soundfile.write(place / "2_bob_3.wav", np.zeros(800), SAMPLE_RATE)
    for _ in range(2):  # when they are made, and when they are read again
        corpus = DigitsCorpus(root, cache=tmp_path / "cache", **FEW)
        corpus.load("train")
        said = dict(corpus.skipped)
        assert said.keys() == {"seven_ann_1.wav", "1_ann_40.wav"}
        assert "DIGIT_SPEAKER_NUMBER" in said["seven_ann_1.wav"]
        assert "not audio" in said["1_ann_40.wav"]
        corpus.load("test")
        assert corpus.skipped == [("2_bob_3.wav", "it is silent.")]
        corpus.load("all")
        assert len(corpus.skipped) == 3
    assert "seven_ann_1.wav is left out" in caplog.text
    assert [r.split for r in find_recordings(place)[0] if r.speaker == "ann" and r.digit == 3] == [
        "test", "test", "dev", "train",
    ]  # fmt: skip


def test_errors(root: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"No spoken digits in .*nowhere"):
        DigitsCorpus(tmp_path / "nowhere", cache=tmp_path).load("train")
    with pytest.raises(ValueError, match="no split 'tset'"):
        DigitsCorpus(root, cache=tmp_path, **FEW).load("tset")
    with pytest.raises(ValueError, match="fewest and the most"):
        DigitsCorpus(root, length=[4, 3])
    with pytest.raises(ValueError, match="fewest and the most"):
        DigitsCorpus(root, length=[0, 3])
    with pytest.raises(ValueError, match="adjoining from 0 to 1"):
        DigitsCorpus(root, adjoining=1.5)
    few = speak_digits(tmp_path / "few", indices=range(8))
    with pytest.raises(ValueError, match=r"no recordings for the split 'train'.*from 10 on"):
        DigitsCorpus(few, cache=tmp_path, **FEW).load("dev")


words = st.lists(st.integers(80, 400), min_size=1, max_size=5)


@given(words, st.data(), st.integers(0, 100))
@settings(deadline=None, max_examples=40)
def test_words_are_joined_with_the_pauses_between_them(
    sizes: list[int], data: st.DataObject, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    pauses = data.draw(st.lists(st.integers(0, 300), min_size=len(sizes) + 1, max_size=len(sizes) + 1))
    spoken = [(rng.choice([-1, 1], n) * 0.2).astype(np.float32) for n in sizes]
    samples, spans = join_words(spoken, pauses, 40.0, np.random.default_rng(seed))
    assert [b - a for a, b in spans] == sizes
    assert [a - b for (a, _), b in zip([*spans, (len(samples), 0)], [0, *(b for _, b in spans)])] == pauses
    for (a, b), word in zip(spans, spoken):
        np.testing.assert_allclose(samples[a:b], word, atol=0.2 * 10 ** (-40 / 20) * 6)


def test_the_noise_is_as_far_below_the_quietest_word_as_it_should_be() -> None:
    rng = np.random.default_rng(0)
    loud, quiet = (a * rng.choice([-1, 1], 400).astype(np.float32) for a in (0.5, 0.1))
    samples, _ = join_words([loud, quiet], [4000, 0, 0], 30.0, rng)
    assert samples[:4000].std() == pytest.approx(0.1 * 10 ** (-30 / 20), rel=0.1)
    with pytest.raises(ValueError, match="2 words have 3 pauses"):
        join_words([loud, quiet], [0, 0], 30.0, rng)


@pytest.mark.parametrize(("below_db", "kept"), [(20.0, (160, 960)), (36.0, (160, 960)), (38.0, (0, 1130))])
def test_what_is_quiet_is_cut_at_the_ends_alone(below_db: float, kept: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    word = rng.choice([-0.1, 0.1], 800).astype(np.float32)
    word[300:500] = 0  # the closure of a stop
    room = rng.choice([-1e-3, 1e-3], 330).astype(np.float32)
    whole = np.concatenate([room[:160], word, room[160:]])
    # 40 dB below the word, 37.3 below the root mean square of it all
    np.testing.assert_array_equal(cut_ends(whole, below_db), whole[slice(*kept)])
    assert len(cut_ends(np.zeros(500, np.float32), below_db)) == 0


@pytest.mark.skipif(not (DATA / "fsdd").is_dir(), reason=f"no spoken digits in {DATA}")
def test_the_data_set(tmp_path: Path) -> None:
    found, odd = find_recordings(DATA / "fsdd")
    assert odd == []
    by_split = {s: sum(r.split == s for r in found) for s in ("train", "dev", "test")}
    assert by_split["test"] == by_split["dev"] == len(found) // 10
    corpus = DigitsCorpus(DATA / "fsdd", cache=tmp_path, train=10, dev=5, test=10)
    rows = corpus.load("test")
    assert corpus.skipped == []
    lengths = [e - s for row in rows for s, e in zip(row["words"]["start"], row["words"]["end"])]
    assert 0.3 < np.median(lengths) < 0.6
