"""The compiled loops of :mod:`isotone_opas.kernels`: plain arrays in and out, nothing is checked here.

Sixteen corpus items are scored at once, one a lane. Arrays of a block are flat: number ``x[i, j]`` of lane l of an
``(m, n)`` matrix lies at ``(i * n + j) * 16 + l``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isotone_opas.kernels._lanes import (
    LANES,
    add,
    exponential,
    larger,
    load,
    multiply,
    smaller,
    splat,
    store,
    subtract,
)
from isotone_opas.kernels._network import network, scratch_size
from isotone_opas.kernels._similarity_lanes import largest, repeat
from isotone_opas.kernels._sinkhorn import factors_size, scale, scale_wide, wide_size

# Largest range of reward / tau within a row, and largest reward / tau, that single precision scales without under- or
# overflow.
_NARROW = np.float32(40.0)
_ZERO, _HALF, _ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
_FAR = np.float32(1e30)
# Of an item's d numbers, those that are worked on together.
_NEAR = 4 * LANES


@njit(nogil=True, cache=True)
def score_blocks(
    task: int,
    run: int,
    similarity: np.ndarray,
    squares: np.ndarray,
    products: np.ndarray,
    vectors: np.ndarray,
    row_lengths: np.ndarray,
    column_lengths: np.ndarray,
    positions: np.ndarray,
    lambdas: np.ndarray,
    layers: np.ndarray,
    weights: np.ndarray,
    net_columns: int,
    tau: float,
    iterations: int,
    margin: float,
    hinge: bool,
    fit: np.ndarray,
    order: np.ndarray,
) -> None:
    """Score the pairs of a task, which has ``run`` blocks; s_F without the query's norm."""
    groups, m, blocks, n, _ = similarity.shape
    lanes = blocks * LANES
    stagger = layers[0, 1] - 1 if len(layers) else 0
    stride = max(n, net_columns)
    similar = np.zeros((m + stagger) * stride * LANES, np.float32)
    plan = np.empty(m * n * LANES, np.float32)
    factors = np.empty(factors_size(m, n) * LANES, np.float32)
    column_mask, row_mask = np.empty(n * LANES, np.float32), np.empty(m * LANES, np.float32)
    lam = np.zeros((m + 1) * LANES, np.float32)
    scratch = np.empty(scratch_size(layers, stride) * LANES, np.float32)
    more = np.empty(wide_size(m, n) * LANES, np.float32)
    own, near = np.empty((m * n + 1) * LANES, np.float32), np.empty(_NEAR * n, np.float32)
    bonus = np.empty(n * LANES, np.float32)
    source, flat_lambdas = similarity.reshape(-1), lambdas.reshape(-1)
    flat_fit, flat_order = fit.reshape(-1), order.reshape(-1)
    # an item's own numbers stay in the first cache while every query reads them
    for block in range(task * run, min((task + 1) * run, blocks)):
        c = block * LANES
        _fill_bonus(bonus, squares[block].reshape(-1), n)
        columns = _fill_mask(column_mask, column_lengths, c, n)
        for g in range(groups):
            for i in range(m):
                _copy(source, ((g * m + i) * blocks + block) * n, similar, i * stride, n)
            slack = larger(subtract(columns, _fill_mask(row_mask, row_lengths[g], c, m)), splat(_ZERO))
            if len(layers):
                network(similar, stride, row_mask, m, layers, weights, scratch, lam)
                for i in range(m):
                    store(flat_lambdas, (g * m + i) * lanes + c, load(lam, i * LANES))
            else:
                for i in range(m):
                    store(lam, i * LANES, load(flat_lambdas, (g * m + i) * lanes + c))
            ranges = _fill_kernel(
                plan, factors, similar, stride, bonus, positions, lam, row_mask, column_mask, m, n, tau
            )
            if largest(ranges) <= _NARROW:
                scale(plan, factors, row_mask, column_mask, slack, m, n, iterations)
            else:
                scale_wide(
                    plan, factors, similar, stride, bonus, positions, lam, row_mask, column_mask, slack, m, n,
                    tau, iterations, more,
                )  # fmt: skip
            value = _cross(plan, similar, stride, m, n)
            store(flat_order, g * lanes + c, _order(plan, positions, lam, m, n, margin, hinge))
            if len(products):
                value = subtract(value, _square(plan, products[block].reshape(-1), m, n))
            else:
                value = subtract(value, _square_of(plan, vectors[block], own, near, m, n))
            store(flat_fit, g * lanes + c, value)


@njit(nogil=True, cache=True)
def _copy(source: np.ndarray, first: int, target: np.ndarray, place: int, count: int) -> None:
    for x in range(count):
        store(target, (place + x) * LANES, load(source, (first + x) * LANES))


@njit(nogil=True, cache=True)
def _fill_bonus(bonus: np.ndarray, squares: np.ndarray, n: int) -> None:
    """1 less the squared norms: what a reward has beside the similarity."""
    for j in range(n):
        store(bonus, j * LANES, subtract(splat(_ONE), load(squares, j * LANES)))


@njit(nogil=True, cache=True)
def _fill_mask(mask: np.ndarray, lengths: np.ndarray, c: int, size: int) -> object:
    """1 where a position is, 0 beyond the lengths; the lengths themselves."""
    zero, one, length = splat(_ZERO), splat(_ONE), load(lengths, c)
    for i in range(size):
        store(mask, i * LANES, smaller(larger(subtract(length, splat(np.float32(i))), zero), one))
    return length


@njit(nogil=True, cache=True)
def _fill_kernel(
    plan: np.ndarray,
    factors: np.ndarray,
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
) -> object:
    """exp((reward - largest of the row) / tau), 0 beyond the lengths, the rows' factors, and what _NARROW bounds."""
    per_tau = splat(np.float32(1 / tau))
    two, far, ranges = splat(np.float32(2.0)), splat(_FAR), splat(_ZERO)
    for i in range(m):
        push = subtract(load(lam, i * LANES), load(lam, (i + 1) * LANES))
        high, low = splat(-_FAR), far
        for j in range(n):
            reward = add(multiply(two, load(similar, (i * stride + j) * LANES)), load(bonus, j * LANES))
            reward = multiply(add(reward, multiply(push, splat(positions[j]))), per_tau)
            there = multiply(load(column_mask, j * LANES), far)
            # -1e30 and 1e30 where there is no column
            high = larger(high, smaller(reward, subtract(there, subtract(far, there))))
            low = smaller(low, larger(reward, subtract(subtract(far, there), there)))
            store(plan, (i * n + j) * LANES, reward)
        row = load(row_mask, i * LANES)
        ranges = larger(ranges, multiply(subtract(high, low), row))
        ranges = larger(ranges, multiply(larger(high, subtract(splat(_ZERO), high)), row))
        store(factors, i * LANES, exponential(multiply(high, row)))
        for j in range(n):
            mask = multiply(row, load(column_mask, j * LANES))
            value = exponential(smaller(subtract(load(plan, (i * n + j) * LANES), high), splat(_ZERO)))
            store(plan, (i * n + j) * LANES, multiply(value, mask))
    return ranges


@njit(nogil=True, cache=True)
def _cross(plan: np.ndarray, similar: np.ndarray, stride: int, m: int, n: int) -> object:
    """2 <P, X_q X_c'>."""
    out, two = splat(_ZERO), splat(np.float32(2.0))
    for i in range(m):
        for j in range(n):
            cross = multiply(load(plan, (i * n + j) * LANES), load(similar, (i * stride + j) * LANES))
            out = add(out, multiply(two, cross))
    return out


@njit(nogil=True, cache=True)
def _square(plan: np.ndarray, products: np.ndarray, m: int, n: int) -> object:
    """||P X_c||^2 from the inner products of an item's own vectors."""
    out, two, half = splat(_ZERO), splat(np.float32(2.0)), splat(np.float32(0.5))
    for k in range(n):
        for i in range(m):
            row = i * n * LANES
            total = splat(_ZERO)
            # they are symmetric: half of the square
            for j in range(k):
                total = add(total, multiply(load(plan, row + j * LANES), load(products, (k * n + j) * LANES)))
            mass = load(plan, row + k * LANES)
            total = add(total, multiply(multiply(half, mass), load(products, (k * n + k) * LANES)))
            out = add(out, multiply(multiply(two, mass), total))
    return out


@njit(nogil=True, cache=True)
def _square_of(
    plan: np.ndarray, vectors: np.ndarray, own: np.ndarray, near: np.ndarray, m: int, n: int
) -> object:
    """||P X_c||^2 from the vectors ``(n, 16, d)``.

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
        # sixteen of the d numbers are a vector; four of them, of two rows, wait less for each other
        while k + _NEAR <= size:
            # an item's rows lie so far apart that they push each other out of the cache
            for j in range(n):
                for x in range(0, _NEAR, LANES):
                    store(near, j * _NEAR + x, load(flat, lane * size + k + x + j * step))
            for i in range(0, m - 1, 2):
                squares = add(squares, _four(own, first + i * n, first + (i + 1) * n, near, n))
            if m % 2 == 1:
                last = first + (m - 1) * n
                squares = add(squares, multiply(splat(_HALF), _four(own, last, last, near, n)))
            k += _NEAR
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
        # the plan itself is read no more
        plan[lane] = tail + own[sums : sums + LANES].sum()
    return load(plan, 0)


@njit(nogil=True, cache=True)
def _one(own: np.ndarray, row: int, flat: np.ndarray, place: int, step: int, n: int) -> object:
    """Squares of sixteen numbers of P_i X_c."""
    total = splat(_ZERO)
    for j in range(n):
        total = add(total, multiply(repeat(own, row + j), load(flat, place + j * step)))
    return multiply(total, total)


@njit(nogil=True, cache=True)
def _four(own: np.ndarray, first: int, second: int, near: np.ndarray, n: int) -> object:
    """Sums of four such squares each, of two rows."""
    a, b, c, d = splat(_ZERO), splat(_ZERO), splat(_ZERO), splat(_ZERO)
    e, f, g, h = a, b, c, d
    for j in range(n):
        left, right, at = repeat(own, first + j), repeat(own, second + j), j * _NEAR
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


@njit(nogil=True, cache=True)
def _order(
    plan: np.ndarray, positions: np.ndarray, lam: np.ndarray, m: int, n: int, margin: float, hinge: bool
) -> object:
    """-<lambda, b - A P a>, or with its positive part only."""
    out, before, least = splat(_ZERO), splat(_ZERO), splat(np.float32(margin))
    for i in range(m):
        place = splat(_ZERO)
        for j in range(n):
            place = add(place, multiply(load(plan, (i * n + j) * LANES), splat(positions[j])))
        violation = subtract(least, subtract(place, before))
        if hinge:
            violation = larger(violation, splat(_ZERO))
        # lambda of the first row and beyond the last is 0
        out = subtract(out, multiply(load(lam, i * LANES), violation))
        before = place
    return out
