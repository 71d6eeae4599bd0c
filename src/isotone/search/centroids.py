"""The index ``centroids``: items as codes of their vectors' nearest centroids, searched in order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isotone.interfaces import SequenceIndex
from isotone.search.codes import SILENCE, encode, fit_centroids, scan
from isotone.search.vectors import VectorIndex
from isotone.types import mask_rows

_PARTS = ("centroids", "codes", "lengths")


class CentroidEngine:
    """Codes of items on numbered rows, see :mod:`isotone.search.codes`.

    Args:
        most: Most centroids.
        points: Least number of vectors per centroid to find them from.
        seed: Of the draws that find them.

    Attributes:
        centroids: ``(K, d)`` float32.
        codes: ``(N, n)`` uint16, :data:`~isotone.search.codes.SILENCE` beyond the lengths.
        lengths: ``(N,)`` uint16; 0 for removed rows.
    """

    def __init__(self, most: int, points: int, seed: int) -> None:
        self.most, self.points, self.seed = most, points, seed
        self.centroids = torch.zeros(0, 0)
        self.codes: NDArray[np.uint16] = np.zeros((0, 0), np.uint16)
        self.lengths: NDArray[np.uint16] = np.zeros(0, np.uint16)
        # blocks that were added, until the next search joins them
        self._new: list[tuple[NDArray[np.uint16], NDArray[np.uint16]]] = []
        self.gone: set[int] = set()
        self.mapped = False

    @property
    def trained(self) -> bool:
        """True where the centroids are found."""
        return len(self.centroids) > 0

    def train(self, data: np.ndarray) -> None:
        """Find centroids of vectors ``(N, d)``."""
        if not len(data):
            raise ValueError("Centroids are found from at least one vector; got none.")
        count = min(self.most, max(1, len(data) // self.points))
        self.centroids = fit_centroids(torch.from_numpy(data), count, seed=self.seed)

    def add(self, rows: np.ndarray, data: np.ndarray) -> None:
        """Add vectors as items of length 1; numbers continue those before."""
        self.add_items(torch.from_numpy(data)[:, None], np.ones(len(data), np.uint16))

    def add_items(self, vectors: Tensor, lengths: NDArray[np.uint16]) -> None:
        """Add items ``(N, n, d)``, zero beyond their lengths."""
        self._new.append((encode(vectors, self.centroids), lengths))

    def remove(self, rows: np.ndarray) -> None:
        """Take rows out: their codes stay, and are not found."""
        self.join()
        self.lengths[rows] = 0

    def search(self, data: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
        """Find the rows with the centroids nearest to each query; scores are minus squared distances."""
        self.join()
        queries = torch.from_numpy(data)
        silence = torch.zeros(1, self.centroids.shape[1])
        places = -torch.cdist(queries, torch.cat([silence, self.centroids])).square().numpy()
        scores = np.full((len(data), top), -np.inf, np.float32)
        rows = np.full((len(data), top), -1)
        inside = np.arange(self.codes.shape[1]) < self.lengths[:, None]
        for q, place in enumerate(places):
            best = np.where(inside, place[self.codes], -np.inf).max(1, initial=-np.inf)
            found = np.argsort(-best, kind="stable")[: min(top, int(np.isfinite(best).sum()))]
            scores[q, : len(found)], rows[q, : len(found)] = best[found], found
        return scores, rows

    def join(self) -> None:
        """Join the blocks that were added to one table."""
        if not self._new:
            return
        width = max(self.codes.shape[1], *(codes.shape[1] for codes, _ in self._new))
        parts = [(self.codes, self.lengths), *self._new]
        padded = [
            np.pad(codes, ((0, 0), (0, width - codes.shape[1])), constant_values=SILENCE)
            for codes, _ in parts
        ]
        self.codes, self.lengths = np.concatenate(padded), np.concatenate([n for _, n in parts])
        self._new = []

    def write(self, folder: Path, number: int) -> None:
        """Write ``centroids.npy``, ``codes.npy`` and ``lengths.npy``."""
        self.join()
        for name in _PARTS:
            np.save(folder / f"{name}.npy", np.asarray(getattr(self, name)), allow_pickle=False)

    def read(self, folder: Path, number: int, memory_map: bool) -> None:
        """Read what :meth:`write` wrote."""
        mode: Any = "r" if memory_map else None
        parts = {name: np.load(folder / f"{name}.npy", mmap_mode=mode, allow_pickle=False) for name in _PARTS}
        self.centroids = torch.from_numpy(np.array(parts["centroids"]))
        self.codes, self.lengths = parts["codes"], np.array(parts["lengths"])
        if self.codes.shape[:1] != self.lengths.shape:
            raise ValueError("its codes and lengths are of different numbers of items")
        self.mapped = memory_map


class CentroidIndex(VectorIndex, SequenceIndex):
    """Items as numbers of their vectors' nearest centroids: two bytes per vector, and a scan of all items in order.

    Vectors have norm 1, or 0 for silence. Scores of sequences are means of cosines over the best ordered choice
    of an item's windows, see :func:`isotone.search.codes.scan`; those of single vectors are minus
    squared distances from the item's nearest centroid. Call ``fit(corpus)`` first.

    Args:
        size: D, numbers of a vector.
        centroids: Most centroids.
        points: Least number of vectors per centroid to find them from; there are fewer centroids where vectors are few.
        seed: Of the draws that find them.
        fingerprint: What made the vectors.
    """

    name = "centroids"

    def __init__(
        self, size: int, *, centroids: int = 2048, points: int = 16, seed: int = 0, fingerprint: str = ""
    ) -> None:
        if not 1 <= centroids < np.iinfo(np.uint16).max:
            raise ValueError(f"Expected 1 to {np.iinfo(np.uint16).max - 1} centroids; got {centroids}.")
        if points < 1:
            raise ValueError(f"Expected points of at least 1; got {points}.")
        options = {"centroids": centroids, "points": points, "seed": seed}
        super().__init__(size, fingerprint=fingerprint, options=options)
        self._engine = CentroidEngine(centroids, points, seed)
        self._engines = [self._engine]

    @classmethod
    def of_codes(
        cls, centroids: Tensor, codes: NDArray[np.uint16], lengths: NDArray[np.uint16], fingerprint: str
    ) -> Self:
        """Make an index of codes ``(N, n)`` that exist already; ids are the items' numbers."""
        index = cls(centroids.shape[1], fingerprint=fingerprint)
        index._engine.centroids, index._engine.codes, index._engine.lengths = centroids, codes, lengths
        index._next = index._ids.own = len(codes)
        return index

    def add_sequences(self, ids: Sequence[str], vectors: Tensor, lengths: Tensor) -> None:
        """Add items; arguments and errors as in :meth:`isotone.interfaces.SequenceIndex.add_sequences`."""
        self._check_writable()
        ids = list(ids)
        self._check_new(ids, len(vectors))
        if vectors.ndim != 3 or lengths.shape != (len(vectors),) or (lengths > vectors.shape[1]).any():
            raise ValueError(
                f"Expected items (N, n, {self.size}) and lengths (N,) of at most n; got {tuple(vectors.shape)} "
                f"and {tuple(lengths.shape)}."
            )
        self._check_trained()
        given = mask_rows(vectors, lengths)
        self._vectors(given.flatten(0, 1))
        self._engine.add_items(given, lengths.numpy().astype(np.uint16))
        self._number(ids)

    def search_sequences(
        self, query: Tensor, top: int, without: Collection[str] = ()
    ) -> tuple[list[str], Tensor]:
        """Find items; arguments and results as in :meth:`isotone.interfaces.SequenceIndex.search_sequences`."""
        if top < 1:
            raise ValueError(f"A search expects top >= 1; got {top}.")
        self._vectors(query)
        self._engine.join()
        lengths = self._engine.lengths
        if without:
            lengths = lengths.copy()
            lengths[[self._ids.row(id) for id in without]] = 0  # too short for any query
        rows, means = scan(query, self._engine.centroids, self._engine.codes, lengths, top)
        return [self._ids.of(row) for row in rows.tolist()], torch.from_numpy(means)
