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
    divide,
    exponential,
    larger,
    load,
    multiply,
    smaller,
    splat,
    store,
    subtract,
)
from isotone.kernels._opas_network import network, scratch_size

#: Pairs of a query and a block of items that one task scores.
STEPS = 32
#: Largest range of reward / tau within a row, and largest reward / tau, that single precision scales without under-
#: or overflow, and those of double precision; beyond them the iterations are done on logarithms.
NARROW, WIDE = 40.0, 300.0
_ZERO, _ONE = np.float32(0.0), np.float32(1.0)
_TINY = np.float32(1e-30)
_FAR = np.float32(1e30)


@njit(nogil=True, cache=True)
def score_blocks(
    task: int,
    similarity: np.ndarray,
    bonus: np.ndarray,
    basis: np.ndarray,
    gram: bool,
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
    wide: np.ndarray,
) -> None:
    """Score the pairs of a task; ``wide`` marks those whose rewards range too far for single precision."""
    groups, m, blocks, n, _ = similarity.shape
    lanes = blocks * LANES
    run = max(1, STEPS // groups)
    stagger = layers[0, 1] - 1 if len(layers) else 0
    stride = max(n, net_columns)
    similar = np.zeros((m + stagger) * stride * LANES, np.float32)
    plan = np.empty(m * n * LANES, np.float32)
    factors = np.empty((m + n) * LANES, np.float32)
    column_mask = np.empty(n * LANES, np.float32)
    row_mask = np.empty(m * LANES, np.float32)
    lam = np.zeros((m + 1) * LANES, np.float32)
    scratch = np.empty(scratch_size(layers, stride) * LANES, np.float32)
    source, flat_lambdas = similarity.reshape(-1), lambdas.reshape(-1)
    # an item's own numbers stay in the first cache while every query reads them
    for block in range(task * run, min((task + 1) * run, blocks)):
        c = block * LANES
        extra, own = bonus[block].reshape(-1), basis[block].reshape(-1)
        columns = _fill_mask(column_mask, column_lengths, c, n)
        for g in range(groups):
            for i in range(m):
                row = ((g * m + i) * blocks + block) * n
                for j in range(n):
                    store(similar, (i * stride + j) * LANES, load(source, (row + j) * LANES))
            slack = subtract(columns, _fill_mask(row_mask, row_lengths[g], c, m))
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
            _scale(plan, factors, column_mask, slack, m, n, iterations)
            store(scratch, 0, _fit(plan, similar, stride, own, basis.shape[1], gram, m, n))
            store(scratch, LANES, _order(plan, positions, lam, m, n, margin, hinge))
            store(scratch, 2 * LANES, ranges)
            for lane in range(LANES):
                fit[g, c + lane] = scratch[lane]
                order[g, c + lane] = scratch[LANES + lane]
                wide[g, c + lane] = not scratch[2 * LANES + lane] <= NARROW


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
    """exp((reward - largest of the row) / tau), 0 beyond the lengths, the rows' factors, and what NARROW bounds."""
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
def _scale(
    plan: np.ndarray,
    factors: np.ndarray,
    column_mask: np.ndarray,
    slack: object,
    m: int,
    n: int,
    iterations: int,
) -> None:
    """Sinkhorn's iterations, columns then rows, in place; the slack rows, all ones, are carried as one."""
    one, tiny = splat(_ONE), splat(_TINY)
    column = m * LANES
    rest = slack
    for _ in range(iterations):
        for j in range(n):
            total = multiply(rest, load(column_mask, j * LANES))
            for i in range(m):
                total = add(total, multiply(load(plan, (i * n + j) * LANES), load(factors, i * LANES)))
            store(factors, column + j * LANES, divide(one, larger(total, tiny)))
        for i in range(m):
            total = splat(_ZERO)
            for j in range(n):
                term = multiply(load(plan, (i * n + j) * LANES), load(factors, column + j * LANES))
                total = add(total, term)
            store(factors, i * LANES, divide(one, larger(total, tiny)))
        total = splat(_ZERO)
        for j in range(n):
            total = add(total, multiply(load(column_mask, j * LANES), load(factors, column + j * LANES)))
        rest = divide(slack, larger(total, tiny))
    for i in range(m):
        row = load(factors, i * LANES)
        for j in range(n):
            # in this order 0 stays 0 where a factor has no bound
            value = multiply(row, load(plan, (i * n + j) * LANES))
            store(plan, (i * n + j) * LANES, multiply(value, load(factors, column + j * LANES)))


@njit(nogil=True, cache=True)
def _fit(
    plan: np.ndarray,
    similar: np.ndarray,
    stride: int,
    basis: np.ndarray,
    width: int,
    gram: bool,
    m: int,
    n: int,
) -> object:
    """2 <P, X_q X_c'> - ||P X_c||^2: the fit less the query's squared norm."""
    out, two, half = splat(_ZERO), splat(np.float32(2.0)), splat(np.float32(0.5))
    # the basis of long items is large: each of its rows is read once
    for k in range(width):
        for i in range(m):
            row = i * n * LANES
            total = splat(_ZERO)
            # of inner products, symmetric, half of the square
            for j in range(k if gram else n):
                total = add(total, multiply(load(plan, row + j * LANES), load(basis, (k * n + j) * LANES)))
            if gram:
                mass = load(plan, row + k * LANES)
                total = add(total, multiply(multiply(half, mass), load(basis, (k * n + k) * LANES)))
                out = subtract(out, multiply(multiply(two, mass), total))
            else:
                out = subtract(out, multiply(total, total))
    for i in range(m):
        for j in range(n):
            cross = multiply(load(plan, (i * n + j) * LANES), load(similar, (i * stride + j) * LANES))
            out = add(out, multiply(two, cross))
    return out


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


@njit(nogil=True, cache=True)
def score_wide(
    task: int,
    pairs: np.ndarray,
    similarity: np.ndarray,
    bonus: np.ndarray,
    vectors: np.ndarray,
    row_lengths: np.ndarray,
    column_lengths: np.ndarray,
    positions: np.ndarray,
    lambdas: np.ndarray,
    tau: float,
    iterations: int,
    margin: float,
    hinge: bool,
    fit: np.ndarray,
    order: np.ndarray,
) -> None:
    """Score one pair in double precision, on logarithms if need be."""
    g, c = pairs[task]
    block, lane = c // LANES, c % LANES
    similar = similarity[g, :, block, :, lane]
    m, n = np.int64(row_lengths[g, c]), np.int64(column_lengths[c])
    lam = np.zeros(m + 1)
    lam[:m] = lambdas[g, :m, c]
    reward = np.empty((m, n))
    ranges = 0.0
    for i in range(m):
        for j in range(n):
            push = (lam[i] - lam[i + 1]) * positions[j]
            reward[i, j] = (2.0 * similar[i, j] + bonus[block, j, lane] + push) / tau
        high, low = reward[i].max(), reward[i].min()
        ranges = max(ranges, high - low, abs(high))
    if ranges <= WIDE:
        plan = _scale_double(np.exp(reward), iterations)
    else:
        plan = _scale_log(reward, iterations)
    total = 0.0
    carried = np.zeros(vectors.shape[3])
    for i in range(m):
        carried[:] = 0.0
        for j in range(n):
            mass = plan[i, j]
            total += 2.0 * mass * similar[i, j]
            if mass > 1e-9:
                own = vectors[block, j, lane]
                for k in range(len(carried)):
                    carried[k] += mass * own[k]
        total -= (carried * carried).sum()
    fit[g, c] = total
    out = before = 0.0
    for i in range(m):
        place = 0.0
        for j in range(n):
            place += plan[i, j] * positions[j]
        violation = margin - (place - before)
        out -= lam[i] * (max(0.0, violation) if hinge else violation)
        before = place
    order[g, c] = out


@njit(nogil=True, cache=True)
def _scale_double(plan: np.ndarray, iterations: int) -> np.ndarray:
    """Sinkhorn's iterations on ``(m, n)`` and n - m rows of ones, columns then rows."""
    m, n = plan.shape
    columns, rows, slack = np.empty(n), np.ones(m), 1.0
    for _ in range(iterations):
        columns[:] = (n - m) * slack
        for i in range(m):
            for j in range(n):
                columns[j] += rows[i] * plan[i, j]
        slack = 0.0
        for j in range(n):
            columns[j] = 1.0 / columns[j]
            slack += columns[j]
        slack = 1.0 / slack
        for i in range(m):
            rows[i] = 1.0 / (plan[i] * columns).sum()
    for i in range(m):
        for j in range(n):
            plan[i, j] *= rows[i] * columns[j]
    return plan


@njit(nogil=True, cache=True)
def _scale_log(reward: np.ndarray, iterations: int) -> np.ndarray:
    """The same from logarithms; its result is exp of them."""
    m, n = reward.shape
    columns, rows, slack = np.empty(n), np.zeros(m), 0.0
    for _ in range(iterations):
        for j in range(n):
            high = slack if n > m else -np.inf
            for i in range(m):
                high = max(high, rows[i] + reward[i, j])
            total = (n - m) * np.exp(slack - high)
            for i in range(m):
                total += np.exp(rows[i] + reward[i, j] - high)
            columns[j] = -(high + np.log(total))
        high = columns.max()
        slack = -(high + np.log(np.exp(columns - high).sum()))
        for i in range(m):
            terms = reward[i] + columns
            high = terms.max()
            rows[i] = -(high + np.log(np.exp(terms - high).sum()))
    out = np.empty((m, n))
    for i in range(m):
        for j in range(n):
            out[i, j] = np.exp(rows[i] + reward[i, j] + columns[j])
    return out
