"""The compiled loops of :mod:`isotone_opas.kernels`: plain arrays in and out, nothing is checked here.

Sixteen corpus items are scored at once, one a lane. Arrays of a block are flat: number ``x[i, j]`` of lane l of an
``(m, n)`` matrix lies at ``(i * n + j) * 16 + l``.
"""

from __future__ import annotations

import numpy as np

from isotone.kernels.native import compiled
from isotone.kernels.native.lanes import (
    LANES,
    add,
    exponential,
    larger,
    largest,
    load,
    multiply,
    smaller,
    splat,
    store,
    subtract,
)
from isotone_opas.kernels._network import network, scratch_size
from isotone_opas.kernels._norms import NEAR, cross, square_of_products, square_of_vectors
from isotone_opas.kernels._sinkhorn import factors_size, scale
from isotone_opas.kernels._stabilised import scale_wide, wide_size

# Largest range of reward / tau within a row, and largest |reward| / tau in it, that single precision scales without
# under- or overflow.
_NARROW = np.float32(40.0)
_ZERO, _ONE = np.float32(0.0), np.float32(1.0)
_FAR = np.float32(1e30)


@compiled
def score_blocks(
    task: int, run: int, similarity: np.ndarray, halves: np.ndarray, squares: np.ndarray, pushes: np.ndarray,
    products: np.ndarray, vectors: np.ndarray, row_lengths: np.ndarray, column_lengths: np.ndarray,
    positions: np.ndarray, lambdas: np.ndarray, layers: np.ndarray, weights: np.ndarray, net_columns: int, tau: float,
    iterations: int, margin: float, hinge: bool, fit: np.ndarray, order: np.ndarray,
) -> None:  # fmt: skip
    """Score the pairs of a task, which has ``run`` blocks; s_F without the query's norm.

    Rewards are twice ``halves``, laid out as the similarities, with 1 - ``squares`` and the penalties' ``pushes``.
    """
    groups, m, blocks, n, _ = similarity.shape
    lanes, stride = blocks * LANES, max(n, net_columns)
    similar = np.zeros((m + (layers[0, 1] - 1 if len(layers) else 0)) * stride * LANES, np.float32)
    plan, factors = np.empty(m * n * LANES, np.float32), np.empty(factors_size(m, n) * LANES, np.float32)
    column_mask, row_mask = np.empty(n * LANES, np.float32), np.empty(m * LANES, np.float32)
    lam, bonus = np.zeros((m + 1) * LANES, np.float32), np.empty(n * LANES, np.float32)
    scratch = np.empty(scratch_size(layers, stride) * LANES, np.float32)
    more = np.empty(wide_size(m, n) * LANES, np.float32)
    own, near = np.empty((m * n + 1) * LANES, np.float32), np.empty(NEAR * n, np.float32)
    source, flat_halves, flat_lambdas = similarity.reshape(-1), halves.reshape(-1), lambdas.reshape(-1)
    flat_fit, flat_order, width = fit.reshape(-1), order.reshape(-1), blocks * n
    # an item's own numbers stay in the first-level cache while every query reads them
    for block in range(task * run, min((task + 1) * run, blocks)):
        c, columns = block * LANES, _fill_mask(column_mask, column_lengths, block * LANES, n)
        _fill_bonus(bonus, squares[block].reshape(-1), n)
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
            given = flat_halves[(g * m * width + block * n) * LANES :]
            ranges = _fill_kernel(
                plan, factors, given, width, bonus, pushes, lam, row_mask, column_mask, m, n, tau
            )
            if largest(ranges) <= _NARROW:
                scale(plan, factors, row_mask, column_mask, slack, m, n, iterations)
            else:
                scale_wide(
                    plan, factors, given, width, bonus, pushes, lam, row_mask, column_mask, slack, m, n, tau,
                    iterations, more,
                )  # fmt: skip
            value = cross(plan, similar, stride, m, n)
            store(flat_order, g * lanes + c, _order(plan, positions, lam, m, n, margin, hinge))
            if len(products):
                value = subtract(value, square_of_products(plan, products[block].reshape(-1), m, n))
            else:
                value = subtract(value, square_of_vectors(plan, vectors[block], own, near, m, n))
            store(flat_fit, g * lanes + c, value)


@compiled
def _copy(source: np.ndarray, first: int, target: np.ndarray, index: int, count: int) -> None:
    for x in range(count):
        store(target, (index + x) * LANES, load(source, (first + x) * LANES))


@compiled
def _fill_bonus(bonus: np.ndarray, squares: np.ndarray, n: int) -> None:
    """Fill 1 less the squared norms, which rewards have beside the similarities."""
    for j in range(n):
        store(bonus, j * LANES, subtract(splat(_ONE), load(squares, j * LANES)))


@compiled
def _fill_mask(mask: np.ndarray, lengths: np.ndarray, c: int, size: int) -> object:
    """Fill 1 up to the lengths and 0 beyond; return the lengths."""
    zero, one, length = splat(_ZERO), splat(_ONE), load(lengths, c)
    for i in range(size):
        store(mask, i * LANES, smaller(larger(subtract(length, splat(np.float32(i))), zero), one))
    return length


@compiled
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
    """Fill exp((reward - largest of the row) / tau), 0 beyond the lengths, and the rows' factors.

    Returns the largest range of reward / tau within a row, or the largest of their absolute values if that is more.
    """
    per_tau = splat(np.float32(1 / tau))
    two, far, ranges = splat(np.float32(2.0)), splat(_FAR), splat(_ZERO)
    for i in range(m):
        push = subtract(load(lam, i * LANES), load(lam, (i + 1) * LANES))
        high, low = splat(-_FAR), far
        for j in range(n):
            reward = add(multiply(two, load(similar, (i * stride + j) * LANES)), load(bonus, j * LANES))
            reward = multiply(add(reward, multiply(push, splat(positions[j]))), per_tau)
            there = multiply(load(column_mask, j * LANES), far)
            # bounds of no effect up to the item's end; past it -1e30 for the largest and 1e30 for the least
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


@compiled
def _order(
    plan: np.ndarray, positions: np.ndarray, lam: np.ndarray, m: int, n: int, margin: float, hinge: bool
) -> object:
    """Return -<lambda, b - A P a>, or that with the positive part of the bracket only."""
    out, before, least = splat(_ZERO), splat(_ZERO), splat(np.float32(margin))
    for i in range(m):
        position = splat(_ZERO)
        for j in range(n):
            position = add(position, multiply(load(plan, (i * n + j) * LANES), splat(positions[j])))
        violation = subtract(least, subtract(position, before))
        if hinge:
            violation = larger(violation, splat(_ZERO))
        # lambda of the first row and beyond the last is 0
        out = subtract(out, multiply(load(lam, i * LANES), violation))
        before = position
    return out
