"""One FAISS index over numbered rows, of vectors or packed bits. FAISS is imported when the first is made."""

from __future__ import annotations

import functools
import importlib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

Kind = Literal["flat", "ivf", "hnsw"]
Metric = Literal["ip", "l2", "hamming"]

# With fewer vectors per cluster FAISS warns.
_POINTS_PER_LIST = 39


class SearchUnavailable(ImportError):
    """FAISS is not installed."""


@functools.cache
def faiss() -> Any:
    """Return the module.

    Raises:
        SearchUnavailable: it is not installed, or does not import.
    """
    try:
        return importlib.import_module("faiss")
    except ImportError as error:
        raise SearchUnavailable(
            f"This index searches with FAISS, which did not import ({error}): pip install isotone[search]"
        ) from error


@dataclass(frozen=True)
class Layout:
    """Organisation of a FAISS index.

    Attributes:
        kind: ``"flat"`` compares with all items; ``"ivf"`` with those in the nearest of several lists, which have to be
            trained; ``"hnsw"`` follows a graph of neighbours.
        lists: Lists of ``"ivf"``. Default: 4 sqrt(N) for N training vectors, or fewer where N is small.
        probes: Lists that a search reads.
        links: Neighbours of an item in the graph.
        ef_construction: Candidates kept while the graph is built.
        ef_search: Candidates kept while it is searched; at least as many as are requested.
    """

    kind: Kind = "flat"
    lists: int | None = None
    probes: int = 8
    links: int = 32
    ef_construction: int = 100
    ef_search: int = 64

    def __post_init__(self) -> None:
        if self.kind not in ("flat", "ivf", "hnsw"):
            raise ValueError(f"An index is 'flat', 'ivf' or 'hnsw'; got {self.kind!r}.")
        for name in ("lists", "probes", "links", "ef_construction", "ef_search"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"An index expects {name} of at least 1; got {value}.")


class Engine:
    """A FAISS index whose items carry the caller's numbers.

    Args:
        size: Numbers of a vector, or bits of a code (a multiple of 8).
        metric: ``"ip"`` and ``"l2"`` for float32 vectors ``(N, size)``, ``"hamming"`` for uint8 codes
            ``(N, size / 8)``.
        layout: How it is organised.

    Attributes:
        gone: Numbers of removed items that the graph of ``"hnsw"`` still holds.
        mapped: True where the data is on disk and cannot be changed.
    """

    def __init__(self, size: int, metric: Metric, layout: Layout) -> None:
        self.size, self.metric, self.layout = size, metric, layout
        self.gone: set[int] = set()
        self.mapped = False
        self.binary = metric == "hamming"
        self._index: Any = None if layout.kind == "ivf" else self._numbered(self._plain())

    @property
    def trained(self) -> bool:
        """True where items can be added."""
        return self._index is not None

    def train(self, data: np.ndarray) -> None:
        """Find the lists of ``"ivf"``; other kinds have nothing to train.

        Raises:
            ValueError: there is nothing to train on, or items have been added.
        """
        if self.layout.kind != "ivf":
            return
        if not len(data):
            raise ValueError("An index with lists is trained on at least one vector; got none.")
        if self._index is not None and self._index.ntotal:
            raise ValueError("An index with lists is trained before items are added to it.")
        most = max(1, len(data) // _POINTS_PER_LIST)
        lists = self.layout.lists or min(most, round(4 * math.sqrt(len(data))))
        library = faiss()
        lists = min(lists, len(data))
        if self.binary:
            index = library.IndexBinaryIVF(library.IndexBinaryFlat(self.size), self.size, lists)
        else:
            ip = self.metric == "ip"
            metric = library.METRIC_INNER_PRODUCT if ip else library.METRIC_L2
            quantizer = library.IndexFlatIP(self.size) if ip else library.IndexFlatL2(self.size)
            index = library.IndexIVFFlat(quantizer, self.size, lists, metric)
        index.cp.min_points_per_centroid = 1
        index.train(data)
        self._index = index

    def add(self, rows: np.ndarray, data: np.ndarray) -> None:
        """Add items under their numbers ``(N,)`` int64."""
        if self._index is None:
            raise ValueError("This index has lists, which it finds by fit(corpus) before items are added.")
        self._index.add_with_ids(data, rows)

    def remove(self, rows: np.ndarray) -> None:
        """Take items out. A graph keeps them hidden until they are a tenth of it; then it is built again."""
        if self.layout.kind != "hnsw":
            self._index.remove_ids(rows)
            return
        self.gone.update(rows.tolist())
        if 10 * len(self.gone) < self._index.ntotal:
            return
        library = faiss()
        kept = library.vector_to_array(self._index.id_map)
        there = ~np.isin(kept, np.fromiter(self.gone, np.int64, len(self.gone)))
        old = self._index.index
        data = [old.reconstruct(int(i)) for i in np.flatnonzero(there)]
        self._index = self._numbered(self._plain())
        self.gone = set()
        if data:
            self.add(kept[there], np.stack(data))

    def search(self, data: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
        """Find the ``top`` items of each query: scores ``(Q, top)``, higher is better, and rows; -1 past the last.

        Scores are inner products, minus squared distances, or the number of bits in common.
        """
        if self._index is None or self._index.ntotal == 0:
            return np.full((len(data), top), -np.inf, np.float32), np.full((len(data), top), -1)
        # FAISS also finds the removed items of a graph: they are dropped from a longer list
        wide = min(top + len(self.gone), self._index.ntotal)
        self._set_effort(wide)
        distance, rows = self._index.search(data, wide)
        score = self._score(distance)
        score[rows < 0] = -np.inf
        if self.gone:
            gone = np.isin(rows, np.fromiter(self.gone, np.int64, len(self.gone)))
            order = np.argsort(gone, axis=1, kind="stable")
            rows = np.where(np.take_along_axis(gone, order, 1), -1, np.take_along_axis(rows, order, 1))
            score = np.where(rows < 0, -np.inf, np.take_along_axis(score, order, 1))
        width = min(top, wide)
        out = np.full((len(data), top), -np.inf, np.float32), np.full((len(data), top), -1)
        out[0][:, :width], out[1][:, :width] = score[:, :width], rows[:, :width]
        return out

    def within(self, data: np.ndarray, radius: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Find all items within a Hamming distance of each query.

        Returns:
            Index of each query's first item ``(Q + 1,)``, and the scores, as in :meth:`search`, and rows of all items.

        Raises:
            ValueError: FAISS has no such search for vectors, or for a graph.
        """
        if not self.binary or self.layout.kind == "hnsw":
            raise ValueError("A search within a distance needs binary codes in a 'flat' or 'ivf' index.")
        if self._index is None or self._index.ntotal == 0:
            return np.zeros(len(data) + 1, np.int64), np.zeros(0, np.float32), np.zeros(0, np.int64)
        self._set_effort(1)
        # FAISS keeps items strictly nearer than its radius
        limits, distance, rows = self._index.range_search(data, radius + 1)
        return limits.astype(np.int64), self._score(distance), rows

    def write(self, folder: Path, number: int) -> None:
        """Write ``NUMBER.faiss`` in FAISS's format."""
        library = faiss()
        write = library.write_index_binary if self.binary else library.write_index
        write(self._index, str(folder / f"{number}.faiss"))

    def read(self, folder: Path, number: int, memory_map: bool) -> None:
        """Read ``NUMBER.faiss``. The caller restores ``gone``.

        Raises:
            ValueError: FAISS cannot read it, or it is of another shape.
        """
        library, path = faiss(), folder / f"{number}.faiss"
        # FAISS has two ways to map a file: one for lists, one for everything else
        mapping = library.IO_FLAG_MMAP if self.layout.kind == "ivf" else library.IO_FLAG_MMAP_IFC
        try:
            reader = library.read_index_binary if self.binary else library.read_index
            index = reader(str(path), mapping if memory_map else 0)
        except (RuntimeError, MemoryError) as error:
            raise ValueError(f"FAISS cannot read {path.name}: {str(error).splitlines()[0]}") from error
        if index.d != self.size:
            raise ValueError(f"{path.name} holds vectors of size {index.d}; expected {self.size}.")
        self._index, self.mapped = index, memory_map

    def _plain(self) -> Any:
        library, links = faiss(), self.layout.links
        if self.layout.kind == "flat":
            if self.binary:
                return library.IndexBinaryFlat(self.size)
            return library.IndexFlatIP(self.size) if self.metric == "ip" else library.IndexFlatL2(self.size)
        if self.binary:
            index = library.IndexBinaryHNSW(self.size, links)
        else:
            ip = self.metric == "ip"
            metric = library.METRIC_INNER_PRODUCT if ip else library.METRIC_L2
            index = library.IndexHNSWFlat(self.size, links, metric)
        index.hnsw.efConstruction = self.layout.ef_construction
        return index

    def _numbered(self, plain: Any) -> Any:
        library = faiss()
        numbered = (library.IndexBinaryIDMap2 if self.binary else library.IndexIDMap2)(plain)
        # the wrapper refers to what it wraps and has to own it: Python would free it too early
        plain.this.disown()
        numbered.own_fields = True
        return numbered

    def _set_effort(self, top: int) -> None:
        library = faiss()
        if self.layout.kind == "ivf":
            self._index.nprobe = self.layout.probes
        elif self.layout.kind == "hnsw":
            inner = (library.downcast_IndexBinary if self.binary else library.downcast_index)(
                self._index.index
            )
            inner.hnsw.efSearch = max(self.layout.ef_search, top)

    def _score(self, distance: np.ndarray) -> np.ndarray:
        if self.metric == "ip":
            return distance.astype(np.float32)
        return (self.size - distance if self.binary else -distance).astype(np.float32)


def packed(bits: np.ndarray) -> np.ndarray:
    """Pack bits ``(N, b)`` bool as FAISS takes them: ``(N, ceil(b / 8))`` uint8."""
    return np.ascontiguousarray(np.packbits(bits, axis=1, bitorder="little"))


def binary_engine(bits: int, layout: Layout) -> Engine:
    """Make an engine for codes of :func:`packed`; scores also count the bits that fill the last byte."""
    return Engine(-(-bits // 8) * 8, "hamming", layout)
