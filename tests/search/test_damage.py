"""Damaged indexes are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from isotone.search import (
    CorruptIndex,
    IndexMismatch,
    SearchIndex,
    build_index,
    query_vectors,
    search,
    store,
)
from tests.search.parts import LOG_MEL, sounds
from tests.tiny_models import error_of


def _cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-2])


def _change(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def _remove(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize(
    "name, harm",
    [
        *((name, harm) for name in ("stage/codes.npy", store.ITEMS, "stage/centroids.npy", store.FILES) for harm in
          (_cut_short, _change, _remove)),
        (store.VECTORS, _cut_short),
        (store.VECTORS, _remove),
        (store.METADATA, _cut_short),
    ],
)  # fmt: skip
def test_a_damaged_index_is_refused(
    recordings: Path, tmp_path: Path, name: str, harm: Callable[[Path], None]
) -> None:
    build_index([recordings / "sound3.wav"], LOG_MEL, tmp_path / "index")
    harm(tmp_path / "index" / name)
    with pytest.raises(CorruptIndex, match=name):
        SearchIndex.open(tmp_path / "index")
    assert name in error_of("search", "query", tmp_path / "index", recordings / "sound3.wav")


def test_vectors_that_became_nan_are_noticed(recordings: Path, tmp_path: Path) -> None:
    build_index([recordings / "sound3.wav"], LOG_MEL, tmp_path / "index")
    np.memmap(tmp_path / "index" / store.VECTORS, np.float16, "r+")[5] = np.nan
    opened = SearchIndex.open(tmp_path / "index")
    with pytest.raises(CorruptIndex, match="NaN"):
        search(opened, LOG_MEL, query_vectors(LOG_MEL, sounds(2.0, 0)))


def test_an_index_of_another_version_is_refused(recordings: Path, tmp_path: Path) -> None:
    build_index([recordings / "sound3.wav"], LOG_MEL, tmp_path / "index")
    path = tmp_path / "index" / store.METADATA
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 99}))
    with pytest.raises(IndexMismatch, match="99"):
        SearchIndex.open(tmp_path / "index")


def test_no_index_at_all(recordings: Path, tmp_path: Path) -> None:
    assert "No index" in error_of("search", "query", tmp_path / "none", recordings / "sound0.wav")
