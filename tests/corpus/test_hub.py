"""Data sets of the ``datasets`` library: all kinds of local files, audio inside and outside of them, and errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from datasets import Dataset, DatasetDict

from isotone.audio import load
from isotone.corpus import COLUMNS
from isotone.corpus.hub import HubCorpus
from tests.corpus.miniatures import flac, hub_dataset, hub_rows


@pytest.mark.parametrize("kind", ["parquet", "arrow", "parquet folder", "save_to_disk", "dictionary"])
def test_every_kind_of_file(kind: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    if kind == "parquet":
        source /= "data.parquet"
        hub_dataset(hub_rows()).to_parquet(source)
    elif kind == "parquet folder":
        hub_dataset(hub_rows()).to_parquet(source / "train-00000-of-00001.parquet")
        hub_dataset(hub_rows(1)).to_parquet(source / "test-00000-of-00001.parquet")
    elif kind == "dictionary":
        DatasetDict(train=hub_dataset(hub_rows()), test=hub_dataset(hub_rows(1))).save_to_disk(source)
    else:
        hub_dataset(hub_rows()).save_to_disk(source)
        if kind == "arrow":
            source /= "data-00000-of-00001.arrow"
    corpus = HubCorpus(source, root=tmp_path / "cache")
    found = corpus.load("train")
    assert tuple(found[0]) == COLUMNS
    assert found["id"][:] == ["7-1-0000", "7-1-0001", "7-1-0002"]
    assert found["text"][:] == ["LINE A", "LINE B", "LINE C"]
    assert found["speaker"][:] == ["7"] * 3
    assert corpus.skipped == []
    for i, row in enumerate(found):
        assert Path(row["audio"]).read_bytes() == flac(8000 + i)  # copied unchanged, without decoding
        assert Path(row["audio"]).suffix == ".flac"
        assert row["end"] == (8000 + i) / 16000
        np.testing.assert_allclose(load(row["audio"], 16000), 0.25, atol=1e-4)
    if kind in ("parquet folder", "dictionary"):
        assert len(corpus.load("test")) == 1
    with pytest.raises(ValueError, match=r"(?i)split"):
        corpus.load("dev")


def test_audio_is_copied_once(tmp_path: Path) -> None:
    hub_dataset(hub_rows()).to_parquet(tmp_path / "a.parquet")
    corpus = HubCorpus(tmp_path / "a.parquet", root=tmp_path / "cache")
    paths = [Path(p) for p in corpus.load("train")["audio"]]
    times = [p.stat().st_mtime_ns for p in paths]
    paths[1].write_bytes(b"half a fi")
    paths[2].unlink()
    assert [Path(p) for p in corpus.load("train")["audio"]] == paths
    assert [p.read_bytes() for p in paths] == [flac(8000 + i) for i in range(3)]
    assert paths[0].stat().st_mtime_ns == times[0]


def test_names_of_columns(tmp_path: Path) -> None:
    hub_dataset(hub_rows(audio="sound", text="sentence"), "sound").remove_columns(
        ["id", "speaker_id"]
    ).save_to_disk(tmp_path / "a")
    found = HubCorpus(tmp_path / "a", columns={"audio": "sound", "text": "sentence"}, root=tmp_path).load(
        "train"
    )
    assert found["id"][:] == ["0000000", "0000001", "0000002"]
    assert found["text"][:] == ["LINE A", "LINE B", "LINE C"]
    assert found["speaker"][:] == [""] * 3
    with pytest.raises(
        ValueError, match=r"no column 'audio' for its audio; it has sound, sentence.*columns: \{audio: NAME\}"
    ):
        HubCorpus(tmp_path / "a", root=tmp_path).load("train")
    with pytest.raises(ValueError, match=r"columns here are audio, text, id, speaker; got \['words'\]"):
        HubCorpus(tmp_path / "a", columns={"words": "sentence"}, root=tmp_path)


def test_audio_that_has_files_of_its_own_stays_there(tmp_path: Path) -> None:
    values = hub_rows(2)
    for i, value in enumerate(values):
        (tmp_path / f"{i}.flac").write_bytes(flac(4000 + i))
        value["audio"] = {"bytes": None, "path": str(tmp_path / f"{i}.flac")}
    values[1]["audio"]["path"] = str(tmp_path / "gone.flac")
    (tmp_path / "gone.flac").write_bytes(b"")
    Dataset.from_list(values).save_to_disk(tmp_path / "a")  # as plain fields: `datasets` would copy files in
    (tmp_path / "gone.flac").unlink()
    corpus = HubCorpus(tmp_path / "a", root=tmp_path / "cache")
    found = corpus.load("train")
    assert found["audio"][:] == [str(tmp_path / "0.flac")]
    assert found["end"][:] == [0.25]
    assert not (tmp_path / "cache").exists()
    ((id, reason),) = corpus.skipped
    assert id == "7-1-0001"
    assert "neither bytes nor a file" in reason


def test_damaged_rows_are_left_out(tmp_path: Path) -> None:
    values = hub_rows()
    values[0]["text"] = " "
    values[1]["audio"] = {"bytes": b"no sound", "path": "../../x.flac"}
    values.append({**values[2], "id": "../../../etc/passwd"})
    hub_dataset(values).save_to_disk(tmp_path / "a")
    corpus = HubCorpus(tmp_path / "a", root=tmp_path / "cache")
    found = corpus.load("train")
    assert found["id"][:] == ["7-1-0002", "../../../etc/passwd"]
    assert all(Path(p).resolve().is_relative_to(tmp_path / "cache") for p in found["audio"])
    reasons = dict(corpus.skipped)
    assert "its text is ' '" in reasons["7-1-0000"]
    assert "not audio" in reasons["7-1-0001"]


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"No data set .*a\.parquet"):
        HubCorpus(tmp_path / "a.parquet").load("train")
    hub_dataset(hub_rows()).save_to_disk(tmp_path / "a")
    with pytest.raises(ValueError, match="a has no split 'test'; it has train"):
        HubCorpus(tmp_path / "a", root=tmp_path).load("test")
    # sources of a manifest: the data, and the copied audio
    corpus = HubCorpus(tmp_path / "a", root=tmp_path / "cache")
    assert corpus.sources("train") == [tmp_path / "a", corpus.root / "train"]
    assert HubCorpus("openslr/librispeech_asr", root=tmp_path).sources("x")[0].parent.parent == tmp_path
