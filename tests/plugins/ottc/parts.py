"""Random problems, sharp emissions, and the best path by enumeration, for the tests of OTTC."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from isotone.types import Emissions, Grid


def best_path(log_probs: Tensor, labels: list[int], optional: list[bool]) -> tuple[float, list[int]]:
    """Enumerate non-decreasing walks over the labels that visit all required ones; return the best."""
    best = (-float("inf"), [])
    for walk in itertools.combinations_with_replacement(range(len(labels)), len(log_probs)):
        if all(j in walk or optional[j] for j in range(len(labels))):
            score = sum(float(log_probs[t, labels[j]]) for t, j in enumerate(walk))
            best = max(best, (score, list(walk)), key=lambda x: x[0])
    return best


BLANK = 0


def random_problem(seed: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
    rng = torch.Generator().manual_seed(seed)
    logits = torch.randn(3, 9, 5, generator=rng, dtype=torch.float64).to(dtype)
    alpha = torch.rand(3, 9, generator=rng, dtype=torch.float64).to(dtype)
    beta = torch.rand(3, 4, generator=rng, dtype=torch.float64).to(dtype)
    labels = torch.randint(0, 5, (3, 4), generator=rng)
    return logits, alpha, labels, beta, torch.tensor([9, 6, 4]), torch.tensor([4, 2, 4])


def peaked(paths: list[list[int]], vocab_size: int = 5, sharpness: float = 10.0) -> Emissions:
    """Make emissions with one sharp label per frame."""
    lengths = torch.tensor([len(p) for p in paths])
    logits = torch.zeros(len(paths), int(lengths.max()), vocab_size)
    for row, path in enumerate(paths):
        logits[row, range(len(path)), path] = sharpness
    return Emissions(logits, lengths, Grid(0.02), BLANK)
