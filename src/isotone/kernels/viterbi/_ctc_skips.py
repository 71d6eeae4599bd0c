"""Paths of :mod:`isotone.kernels.viterbi._ctc` that leave out optional tokens."""

from __future__ import annotations

import numpy as np

from isotone.kernels._lattice import Row, fill
from isotone.kernels.native import compiled


@compiled
def past_free(
    row: Row,
    was_low: int,
    lo: int,
    end: int,
    token: np.ndarray,
    blanks: np.ndarray,
    entry: np.ndarray,
    skips: np.ndarray,
) -> None:
    """Fill the best scores that enter tokens past optional ones: from the blank before those, or the token before it.

    Token u has index u + 1. ``skips[u - lo]``, unless the array is empty, becomes 2 j - 1 where the best is the blank
    of cell u - j, and 2 j where it is the token before that blank.
    """
    fill(skips[: end - lo], 0)
    for i in range(np.searchsorted(row.after_free, lo), len(row.after_free)):
        u = row.after_free[i]
        if u >= end:
            break
        best, skip = -np.inf, 0
        v = u - 1
        while v >= was_low and row.free[v]:
            if blanks[v] > best:
                best, skip = blanks[v], 2 * (u - v) - 1
            if v > was_low and row.labels[u] != row.labels[v - 1] and token[v] > best:
                best, skip = token[v], 2 * (u - v)
            v -= 1
        entry[i] = best
        if len(skips) > 0:
            skips[u - lo] = skip


@compiled
def enter_past_free(
    row: Row,
    lo: int,
    end: int,
    emitted: np.ndarray,
    entry: np.ndarray,
    token: np.ndarray,
    skips: np.ndarray,
) -> None:
    """Take the entries of :func:`past_free` where they are better, and clear their skips where they are not."""
    for i in range(np.searchsorted(row.after_free, lo), len(row.after_free)):
        u = row.after_free[i]
        if u >= end:
            break
        value = entry[i] + emitted[row.symbol_of[u]]
        if value > token[u + 1]:
            token[u + 1] = value
        elif len(skips) > 0:
            skips[u - lo] = 0
