"""TIMIT in both layouts, with the usual splits, and with damaged files."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import numpy as np
import pytest
import soundfile

from isotone.alignment import Tier
from isotone.audio import load
from isotone.corpus import COLUMNS, reference
from isotone.corpus.timit import CORE_TEST, DEV, CorpusError, TimitCorpus, read_labels
from isotone.text.phones import PHONES_39, PHONES_61
from tests.paths import DATA

SAMPLE = DATA / "timit_sample"

PHN = "0 1000 h#\n1000 2000 hv\n2000 2600 bcl\n2600 3000 b\n3000 4000 q\n4000 6000 aa\n6000 8000 h#\n"
WRD = "1000 3000 hub\n4000 6000 ah\n"


def write(folder: Path, name: str, *, upper: bool = True, samples: int = 8000, phn: str = PHN) -> None:
    """Write one utterance in the files of the LDC: SPHERE audio, labels with sample numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(0).uniform(-0.5, 0.5, samples)
    files = {"phn": phn, "wrd": WRD, "txt": f"0 {samples} Hub, ah.\n"}
    case = str.upper if upper else str.lower
    kind = {"format": "NIST", "subtype": "PCM_16"} if upper else {"format": "WAV"}
    soundfile.write(folder / case(f"{name}.wav"), noise, 16000, **kind)
    for suffix, text in files.items():
        (folder / case(f"{name}.{suffix}")).write_text(text)


@pytest.fixture
def ldc(tmp_path: Path) -> Path:
    for part, speakers in (("TRAIN", ["FAAA0", "MBBB0"]), ("TEST", ["FTAA0", "MTBB0", "FTCC0"])):
        for region, speaker in enumerate(speakers, 1):
            for name in ("SA1", "SX1", "SI2"):
                write(tmp_path / "TIMIT" / part / f"DR{region}" / speaker, name)
    (tmp_path / "TIMIT" / "DOC").mkdir()
    (tmp_path / "TIMIT" / "DOC" / "README.TXT").write_text("read me")
    return tmp_path


def ids(root: Path, split: str, **options: object) -> list[str]:
    return TimitCorpus(root, **options).load(split)["id"][:]


def test_ldc_tree(ldc: Path) -> None:
    for root in (ldc, ldc / "TIMIT"):
        assert ids(root, "train") == ["faaa0_si2", "faaa0_sx1", "mbbb0_si2", "mbbb0_sx1"]
        assert ids(root, "test") == ["ftaa0_si2", "ftaa0_sx1", "ftcc0_si2", "ftcc0_sx1"]
        assert ids(root, "dev") == ["mtbb0_si2", "mtbb0_sx1"]
        assert len(ids(root, "full-test")) == 6
        assert len(ids(root, "all")) == 10
        assert len(ids(root, "all", sa=True)) == 15


def test_row(ldc: Path) -> None:
    row = TimitCorpus(ldc).load("train")[1]
    assert tuple(row) == COLUMNS
    assert row["text"] == "Hub, ah."
    assert row["speaker"] == "faaa0"
    assert (row["start"], row["end"]) == (0.0, 0.5)
    assert row["words"] == {"label": ["hub", "ah"], "start": [0.0625, 0.25], "end": [0.1875, 0.375]}
    assert row["phones"]["label"] == ["sil", "hh", "sil", "b", "aa", "sil"]
    assert row["phones"]["start"] == [0.0, 0.0625, 0.125, 0.1625, 0.25, 0.375]
    assert row["phones"]["end"] == [0.0625, 0.125, 0.1625, 0.1875, 0.375, 0.5]
    assert len(load(row["audio"])) == 8000
    assert reference(row).tier("phones").labels == row["phones"]["label"]


def test_phone_options(ldc: Path) -> None:
    def labels(**options: object) -> str:
        return " ".join(TimitCorpus(ldc, **options).load("dev")[0]["phones"]["label"])

    assert labels(phones=61) == "h# hv bcl b q aa h#"
    assert labels(phones=48) == "sil hh vcl b aa sil"
    assert labels(closures="merge") == "sil hh b aa sil"
    assert labels(closures="merge", silence="drop") == "hh b aa"
    row = TimitCorpus(ldc, closures="merge").load("dev")[0]
    assert (row["phones"]["start"][2], row["phones"]["end"][2]) == (0.125, 0.1875)


def test_standard_speakers(tmp_path: Path) -> None:
    assert (len(CORE_TEST), len(DEV), len(CORE_TEST & DEV)) == (24, 50, 0)
    others = ["fxxx0", "myyy0"]
    for speaker in [*CORE_TEST, *DEV, *others]:
        write(tmp_path / "TEST" / "DR1" / speaker.upper(), "SX9")
    write(tmp_path / "TRAIN" / "DR1" / "FZZZ0", "SX9")
    speakers = {
        s: set(TimitCorpus(tmp_path).load(s)["speaker"]) for s in ("train", "dev", "test", "full-test")
    }
    assert speakers["test"] == CORE_TEST
    assert speakers["dev"] == DEV
    assert speakers["train"] == {"fzzz0"}
    assert speakers["full-test"] == {*CORE_TEST, *DEV, *others}


def test_sample_layout(tmp_path: Path) -> None:
    for folder in ("dr2-faaa0", "dr1-mzzz0", "dr8-fccc0", "dr7-mddd0"):
        for name in ("sa2", "sx3"):
            write(tmp_path / folder, name, upper=False)
    assert ids(tmp_path, "train") == ["mzzz0_sx3", "faaa0_sx3"]
    assert ids(tmp_path, "test") == ids(tmp_path, "dev") == ["mddd0_sx3", "fccc0_sx3"]
    assert len(ids(tmp_path, "all", sa=True)) == 8
    assert ids(tmp_path, "test", test_speakers=["MZZZ0"]) == ["mzzz0_sx3"]
    assert len(ids(tmp_path, "train", test_speakers=["MZZZ0"])) == 3
    with pytest.raises(ValueError, match=r"no speakers \['nobody'\]; it has \['faaa0'"):
        TimitCorpus(tmp_path, test_speakers=["nobody"]).load("test")


def test_converted_copies_are_preferred(ldc: Path) -> None:
    folder = ldc / "TIMIT" / "TRAIN" / "DR1" / "FAAA0"
    soundfile.write(folder / "SX1.WAV.wav", np.zeros(8000), 16000, format="WAV")
    rows = TimitCorpus(ldc).load("train")
    assert [Path(p).name for p in rows["audio"]] == ["SI2.WAV", "SX1.WAV.wav", "SI2.WAV", "SX1.WAV"]


def test_text_is_made_of_words_where_there_is_none(ldc: Path) -> None:
    folder = ldc / "TIMIT" / "TRAIN" / "DR1" / "FAAA0"
    (folder / "SX1.TXT").unlink()
    (folder / "SI2.WRD").unlink()
    rows = TimitCorpus(ldc).load("train")
    assert rows[1]["text"] == "hub ah"
    assert rows[0]["text"] == "Hub, ah."
    assert rows[0]["words"]["label"] == []


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("SX1.PHN", "", r"SX1\.PHN: the file has no labels"),
        ("SX1.PHN", "0 1000 h#\n1000 2000\n", r"SX1\.PHN, line 2: expected 'first-sample last-sample label'"),
        ("SX1.PHN", "0 1000 h#\n1000 900 aa\n", r"SX1\.PHN, line 2: time runs backwards"),
        ("SX1.PHN", "500 1000 h#\n100 2000 aa\n", r"SX1\.PHN, line 2: time runs backwards"),
        ("SX1.PHN", "0 1000 h#\n1000 2000 foo\n", r"SX1\.PHN: 'foo' is not one of TIMIT's 61 phones"),
        (
            "SX1.PHN",
            "0 1000 h#\n1000 9000 aa\n9000 9500 h#\n",
            r"line 3: 'h#' begins at 0.562 s, but .* 0.500 s",
        ),
        ("SX1.WRD", "x y z\n", r"SX1\.WRD, line 1: expected 'first-sample"),
        ("SX1.TXT", "no numbers\n", r"SX1\.TXT, line 1: expected 'start end sentence'"),
        ("SX1.PHN", b"0 1000 h#\n1000 2000 \xff\xfe\n", r"SX1\.PHN, line 2: expected plain text"),
        ("SX1.WAV", b"", r"SX1\.WAV: the file is empty"),
        ("SX1.WAV", b"NIST_1A\n   1024\n", r"SX1\.WAV: not audio"),
        ("SX1.WAV", None, r"faaa0_sx1 has no audio file"),
        ("SX1.PHN", None, r"faaa0_sx1 has no \.phn file"),
    ],
)
def test_one_bad_file(
    ldc: Path, name: str, content: str | bytes | None, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Damaged utterances are skipped with a reason; the rest is loaded."""
    path = ldc / "TIMIT" / "TRAIN" / "DR1" / "FAAA0" / name
    path.unlink()
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    corpus = TimitCorpus(ldc)
    with caplog.at_level(logging.WARNING):
        rows = corpus.load("train")
    assert rows["id"][:] == ["faaa0_si2", "mbbb0_si2", "mbbb0_sx1"]
    assert [id for id, _ in corpus.skipped] == ["faaa0_sx1"]
    assert corpus.skipped[0][1] in caplog.text
    assert re.search(reason, corpus.skipped[0][1])
    corpus.load("dev")
    assert corpus.skipped == []


@pytest.mark.parametrize(("end", "expected"), [(7900, 0.49375), (8000, 0.5), (8100, 0.5)])
def test_last_label_and_audio_need_not_end_together(tmp_path: Path, end: int, expected: float) -> None:
    path = tmp_path / "x.phn"
    path.write_text(f"0 4000 h#\n4000 {end} aa\n")
    tier = read_labels(path, "phones", 0.5)
    assert isinstance(tier, Tier)
    assert tier.segments[-1].end == expected


def test_overlapping_words_are_cut(tmp_path: Path) -> None:
    (tmp_path / "x.wrd").write_text("0 5000 a\n4000 8000 b\n")
    assert [(s.start, s.end) for s in read_labels(tmp_path / "x.wrd", "words", 1.0)] == [
        (0, 0.25),
        (0.25, 0.5),
    ]


def test_errors(ldc: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no split 'eval'; it has train, dev, test"):
        TimitCorpus(ldc).load("eval")
    with pytest.raises(FileNotFoundError, match=r"no folder .*absent"):
        TimitCorpus(tmp_path / "absent").load("train")
    with pytest.raises(FileNotFoundError, match=r"no utterances under .* Looked for TRAIN/DR1"):
        TimitCorpus(ldc / "TIMIT" / "DOC").load("train")
    with pytest.raises(FileNotFoundError, match="one part of it; give the folder above"):
        TimitCorpus(ldc / "TIMIT" / "TRAIN").load("train")
    with pytest.raises(ValueError, match="to is one of 39, 48, 61; got 40"):
        TimitCorpus(ldc, phones=40)
    write(ldc / "copy" / "TRAIN" / "DR1" / "FAAA0", "SX1")
    with pytest.raises(CorpusError, match="faaa0_sx1 is there twice"):
        TimitCorpus(ldc).load("train")


def test_nothing_left(tmp_path: Path) -> None:
    write(tmp_path / "TRAIN" / "DR1" / "FAAA0", "SX1", phn="broken\n")
    with pytest.raises(ValueError, match=r"'train' has no utterances. 1 were left out: .*SX1\.PHN, line 1"):
        TimitCorpus(tmp_path).load("train")


@pytest.mark.skipif(not SAMPLE.is_dir(), reason=f"needs the TIMIT sample in {SAMPLE}")
def test_real_sample() -> None:
    corpus = TimitCorpus(SAMPLE, phones=61, sa=True)
    rows = corpus.load("all")
    assert corpus.skipped == []
    assert len(rows) == 80
    assert {p for row in rows for p in row["phones"]["label"]} == set(PHONES_61) - {"eng"}
    for row in rows:
        tiers = reference(row)
        assert tiers.tier("phones").segments[0].start == 0
        assert tiers.duration == pytest.approx(len(load(row["audio"])) / 16000)
    folded = TimitCorpus(SAMPLE).load("all")
    assert len(folded) == 64
    assert {p for row in folded for p in row["phones"]["label"]} == set(PHONES_39)
