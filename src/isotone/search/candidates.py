"""First stage of a search: the items that an index of any kind finds for the windows of a query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isotone.interfaces import Index, SequenceIndex
from isotone.registries import indexes

#: The index that is used where none is named.
DEFAULT = "centroids"

Spec = str | Mapping[str, Any]

_BLOCK_ITEMS = 4096
# Vectors that an index learns from; those of them that serve as queries, and the nearest others that each should find.
_SAMPLE, _QUERIES, _NEAREST = 100_000, 1000, 10
_QUERY_BLOCK = 64
# Items that hold one window, at most: each begins half an item after the one before.
_HOLDING = 3


def build_stage(
    spec: Spec, vectors: NDArray[np.float16], items: NDArray[np.int32], *, contextual: bool, fingerprint: str
) -> Iterator[tuple[float, Index]]:
    """Build an index of the windows of all items, with its learning.

    An index that learns from queries gets some of the windows as such, and as their positives the windows that are
    nearest to them: so its codes rank as the vectors do.

    Args:
        spec: Name of the index, or a mapping with its options.
        vectors: ``(I, n, d)``.
        items: ``(I, 3)``: recording, first window and number of windows of each item.
        contextual: True where windows of overlapping items have vectors of their own.
        fingerprint: Of the model that made the vectors.

    Yields:
        The share done, 0 to 1, and the index so far.

    Raises:
        LookupError, TypeError, ImportError, ValueError: as :meth:`isotone.registry.Registry.create`, or the index
            refuses these vectors.
    """
    index = indexes.create(spec, size=vectors.shape[2], fingerprint=fingerprint)
    sample = _sample(vectors)
    if isinstance(index, SequenceIndex):
        index.fit(sample)
    else:
        queries, positives = _neighbours(sample)
        index.fit(sample, queries, positives)
    count = len(items)
    for first in range(0, count, _BLOCK_ITEMS):
        block = torch.from_numpy(np.array(vectors[first : first + _BLOCK_ITEMS])).float()
        rows = items[first : first + _BLOCK_ITEMS]
        if isinstance(index, SequenceIndex):
            ids = [str(first + row) for row in range(len(rows))]
            index.add_sequences(ids, block, torch.from_numpy(rows[:, 2].astype(np.int64)))
        else:
            _add_windows(index, block, rows, first, contextual)
        yield min(1.0, (first + _BLOCK_ITEMS) / count), index


class Candidates:
    """The first stage of a search.

    An index of sequences ranks whole items. Any other one finds windows: an item's value is then the sum, over the
    query's windows, of the best score that any of its windows got; windows that were not found count as the worst that
    was.

    Args:
        index: From :func:`build_stage`, with the same items.
        items: ``(I, 3)``: recording, first window and number of windows of each item, in that order.
        contextual: As in :func:`build_stage`.
    """

    def __init__(self, index: Index, items: NDArray[np.int32], contextual: bool) -> None:
        self.index, self.items, self.contextual = index, items, contextual

    @cached_property
    def _key(self) -> NDArray[np.int64]:
        """Recording and first window of every item in one number, ascending."""
        return self.items[:, 0].astype(np.int64) << 32 | self.items[:, 1]

    def find(self, query: Tensor, top: int, apart: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """Find up to ``top`` items at least as long as the query.

        Args:
            query: ``(m, d)``.
            top: Most items.
            apart: ``(I,)``: False for items to leave out.

        Returns:
            Item numbers, ascending.
        """
        if isinstance(self.index, SequenceIndex):
            without = () if apart is None else [str(item) for item in np.flatnonzero(~apart).tolist()]
            ids, _ = self.index.search_sequences(query, top, without)
            return np.sort(np.array([int(id) for id in ids], np.int64))
        allowed = self.items[:, 2] >= len(query)
        if apart is not None:
            allowed &= apart
        if not allowed.any():
            return np.zeros(0, np.int64)
        wide = top
        while True:
            found, values = self._by_windows(query, wide, allowed)
            if len(found) >= min(top, int(allowed.sum())) or wide >= len(self.index):
                best = np.argsort(-values, kind="stable")[:top]
                return np.sort(found[best])
            wide *= 4

    def _by_windows(
        self, query: Tensor, wide: int, allowed: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Find the items of the ``wide`` best windows of each query window: numbers and values."""
        heard = query[query.any(1)]
        ids, scores = self.index.search(heard, wide)
        values = np.full((len(heard), len(self.items)), -np.inf, np.float32)
        for row, (names, of_row) in enumerate(zip(ids, scores.numpy())):
            for numbers in self._holding(names):
                there = numbers >= 0
                np.maximum.at(values[row], numbers[there], of_row[: len(names)][there])
        found = np.flatnonzero(np.isfinite(values).any(0) & allowed)
        values = values[:, found]
        worst = np.where(np.isfinite(values), values, np.inf).min(1, initial=np.inf, keepdims=True)
        return found, np.where(np.isfinite(values), values, np.where(np.isfinite(worst), worst, 0)).sum(0)

    def _holding(self, names: list[str]) -> Iterator[NDArray[np.int64]]:
        """Iterate over the items ``(N,)`` that hold windows of these ids; -1 for none."""
        pairs = np.array([name.split(".") for name in names], np.int64).reshape(-1, 2)
        if self.contextual:
            yield pairs[:, 0]
            return
        recording, window = pairs.T
        last = np.searchsorted(self._key, recording << 32 | window, "right") - 1
        for back in range(_HOLDING):
            item = np.maximum(last - back, 0)
            of, first, count = self.items[item].T
            yield np.where((last >= back) & (of == recording) & (window < first + count), item, -1)


def _add_windows(index: Index, block: Tensor, rows: NDArray[np.int32], first: int, contextual: bool) -> None:
    """Add the audible windows of a block of items, each once.

    Ids are ``ITEM.WINDOW`` for contextual models, otherwise ``RECORDING.WINDOW``, as items then share windows.
    """
    ids, chosen = [], []
    for row, (recording, start, count) in enumerate(rows.tolist()):
        for window in range(count):
            id = f"{first + row}.{window}" if contextual else f"{recording}.{start + window}"
            if id not in index and block[row, window].any():
                ids.append(id)
                chosen.append((row, window))
    # of the windows that two items of this block share, the first
    kept = dict(reversed(list(zip(ids, chosen))))
    if kept:
        row, window = torch.tensor(list(kept.values())).T
        index.add(list(kept), block[row, window])


def _sample(vectors: NDArray[np.float16], seed: int = 0) -> Tensor:
    """Sample up to :data:`_SAMPLE` vectors of norm 1, from items drawn at random."""
    count, n, d = vectors.shape
    rng = np.random.default_rng(seed)
    drawn = np.sort(rng.permutation(count)[: max(1, -(-_SAMPLE // n))])
    flat = torch.from_numpy(vectors[drawn]).view(-1, d).float()
    audible = flat[flat.any(1)]
    return audible[:_SAMPLE] if len(audible) else flat[:1]


def _neighbours(sample: Tensor, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Draw queries ``(Q, d)`` from a sample, and pairs ``(P, 2)`` of them and their nearest others."""
    drawn = torch.randperm(len(sample), generator=torch.Generator().manual_seed(seed))[:_QUERIES]
    others = max(1, min(_NEAREST, len(sample) - 1))  # a sample of one vector has itself
    parts = []
    for some in drawn.split(_QUERY_BLOCK):
        near = (sample[some] @ sample.mT).scatter(1, some[:, None], -torch.inf)
        parts.append(near.topk(others, dim=1).indices)
    best = torch.cat(parts)
    query = torch.arange(len(drawn)).repeat_interleave(best.shape[1])
    return sample[drawn], torch.stack([query, best.flatten()], 1)
