"""The compiled loops of exact ordered selections, laid out as in :mod:`isotone_opas.kernels._scores`."""

from __future__ import annotations

import numpy as np

from isotone.kernels.native import compiled
from isotone.kernels.native.lanes import LANES, add, larger, load, multiply, smaller, splat, store, subtract

_ZERO, _ONE, _TWO = np.float32(0.0), np.float32(1.0), np.float32(2.0)
# Reward of a position past an item's end. Its sums stay finite, and are never the larger ones.
_NEVER = np.float32(-1e30)


@compiled
def select_blocks(
    task: int,
    run: int,
    similarity: np.ndarray,
    squares: np.ndarray,
    row_lengths: np.ndarray,
    column_lengths: np.ndarray,
    fit: np.ndarray,
) -> None:
    """Fill the largest sums of 2 x_i c_j - |c_j|^2 over increasing j, of the pairs of a task of ``run`` blocks."""
    groups, m, blocks, n, _ = similarity.shape
    lanes = blocks * LANES
    source, flat = similarity.reshape(-1), fit.reshape(-1)
    norms, best = np.empty(n * LANES, np.float32), np.empty((n + 1) * LANES, np.float32)
    for block in range(task * run, min((task + 1) * run, blocks)):
        c = block * LANES
        own, length = squares[block].reshape(-1), load(column_lengths, c)
        for j in range(n):
            # minus the norm up to the item's end, and _NEVER beyond
            there = smaller(larger(subtract(length, splat(np.float32(j))), splat(_ZERO)), splat(_ONE))
            gone = multiply(subtract(splat(_ONE), there), splat(_NEVER))
            store(norms, j * LANES, subtract(gone, load(own, j * LANES)))
        for g in range(groups):
            for j in range(n + 1):
                store(best, j * LANES, splat(_ZERO))
            rows = load(row_lengths[g], c)
            for i in range(m):
                row = ((g * m + i) * blocks + block) * n
                here = smaller(larger(subtract(rows, splat(np.float32(i))), splat(_ZERO)), splat(_ONE))
                _take_row(best, source, row, norms, here, i, n)
            store(flat, g * lanes + c, load(best, n * LANES))


@compiled
def _take_row(
    best: np.ndarray, source: np.ndarray, row: int, norms: np.ndarray, here: object, i: int, n: int
) -> None:
    """Turn the best sums of i elements within the first j columns ``(n + 1,)`` into those of i + 1, in place.

    Lanes whose query has ended keep their sums.
    """
    before, running = load(best, i * LANES), splat(_NEVER)
    skip = subtract(splat(_ONE), here)
    for j in range(i, n):
        reward = add(multiply(splat(_TWO), load(source, (row + j) * LANES)), load(norms, j * LANES))
        running = larger(running, add(before, reward))
        before = load(best, (j + 1) * LANES)
        kept = add(multiply(here, running), multiply(skip, before))
        store(best, (j + 1) * LANES, kept)
