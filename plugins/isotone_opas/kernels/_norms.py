"""Inner products and norms that the fit of a plan consists of, sixteen corpus items at once."""

from __future__ import annotations

import numpy as np

from isotone.kernels.native import compiled
from isotone.kernels.native.lanes import (
    LANES,
    add,
    load,
    multiply,
    repeat,
    splat,
    store,
)

_ZERO, _HALF = np.float32(0.0), np.float32(0.5)
#: Numbers of an item's d that are computed together.
NEAR = 4 * LANES


@compiled
def cross(plan: np.ndarray, similar: np.ndarray, stride: int, m: int, n: int) -> object:
    """Return 2 <P, X_q X_c'>."""
    out, two = splat(_ZERO), splat(np.float32(2.0))
    for i in range(m):
        for j in range(n):
            cross = multiply(load(plan, (i * n + j) * LANES), load(similar, (i * stride + j) * LANES))
            out = add(out, multiply(two, cross))
    return out


@compiled
def square_of_products(plan: np.ndarray, products: np.ndarray, m: int, n: int) -> object:
    """Return ||P X_c||^2 from the inner products of an item's own vectors."""
    out, two, half = splat(_ZERO), splat(np.float32(2.0)), splat(np.float32(0.5))
    for k in range(n):
        for i in range(m):
            row = i * n * LANES
            total = splat(_ZERO)
            # products are symmetric: half of the square
            for j in range(k):
                total = add(total, multiply(load(plan, row + j * LANES), load(products, (k * n + j) * LANES)))
            mass = load(plan, row + k * LANES)
            total = add(total, multiply(multiply(half, mass), load(products, (k * n + k) * LANES)))
            out = add(out, multiply(multiply(two, mass), total))
    return out


@compiled
def square_of_vectors(
    plan: np.ndarray, vectors: np.ndarray, own: np.ndarray, near: np.ndarray, m: int, n: int
) -> object:
    """Return ||P X_c||^2 from the vectors ``(n, 16, d)``; the plan is overwritten.

    ``own`` is scratch for sixteen plans, item by item, and sixteen numbers more; ``near`` for sixty-four numbers of
    each of an item's vectors.
    """
    size, sums = vectors.shape[2], LANES * m * n
    flat, step = vectors.reshape(-1), LANES * size
    for x in range(m * n):
        for lane in range(LANES):
            own[lane * m * n + x] = plan[x * LANES + lane]
    for lane in range(LANES):
        first = lane * m * n
        squares, tail, k = splat(_ZERO), _ZERO, 0
        # vectors hold sixteen of the d numbers; sums in four vectors, of two rows, wait less for each other
        while k + NEAR <= size:
            # an item's rows are so far apart in memory that they would evict each other from the cache
            for j in range(n):
                for x in range(0, NEAR, LANES):
                    store(near, j * NEAR + x, load(flat, lane * size + k + x + j * step))
            for i in range(0, m - 1, 2):
                squares = add(squares, _four(own, first + i * n, first + (i + 1) * n, near, n))
            if m % 2 == 1:
                last = first + (m - 1) * n
                squares = add(squares, multiply(splat(_HALF), _four(own, last, last, near, n)))
            k += NEAR
        while k + LANES <= size:
            for i in range(m):
                squares = add(squares, _one(own, first + i * n, flat, lane * size + k, step, n))
            k += LANES
        for i in range(m):
            for rest in range(k, size):
                total = _ZERO
                for j in range(n):
                    total += own[first + i * n + j] * flat[j * step + lane * size + rest]
                tail += total * total
        store(own, sums, squares)
        # the plan is not needed any more: its memory takes the sixteen results
        plan[lane] = tail + own[sums : sums + LANES].sum()
    return load(plan, 0)


@compiled
def _one(own: np.ndarray, row: int, flat: np.ndarray, start: int, step: int, n: int) -> object:
    """Return the squares of sixteen numbers of P_i X_c."""
    total = splat(_ZERO)
    for j in range(n):
        total = add(total, multiply(repeat(own, row + j), load(flat, start + j * step)))
    return multiply(total, total)


@compiled
def _four(own: np.ndarray, first: int, second: int, near: np.ndarray, n: int) -> object:
    """Return sums of squares of sixty-four numbers of P_i X_c, of two rows together."""
    a, b, c, d = splat(_ZERO), splat(_ZERO), splat(_ZERO), splat(_ZERO)
    e, f, g, h = a, b, c, d
    for j in range(n):
        left, right, at = repeat(own, first + j), repeat(own, second + j), j * NEAR
        x, y = load(near, at), load(near, at + LANES)
        a, b = add(a, multiply(left, x)), add(b, multiply(left, y))
        e, f = add(e, multiply(right, x)), add(f, multiply(right, y))
        x, y = load(near, at + 2 * LANES), load(near, at + 3 * LANES)
        c, d = add(c, multiply(left, x)), add(d, multiply(left, y))
        g, h = add(g, multiply(right, x)), add(h, multiply(right, y))
    total = splat(_ZERO)
    for value in (a, b, c, d, e, f, g, h):
        total = add(total, multiply(value, value))
    return total
