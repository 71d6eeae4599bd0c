"""The compiled loops of :mod:`isotone.kernels.opas`: plain arrays in and out, nothing is checked here.

Sixteen corpus items are scored at once, one a lane. Arrays of a block are flat: number ``x[i, j]`` of lane l of an
``(m, n)`` matrix lies at ``(i * n + j) * 16 + l``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isotone.kernels._lanes import (
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
from isotone.kernels._opas_lanes import largest
from isotone.kernels._opas_network import network, scratch_size
from isotone.kernels._opas_sinkhorn import factors_size, scale, scale_wide, wide_size

#: Pairs of a query and a block of items that one task scores.
STEPS = 32
# Largest range of reward / tau within a row, and largest reward / tau, that single precision scales without under- or
# overflow.
_NARROW = np.float32(40.0)
_ZERO, _ONE = np.float32(0.0), np.float32(1.0)
_FAR = np.float32(1e30)


@njit(nogil=True, cache=True)
def score_blocks(
    task: int,
    similarity: np.ndarray,
    bonus: np.ndarray,
    basis: np.ndarray,
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
    plans: np.ndarray,
) -> None:
    """Score the pairs of a task, s_F without the query's norm and without ``||P X_c||^2`` where there is no basis.

    Plans ``(G, m, B, 16, n)`` are written where there is none.
    """
    groups, m, blocks, n, _ = similarity.shape
    lanes = blocks * LANES
    run = max(1, STEPS // groups)
    stagger = layers[0, 1] - 1 if len(layers) else 0
    stride = max(n, net_columns)
    similar = np.zeros((m + stagger) * stride * LANES, np.float32)
    plan = np.empty(m * n * LANES, np.float32)
    factors = np.empty(factors_size(m, n) * LANES, np.float32)
    column_mask = np.empty(n * LANES, np.float32)
    row_mask = np.empty(m * LANES, np.float32)
    lam = np.zeros((m + 1) * LANES, np.float32)
    scratch = np.empty(scratch_size(layers, stride) * LANES, np.float32)
    more = np.empty(wide_size(m, n) * LANES, np.float32)
    source, flat_lambdas = similarity.reshape(-1), lambdas.reshape(-1)
    flat_fit, flat_order = fit.reshape(-1), order.reshape(-1)
    # an item's own numbers stay in the first cache while every query reads them
    for block in range(task * run, min((task + 1) * run, blocks)):
        c = block * LANES
        extra = bonus[block].reshape(-1)
        columns = _fill_mask(column_mask, column_lengths, c, n)
        for g in range(groups):
            for i in range(m):
                row = ((g * m + i) * blocks + block) * n
                for j in range(n):
                    store(similar, (i * stride + j) * LANES, load(source, (row + j) * LANES))
            slack = larger(subtract(columns, _fill_mask(row_mask, row_lengths[g], c, m)), splat(_ZERO))
            if len(layers):
                network(similar, stride, row_mask, m, layers, weights, scratch, lam)
                for i in range(m):
                    store(flat_lambdas, (g * m + i) * lanes + c, load(lam, i * LANES))
            else:
                for i in range(m):
                    store(lam, i * LANES, load(flat_lambdas, (g * m + i) * lanes + c))
            ranges = _fill_kernel(
                plan, factors, similar, stride, extra, positions, lam, row_mask, column_mask, m, n, tau
            )
            if largest(ranges) <= _NARROW:
                scale(plan, factors, row_mask, column_mask, slack, m, n, iterations)
            else:
                scale_wide(
                    plan, factors, similar, stride, extra, positions, lam, row_mask, column_mask, slack, m, n,
                    tau, iterations, more,
                )  # fmt: skip
            value = _cross(plan, similar, stride, m, n)
            if len(basis):
                value = subtract(value, _square(plan, basis[block].reshape(-1), m, n))
            else:
                _write(plan, plans[g, :, block])
            store(flat_fit, g * lanes + c, value)
            store(flat_order, g * lanes + c, _order(plan, positions, lam, m, n, margin, hinge))


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
def _write(plan: np.ndarray, out: np.ndarray) -> None:
    """The plan, a lane each, to ``(m, 16, n)``."""
    m, _, n = out.shape
    for i in range(m):
        for j in range(n):
            at = (i * n + j) * LANES
            for lane in range(LANES):
                out[i, lane, j] = plan[at + lane]


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
