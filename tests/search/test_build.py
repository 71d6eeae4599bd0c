"""Growing indexes: equal to an index built at once, each recording once, and complete at any moment."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from isotone.files import alone
from isotone.search import (
    SearchIndex,
    Threshold,
    add_recordings,
    build,
    build_index,
    query_vectors,
    search,
    store,
)
from isotone.search.searcher import LogMelSearcher
from tests.scripts import Script
from tests.search.parts import RATE, collection, sounds, write
from tests.tiny_models import error_of, isotone, lines_of

LOG_MEL = LogMelSearcher()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five recordings."""
    return collection(tmp_path / "a", (6.0, 9.0, 4.0, 7.5, 5.0))


@pytest.fixture
def grown(folder: Path, tmp_path: Path) -> Path:
    """An index of two of the recordings."""
    build_index([folder / "sound1.wav", folder / "sound3.wav"], LOG_MEL, tmp_path / "index")
    return tmp_path / "index"


def content(index: Path) -> dict[str, object]:
    """Return all contents of an index, except the times of its files and its generation."""
    opened = SearchIndex.open(index)
    arrays = ("items", "vectors", "lengths")
    stage = opened.candidates.index
    return {
        "recordings": [replace(r, stamp=(0, 0)) for r in opened.recordings], "model": opened.model,
        "threshold": opened.threshold, **{name: np.asarray(getattr(opened, name)).tolist() for name in arrays},
        "stage": (opened.spec, len(stage), stage.search(torch.eye(LOG_MEL.size), 5)[0]),
    }  # fmt: skip


def test_an_index_that_grew_is_the_one_built_at_once(folder: Path, grown: Path, tmp_path: Path) -> None:
    isotone("search", "add", folder / "sound4.wav", "--index", grown)
    said = isotone("search", "add", folder, "--index", grown).output
    assert "2 added, 0 replaced, 0 moved" in said
    build_index([folder], LOG_MEL, tmp_path / "once")
    assert content(grown) == content(tmp_path / "once")
    query = query_vectors(LOG_MEL, sounds(9.0, 1)[2 * RATE : 5 * RATE])
    first, second = (search(SearchIndex.open(path), LOG_MEL, query) for path in (grown, tmp_path / "once"))
    assert first == second
    assert sorted(p.name.split("-")[0].split(".")[0] for p in grown.iterdir()) == [
        "checks", "files", "index", "items", "stage", "vectors"
    ]  # fmt: skip
    assert not store.unfinished(grown).exists()


def test_a_recording_that_changed_takes_the_place_of_its_old_self(
    folder: Path, grown: Path, tmp_path: Path
) -> None:
    write(folder / "sound1.wav", sounds(8.0, 99))
    said = isotone("search", "add", folder / "sound1.wav", folder / "sound0.wav", "--index", grown).output
    assert "1 added, 1 replaced" in said
    build_index([folder / f"sound{n}.wav" for n in (0, 1, 3)], LOG_MEL, tmp_path / "once")
    assert content(grown) == content(tmp_path / "once")


def test_the_same_content_is_not_added_twice(folder: Path, grown: Path) -> None:
    before = (grown / store.METADATA).read_bytes()
    (folder / "copy.wav").write_bytes((folder / "sound1.wav").read_bytes())
    os.utime(folder / "sound3.wav", ns=(1, 1))  # touched, not changed
    said = isotone("search", "add", folder / "copy.wav", folder / "sound1.wav", "--index", grown)
    assert "1 left out, copies of others" in said.stderr
    assert "sound1.wav" in said.stderr
    assert (grown / store.METADATA).read_bytes() == before
    built = add_recordings([folder / "sound3.wav"], LOG_MEL, grown)
    assert (built.added, built.replaced, built.moved, built.done) == (0, 0, 0, 2)


def test_copies_are_indexed_once_from_the_start(folder: Path, tmp_path: Path) -> None:
    (folder / "sound9.wav").write_bytes((folder / "sound1.wav").read_bytes())
    built = build_index([folder], LOG_MEL, tmp_path / "index")
    assert built.done == 5
    assert [Path(row["file"]).name for row in built.copies] == ["sound9.wav"]


def test_a_recording_that_moved_keeps_its_vectors(folder: Path, grown: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    moved = (folder / "sound1.wav").rename(tmp_path / "elsewhere" / "song.wav")
    assert "0 added, 0 replaced, 1 moved" in isotone("search", "add", moved, "--index", grown).output
    assert {Path(r.file).name for r in SearchIndex.open(grown).recordings} == {"song.wav", "sound3.wav"}
    best = search(SearchIndex.open(grown), LOG_MEL, query_vectors(LOG_MEL, sounds(9.0, 1)[: 3 * RATE]))[0]
    assert best.file == str(moved)


def test_recordings_that_swap_their_names_are_both_there(folder: Path, grown: Path, tmp_path: Path) -> None:
    first, second = folder / "sound1.wav", folder / "sound3.wav"
    first.rename(folder / "other")
    second.rename(first)
    (folder / "other").rename(second)
    add_recordings([folder / "sound1.wav", folder / "sound3.wav"], LOG_MEL, grown)
    build_index([first, second], LOG_MEL, tmp_path / "once")
    assert content(grown) == content(tmp_path / "once")


def test_a_bad_file_does_not_keep_the_others_out(folder: Path, grown: Path) -> None:
    (folder / "bad.wav").write_bytes(b"no audio")
    assert "bad.wav" in error_of("search", "add", folder, "--index", grown, code=1)
    assert [Path(row["file"]).name for row in lines_of(grown / "errors.jsonl")] == ["bad.wav"]
    assert len(SearchIndex.open(grown).recordings) == 5
    isotone("search", "add", folder / "sound0.wav", "--index", grown)
    assert not (grown / "errors.jsonl").exists()


def test_add_to_nothing_or_with_another_model_is_refused(folder: Path, grown: Path, tmp_path: Path) -> None:
    assert "No index" in error_of("search", "add", folder, "--index", tmp_path / "none")
    assert "No index" in error_of("search", "add", folder, "--index", folder)
    assert "No such file" in error_of("search", "add", tmp_path / "gone", "--index", grown)


# Older indexes


def make_version_1(index: Path) -> None:
    """Turn an index into one of version 1, from before there were thresholds."""
    about = json.loads((index / store.METADATA).read_text())
    rows = lines_of(index / store.FILES)
    old = [{k: r[k] for k in ("file", "id", "duration", "items")} for r in rows]
    (index / store.FILES).write_text("".join(json.dumps(row) + "\n" for row in old))
    size = (index / store.FILES).stat().st_size
    about["files"][store.FILES] = {"bytes": size, "sha256": store.digest_of(index / store.FILES)}
    kept = {k: about[k] for k in ("model", "shape", "files")}
    (index / store.METADATA).write_text(json.dumps({"version": 1, **kept}))


def test_an_index_without_a_threshold_is_searched_and_given_one(folder: Path, tmp_path: Path) -> None:
    build_index([folder], LOG_MEL, tmp_path / "index")
    whole = content(tmp_path / "index")
    make_version_1(tmp_path / "index")
    clip = write(tmp_path / "clip.wav", sounds(3.0, 500))
    said = isotone("search", "query", tmp_path / "index", clip)
    assert "has no threshold; `isotone search add --index" in said.stderr
    assert len(said.stdout.splitlines()) > 2
    isotone("search", "add", "--index", tmp_path / "index")
    assert SearchIndex.open(tmp_path / "index").threshold == whole["threshold"]
    isotone("search", "query", tmp_path / "index", clip, code=3)
    # after another call its recordings have digests
    assert "5 replaced" in isotone("search", "add", folder, "--index", tmp_path / "index").output
    assert content(tmp_path / "index") == whole


# Folders of others


def test_folders_of_others_are_left_alone(folder: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.json").write_text('{"name": "a web site"}')
    (site / "page.html").write_text("<p>")
    for more in ([], ["--overwrite"]):
        assert "is no index" in error_of("search", "index", folder, "--out", site, *more)
    partial = tmp_path / "new.partial"
    partial.mkdir()
    (partial / "notes.txt").write_text("mine")
    for more in ([], ["--overwrite"]):
        said = error_of("search", "index", folder, "--out", tmp_path / "new", *more)
        assert "holds other files" in said
    assert sorted(p.name for p in tmp_path.rglob("*") if p.suffix != ".wav" and p.is_file()) == [
        "index.json", "notes.txt", "page.html"
    ]  # fmt: skip


def test_files_of_others_in_an_index_stay(folder: Path, grown: Path) -> None:
    (grown / "notes.txt").write_text("mine")
    isotone("search", "add", folder, "--index", grown)
    isotone("search", "index", folder / "sound0.wav", "--out", grown, "--overwrite")
    assert (grown / "notes.txt").read_text() == "mine"
    assert [r.id for r in SearchIndex.open(grown).recordings] == ["sound0"]


def test_an_index_in_the_folder_that_it_is_of(folder: Path) -> None:
    isotone("search", "index", folder, "--out", folder / "index")
    assert isotone("search", "add", folder, "--index", folder / "index").output.startswith("0 added")


def test_two_processes_do_not_work_on_one_index(folder: Path, grown: Path) -> None:
    before = (grown / store.METADATA).read_bytes()
    with alone(grown):
        assert "Another process" in error_of("search", "add", folder, "--index", grown)
        assert "Another process" in error_of("search", "index", folder, "--out", grown, "--overwrite")
    assert (grown / store.METADATA).read_bytes() == before


# Kills


class Killed(BaseException):
    pass


@pytest.fixture
def killed_at(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Die at the n-th following change to a file and at all later ones, as a killed process does."""
    left = [0]
    real = {name: getattr(Path, name) for name in ("replace", "rename", "unlink", "rmdir")}

    def dying(name: str):
        def call(self: Path, *arguments: object, **more: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            return real[name](self, *arguments, **more)

        return call

    with monkeypatch.context() as patch:
        for name in real:
            patch.setattr(Path, name, dying(name))
        yield left


def test_a_kill_between_any_two_changes_leaves_the_old_index_or_the_new(
    folder: Path, grown: Path, tmp_path: Path, killed_at: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_at[0] = 10**6
    monkeypatch.setattr(build, "measure", lambda *_: iter([(1.0, Threshold(0.01))]))  # for speed
    old = content(grown)
    build_index([folder], LOG_MEL, tmp_path / "once")
    new = content(tmp_path / "once")
    seen = []
    for steps in range(200):
        killed_at[0] = steps
        try:
            add_recordings([folder], LOG_MEL, grown)
        except Killed:
            pass
        else:
            break
        finally:
            killed_at[0] = 10**6
        now = content(grown)
        seen.append(now == new)
        assert now in (old, new)
    assert content(grown) == new
    assert seen.count(False) > 10
    add_recordings([folder], LOG_MEL, grown)
    assert not store.unfinished(grown).exists()


def test_kill_9_leaves_the_old_index_whole_and_the_next_run_ends(
    folder: Path, grown: Path, tmp_path: Path
) -> None:
    old = content(grown)
    code = (
        "import sys; from pathlib import Path; from isotone.search import add_recordings, open_searcher;"
        "print('go', flush=True); add_recordings([Path(sys.argv[1])], open_searcher(), Path(sys.argv[2]))"
    )
    for wait in (0.02, 0.1, 0.4):
        script = Script(code, folder, grown)
        script.wait_for("go")
        time.sleep(wait)
        script.signal(signal.SIGKILL)
        script.wait()
        if len(SearchIndex.open(grown).recordings) == 2:
            assert content(grown) == old
    add_recordings([folder], LOG_MEL, grown)
    build_index([folder], LOG_MEL, tmp_path / "once")
    assert content(grown) == content(tmp_path / "once")
