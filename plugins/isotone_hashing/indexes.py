"""Indexes of vectors, and of codes that are given: FAISS searches them."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from torch import Tensor

from isotone.search.vectors import VectorIndex
from isotone_hashing.engine import Engine, Layout, binary_engine, packed

Distance = Literal["ip", "l2"]


class _FloatIndex(VectorIndex):
    def __init__(
        self, size: int, metric: Distance, layout: Layout, fingerprint: str, options: dict[str, Any]
    ):
        super().__init__(size, fingerprint=fingerprint, options={"metric": metric, **options})
        if metric not in ("ip", "l2"):
            raise ValueError(f"The index {self.name!r} expects metric 'ip' or 'l2'; got {metric!r}.")
        self._engines = [Engine(size, metric, layout)]


class FaissFlat(_FloatIndex):
    """FAISS flat: exact search among all vectors.

    Args:
        size: D, numbers of a vector.
        metric: ``"ip"``, the inner product, or ``"l2"``, whose scores are minus squared distances.
        fingerprint: What made the vectors.
    """

    name = "faiss-flat"

    def __init__(self, size: int, *, metric: Distance = "ip", fingerprint: str = "") -> None:
        super().__init__(size, metric, Layout("flat"), fingerprint, {})


class FaissIVF(_FloatIndex):
    """FAISS IVF: exact among the vectors of the nearest lists; call ``fit(corpus)`` first.

    Args:
        size, metric, fingerprint: As in :class:`FaissFlat`.
        lists, probes: As in :class:`~isotone_hashing.engine.Layout`.
    """

    name = "faiss-ivf"

    def __init__(
        self,
        size: int,
        *,
        metric: Distance = "ip",
        lists: int | None = None,
        probes: int = 8,
        fingerprint: str = "",
    ) -> None:
        layout = Layout("ivf", lists=lists, probes=probes)
        super().__init__(size, metric, layout, fingerprint, {"lists": lists, "probes": probes})


class FaissHNSW(_FloatIndex):
    """FAISS HNSW: search along a graph of neighbours.

    Args:
        size, metric, fingerprint: As in :class:`FaissFlat`.
        links, ef_construction, ef_search: As in :class:`~isotone_hashing.engine.Layout`.
    """

    name = "faiss-hnsw"

    def __init__(
        self,
        size: int,
        *,
        metric: Distance = "ip",
        links: int = 32,
        ef_construction: int = 100,
        ef_search: int = 64,
        fingerprint: str = "",
    ) -> None:
        options = {"links": links, "ef_construction": ef_construction, "ef_search": ef_search}
        super().__init__(size, metric, Layout("hnsw", **options), fingerprint, options)


class _BinaryIndex(VectorIndex):
    """Codes that are given: a bit is 1 where the vector's number is above 0."""

    def __init__(self, size: int, layout: Layout, fingerprint: str, options: dict[str, Any]) -> None:
        super().__init__(size, fingerprint=fingerprint, options=options)
        self._engines = [binary_engine(size, layout)]

    def _data(self, vectors: Tensor) -> list[np.ndarray]:
        return [packed(self._vectors(vectors) > 0)]

    def _search(self, data: list[np.ndarray], top: int) -> tuple[np.ndarray, np.ndarray]:
        scores, rows = super()._search(data, top)
        return scores - np.float32(self._engines[0].size - self.size), rows


class FaissBinaryFlat(_BinaryIndex):
    """FAISS flat over the signs of the vectors' numbers: exact search by Hamming distance.

    Scores are the bits in common.

    Args:
        size: Numbers of a vector, and bits of its code.
        fingerprint: What made the vectors.
    """

    name = "faiss-binary-flat"

    def __init__(self, size: int, *, fingerprint: str = "") -> None:
        super().__init__(size, Layout("flat"), fingerprint, {})


class FaissBinaryIVF(_BinaryIndex):
    """FAISS IVF over the signs of the vectors' numbers; call ``fit(corpus)`` first.

    Args:
        size, fingerprint: As in :class:`FaissBinaryFlat`.
        lists, probes: As in :class:`~isotone_hashing.engine.Layout`.
    """

    name = "faiss-binary-ivf"

    def __init__(
        self, size: int, *, lists: int | None = None, probes: int = 8, fingerprint: str = ""
    ) -> None:
        layout = Layout("ivf", lists=lists, probes=probes)
        super().__init__(size, layout, fingerprint, {"lists": lists, "probes": probes})


class FaissBinaryHNSW(_BinaryIndex):
    """FAISS HNSW over the signs of the vectors' numbers.

    Args:
        size, fingerprint: As in :class:`FaissBinaryFlat`.
        links, ef_construction, ef_search: As in :class:`~isotone_hashing.engine.Layout`.
    """

    name = "faiss-binary-hnsw"

    def __init__(
        self,
        size: int,
        *,
        links: int = 32,
        ef_construction: int = 100,
        ef_search: int = 64,
        fingerprint: str = "",
    ) -> None:
        options = {"links": links, "ef_construction": ef_construction, "ef_search": ef_search}
        super().__init__(size, Layout("hnsw", **options), fingerprint, options)
