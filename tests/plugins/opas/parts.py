"""Sinkhorn as the paper writes it, and sequences with ordered copies in them, for the tests of OPAS."""

from __future__ import annotations

import torch
from torch import Tensor


class Sinkhorn:
    """n x n, the rows beyond the query's zero, on logarithms, one pair at a time; columns first, rows last."""

    def __init__(self, temperature: float = 1.0, iterations: int = 20) -> None:
        self.temperature, self.iterations = temperature, iterations

    def __call__(
        self, reward: Tensor, row_lengths: Tensor | None = None, column_lengths: Tensor | None = None
    ) -> Tensor:
        batch, rows, columns = reward.shape
        out = []
        for b in range(batch):
            m = rows if row_lengths is None else int(row_lengths[b])
            n = columns if column_lengths is None else int(column_lengths[b])
            logs = torch.cat([reward[b, :m, :n] / self.temperature, reward.new_zeros(n - m, n)])
            for _ in range(self.iterations):
                logs = logs - logs.logsumexp(0, keepdim=True)
                logs = logs - logs.logsumexp(1, keepdim=True)
            out.append(torch.nn.functional.pad(logs[:m].exp(), (0, columns - n, 0, rows - m)))
        return torch.stack(out)


def unit(rng: torch.Generator, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.nn.functional.normalize(torch.randn(*shape, generator=rng, dtype=dtype), dim=-1)


def collection(
    seed: int, items: int = 12, n: int = 10, m: int = 4, size: int = 24, noise: float = 0.5
) -> tuple[Tensor, Tensor, Tensor]:
    """A query for each item, windows of it in order with noise: windows, corpus and who is relevant."""
    rng = torch.Generator().manual_seed(seed)
    corpus = torch.randn(items, n, size, generator=rng)
    place = torch.rand(items, n, generator=rng).argsort(1)[:, :m].sort(1).values
    queries = corpus.gather(1, place[..., None].expand(-1, -1, size))
    queries = queries + noise * torch.randn(queries.shape, generator=rng)
    return queries, corpus, torch.eye(items, dtype=torch.bool)
