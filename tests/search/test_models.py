"""Indexes of trained models, and indexes and models that do not belong together."""

from __future__ import annotations

import json
from pathlib import Path

import isotone_opas.searcher
import pytest
import soundfile
import torch

from isotone import searchers
from isotone.search import (
    IndexMismatch,
    SearchIndex,
    build_index,
    open_searcher,
    query_vectors,
    saving,
    search,
)
from isotone.search.embedding import embed_items
from tests.search.parts import LOG_MEL, Killed, save_opas, sounds, write
from tests.tiny_models import error_of, isotone


def test_a_trained_model_is_found_by_what_its_folder_holds(recordings: Path, tmp_path: Path) -> None:
    assert searchers.get("opas") is isotone_opas.searcher.OPASSearcher
    model = save_opas(tmp_path / "model")
    isotone("search", "index", recordings, "--out", tmp_path / "index", "--model", model)
    opened = SearchIndex.open(tmp_path / "index")
    assert opened.model["name"] == "opas"
    assert opened.model["window_s"] == opened.model["hop_s"] == 1000 / 16_000
    whole, _ = soundfile.read(recordings / "sound2.wav", dtype="float32")
    clip = write(tmp_path / "clip.wav", whole[10_000:13_000])  # three windows on the grid
    isotone("search", "query", tmp_path / "index", clip, "--out", tmp_path / "found", "--top", "2")
    best = json.loads((tmp_path / "found" / "results.json").read_text())["matches"][0]
    assert (best["id"], best["start_s"], best["end_s"]) == ("sound2", 10_000 / 16_000, 13_000 / 16_000)
    assert 0 < best["score"] < 1


def test_vectors_are_those_of_the_model(recordings: Path, tmp_path: Path) -> None:
    searcher = open_searcher(save_opas(tmp_path / "model"))
    samples = sounds(2.0, 5)
    vectors, spans = embed_items(searcher, samples)
    windows = torch.from_numpy(samples[:32_000]).view(32, 1000)
    expected = searcher.vectors(windows[None])[0]  # each window by itself, for this model
    assert spans == [(start, 8) for start in range(0, 25, 4)]
    for item, (start, length) in zip(vectors, spans):
        torch.testing.assert_close(item, expected[start : start + length])


def test_an_index_made_by_another_model_is_refused(recordings: Path, tmp_path: Path) -> None:
    first, second = save_opas(tmp_path / "a", 0), save_opas(tmp_path / "b", 1)
    one = recordings / "sound0.wav"
    isotone("search", "index", one, "--out", tmp_path / "index", "--model", first)
    said = error_of("search", "query", tmp_path / "index", one, "--model", second, "--end", "0.2")
    assert "made with" in said
    opened = SearchIndex.open(tmp_path / "index")
    with pytest.raises(IndexMismatch):
        search(opened, LOG_MEL, query_vectors(LOG_MEL, sounds(1.0, 0)))
    moved = first.rename(tmp_path / "moved")
    assert "No folder" in error_of("search", "query", tmp_path / "index", one, "--end", "0.2")
    isotone("search", "query", tmp_path / "index", one, "--model", moved, "--end", "0.2", "--all")


def test_an_unfinished_index_of_another_model_is_not_mixed(
    recordings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dying(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(saving, "finish", dying)
        with pytest.raises(Killed):
            build_index([recordings / "sound0.wav"], LOG_MEL, tmp_path / "index")
    other = open_searcher(save_opas(tmp_path / "model"))
    with pytest.raises(ValueError, match="another model"):
        build_index([recordings / "sound0.wav"], other, tmp_path / "index")
    build_index([recordings / "sound0.wav"], LOG_MEL, tmp_path / "index")


def test_folders_that_hold_no_model_are_refused(recordings: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="opas"):
        open_searcher(recordings)
    with pytest.raises(FileNotFoundError):
        open_searcher(tmp_path / "none")
