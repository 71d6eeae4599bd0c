"""Folders of recordings: all kinds of transcripts, splits, and skipped files with their reasons."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from praatio import textgrid

from isotone.corpus import COLUMNS, reference
from isotone.corpus.folder import FolderCorpus
from tests.corpus.miniatures import record


def write_textgrid(path: Path, tiers: dict[str, list[tuple[float, float, str]]], end: float = 0.5) -> None:
    grid = textgrid.Textgrid(0, end)
    for name, entries in tiers.items():
        grid.addTier(textgrid.IntervalTier(name, entries, 0, end))
    grid.save(str(path), format="long_textgrid", includeBlankSpaces=True)


def test_texts(tmp_path: Path) -> None:
    record(tmp_path / "b.wav", txt="\ufeffHello,  World!\n")
    record(tmp_path / "spk" / "a.flac", lab="hi\nthere")
    record(tmp_path / "spk" / "deep" / "c.d.wav", txt="yes")
    (tmp_path / "README.txt").write_text("not a transcript")
    corpus = FolderCorpus(tmp_path)
    rows = corpus.load("all")
    assert rows["id"][:] == ["b", "spk/a", "spk/deep/c.d"]
    assert rows["text"][:] == ["Hello,  World!", "hi\nthere", "yes"]
    assert rows["speaker"][:] == ["", "spk", "deep"]
    assert corpus.skipped == []
    assert tuple(rows[0]) == COLUMNS
    assert rows[0]["words"] == {"label": [], "start": [], "end": []}
    assert (rows[0]["start"], rows[0]["end"]) == (0.0, 0.5)
    assert Path(rows[1]["audio"]) == tmp_path / "spk" / "a.flac"


def test_textgrid(tmp_path: Path) -> None:
    record(tmp_path / "a.wav")
    write_textgrid(
        tmp_path / "a.TextGrid",
        {
            "Sentence": [(0.0, 0.5, "ignored")],
            "WORDS": [(0.0, 0.1, "sil"), (0.1, 0.2, "a"), (0.3, 0.4, "cat's")],
            "Phones": [(0.0, 0.1, "sil"), (0.1, 0.2, "ax"), (0.3, 0.5, "k")],
        },
    )
    row = FolderCorpus(tmp_path).load("all")[0]
    assert row["text"] == "a cat's"
    assert row["words"] == {"label": ["a", "cat's"], "start": [0.1, 0.3], "end": [0.2, 0.4]}
    assert row["phones"] == {"label": ["sil", "ax", "k"], "start": [0.0, 0.1, 0.3], "end": [0.1, 0.2, 0.5]}
    assert [t.name for t in reference(row).tiers] == ["words", "phones"]


def test_textgrid_of_several_speakers(tmp_path: Path) -> None:
    """Speakers in files of MFA who take turns are merged; those who overlap are an error."""
    record(tmp_path / "a.wav")
    turns = {
        "A - words": [(0.0, 0.1, "one")],
        "A - phones": [(0.0, 0.1, "w")],
        "B - words": [(0.3, 0.4, "two")],
    }
    write_textgrid(tmp_path / "a.TextGrid", turns)
    record(tmp_path / "b.wav")
    write_textgrid(tmp_path / "b.TextGrid", turns | {"B - words": [(0.0, 0.4, "two")]})
    corpus = FolderCorpus(tmp_path)
    rows = corpus.load("all")
    assert rows["text"][:] == ["one two"]
    assert rows[0]["words"] == {"label": ["one", "two"], "start": [0.0, 0.3], "end": [0.1, 0.4]}
    assert rows[0]["phones"]["label"] == ["w"]
    [(id, reason)] = corpus.skipped
    assert id == "b"
    assert "b.TextGrid: tiers 'A - words' and 'B - words' overlap" in reason


def test_text_file_wins_over_textgrid(tmp_path: Path) -> None:
    record(tmp_path / "a.wav", txt="A cat's.")
    write_textgrid(tmp_path / "a.TextGrid", {"words": [(0.1, 0.2, "a"), (0.3, 0.7, "cat's")]}, end=0.7)
    row = FolderCorpus(tmp_path).load("all")[0]
    assert row["text"] == "A cat's."
    assert row["words"]["end"] == [0.2, 0.5]  # cut at the end of the audio


def test_what_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    record(tmp_path / "good.wav", txt="fine")
    record(tmp_path / "a_notext.wav")
    record(tmp_path / "b_empty.wav", txt=" \n")
    record(tmp_path / "c_broken.wav", txt="x")
    (tmp_path / "c_broken.wav").write_bytes(b"RIFF")
    record(tmp_path / "d_latin.wav")
    (tmp_path / "d_latin.txt").write_bytes("café".encode("latin-1"))
    record(tmp_path / "e_grid.wav", TextGrid="File type = nonsense")
    record(tmp_path / "f_tiers.wav")
    write_textgrid(tmp_path / "f_tiers.TextGrid", {"utterance": [(0.0, 0.5, "x")]})
    record(tmp_path / "g_other.wav")
    write_textgrid(tmp_path / "g_other.TextGrid", {"words": [(3.0, 4.0, "late")]}, end=9.0)
    record(tmp_path / "h_twice.wav", txt="x")
    record(tmp_path / "h_twice.flac")
    corpus = FolderCorpus(tmp_path)
    with caplog.at_level(logging.WARNING):
        rows = corpus.load("all")
    assert rows["id"][:] == ["good"]
    reasons = dict(corpus.skipped)
    for id, reason in {
        "a_notext": "no text: expected a .txt, .lab or .TextGrid",
        "b_empty": "b_empty.txt has no words",
        "c_broken": "c_broken.wav: not audio",
        "d_latin": "d_latin.txt: not UTF-8",
        "e_grid": "e_grid.TextGrid: ",
        "f_tiers": "f_tiers.TextGrid (its tier 'words') has no words",
        "g_other": "'late' begins at 3.0 s, but the audio ends at 0.500 s",
        "h_twice": "['h_twice.flac', 'h_twice.wav'] share a name",
    }.items():
        assert reason in reasons.pop(id)
        assert f"{id} is left out" in caplog.text
    assert reasons == {}


def test_splits_by_folder(tmp_path: Path) -> None:
    for id in ("Train/s1/a", "Train/s2/b", "valid/c", "extra"):
        record(tmp_path / f"{id}.wav", txt="x")
    corpus = FolderCorpus(tmp_path)
    assert corpus.load("train")["id"][:] == ["Train/s1/a", "Train/s2/b"]
    assert corpus.load("train")["speaker"][:] == ["s1", "s2"]
    assert corpus.load("dev")["id"][:] == ["valid/c"]
    assert corpus.load("dev")["speaker"][:] == [""]
    assert len(corpus.load("all")) == 4
    with pytest.raises(ValueError, match="no folder for the split 'test'; it has dev, train, and all"):
        corpus.load("test")


def test_splits_by_id(tmp_path: Path) -> None:
    for i in range(60):
        record(tmp_path / f"u{i}.wav", 0.01, txt="x")
    corpus = FolderCorpus(tmp_path, test_share=0.2)
    parts = {split: set(corpus.load(split)["id"]) for split in ("train", "dev", "test")}
    assert set.union(*parts.values()) == {f"u{i}" for i in range(60)}
    assert sum(map(len, parts.values())) == 60
    # 60 draws: the chance that a fair hash gives fewer than 4 or more than 22 of 12 expected is below 0.3 %
    assert all(4 <= len(parts[s]) <= 22 for s in ("dev", "test"))
    record(tmp_path / "new.wav", 0.01, txt="x")
    for split, before in parts.items():
        assert set(corpus.load(split)["id"]) - {"new"} == before
    assert len(FolderCorpus(tmp_path, test_share=0).load("train")) == 61


def test_errors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="No folder"):
        FolderCorpus(tmp_path / "absent").load("all")
    (tmp_path / "x.txt").write_text("text without a recording")
    with pytest.raises(FileNotFoundError, match=r"No recordings in .* looked for .aif"):
        FolderCorpus(tmp_path).load("all")
    record(tmp_path / "silent.wav")
    with pytest.raises(ValueError, match=r"'all' has no utterances. 1 were left out: no text"):
        FolderCorpus(tmp_path).load("all")
    (tmp_path / "silent.txt").write_text("a text")
    splits = {s for s in ("dev", "test") if FolderCorpus(tmp_path)._hash_split("silent") != s}
    for split in splits:
        with pytest.raises(
            ValueError, match=rf"'{split}' has no utterances\. Add recordings, or .*splits\.dev="
        ):
            FolderCorpus(tmp_path).load(split)
    with pytest.raises(ValueError, match="no split 'eval'"):
        FolderCorpus(tmp_path).load("eval")
    with pytest.raises(ValueError, match=r"from 0 to 0\.5; got 0\.6"):
        FolderCorpus(tmp_path, test_share=0.6)


def test_of_two_transcripts_the_unread_one_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    record(tmp_path / "a.wav", txt="read", lab="not read")
    record(tmp_path / "b.wav", txt="read", lab="not read")
    record(tmp_path / "c.wav", lab="the only one")
    with caplog.at_level(logging.WARNING):
        rows = FolderCorpus(tmp_path).load("all")
    assert rows["text"][:] == ["read", "read", "the only one"]
    assert [r.getMessage() for r in caplog.records] == [
        f"{tmp_path}: a transcript is a.txt, not a.lab beside it (and the like for 1 more)."
    ]
    caplog.clear()
    (tmp_path / "a.lab").unlink()
    (tmp_path / "b.lab").unlink()
    FolderCorpus(tmp_path).load("all")
    assert not caplog.records
