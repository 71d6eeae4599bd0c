"""Sinkhorn's iterations on ``(m, n)`` and slack rows, sixteen corpus items at once.

The n - m slack rows are alike and carried as one.
"""

from __future__ import annotations

import numpy as np

from isotone.kernels.native import compiled
from isotone.kernels.native.lanes import (
    LANES,
    add,
    larger,
    load,
    multiply,
    reciprocal,
    smaller,
    splat,
    store,
    subtract,
)

_ZERO, _ONE, _TINY = np.float32(0.0), np.float32(1.0), np.float32(1e-30)


@compiled
def factors_size(m: int, n: int) -> int:
    """Vectors of the factors: of rows, of columns, of the slack, then sums of rows and of the slack."""
    return 2 * m + n + 2


@compiled
def scale(
    plan: np.ndarray,
    factors: np.ndarray,
    row_mask: np.ndarray,
    column_mask: np.ndarray,
    slack: object,
    m: int,
    n: int,
    iterations: int,
) -> None:
    """The iterations, columns then rows, in place; the rows' factors are given, kernels of the slack are 1."""
    store(factors, (m + n) * LANES, splat(_ONE))
    for _ in range(iterations):
        scale_columns(plan, factors, column_mask, 0, column_mask, slack, m, n)
        scale_rows(factors, row_mask, slack, m, n)
    apply_factors(plan, factors, m, n)


@compiled
def scale_columns(
    plan: np.ndarray,
    factors: np.ndarray,
    kernels: np.ndarray,
    kernel: int,
    column_mask: np.ndarray,
    slack: object,
    m: int,
    n: int,
) -> object:
    """New factors of the columns, and with them the rows' sums; the largest of the factors and of their inverses."""
    sums = (m + n + 1) * LANES
    for i in range(m):
        store(factors, sums + i * LANES, splat(_ZERO))
    rest = multiply(slack, load(factors, (m + n) * LANES))
    worst, one, spare = splat(_ONE), splat(_ONE), splat(_ZERO)
    for j in range(n):
        free = load(kernels, kernel + j * LANES)
        total = add(multiply(rest, free), subtract(one, load(column_mask, j * LANES)))
        for i in range(m):
            total = add(total, multiply(load(plan, (i * n + j) * LANES), load(factors, i * LANES)))
        total = larger(total, splat(_TINY))
        factor = reciprocal(total)
        worst = larger(worst, larger(total, factor))
        store(factors, (m + j) * LANES, factor)
        spare = add(spare, multiply(free, factor))
        # while the column is in the first cache
        for i in range(m):
            value = add(load(factors, sums + i * LANES), multiply(load(plan, (i * n + j) * LANES), factor))
            store(factors, sums + i * LANES, value)
    store(factors, sums + m * LANES, spare)
    return worst


@compiled
def scale_rows(factors: np.ndarray, row_mask: np.ndarray, slack: object, m: int, n: int) -> object:
    """New factors of the rows and of the slack from their sums; the largest of them and of their inverses."""
    sums, worst, one = (m + n + 1) * LANES, splat(_ONE), splat(_ONE)
    for i in range(m + 1):
        mask = load(row_mask, i * LANES) if i < m else smaller(slack, one)
        # a row that is not there sums to 1
        total = add(multiply(mask, load(factors, sums + i * LANES)), subtract(one, mask))
        total = larger(total, splat(_TINY))
        factor = reciprocal(total)
        worst = larger(worst, larger(total, factor))
        store(factors, (i if i < m else m + n) * LANES, factor)
    return worst


@compiled
def apply_factors(plan: np.ndarray, factors: np.ndarray, m: int, n: int) -> None:
    """The plan from its kernel."""
    for i in range(m):
        row = load(factors, i * LANES)
        for j in range(n):
            value = multiply(row, load(plan, (i * n + j) * LANES))
            # in this order 0 stays 0 where a factor has no bound
            store(plan, (i * n + j) * LANES, multiply(value, load(factors, (m + j) * LANES)))
