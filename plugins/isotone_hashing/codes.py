"""Indexes of the codes that hyperplanes give to vectors: hash tables, all bits or soft-indexing search."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from isotone.search.vectors import VectorIndex
from isotone_hashing.engine import Kind, Layout, binary_engine, packed
from isotone_hashing.head import HashHead

_HEAD = "head.safetensors"


class HashIndex(VectorIndex):
    """Items by their codes: L tables of K bits each.

    Args:
        size: D, numbers of a vector.
        head: Makes the L K bits.
        tables: L.
        min_shared: Bits that an item must share with the query in some table to be found at all (soft-indexing
            search; K bits are the buckets of classical LSH). Default: all items are ranked, by all bits.
        layout: A kind of :class:`~isotone_hashing.engine.Layout`, or a mapping with ``kind`` and its options.
        fingerprint: What made the vectors.
        options: The other options of the class, which the folder keeps.

    Raises:
        ValueError: bits that cannot be divided evenly among the tables, or options outside their range.
    """

    def __init__(
        self,
        size: int,
        head: HashHead,
        *,
        tables: int,
        min_shared: int | None,
        layout: Kind | Mapping[str, Any],
        fingerprint: str,
        options: dict[str, Any],
    ) -> None:
        how = Layout(layout) if isinstance(layout, str) else Layout(**layout)
        of_all = {"bits": head.bits, "tables": tables, "min_shared": min_shared}
        given = layout if isinstance(layout, str) else dict(layout)
        super().__init__(size, fingerprint=fingerprint, options={**of_all, "layout": given, **options})
        if tables < 1 or head.bits % tables:
            raise ValueError(f"Expected tables that share {head.bits} bits evenly; got {tables}.")
        self.head = head.eval()
        self.table_bits = head.bits // tables
        self.min_shared = min_shared
        if min_shared is None:
            self._engines = [binary_engine(head.bits, how)]
            return
        if not 1 <= min_shared <= self.table_bits:
            raise ValueError(
                f"Expected min_shared from 1 to {self.table_bits} bits of a table; got {min_shared}."
            )
        if how.kind == "hnsw":
            raise ValueError("Soft-indexing search (min_shared) needs layout 'flat' or 'ivf'; got 'hnsw'.")
        self._engines = [binary_engine(self.table_bits, how) for _ in range(tables)]

    def codes(self, vectors: Tensor) -> np.ndarray:
        """Return the codes of vectors ``(N, D)``: ``(N, L K)`` bool."""
        return self.head.codes(torch.from_numpy(self._vectors(vectors)))

    def candidates(self, queries: Tensor) -> list[list[str]]:
        """Return all items that soft-indexing search finds, best first.

        Raises:
            ValueError: the index was made without ``min_shared``.
        """
        if self.min_shared is None:
            raise ValueError("Candidates are what shares min_shared bits: make the index with that option.")
        found = self._shared(self._data(queries))
        return [[self._ids.of(row) for row in rows.tolist()] for _, rows in found]

    def _data(self, vectors: Tensor) -> list[np.ndarray]:
        bits = self.codes(vectors)
        return [packed(table) for table in np.split(bits, len(self._engines), axis=1)]

    def _search(self, data: list[np.ndarray], top: int) -> tuple[np.ndarray, np.ndarray]:
        if self.min_shared is None:
            scores, rows = super()._search(data, top)
            return scores - np.float32(self._engines[0].size - self.head.bits), rows
        scores = np.full((len(data[0]), top), -np.inf, np.float32)
        rows = np.full(scores.shape, -1)
        for q, (score, row) in enumerate(self._shared(data)):
            n = min(top, len(row))
            scores[q, :n], rows[q, :n] = score[:n], row[:n]
        return scores, rows

    def _shared(self, data: list[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Find each query's items that share enough bits in some table: the most bits shared in one, and rows."""
        radius = self.table_bits - (self.min_shared or 0)
        found = [engine.within(of_table, radius) for engine, of_table in zip(self._engines, data)]
        # a code is filled up to whole bytes, and the filling bits are always equal: they are taken off the score
        filling = self._engines[0].size - self.table_bits
        out = []
        for q in range(len(data[0])):
            score = np.concatenate([s[at[q] : at[q + 1]] for at, s, _ in found]) - np.float32(filling)
            row = np.concatenate([r[at[q] : at[q + 1]] for at, _, r in found])
            order = np.lexsort((row, -score))
            _, first = np.unique(row[order], return_index=True)
            best = order[np.sort(first)]
            out.append((score[best], row[best]))
        return out

    def _write(self, folder: Path) -> None:
        save_file(self.head.state_dict(), folder / _HEAD)

    def _read(self, folder: Path) -> None:
        try:
            self.head.load_state_dict(load_file(folder / _HEAD))
        except Exception as error:  # safetensors' own error is a subclass of nothing narrower
            raise ValueError(f"{_HEAD} does not hold the hyperplanes ({error}).") from error
