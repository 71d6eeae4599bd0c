"""The compiled loops of :mod:`isotone.kernels.softdtw`: plain arrays in and out, nothing is checked here.

A row of the batch is an (n, m) matrix of costs. Its cells are visited by anti-diagonals: lane i of diagonal d is the
cell (i, d - i). The lanes of a diagonal, ``low[d] .. high[d]``, do not depend on each other, so that they run as
vectors. Weights of the cells are packed in that order, diagonal after diagonal. Matrices come flat, with the strides of
rows, lanes and steps (positions along the other axis).

The recursions hold three diagonals one after the other, at the offsets ``now``, ``one`` and ``two``: the present one,
and those one and two before it (in backward loops, after it). Lane i is element i + 1, so that the first and last lane
have neighbours. From one diagonal to the next ``low`` and ``high`` grow by 0 or 1: clearing one element on each side is
enough.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from isotone.kernels.arithmetic import fractional_power, nearest, split, whole_power
from isotone.kernels.native import compiled, read, write

# Exponents of two: of an impossible path, and of the least sum of costs that counts as infinite.
_IMPOSSIBLE, _INFINITE = 2.0**50, 2.0**49


@compiled
def gather(
    matrix: np.ndarray, base: int, lane: int, step: int, d: int, lo: int, hi: int, out: np.ndarray
) -> None:
    """Read a diagonal of a matrix."""
    index = base + lo * lane + (d - lo) * step
    for i in range(lo, hi + 1):
        out[i] = matrix[index]
        index += lane - step


@compiled
def forward_row(
    b: int,
    cost: np.ndarray,
    strides: tuple[int, int, int],
    n: np.ndarray,
    m: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    start: np.ndarray,
    gamma: float,
    up: np.ndarray,
    left: np.ndarray,
    values: np.ndarray,
) -> None:
    """Fill the value of a row, and the soft-min weights of its cells where arrays for them are given.

    ``up`` and ``left`` (packed) are the weights of the cells (i - 1, j) and (i, j - 1) in the soft minimum of (i, j).
    The rest up to 1 is the weight of (i - 1, j - 1). At gamma = 0 one of the three is 1. Empty arrays are not filled.
    """
    lanes, count = n[b], n[b] + m[b] - 1
    keep = len(up) > 0
    kept_up, kept_left = (up, left) if keep else (np.empty(lanes, up.dtype), np.empty(lanes, up.dtype))
    packed = start[b] if keep else 0
    row = (
        cost, b * strides[0], strides[1], strides[2], low[b, :count], high[b, :count], lanes, packed, keep, kept_up,
        kept_left,
    )  # fmt: skip
    values[b] = _soft_row(*row, gamma) if gamma > 0 else np.inf
    if values[b] == np.inf:  # also where costs are out of range for this gamma
        values[b] = _hard_row(*row)


@compiled
def forward_rows(task: int, run: int, order: np.ndarray, *arguments: Any) -> None:
    """:func:`forward_row` of the rows that ``each_rows`` gives."""
    for index in range(task * run, min(len(order), (task + 1) * run)):
        forward_row(order[index], *arguments)


@compiled
def _soft_row(
    cost: np.ndarray,
    base: int,
    lane: int,
    step: int,
    low: np.ndarray,
    high: np.ndarray,
    lanes: int,
    packed: int,
    keep: bool,
    up: np.ndarray,
    left: np.ndarray,
    gamma: float,
) -> float:
    """Return the value of one row.

    exp(-R / gamma) is kept as a mantissa and a whole exponent of two of any size. So there is no logarithm in the loop,
    no digits are lost as R grows, and the exponentials do not wait for each other.
    """
    width = lanes + 2
    mantissa, exponent = np.ones(3 * width), np.full(3 * width, -_IMPOSSIBLE)
    # diagonal -1 stands for what precedes the first cell: of diagonal 0 it is `two`, at the offset of one width
    exponent[width] = 0.0
    scale = -1.0 / (gamma * math.log(2.0))
    buffer = np.empty(lanes)
    now = 0
    for d in range(len(low)):
        lo, hi = low[d], high[d]
        now, one, two = d % 3 * width, (d + 2) % 3 * width, (d + 1) % 3 * width
        gather(cost, base, lane, step, d, lo, hi, buffer)
        _soft_diagonal(buffer, mantissa, exponent, now, one, two, lo, hi, packed - lo, scale, up, left)
        exponent[now + lo] = exponent[now + hi + 2] = -_IMPOSSIBLE
        packed += (hi - lo + 1) if keep else 0
    last = exponent[now + lanes]
    if abs(last) > _INFINITE:
        return math.copysign(np.inf, -last)
    return -gamma * (math.log(mantissa[now + lanes]) + last * math.log(2.0))


@compiled(error_model="numpy", fastmath={"contract"})
def _soft_diagonal(
    cost: np.ndarray,
    mantissa: np.ndarray,
    exponent: np.ndarray,
    now: int,
    one: int,
    two: int,
    lo: int,
    hi: int,
    packed: int,
    scale: float,
    up: np.ndarray,
    left: np.ndarray,
) -> None:
    """Fill one diagonal from the two before it. Without branches: LLVM makes vector code of it."""
    for i in range(lo, hi + 1):
        power = read(cost, i) * scale
        power = _IMPOSSIBLE if power > _IMPOSSIBLE else power
        power = -_IMPOSSIBLE if power < -_IMPOSSIBLE else power
        whole = nearest(power)
        of_up, of_left = read(exponent, one + i), read(exponent, one + i + 1)
        of_both = read(exponent, two + i)
        most = of_up if of_up > of_left else of_left
        most = of_both if of_both > most else most
        from_up = read(mantissa, one + i) * whole_power(of_up - most)
        from_left = read(mantissa, one + i + 1) * whole_power(of_left - most)
        total = from_up + from_left + read(mantissa, two + i) * whole_power(of_both - most)
        share = 1.0 / total
        write(up, packed + i, from_up * share)
        write(left, packed + i, from_left * share)
        scaled, carry = split(total * fractional_power(power - whole))
        write(mantissa, now + i + 1, scaled)
        write(exponent, now + i + 1, most + whole + carry)


@compiled
def _hard_row(
    cost: np.ndarray,
    base: int,
    lane: int,
    step: int,
    low: np.ndarray,
    high: np.ndarray,
    lanes: int,
    packed: int,
    keep: bool,
    up: np.ndarray,
    left: np.ndarray,
) -> float:
    """Return the cost of the best path of one row; on ties the diagonal step goes first."""
    width = lanes + 2
    best = np.full(3 * width, np.inf)
    best[width] = 0.0
    buffer = np.empty(lanes)
    now = 0
    for d in range(len(low)):
        lo, hi = low[d], high[d]
        now, one, two = d % 3 * width, (d + 2) % 3 * width, (d + 1) % 3 * width
        gather(cost, base, lane, step, d, lo, hi, buffer)
        _hard_diagonal(buffer, best, now, one, two, lo, hi, packed - lo, up, left)
        best[now + lo] = best[now + hi + 2] = np.inf
        packed += (hi - lo + 1) if keep else 0
    return best[now + lanes]


@compiled
def _hard_diagonal(
    cost: np.ndarray,
    best: np.ndarray,
    now: int,
    one: int,
    two: int,
    lo: int,
    hi: int,
    packed: int,
    up: np.ndarray,
    left: np.ndarray,
) -> None:
    for i in range(lo, hi + 1):
        of_up, of_left, of_both = read(best, one + i), read(best, one + i + 1), read(best, two + i)
        least = np.minimum(np.minimum(of_up, of_left), of_both)  # NaN if one is
        write(up, packed + i, 1.0 if (of_up <= of_left) & (of_up < of_both) else 0.0)
        write(left, packed + i, 1.0 if (of_left < of_up) & (of_left < of_both) else 0.0)
        write(best, now + i + 1, read(cost, i) + least)
