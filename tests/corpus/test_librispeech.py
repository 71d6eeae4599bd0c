"""LibriSpeech's tree: splits and unions, chapters in order, and skipped lines with their reasons."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest
import soundfile

from isotone.corpus import COLUMNS
from isotone.corpus.librispeech import PARTS, SPLITS, LibriSpeechCorpus
from isotone.registries import corpora
from isotone.training.config import load_recipe
from tests.corpus.miniatures import chapter
from tests.paths import DATA, RECIPES


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "LibriSpeech"
    chapter(root, "train-clean-100", "103-1240", {f"103-1240-{i:04d}": f"LINE {i}" for i in range(3)})
    chapter(root, "train-clean-100", "26-495", {"26-495-0000": "DON'T ASK"})
    chapter(root, "train-clean-100", "26-1240", {"26-1240-0000": "MORE"})
    chapter(root, "train-clean-360", "14-208", {"14-208-0000": "OTHER WORDS"})
    chapter(root, "train-other-500", "20-205", {"20-205-0000": "NOISY"})
    chapter(root, "test-other", "367-130", {"367-130-0000": "A TEST"})
    return root


def test_rows(root: Path) -> None:
    corpus = LibriSpeechCorpus(root)
    rows = corpus.load("train-100")
    # by number, not by the name of the folder
    assert rows["id"][:] == ["26-495-0000", "26-1240-0000", *(f"103-1240-{i:04d}" for i in range(3))]
    assert rows["text"][:] == ["DON'T ASK", "MORE", "LINE 0", "LINE 1", "LINE 2"]
    assert rows["speaker"][:] == ["26", "26", "103", "103", "103"]
    assert corpus.skipped == []
    assert tuple(rows[0]) == COLUMNS
    row = rows[4]
    assert (row["start"], row["end"]) == (0.0, 4002 / 16000)
    assert row["words"] == row["phones"] == {"label": [], "start": [], "end": []}
    assert Path(row["audio"]) == root / "train-clean-100/103/1240/103-1240-0002.flac"
    assert corpus.counts == {"words": 9, "words_with_other_characters": 3}  # the real corpus has no digits


def test_splits_are_unions_of_parts(root: Path) -> None:
    sizes = {
        "train-100": 5,
        "train-360": 1,
        "train-460": 6,
        "train-960": 7,
        "test-other": 1,
        "train-clean-100": 5,
    }
    for split, size in sizes.items():
        assert len(LibriSpeechCorpus(root).load(split)) == size
        assert len(LibriSpeechCorpus(root.parent).load(split)) == size  # the parent folder as root
    assert {p for parts in SPLITS.values() for p in parts} == set(PARTS)


def test_speakers_make_splits_of_whatever_parts_there_are(root: Path) -> None:
    corpus = LibriSpeechCorpus(root, test_speakers=[26, "367"])
    assert corpus.load("test")["id"][:] == ["26-495-0000", "26-1240-0000", "367-130-0000"]
    assert corpus.load("train")["speaker"][:] == ["103"] * 3 + ["14", "20"]
    assert len(corpus.load("train-100")) == 5  # the corpus's own splits are still there
    assert LibriSpeechCorpus(root, test_speakers=[]).load("train")["speaker"][:].count("26") == 2
    with pytest.raises(
        ValueError, match=r"has no speakers \['5', '27'\]; it has \['14', '20', '26', '103', '367'\]"
    ):
        LibriSpeechCorpus(root, test_speakers=[27, 5, 26]).load("train")
    with pytest.raises(ValueError, match=r"no split 'dev'; it has train-100, .*test-other, train, test\."):
        corpus.load("dev")
    with pytest.raises(FileNotFoundError, match="of its parts there are none"):
        LibriSpeechCorpus(root / "nowhere", test_speakers=[1]).load("train")


def test_recordings_of_any_suffix(tmp_path: Path) -> None:
    folder = chapter(tmp_path, "dev-clean", "1-2", {f"1-2-{i:04d}": "X" for i in range(4)})
    for i, suffix in enumerate((".mp3", ".ogg", ".WAV")):
        samples, rate = soundfile.read(folder / f"1-2-{i:04d}.flac")
        soundfile.write(folder / f"1-2-{i:04d}{suffix}", samples, rate)
        if i:
            (folder / f"1-2-{i:04d}.flac").unlink()
    corpus = LibriSpeechCorpus(tmp_path)
    rows = corpus.load("dev-clean")
    # the first has both: the original wins
    assert [Path(row["audio"]).suffix for row in rows] == [".flac", ".ogg", ".WAV", ".flac"]
    assert corpus.skipped == []
    (folder / "1-2-0000.flac").unlink()
    rows = corpus.load("dev-clean")
    assert Path(rows[0]["audio"]).suffix == ".mp3"
    assert rows[0]["end"] == pytest.approx(0.25, abs=0.1)  # of mp3, whole frames


def test_absent_parts_say_what_was_looked_for(root: Path) -> None:
    with pytest.raises(FileNotFoundError) as error:
        LibriSpeechCorpus(root).load("dev-clean")
    for part in (str(root / "dev-clean"), "train-other-500", "test-other", "openslr.org/12"):
        assert part in str(error.value)
    with pytest.raises(FileNotFoundError, match="of its parts there are none"):
        LibriSpeechCorpus(root / "nowhere").load("train-960")
    with pytest.raises(ValueError, match=r"no split 'train'; it has train-100, .*test-other"):
        LibriSpeechCorpus(root).load("train")


def test_damage_is_left_out_and_named(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = root / "train-clean-100/103/1240"
    texts = folder / "103-1240.trans.txt"
    lines = texts.read_text().splitlines()
    texts.write_text("\n".join([lines[0], "", "103-1240-0001", "nonsense here", lines[2], lines[2]]) + "\n")
    (folder / "103-1240-0000.flac").unlink()
    (folder / "103-1240-0002.flac").write_bytes(b"fLaC, but not for long")
    chapter(root, "train-clean-100", "50-1", {"50-1-0000": "X"})
    (root / "train-clean-100/50/1/50-1.trans.txt").write_bytes(b"50-1-0000 \xff\xfe\n")
    (root / "train-clean-100/51/2").mkdir(parents=True)
    corpus = LibriSpeechCorpus(root)
    with caplog.at_level(logging.WARNING):
        rows = corpus.load("train-100")
    assert rows["id"][:] == ["26-495-0000", "26-1240-0000"]
    reasons = corpus.skipped
    expected = [
        ("50-1", "expected UTF-8"), ("51-2", r"51-2\.trans\.txt"), ("103-1240-0000", r"there is no .*0000\.flac"),
        ("103-1240, line 3", "expected 'SPEAKER-CHAPTER-NUMBER TEXT'; got '103-1240-0001'"),
        ("103-1240, line 4", "got 'nonsense here'"), ("103-1240-0002", "not audio"), ("103-1240-0002", "twice"),
        ("103-1240-0001", "has no line for it"),
    ]  # fmt: skip
    assert [id for id, _ in reasons] == [id for id, _ in expected]
    for (id, reason), (_, pattern) in zip(reasons, expected):
        assert re.search(pattern, reason), (id, reason)
        assert any(id in r.getMessage() and "left out" in r.getMessage() for r in caplog.records)
    for path in (root / "train-clean-100/26").rglob("*.flac"):
        path.unlink()
    with pytest.raises(ValueError, match=r"'train-100' has no utterances\. 10 were left out: "):
        corpus.load("train-100")


def test_a_flood_of_damage_is_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = chapter(tmp_path, "dev-clean", "1-2", {f"1-2-{i:04d}": "X" for i in range(60)})
    for i in range(50):
        (folder / f"1-2-{i:04d}.flac").unlink()
    corpus = LibriSpeechCorpus(tmp_path)
    with caplog.at_level(logging.WARNING):
        assert len(corpus.load("dev-clean")) == 10
    assert len(corpus.skipped) == 50
    assert len(caplog.records) == 21
    assert "30 more are left out" in caplog.records[-1].getMessage()


@pytest.mark.skipif(
    not (DATA / "librispeech_samples").is_dir(),
    reason="no LibriSpeech recordings: ISOTONE_TEST_DATA does not hold a folder librispeech_samples",
)
def test_real_recordings(tmp_path: Path) -> None:
    samples = DATA / "librispeech_samples"
    found = [*samples.glob("*.ogg"), *samples.glob("*.wav")]
    for path in found:
        speaker, number, _ = path.stem.split("-")
        folder = tmp_path / "dev-clean" / speaker / number
        folder.mkdir(parents=True)
        soundfile.write(folder / f"{path.stem}.flac", *soundfile.read(path))
        (folder / f"{speaker}-{number}.trans.txt").write_text(f"{path.stem} SOME WORDS\n")
    rows = LibriSpeechCorpus(tmp_path).load("dev-clean")
    assert len(rows) == len(found) > 1
    for row in rows:
        original = next(p for p in found if p.stem == row["id"])
        assert row["end"] == pytest.approx(soundfile.info(original).duration, abs=1e-3)


@pytest.mark.skipif(
    not (DATA / "librispeech_dev_clean").is_dir(),
    reason="no part of dev-clean: ISOTONE_TEST_DATA does not hold a folder librispeech_dev_clean",
)
def test_the_real_sample_of_the_recipe() -> None:
    """Thirteen speakers train and three test, in the corpus's own layout, as mp3."""
    recipe = load_recipe(
        RECIPES / "librispeech" / "ctc.yaml", ["data=sample", f"data.root={DATA / 'librispeech_dev_clean'}"]
    )
    corpus = corpora.create(recipe.data)
    train, test = (corpus.load(split) for split in (recipe.splits.train, recipe.splits.test))
    assert (len(set(train["speaker"])), len(set(test["speaker"]))) == (13, 3)
    assert len(train) + len(test) == 1004
    assert not set(train["speaker"]) & set(test["speaker"])
    assert corpus.counts["words_with_other_characters"] == 0
    assert corpus.skipped == []
    seconds = sum(row["end"] for row in train) + sum(row["end"] for row in test)
    assert seconds / 3600 == pytest.approx(2.16, abs=0.01)
    assert recipe.splits.more == []
    assert recipe.encoder["source"] == "wav2vec2-bert-tiny"
    words = [word for text in test["text"][:3] for word in text.split()]
    assert all(word.isupper() for word in words)
