"""Every law of indexes can fail."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest
import torch
from torch import Tensor

from isotone import indexes
from isotone.interfaces import Index
from isotone.testing import check_index

Flat: Any = indexes.get("faiss-flat")


class Broken(Flat):
    """An exact index with one fault, an attribute of the class so that loaded indexes have it, too."""

    fault: ClassVar[str] = ""
    loaded = False

    def __contains__(self, id: object) -> bool:
        return super().__contains__(id) and self.fault != "does not know its ids"

    def save(self, folder: Path) -> None:
        super().save(folder)
        if self.fault == "saves another name":
            about = json.loads((folder / "index.json").read_text())
            (folder / "index.json").write_text(json.dumps({**about, "name": "another"}))

    def add(self, ids: Sequence[str], vectors: Tensor) -> None:
        if self.fault == "overwrites":
            ids, kept = [*ids], [id not in self for id in ids]
            ids, vectors = [id for id, k in zip(ids, kept) if k], vectors[torch.tensor(kept)]
        if self.fault == "takes half" and len(ids) == 2 and ids[1] in self:
            super().add(ids[:1], vectors[:1])
        if self.fault == "takes NaN":
            vectors = vectors.nan_to_num()
        super().add(ids, vectors)

    def remove(self, ids: Sequence[str]) -> None:
        if self.fault == "ignores unknown ids":
            ids = [id for id in ids if id in self]
        if self.fault == "removes before it looks":
            for id in ids:
                super().remove([id])
            return
        super().remove(ids)

    def search(self, queries: Tensor, top: int) -> tuple[list[list[str]], Tensor]:
        ids, scores = super().search(queries, top)
        match self.fault:
            case "doubles":
                return ids, scores.double()
            case "one score":
                return ids, scores[:, :1]
            case "worst first":
                return [row[::-1] for row in ids], scores.flip(1)
            case "another first":
                return [[*row[1:], row[0]] for row in ids], scores
            case "ids twice":
                return [[row[0], *row[:-1]] for row in ids], scores
            case "zeros past the ids":
                return [row[:-1] for row in ids], scores
            case "queries of a batch" if len(queries) == 1:
                return ids, scores + 1
            case "finds others when loaded" if self.loaded:
                return [[*row[:-1], "item 39"] for row in ids], scores
            case "scores differ when loaded" if self.loaded:
                return ids, scores / 2
            case "finds what was removed" if "item 4" not in self:
                return [[*row[:-1], "item 4"] for row in ids], scores
        return ids, scores

    @classmethod
    def load(cls, folder: Path, *, fingerprint: str | None = None, memory_map: bool = False) -> Self:
        if cls.fault == "any fingerprint":
            fingerprint = None
        if cls.fault == "no folder is an error of its own" and not folder.is_dir():
            raise ValueError("no index")
        try:
            found = super().load(folder, memory_map=memory_map, fingerprint=fingerprint)
        except ValueError:
            if cls.fault != "damage is ignored" or fingerprint is not None:
                raise
            return cls(16)
        found.loaded = True
        if cls.fault == "loses an item":
            found.remove(["item 20"])
        if cls.fault == "forgets its fingerprint":
            found.fingerprint = ""
        return found


def broken(fault: str) -> Index:
    kind: Any = type(fault, (Broken,), {"fault": fault})
    index: Index = kind(16, fingerprint="model-1")
    return index


def test_an_index_that_keeps_the_laws_passes() -> None:
    check_index(broken("none"), 16)


@pytest.mark.parametrize(
    ("fault", "law"),
    [
        ("overwrites", "ValueError for an id that is there already"),
        ("takes half", "an id that is there already: nothing is added"),
        ("takes NaN", "ValueError for vectors that are not finite"),
        ("ignores unknown ids", "KeyError for an id to remove"),
        ("removes before it looks", "where an id is not there, nothing is removed"),
        ("doubles", "scores are float32"),
        ("one score", r"scores are \(queries, top\)"),
        ("worst first", "best first"),
        ("another first", "own vector finds it first"),
        ("ids twice", "each once"),
        ("zeros past the ids", "past the ids scores are -inf"),
        ("queries of a batch", "the same alone as in a batch"),
        ("any fingerprint", "ValueError for another fingerprint"),
        ("no folder is an error of its own", "FileNotFoundError for a folder that does not exist"),
        ("damage is ignored", "ValueError for a 0.faiss cut in half"),
        ("loses an item", "the same number of items"),
        ("forgets its fingerprint", "the same fingerprint"),
        ("finds others when loaded", "a loaded index finds the same"),
        ("scores differ when loaded", "a loaded index gives the same scores"),
        ("does not know its ids", "added ids are in the index"),
        ("finds what was removed", "removed items are not found"),
        ("saves another name", "index.json has the index's name"),
    ],
)
def test_an_index_that_breaks_a_law_is_caught(fault: str, law: str) -> None:
    with pytest.raises(AssertionError, match=law):
        check_index(broken(fault), 16)


@pytest.mark.parametrize(
    ("change", "law"),
    [
        (lambda index: index.add(["old"], torch.ones(1, 16)), "a new index has no items"),
        (lambda index: setattr(index, "remove", lambda ids: None), "KeyError for an id to remove"),
        (lambda index: setattr(index, "fingerprint", ""), "has a fingerprint"),
        (lambda index: setattr(index, "add", lambda ids, vectors: None), "items were added"),
    ],
)
def test_an_index_in_a_wrong_state_is_caught(change: Callable[[Any], object], law: str) -> None:
    index = broken("none")
    change(index)
    with pytest.raises(AssertionError, match=law):
        check_index(index, 16)
