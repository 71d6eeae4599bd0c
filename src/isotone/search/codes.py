"""First stage of a search: windows as numbers of their nearest centroids, and a scan of all items by these codes."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isotone.kernels.threads import each_task
from isotone.search._scan import LANES, LOWEST, scan_block

#: Code of a window that is silent or beyond an item's length.
SILENCE = 0
# Sums of sixteen terms of at most 1 fit into sixteen bits.
_SCALE = 1_000
_BLOCK_ITEMS = 16_384
# Similarities per thread and block: they stay in the second-level cache until their maxima are found.
_BLOCK = 1 << 19


def fit_centroids(vectors: Tensor, count: int, *, rounds: int = 8, seed: int = 0) -> Tensor:
    """Find centroids by Lloyd's algorithm, from vectors drawn at random; centroids without vectors are drawn again.

    scipy's ``kmeans2`` gives the same centroids, but 1.6 times slower, on one thread, and it keeps empty centroids.

    Args:
        vectors: ``(N, d)``, N >= 1.
        count: Number of centroids, at most N.
        rounds: Number of rounds of assignments and means.
        seed: Seed of the random draws.

    Returns:
        ``(min(count, N), d)`` float32, means of the vectors nearest to each.
    """
    generator = torch.Generator().manual_seed(seed)
    vectors = vectors.float()
    centroids = vectors[torch.randperm(len(vectors), generator=generator)[:count]].clone()
    for _ in range(rounds):
        nearest = nearest_centroids(vectors, centroids)
        sums = torch.zeros_like(centroids).index_add_(0, nearest, vectors)
        members = torch.bincount(nearest, minlength=len(centroids))
        empty = members == 0
        centroids = sums / members.clamp(min=1)[:, None]
        drawn = torch.randint(len(vectors), (int(empty.sum()),), generator=generator)
        centroids[empty] = vectors[drawn]
    return centroids


def nearest_centroids(vectors: Tensor, centroids: Tensor) -> Tensor:
    """Return the number of the centroid ``(K, d)`` that is nearest to each vector ``(N, d)``: ``(N,)`` int64."""
    # the nearest centroid maximises x c - c^2 / 2, as x^2 is the same for all
    half = centroids.square().sum(1) / 2
    step = max(1, _BLOCK * torch.get_num_threads() // len(centroids))
    # max instead of argmax, which takes three times as long
    parts = [torch.addmm(-half, part, centroids.mT).max(1).indices for part in vectors.float().split(step)]
    return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.long)


def encode(vectors: Tensor, centroids: Tensor) -> NDArray[np.uint16]:
    """Encode items ``(I, n, d)`` as ``(I, n)``: 1 + nearest centroid's number, or :data:`SILENCE` for zero rows."""
    flat = vectors.flatten(0, 1).float()
    codes = torch.where(flat.any(1), nearest_centroids(flat, centroids) + 1, SILENCE)
    return codes.view(vectors.shape[:2]).numpy().astype(np.uint16)


def scan(
    query: Tensor, centroids: Tensor, codes: NDArray[np.uint16], lengths: NDArray[np.uint16], top: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    r"""Find the items whose centroids fit a query best, by the best ordered selection of m of their windows.

    The value of query window i at a window of code k is :math:`x_i \cdot c_k`, for the cosine with the window itself.
    Silence has the value 1 at silence, and 0 at sound.

    Args:
        query: ``(m, d)`` rows of norm 1 or 0, m at most 16.
        centroids: ``(K, d)``.
        codes: ``(I, n)`` of :func:`encode`.
        lengths: ``(I,)`` windows; items shorter than the query are left out.
        top: Number of items.

    Returns:
        Up to ``top`` item numbers, best first, and the means of their values; of equals, the smaller numbers.

    Raises:
        ValueError: a query without windows or with more than 16.

    Numerics: exact sums of integer thousandths; O(I n) steps of 16-bit vectors on ``torch.get_num_threads()`` threads.
    """
    m = len(query)
    if not 1 <= m <= LANES[-1]:
        raise ValueError(f"A scan expects a query of 1 to {LANES[-1]} windows; got {m}.")
    table = torch.zeros(len(centroids) + 1, next(lanes for lanes in LANES if m <= lanes))
    table[0, :m] = (~query.any(1)).float()
    table[1:, :m] = centroids.float() @ query.float().mT
    rows = (table * _SCALE).round().clamp(-_SCALE, _SCALE).short().numpy()
    sums = np.empty(len(codes), np.int16)
    blocks = -(-len(codes) // _BLOCK_ITEMS)
    each_task(scan_block, blocks, 2 * codes.size, _BLOCK_ITEMS, codes, lengths, rows, m, sums)
    found = _largest(sums, top)
    return found, (sums[found] / (_SCALE * m)).astype(np.float32)


def _largest(sums: NDArray[np.int16], top: int) -> NDArray[np.int64]:
    count = min(top, int((sums > LOWEST).sum()))
    if not count:
        return np.zeros(0, np.int64)
    border = np.partition(sums, len(sums) - count)[len(sums) - count]
    above = np.flatnonzero(sums > border)
    ties = np.flatnonzero(sums == border)[: count - len(above)]
    found = np.sort(np.concatenate([above, ties]))
    return found[np.argsort(-sums[found].astype(np.int32), kind="stable")]
