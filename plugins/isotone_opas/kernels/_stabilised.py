"""Sinkhorn's iterations for rewards whose range single precision cannot hold, sixteen corpus items at once.

The scaling is split: whole-numbered potentials inside the exponential, and factors outside that stay near 1. Numbers
that underflow then are negligible in their row and column (stabilised scaling: Schmitzer, "Stabilized sparse scaling
algorithms for entropy regularized transport problems", 2019). Potentials move only where a factor would leave its
bounds, so that most iterations are products and sums.
"""

from __future__ import annotations

import numpy as np

from isotone.kernels.native import compiled
from isotone.kernels.native.lanes import (
    LANES,
    add,
    at_least,
    exponential,
    fused,
    larger,
    largest,
    load,
    multiply,
    nearest,
    rough_logarithm,
    smaller,
    splat,
    store,
    subtract,
)
from isotone_opas.kernels._sinkhorn import apply_factors, scale_columns, scale_rows

# Potentials move where a factor or its inverse is beyond this.
_BOUND = np.float32(1e13)
# Kernels below this are set to 0 (in a sum they would be 1e-10 at most): subnormal numbers are a hundred times slower.
_LEAST = np.float32(1e-36)
_ZERO, _ONE, _TWO = np.float32(0.0), np.float32(1.0), np.float32(2.0)
_TINY, _FAR = np.float32(1e-30), np.float32(1e30)


@compiled
def wide_size(m: int, n: int) -> int:
    """Return the number of scratch vectors of :func:`scale_wide`."""
    return 2 * m * n + m + 2 * n + 1


@compiled
def scale_wide(
    plan: np.ndarray,
    factors: np.ndarray,
    similar: np.ndarray,
    stride: int,
    bonus: np.ndarray,
    positions: np.ndarray,
    lam: np.ndarray,
    row_mask: np.ndarray,
    column_mask: np.ndarray,
    slack: object,
    m: int,
    n: int,
    tau: float,
    iterations: int,
    scratch: np.ndarray,
) -> None:
    """Fill the plan: split rewards into products of penalties and positions and small rests, then iterate.

    ``scratch`` holds, in vectors: the products (m n), the rests (m n), the potentials of rows (m), of columns (n) and
    of the slack, and the slack's kernel (n).
    """
    rests, rows = m * n * LANES, 2 * m * n * LANES
    columns = rows + m * LANES
    kernel = columns + (n + 1) * LANES
    _split_reward(scratch, rests, similar, stride, bonus, positions, lam, row_mask, column_mask, m, n, tau)
    for x in range(m + n + 1):
        store(scratch, rows + x * LANES, splat(_ZERO))
        store(factors, x * LANES, splat(_ONE))
    for iteration in range(iterations):
        worst = splat(_FAR)
        if iteration > 0:
            worst = scale_columns(plan, factors, scratch, kernel, column_mask, slack, m, n)
        if not largest(worst) <= _BOUND:
            _absorb(scratch, rows, factors, 0, m)
            _absorb(scratch, columns + n * LANES, factors, m + n, 1)
            _center_columns(scratch, rests, column_mask, slack, m, n)
            _fill(plan, scratch, rests, row_mask, column_mask, slack, m, n)
            scale_columns(plan, factors, scratch, kernel, column_mask, slack, m, n)
        worst = scale_rows(factors, row_mask, slack, m, n)
        if not largest(worst) <= _BOUND:
            _absorb(scratch, columns, factors, m, n)
            _center_rows(scratch, rests, row_mask, column_mask, m, n)
            _fill(plan, scratch, rests, row_mask, column_mask, slack, m, n)
            _sum_rows(plan, factors, scratch, kernel, m, n)
            scale_rows(factors, row_mask, slack, m, n)
    apply_factors(plan, factors, m, n)


@compiled
def _sum_rows(
    plan: np.ndarray, factors: np.ndarray, kernels: np.ndarray, kernel: int, m: int, n: int
) -> None:
    """Fill the sums of the rows and the slack, for the present factors of the columns."""
    sums, spare = (m + n + 1) * LANES, splat(_ZERO)
    for j in range(n):
        spare = add(spare, multiply(load(kernels, kernel + j * LANES), load(factors, (m + j) * LANES)))
    store(factors, sums + m * LANES, spare)
    for i in range(m):
        total = splat(_ZERO)
        for j in range(n):
            total = add(total, multiply(load(plan, (i * n + j) * LANES), load(factors, (m + j) * LANES)))
        store(factors, sums + i * LANES, total)


@compiled
def _split_reward(
    scratch: np.ndarray,
    rests: int,
    similar: np.ndarray,
    stride: int,
    bonus: np.ndarray,
    positions: np.ndarray,
    lam: np.ndarray,
    row_mask: np.ndarray,
    column_mask: np.ndarray,
    m: int,
    n: int,
    tau: float,
) -> None:
    """Fill reward / tau as two numbers to be added, the first without rounding; -1e30 beyond the lengths.

    They are ``scratch[(i, j)]`` and ``scratch[rests + (i, j)]``.
    """
    two, per_tau, far, one = splat(_TWO), splat(np.float32(1 / tau)), splat(_FAR), splat(_ONE)
    push, fine = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    for i in range(m):
        for lane in range(LANES):
            exact = (np.float64(lam[i * LANES + lane]) - np.float64(lam[(i + 1) * LANES + lane])) / tau
            push[lane] = exact
            fine[lane] = exact - np.float64(push[lane])
        coarse, rest, row = load(push, 0), load(fine, 0), load(row_mask, i * LANES)
        for j in range(n):
            position, at = splat(positions[j]), (i * n + j) * LANES
            product = multiply(coarse, position)
            near = add(multiply(two, load(similar, (i * stride + j) * LANES)), load(bonus, j * LANES))
            near = add(multiply(near, per_tau), multiply(rest, position))
            # the product's own rounding error
            near = add(near, fused(coarse, position, subtract(splat(_ZERO), product)))
            there = multiply(row, load(column_mask, j * LANES))
            store(scratch, at, subtract(multiply(product, there), multiply(far, subtract(one, there))))
            store(scratch, rests + at, multiply(near, there))


@compiled
def _absorb(scratch: np.ndarray, potentials: int, factors: np.ndarray, first: int, count: int) -> None:
    """Move the whole part of every factor's logarithm to its potential."""
    for x in range(count):
        factor = load(factors, (first + x) * LANES)
        moved = nearest(rough_logarithm(factor))
        store(scratch, potentials + x * LANES, add(load(scratch, potentials + x * LANES), moved))
        store(factors, (first + x) * LANES, multiply(factor, exponential(subtract(splat(_ZERO), moved))))


@compiled
def _center_columns(
    scratch: np.ndarray, rests: int, column_mask: np.ndarray, slack: object, m: int, n: int
) -> None:
    """Fill the potentials of the columns with which the largest number of each is near 1."""
    rows = 2 * m * n * LANES
    columns = rows + m * LANES
    absent = multiply(splat(_FAR), subtract(splat(_ONE), smaller(slack, splat(_ONE))))
    free = subtract(load(scratch, columns + n * LANES), absent)
    for j in range(n):
        high = free
        for i in range(m):
            at = (i * n + j) * LANES
            value = add(load(scratch, at), load(scratch, rows + i * LANES))
            high = larger(high, add(value, load(scratch, rests + at)))
        high = multiply(high, load(column_mask, j * LANES))
        store(scratch, columns + j * LANES, nearest(subtract(splat(_ZERO), high)))


@compiled
def _center_rows(
    scratch: np.ndarray, rests: int, row_mask: np.ndarray, column_mask: np.ndarray, m: int, n: int
) -> None:
    """Fill the potentials of the rows and the slack with which the largest number of each is near 1."""
    rows = 2 * m * n * LANES
    columns = rows + m * LANES
    zero, one, far = splat(_ZERO), splat(_ONE), splat(_FAR)
    for i in range(m):
        high = subtract(zero, far)
        for j in range(n):
            at = (i * n + j) * LANES
            value = add(load(scratch, at), load(scratch, columns + j * LANES))
            high = larger(high, add(value, load(scratch, rests + at)))
        high = multiply(high, load(row_mask, i * LANES))
        store(scratch, rows + i * LANES, nearest(subtract(zero, high)))
    high = subtract(zero, far)
    for j in range(n):
        absent = multiply(far, subtract(one, load(column_mask, j * LANES)))
        high = larger(high, subtract(load(scratch, columns + j * LANES), absent))
    store(scratch, columns + n * LANES, multiply(load(column_mask, 0), subtract(zero, high)))


@compiled
def _fill(
    plan: np.ndarray,
    scratch: np.ndarray,
    rests: int,
    row_mask: np.ndarray,
    column_mask: np.ndarray,
    slack: object,
    m: int,
    n: int,
) -> None:
    """Fill the kernel, and that of the slack, for the present potentials; 0 beyond the lengths."""
    rows = 2 * m * n * LANES
    columns = rows + m * LANES
    kernel = columns + (n + 1) * LANES
    for i in range(m):
        row, mask = load(scratch, rows + i * LANES), load(row_mask, i * LANES)
        for j in range(n):
            at = (i * n + j) * LANES
            # products and potentials cancel before the rest is added: only numbers far below 0 are rounded
            value = add(load(scratch, at), add(row, load(scratch, columns + j * LANES)))
            value = at_least(exponential(add(value, load(scratch, rests + at))), splat(_LEAST))
            store(plan, at, multiply(value, multiply(mask, load(column_mask, j * LANES))))
    free, spare = load(scratch, columns + n * LANES), smaller(slack, splat(_ONE))
    for j in range(n):
        # past the item's end, and without slack, no potential keeps the exponential finite: the mask inside does
        mask = multiply(spare, load(column_mask, j * LANES))
        value = exponential(multiply(mask, add(free, load(scratch, columns + j * LANES))))
        store(scratch, kernel + j * LANES, multiply(at_least(value, splat(_LEAST)), mask))
