"""Laws of indexes."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from isotone.interfaces import Index
from isotone.testing.laws import close, raises, require

_ITEMS = 40


def check_index(index: Index, size: int) -> None:
    """Check an index: adding, removing, searching, saving and loading, and its errors.

    Args:
        index: A new index without items, made with a fingerprint that is not empty.
        size: D, numbers per vector.
    """
    vectors = F.normalize(torch.randn(_ITEMS, size, generator=torch.Generator().manual_seed(0)), dim=1)
    ids = [f"item {number}" for number in range(_ITEMS)]
    require(len(index) == 0 and ids[0] not in index, "a new index has no items")
    positives = torch.arange(_ITEMS).repeat(2, 1).T
    index.fit(vectors, vectors + 0.01, positives)
    index.add(ids[:30], vectors[:30])
    index.add(ids[30:], vectors[30:])
    require(len(index) == _ITEMS, f"{_ITEMS} items were added; the length is {len(index)}")
    require(all(id in index for id in ids), "added ids are in the index")
    _check_add_errors(index, vectors, ids)
    _check_search(index, vectors, ids)
    _check_remove(index, vectors, ids)
    with tempfile.TemporaryDirectory() as folder:
        _check_saved(index, vectors, Path(folder) / "index")


def _check_add_errors(index: Index, vectors: Tensor, ids: list[str]) -> None:
    """Check calls that have to fail and add nothing."""
    nan = vectors[:2].clone()
    nan[1, 0] = torch.nan
    cases: dict[str, Callable[[], object]] = {
        "an id that is there already": lambda: index.add(["new", ids[3]], vectors[:2]),
        "an id twice": lambda: index.add(["new", "new"], vectors[:2]),
        "more ids than vectors": lambda: index.add(["new", "newer"], vectors[:1]),
        "vectors of another size": lambda: index.add(["new"], vectors[:1, 1:]),
        "vectors that are not finite": lambda: index.add(["new", "newer"], nan),
    }
    for case, call in cases.items():
        raises(ValueError, call, case)
        require("new" not in index and len(index) == len(ids), f"{case}: nothing is added")


def _check_search(index: Index, vectors: Tensor, ids: list[str]) -> None:
    found, scores = index.search(vectors[:5], 7)
    require(scores.shape == (5, 7), f"scores are (queries, top), (5, 7); got {tuple(scores.shape)}")
    require(scores.dtype == torch.float32, f"scores are float32; got {scores.dtype}")
    _check_ranking(found, scores, ids)
    for number, (of_one, score) in enumerate(zip(found, scores)):
        # items of equal codes share a score: the item itself may come second
        own = score[of_one.index(ids[number])] if ids[number] in of_one else -torch.inf
        require(bool(own == score[0]), f"an item's own vector finds it first; {ids[number]} got {of_one}")
    single, alone = index.search(vectors[2:3], 7)
    require(single == found[2:3], "a query gives the same alone as in a batch")
    close(alone, scores[2:3], "a query gives the same alone as in a batch")
    _check_ranking(*index.search(vectors[:3], len(ids) + 5), ids)
    raises(ValueError, lambda: index.search(vectors[:1], 0), "top 0")
    raises(ValueError, lambda: index.search(vectors[:1, 1:], 3), "queries of another size")


def _check_ranking(found: list[list[str]], scores: Tensor, ids: list[str]) -> None:
    for of_one, score in zip(found, scores):
        require(bool((score[:-1] >= score[1:]).all()), "scores come best first")
        require(len(set(of_one)) == len(of_one) and set(of_one) <= set(ids), "ids are items, each once")
        finite = int(torch.isfinite(score).sum())
        require(finite == len(of_one), "every id has a finite score; past the ids scores are -inf")


def _check_remove(index: Index, vectors: Tensor, ids: list[str]) -> None:
    raises(KeyError, lambda: index.remove([ids[4], "unknown"]), "an id to remove that is not there")
    require(ids[4] in index, "where an id is not there, nothing is removed")
    index.remove(ids[4:6])
    require(len(index) == _ITEMS - 2 and ids[4] not in index, "removed items are gone")
    found, _ = index.search(vectors[4:6], _ITEMS)
    require(not {*ids[4:6]} & {id for of_one in found for id in of_one}, "removed items are not found")
    index.add([ids[4]], vectors[4:5])
    found, _ = index.search(vectors[4:5], 3)
    require(ids[4] in found[0], "a removed item can be added again")


def _check_saved(index: Index, vectors: Tensor, folder: Path) -> None:
    kind = type(index)
    raises(FileNotFoundError, lambda: kind.load(folder), "a folder that does not exist")
    index.save(folder)
    index.save(folder)  # an index replaces the one before
    require(
        json.loads((folder / "index.json").read_text("utf-8")).get("name") == index.name,
        "index.json has the index's name",
    )
    require(bool(index.fingerprint), "the index under check has a fingerprint")
    expected, scores = index.search(vectors[:5], 7)
    for memory_map in (False, True):
        loaded = kind.load(folder, fingerprint=index.fingerprint, memory_map=memory_map)
        require(len(loaded) == len(index), "a loaded index has the same number of items")
        require(loaded.fingerprint == index.fingerprint, "a loaded index has the same fingerprint")
        found, again = loaded.search(vectors[:5], 7)
        require(found == expected, "a loaded index finds the same")
        close(again, scores, "a loaded index gives the same scores")
    raises(ValueError, lambda: kind.load(folder, fingerprint="another"), "another fingerprint")
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        _check_damaged(kind, folder, file)


def _check_damaged(kind: type[Index], folder: Path, file: Path) -> None:
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    raises(ValueError, lambda: kind.load(folder), f"a {file.name} cut in half")
    if file.name != "index.json":  # without that file the folder holds no index
        file.unlink()
        raises(ValueError, lambda: kind.load(folder), f"a folder without {file.name}")
    file.write_bytes(whole)
