"""What the tests of OTTC share: the best path by enumeration."""

from __future__ import annotations

import itertools

from torch import Tensor


def best_path(log_probs: Tensor, labels: list[int], optional: list[bool]) -> tuple[float, list[int]]:
    """By enumeration: the best non-decreasing walk over the labels that visits all that are not optional."""
    best = (-float("inf"), [])
    for walk in itertools.combinations_with_replacement(range(len(labels)), len(log_probs)):
        if all(j in walk or optional[j] for j in range(len(labels))):
            score = sum(float(log_probs[t, labels[j]]) for t, j in enumerate(walk))
            best = max(best, (score, list(walk)), key=lambda x: x[0])
    return best
