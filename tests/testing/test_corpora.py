"""Every law of corpora can fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from isotone.corpus import features
from isotone.interfaces import Corpus
from isotone.testing import check_corpus
from tests.corpus.miniatures import record

Row = dict[str, Any]
NOTHING = {"label": [], "start": [], "end": []}


def tier(*spans: tuple[str, float, float]) -> dict[str, list[Any]]:
    labels, starts, ends = zip(*spans)
    return {"label": list(labels), "start": list(starts), "end": list(ends)}


class Rows(Corpus):
    """Two utterances of one recording in train and one in test, with an optional change of their rows."""

    def __init__(self, folder: Path, change: Callable[[Row], Row] = dict) -> None:
        record(folder / "a.wav", seconds=1.0)
        self.path, self.change, self.loads = folder / "a.wav", change, 0

    def load(self, split: str) -> Dataset:
        if split not in ("train", "test"):
            raise ValueError(f"There is no split {split!r}.")
        self.loads += 1
        row = {
            "audio": str(self.path), "start": 0.0, "end": 0.5, "text": "a b",
            "words": tier(("a", 0.0, 0.2), ("b", 0.2, 0.5)), "phones": NOTHING, "speaker": "",
        }  # fmt: skip
        rows = [{"id": f"{split}-{i}", **row} for i in range(2 if split == "train" else 1)]
        return Dataset.from_list([self.change(r) for r in rows], features=features())


def test_a_corpus_that_keeps_the_laws_passes(tmp_path: Path) -> None:
    check_corpus(Rows(tmp_path), ["train", "test"])


@pytest.mark.parametrize(
    ("change", "law"),
    [
        ({"id": "same"}, "ids are unique"),
        ({"id": ""}, "ids are unique"),
        ({"audio": "nowhere.wav"}, "is a file"),
        ({"end": 1.5}, r"lies within its 1.000 s of audio"),
        ({"start": 0.5}, r"lies within its 1.000 s of audio"),
        ({"text": None}, "the text of .* is a string"),
        ({"speaker": None}, "the speaker of .* is a string"),
        ({"words": tier(("a", 0.0, 0.7))}, "words lie within 0.500 s"),
        ({"phones": tier(("a", 0.2, 0.3), ("b", 0.1, 0.2))}, "phones come in order"),
        ({"phones": tier(("a", 0.3, 0.2))}, "phones come in order"),
        ({"words": {"label": ["a"], "start": [0.0], "end": []}}, "have a start and an end each"),
    ],
)
def test_a_corpus_that_breaks_a_law_is_caught(change: Row, law: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=law):
        check_corpus(Rows(tmp_path, lambda row: {**row, **change}), ["train", "test"])


@pytest.mark.parametrize(
    ("wrong", "law"),
    [
        (lambda rows, split: rows.remove_columns("speaker"), "columns are"),
        (lambda rows, split: rows.select([]), "the split 'train' has rows"),
    ],
)
def test_a_corpus_of_wrong_tables_is_caught(
    wrong: Callable[[Dataset, str], Dataset], law: str, tmp_path: Path
) -> None:
    class Wrong(Rows):
        def load(self, split: str) -> Dataset:
            return wrong(super().load(split), split)

    with pytest.raises(AssertionError, match=law):
        check_corpus(Wrong(tmp_path), ["train"])


def test_a_corpus_that_is_another_at_every_load_is_caught(tmp_path: Path) -> None:
    corpus = Rows(tmp_path)
    corpus.change = lambda row: {**row, "text": str(corpus.loads)}
    with pytest.raises(AssertionError, match="the same when it is loaded again"):
        check_corpus(corpus, ["train"])


@pytest.mark.parametrize("error", [None, KeyError("no such split"), ValueError("wrong")])
def test_a_corpus_that_takes_unknown_splits_is_caught(error: Exception | None, tmp_path: Path) -> None:
    class Takes(Rows):
        def load(self, split: str) -> Dataset:
            if split == "no such split" and error is not None:
                raise error
            return super().load("train" if split == "no such split" else split)

    law = "names it" if isinstance(error, ValueError) else "ValueError for an unknown split"
    with pytest.raises(AssertionError, match=law):
        check_corpus(Takes(tmp_path), ["train"])
