"""The base of indexes of vectors: ids and a folder around engines that search."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import torch
from torch import Tensor

from isotone.files import atomic_folder
from isotone.interfaces import Index
from isotone.search.folder import CorruptIndex, read_metadata, write_metadata
from isotone.search.ids import Ids

_IDS = "ids.json"

#: Called after every step of training with its number from 1, the number of steps, and the loss.
Progress = Callable[[int, int, float], None]


class Engine(Protocol):
    """Numbered rows of data that can be searched, without ids.

    Attributes:
        gone: Numbers of removed rows that the engine still holds.
        mapped: True where the data is on disk and cannot be changed.
    """

    gone: set[int]
    mapped: bool

    @property
    def trained(self) -> bool:
        """True where rows can be added."""
        ...

    def train(self, data: np.ndarray) -> None:
        """Learn from data ``(N, ..)``, before the first row is added."""
        ...

    def add(self, rows: np.ndarray, data: np.ndarray) -> None:
        """Add rows ``(N, ..)`` under their numbers ``(N,)`` int64, which increase."""
        ...

    def remove(self, rows: np.ndarray) -> None:
        """Take rows out."""
        ...

    def search(self, data: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
        """Find the ``top`` rows of each query: scores ``(Q, top)`` and rows, -inf and -1 past the last."""
        ...

    def write(self, folder: Path, number: int) -> None:
        """Write files of its own into a folder; ``number`` is the engine's, if there are several."""
        ...

    def read(self, folder: Path, number: int, memory_map: bool) -> None:
        """Read what :meth:`write` wrote; ValueError where it is damaged."""
        ...


class VectorIndex(Index):
    """The base of indexes of vectors. A subclass makes its engines and the data for them.

    Args:
        size: D, numbers of a vector.
        fingerprint: What made the vectors.
        options: The other options of the class, which the folder keeps.
    """

    def __init__(self, size: int, *, fingerprint: str, options: dict[str, Any]) -> None:
        if size < 1:
            raise ValueError(f"An index expects vectors of at least one number; got size {size}.")
        self.size = size
        self.fingerprint = fingerprint
        self.options = options
        self._engines: Sequence[Any] = []  # each an Engine
        self._ids = Ids()
        self._next = 0

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, id: object) -> bool:
        return id in self._ids

    def fit(
        self,
        corpus: Tensor,
        queries: Tensor | None = None,
        positives: Tensor | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Learn codes, where a class learns codes, then the lists of an index that has lists.

        Args:
            corpus, queries, positives: As in :meth:`isotone.interfaces.Index.fit`.
            progress: Called after every step of training.

        Raises:
            ValueError: the index has items, or the vectors do not fit.
        """
        self._check_writable()
        if self._next:
            raise ValueError(f"The index has had {self._next} items: fit before the first is added.")
        self._vectors(corpus)
        if queries is not None:
            self._vectors(queries)
        self._learn(corpus, corpus if queries is None else queries, positives, progress)
        for engine, data in zip(self._engines, self._data(corpus)):
            engine.train(data)

    def add(self, ids: Sequence[str], vectors: Tensor) -> None:
        """Add items; arguments and errors as in :meth:`isotone.interfaces.Index.add`."""
        self._check_writable()
        ids = list(ids)
        self._check_new(ids, len(vectors))
        self._add(ids, self._data(vectors))

    def remove(self, ids: Sequence[str]) -> None:
        """Take items out; KeyError where an id is not there."""
        self._check_writable()
        if missing := [id for id in ids if id not in self._ids]:
            more = f", and {len(missing) - 1} others are missing, too" if len(missing) > 1 else ""
            raise KeyError(f"There is no item {missing[0]!r} to remove{more}; nothing was removed.")
        rows = [self._ids.pop(id) for id in dict.fromkeys(ids)]
        for engine in self._engines:
            engine.remove(np.array(rows, np.int64))

    def search(self, queries: Tensor, top: int) -> tuple[list[list[str]], Tensor]:
        """The best items of every query; arguments and results as in :meth:`isotone.interfaces.Index.search`."""
        if top < 1:
            raise ValueError(f"A search expects top >= 1; got {top}.")
        data, most = self._data(queries), min(top, len(self))
        if not most:
            return [[] for _ in queries], torch.empty(len(queries), 0)
        scores, rows = self._search(data, most)  # engines make room for as many
        found = [[self._ids.of(row) for row in of_one if row >= 0] for of_one in rows.tolist()]
        return found, torch.from_numpy(scores)

    def save(self, folder: Path) -> None:
        """Write the index to a folder, replacing it whole.

        Raises:
            ValueError: its data is on disk already, or it has nothing to save yet.
        """
        self._check_writable()
        if not all(engine.trained for engine in self._engines):
            raise ValueError(
                f"The index {self.name!r} has not learned anything to save: call fit(corpus) first."
            )
        with atomic_folder(folder) as new:
            for number, engine in enumerate(self._engines):
                engine.write(new, number)
            about = {"next": self._next, **self._ids.state()}
            about["gone"] = [sorted(engine.gone) for engine in self._engines]
            (new / _IDS).write_text(json.dumps(about, ensure_ascii=False), encoding="utf-8")
            self._write(new)
            write_metadata(new, self.name, self.fingerprint, size=self.size, options=self.options)

    @classmethod
    def load(
        cls,
        folder: Path,
        *,
        fingerprint: str | None = None,
        memory_map: bool = False,
        verify: bool = True,
    ) -> Self:
        """Read a folder; arguments and errors as in :meth:`isotone.interfaces.Index.load`.

        Args:
            folder, fingerprint, memory_map: As in :meth:`isotone.interfaces.Index.load`.
            verify: Read every file once and compare its SHA-256, so that damage is found here and not in a search.
                Sizes are always compared.
        """
        folder = Path(folder)
        about = read_metadata(folder, cls.name, fingerprint, verify=verify)
        index = cls(about["size"], fingerprint=about["fingerprint"], **about["options"])
        try:
            index._read(folder)
            names = json.loads((folder / _IDS).read_text(encoding="utf-8"))
            for number, engine in enumerate(index._engines):
                engine.read(folder, number, memory_map)
                engine.gone = set(names["gone"][number])
            index._next = names["next"]
            index._ids = Ids.restored(names)
        except (ValueError, KeyError, TypeError, IndexError, OSError) as error:
            raise CorruptIndex(f"The index at {folder} is damaged: {error}") from error
        return index

    def _learn(
        self, corpus: Tensor, queries: Tensor, positives: Tensor | None, progress: Progress | None
    ) -> None:
        """Learn how vectors become the engines' data; by default nothing."""

    def _data(self, vectors: Tensor) -> list[np.ndarray]:
        """Return the data of vectors ``(N, size)`` for each engine."""
        return [self._vectors(vectors)]

    def _check_new(self, ids: list[str], count: int) -> None:
        if len(ids) != count:
            raise ValueError(f"Expected an id for each of the {count} vectors; got {len(ids)}.")
        if len({*ids}) < len(ids):
            twice = next(id for n, id in enumerate(ids) if id in ids[:n])
            raise ValueError(f"The id {twice!r} comes twice: every item needs one of its own.")
        if known := next((id for id in ids if id in self._ids), None):
            raise ValueError(
                f"There is an item {known!r} already: remove it first, or leave out those `in` the index."
            )

    def _add(self, ids: list[str], data: Sequence[Any]) -> None:
        """Add the data of new items to every engine."""
        self._check_trained()
        rows = np.arange(self._next, self._next + len(ids), dtype=np.int64)
        for engine, of_engine in zip(self._engines, data):
            engine.add(rows, of_engine)
        self._number(ids)

    def _check_trained(self) -> None:
        if not all(engine.trained for engine in self._engines):
            raise ValueError(f"The index {self.name!r} has to learn first: call fit(corpus) before add.")

    def _number(self, ids: list[str]) -> None:
        """Give the next rows their ids."""
        self._ids.add(ids, self._next)
        self._next += len(ids)

    def _search(self, data: list[np.ndarray], top: int) -> tuple[np.ndarray, np.ndarray]:
        return self._engines[0].search(data[0], top)

    def _write(self, folder: Path) -> None:
        """Write the parts of a subclass beside its engines."""

    def _read(self, folder: Path) -> None:
        """Read what :meth:`_write` wrote."""

    def _vectors(self, vectors: Tensor) -> np.ndarray:
        if vectors.ndim != 2 or vectors.shape[1] != self.size:
            raise ValueError(f"Expected vectors of shape (N, {self.size}); got {tuple(vectors.shape)}.")
        data = np.ascontiguousarray(vectors.detach().float().cpu().numpy())
        if not np.isfinite(data).all():
            row = np.flatnonzero(~np.isfinite(data).all(1))[0]
            raise ValueError(f"Vector {row} is not finite.")
        return data

    def _check_writable(self) -> None:
        if any(engine.mapped for engine in self._engines):
            raise ValueError("The index's data is on disk: load it with memory_map=False to change it.")
