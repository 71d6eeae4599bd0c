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
    """Return the number of factors' vectors: of rows, columns and slack, then the sums of rows and slack."""
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
    """Iterate, columns then rows, in place. The rows' factors are given; the slack's kernel is 1.

    The kernel is not touched before the end: only factors of rows and columns change.
    """
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
    """Find new factors of the columns, and with them the rows' sums; return the largest factor or inverse."""
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
        # now, while the column is in the first-level cache
        for i in range(m):
            value = add(load(factors, sums + i * LANES), multiply(load(plan, (i * n + j) * LANES), factor))
            store(factors, sums + i * LANES, value)
    store(factors, sums + m * LANES, spare)
    return worst


@compiled
def scale_rows(factors: np.ndarray, row_mask: np.ndarray, slack: object, m: int, n: int) -> object:
    """Find new factors of the rows and the slack from their sums; return the largest factor or inverse."""
    sums, worst, one = (m + n + 1) * LANES, splat(_ONE), splat(_ONE)
    for i in range(m + 1):
        mask = load(row_mask, i * LANES) if i < m else smaller(slack, one)
        # a row past the query's end gets the sum 1
        total = add(multiply(mask, load(factors, sums + i * LANES)), subtract(one, mask))
        total = larger(total, splat(_TINY))
        factor = reciprocal(total)
        worst = larger(worst, larger(total, factor))
        store(factors, (i if i < m else m + n) * LANES, factor)
    return worst


@compiled
def apply_factors(plan: np.ndarray, factors: np.ndarray, m: int, n: int) -> None:
    """Turn the kernel into the plan: multiply by the factors of rows and columns."""
    for i in range(m):
        row = load(factors, i * LANES)
        for j in range(n):
            value = multiply(row, load(plan, (i * n + j) * LANES))
            # the kernel first: its 0 stays 0 also where a product of factors would overflow
            store(plan, (i * n + j) * LANES, multiply(value, load(factors, (m + j) * LANES)))
