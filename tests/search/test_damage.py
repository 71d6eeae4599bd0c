"""Damaged indexes are refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from isotone.search import (
    CorruptIndex,
    IndexMismatch,
    SearchIndex,
    add_recordings,
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
        *((name, harm) for name in ("stage/codes.npy", store.ITEMS, "stage/centroids.npy", "stage/index.json",
                                          store.FILES, store.CHECKS) for harm in (_cut_short, _change, _remove)),
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


def _without_checks(folder: Path) -> None:
    """Make an index as it was before there were checksums of the vectors and of the first stage."""
    about = json.loads((folder / store.METADATA).read_text())
    del about["files"][store.CHECKS], about["stage_sha256"]
    (folder / store.METADATA).write_text(json.dumps(about))
    (folder / store.CHECKS).unlink()


def _zero(path: Path) -> None:
    """Zero a part of a file, as a crash of the machine can do."""
    np.memmap(path, np.uint8, "r+")[256:1024] = 0


@pytest.mark.parametrize("harm", [_change, _zero])
def test_vectors_that_are_not_those_that_were_saved_are_refused(
    recordings: Path, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    folder = tmp_path / "index"
    build_index([recordings / "sound3.wav"], LOG_MEL, folder)
    harm(folder / store.VECTORS)
    opened = SearchIndex.open(folder)
    with pytest.raises(
        CorruptIndex, match=r"vectors\.f16 is damaged: it holds other vectors than were saved"
    ):
        search(opened, LOG_MEL, query_vectors(LOG_MEL, sounds(2.0, 0)))
    assert "other vectors" in error_of("search", "query", folder, recordings / "sound3.wav")
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    with pytest.raises(CorruptIndex, match="other vectors"):
        add_recordings([recordings / "sound2.wav"], LOG_MEL, folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_the_first_stage_of_another_index_is_refused(recordings: Path, tmp_path: Path) -> None:
    for name in ("sound2", "sound3"):
        build_index([recordings / f"{name}.wav"], LOG_MEL, tmp_path / name)
    shutil.rmtree(tmp_path / "sound3/stage")
    shutil.copytree(tmp_path / "sound2/stage", tmp_path / "sound3/stage")
    with pytest.raises(CorruptIndex, match=r"stage/index\.json is not what was saved"):
        SearchIndex.open(tmp_path / "sound3")


def test_indexes_without_checksums_are_searched_and_grow(recordings: Path, tmp_path: Path) -> None:
    folder, both = tmp_path / "index", [recordings / "sound2.wav", recordings / "sound3.wav"]
    build_index(both, LOG_MEL, tmp_path / "new")
    build_index(both[1:], LOG_MEL, folder)
    _without_checks(folder)
    query = query_vectors(LOG_MEL, sounds(4.0, 3))
    assert search(SearchIndex.open(folder), LOG_MEL, query)[0].score == pytest.approx(1.0, abs=1e-3)
    add_recordings(both[:1], LOG_MEL, folder)
    grown, whole = SearchIndex.open(folder), SearchIndex.open(tmp_path / "new")
    assert grown.checks is not None
    assert whole.checks is not None
    np.testing.assert_array_equal(grown.checks.values, whole.checks.values)


def test_vectors_that_became_nan_are_noticed(recordings: Path, tmp_path: Path) -> None:
    build_index([recordings / "sound3.wav"], LOG_MEL, tmp_path / "index")
    _without_checks(tmp_path / "index")
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
