"""Removal of recordings from an index, against an index of the others alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from isotone.search import SearchIndex, add_recordings, build_index, remove_recordings
from isotone.search.store import unfinished
from tests.search.parts import LOG_MEL, Killed, collection, sounds, write
from tests.tiny_models import error_of, isotone


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with recordings, some of them in a folder ``old``, and the index of all."""
    collection(tmp_path / "in", (9.0, 6.5))
    collection(tmp_path / "in" / "old", (4.0, 30.0))
    write(tmp_path / "in" / "older.wav", sounds(5.0, 9))
    build_index([tmp_path / "in"], LOG_MEL, tmp_path / "index")
    return tmp_path


def contents(index: Path) -> tuple[list[str], list[list[int]], np.ndarray, object, list[dict[str, object]]]:
    opened = SearchIndex.open(index)
    places = [(r.place, r.id, r.sha256) for r in opened.recordings]
    clip = write(index.parent / "clip.wav", sounds(9.0, 0)[48_000:96_000])
    found = json.loads(isotone("search", "query", index, clip, "--json", "--all").stdout)
    return places, opened.items.tolist(), np.array(opened.vectors), opened.threshold, found["matches"]


@pytest.mark.parametrize("gone", [["old"], ["old/sound0.wav", "old/sound1.wav"], ["sound0.wav", "older.wav"]])
def test_the_rest_is_as_if_it_had_been_indexed_alone(folder: Path, gone: list[str]) -> None:
    done = isotone("search", "remove", *(folder / "in" / name for name in gone), "--index", folder / "index")
    assert "2 removed" in done.stdout
    kept = [
        path
        for path in sorted((folder / "in").rglob("*.wav"))
        if not any(path == folder / "in" / name or folder / "in" / name in path.parents for name in gone)
    ]
    assert len(kept) == 3
    assert len(list((folder / "in").rglob("*.wav"))) == 5  # the files stay
    build_index(kept, LOG_MEL, folder / "alone")
    for one, other in zip(contents(folder / "index"), contents(folder / "alone")):
        np.testing.assert_equal(one, other)
    # and they can be added again
    assert add_recordings([folder / "in"], LOG_MEL, folder / "index").added == 2


def test_those_whose_files_are_gone(folder: Path) -> None:
    before = contents(folder / "index")
    assert remove_recordings([], LOG_MEL, folder / "index", missing=True).removed == 0
    np.testing.assert_equal(contents(folder / "index"), before)
    (folder / "in" / "old" / "sound1.wav").unlink()
    (folder / "in" / "older.wav").rename(folder / "elsewhere.wav")
    done = isotone("search", "remove", "--missing", "--index", folder / "index", "--json")
    assert json.loads(done.stdout)["removed"] == 2
    assert [Path(r.place).name for r in SearchIndex.open(folder / "index").recordings] == [
        "sound0.wav", "sound0.wav", "sound1.wav",
    ]  # fmt: skip


def test_what_cannot_be_removed(folder: Path) -> None:
    before, at = contents(folder / "index"), ("--index", folder / "index")
    assert "Nothing to remove" in error_of("search", "remove", *at)
    said = error_of("search", "remove", folder / "in" / "old", folder / "in" / "ol", *at)
    assert "in/ol is not in the index" in said
    assert "nothing was removed" in said
    assert "delete that folder" in error_of("search", "remove", folder / "in", *at)
    assert "No index at" in error_of("search", "remove", folder / "in", "--index", folder / "in")
    np.testing.assert_equal(contents(folder / "index"), before)


def test_an_unfinished_addition_is_not_lost(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder / "more" / "new.wav", sounds(5.0, 20))
    with monkeypatch.context() as patch:
        patch.setattr("isotone.search.build.saving.finish", lambda *_: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            add_recordings([folder / "more"], LOG_MEL, folder / "index")
    said = error_of("search", "remove", folder / "in" / "older.wav", "--index", folder / "index")
    assert f"{unfinished(folder / 'index')} is an unfinished addition" in said
    assert add_recordings([folder / "more"], LOG_MEL, folder / "index").added == 1
    assert remove_recordings([folder / "in" / "older.wav"], LOG_MEL, folder / "index").done == 5


def test_errors_of_the_last_addition_stay_listed(folder: Path) -> None:
    (folder / "in" / "bad.wav").write_bytes(b"no audio")
    isotone("search", "add", folder / "in", "--index", folder / "index", code=1)
    listed = (folder / "index" / "errors.jsonl").read_text()
    remove_recordings([folder / "in" / "older.wav"], LOG_MEL, folder / "index")
    assert (folder / "index" / "errors.jsonl").read_text() == listed
