"""Indexing with bad files and interruptions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from isotone.search import (
    SearchIndex,
    build,
    build_index,
    saving,
    store,
)
from isotone.search.embedding import embed_items
from isotone.search.searcher import LogMelSearcher
from tests.search.parts import LOG_MEL, RATE, Killed, collection, sounds, write
from tests.tiny_models import error_of, isotone


def test_one_bad_file_does_not_stop_the_others(tmp_path: Path) -> None:
    folder = collection(tmp_path / "a", (3.0, 4.0))
    (folder / "damaged.wav").write_bytes(b"RIFF not audio")
    (folder / "empty.flac").write_bytes(b"")
    holes = sounds(2.0, 5)
    holes[7] = np.nan
    soundfile.write(folder / "holes.wav", holes, RATE, subtype="FLOAT")
    said = error_of("search", "index", folder, "--out", tmp_path / "index", code=1)
    assert "3 failed" in said
    rows = [json.loads(line) for line in (tmp_path / "index" / "errors.jsonl").read_text().splitlines()]
    assert {Path(row["file"]).name for row in rows} == {"damaged.wav", "empty.flac", "holes.wav"}
    assert all(row["error"] for row in rows)
    assert [r.id for r in SearchIndex.open(tmp_path / "index").recordings] == ["sound0", "sound1"]


def test_without_any_good_file_there_is_no_index(tmp_path: Path) -> None:
    write(tmp_path / "a.wav", sounds(1.0, 0)).write_bytes(b"x")
    assert "None of 1 files" in error_of("search", "index", tmp_path / "a.wav", "--out", tmp_path / "index")
    assert [p.name for p in tmp_path.iterdir()] == ["a.wav"]


@pytest.mark.parametrize("cut", ["clean", "half a line", "half a vector"])
def test_an_interrupted_run_goes_on(
    recordings: Path, index: SearchIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: str
) -> None:
    embedded: list[int] = []

    def dying(searcher: LogMelSearcher, samples: np.ndarray) -> tuple:
        if len(embedded) == 2:
            raise Killed
        embedded.append(len(samples))
        return embed_items(searcher, samples)

    out = tmp_path / "index"
    monkeypatch.setattr(build, "embed_items", dying)
    with pytest.raises(Killed):
        build_index([recordings], LOG_MEL, out)
    assert not out.exists()
    assert "unfinished" in error_of("search", "query", out, recordings / "sound0.wav")
    partial = store.unfinished(out)
    if cut == "half a line":
        with (partial / "done.jsonl").open("a") as file:
            file.write('{"place": "/so')
    if cut == "half a vector":
        with (partial / "embedded.f16").open("ab") as file:
            file.write(b"abc")
    done: list[int] = []
    monkeypatch.setattr(build, "embed_items", lambda s, x: (done.append(len(x)), embed_items(s, x))[1])
    assert build_index([recordings], LOG_MEL, out).done == 4
    assert len(done) == 2  # the two that were missing
    resumed = SearchIndex.open(out)
    for name in ("items", "vectors"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(index, name))
    codes, expected = (i.candidates.index._engine.codes for i in (resumed, index))  # type: ignore[attr-defined]
    np.testing.assert_array_equal(codes, expected)
    assert [r.id for r in resumed.recordings] == [r.id for r in index.recordings]
    assert not partial.exists()


def test_a_file_that_changed_meanwhile_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = collection(tmp_path / "a", (2.0, 3.0, 4.0))

    def dying(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(saving, "finish", dying)
        with pytest.raises(Killed):
            build_index([folder], LOG_MEL, tmp_path / "index")
    write(folder / "sound1.wav", sounds(5.0, 9))
    build_index([folder], LOG_MEL, tmp_path / "index")
    found = {r.id: r.duration for r in SearchIndex.open(tmp_path / "index").recordings}
    assert found == {"sound0": 2.0, "sound1": 5.0, "sound2": 4.0}


def test_an_index_is_replaced_only_when_told_to(tmp_path: Path) -> None:
    folder = collection(tmp_path / "a", (2.0,))
    isotone("search", "index", folder, "--out", tmp_path / "index")
    assert "--overwrite" in error_of("search", "index", folder, "--out", tmp_path / "index")
    write(folder / "more.wav", sounds(2.0, 4))
    isotone("search", "index", folder, "--out", tmp_path / "index", "--overwrite")
    assert len(SearchIndex.open(tmp_path / "index").recordings) == 2
    assert "is no index" in error_of("search", "index", folder, "--out", folder, "--overwrite")
    assert (folder / "more.wav").exists()


def test_an_index_that_is_replaced_while_it_is_opened_is_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are those of the new one, and none of them is damaged."""
    folder = collection(tmp_path / "a", (2.0,))
    build_index([folder], LOG_MEL, tmp_path / "index")
    write(folder / "more.wav", sounds(2.0, 4))
    really, waiting = store._stage, [True]

    def replaced(*arguments: Any) -> Any:
        if waiting:
            waiting.clear()
            build.add_recordings([folder], LOG_MEL, tmp_path / "index")
        return really(*arguments)

    monkeypatch.setattr(store, "_stage", replaced)
    assert len(SearchIndex.open(tmp_path / "index").recordings) == 2
