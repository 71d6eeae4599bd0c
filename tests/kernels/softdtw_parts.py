"""Costs, and values and alignments by going through all paths."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

EXACT = {"rtol": 1e-12, "atol": 1e-12}


Path = tuple[tuple[int, int], ...]


def alignments(n: int, m: int) -> Iterator[Path]:
    """All paths from (0, 0) to (n - 1, m - 1)."""
    if n == m == 1:
        yield ((0, 0),)
        return
    for i, j in ((n - 1, m), (n, m - 1), (n - 1, m - 1)):
        if i > 0 and j > 0:
            for path in alignments(i, j):
                yield (*path, (n - 1, m - 1))


def in_band(i: int, j: int, n: int, m: int, band: int | None) -> bool:
    """Within the band, from its definition."""
    if band is None or max(n, m) == 1:
        return True
    return 2 * abs(i * (m - 1) - j * (n - 1)) <= max(2 * band, 1) * (max(n, m) - 1)


def enumerated(cost: Tensor, gamma: float, band: int | None = None) -> tuple[Tensor, Tensor]:
    """Value and expected alignment of one float64 matrix, by going through all its paths."""
    n, m = cost.shape
    paths = [p for p in alignments(n, m) if all(in_band(i, j, n, m, band) for i, j in p)]
    totals = torch.stack([sum((cost[i, j] for i, j in p), cost.new_zeros(())) for p in paths])
    if gamma == 0:
        value, shares = totals.min(), torch.nn.functional.one_hot(totals.argmin(), len(paths)).double()
    else:
        value, shares = -gamma * torch.logsumexp(-totals / gamma, 0), torch.softmax(-totals / gamma, 0)
    visits = torch.zeros_like(cost)
    for share, path in zip(shares, paths):
        for i, j in path:
            visits[i, j] += share
    return value, visits


def matrix(n: int, m: int, seed: int = 0, batch: int = 1) -> Tensor:
    return 3 * torch.rand(batch, n, m, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
