"""The compiled loops of :mod:`isotone.kernels.softdtw`: plain arrays in and out, nothing is checked here.

A row of the batch is an (n, m) matrix of costs. Its cells are visited by anti-diagonals: lane i of diagonal d is the
cell (i, d - i), and the lanes of a diagonal, ``low[d] .. high[d]``, do not depend on each other, so that they run as
vectors. What is kept of the cells is packed in that order, diagonal after diagonal. Matrices come flat, with the
strides of rows, lanes and steps (positions along the other axis).

What the recursions hold of a diagonal has lane i at place i + 1, so that neighbours of the first and last lane exist;
three diagonals lie one after the other, ``now`` and those one and two before (or after) it. From one diagonal to the
next ``low`` and ``high`` grow by 0 or 1: it is enough to clear one place on each side.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from isotone.kernels.arithmetic import fractional_power, nearest, split, whole_power
from isotone.kernels.native import compiled, read, write

# Exponents of two: of what is impossible, and beyond which a sum of costs is infinite.
_IMPOSSIBLE, _INFINITE = 2.0**50, 2.0**49


@compiled
def gather(
    matrix: np.ndarray, base: int, lane: int, step: int, d: int, lo: int, hi: int, out: np.ndarray
) -> None:
    """Read a diagonal of a matrix."""
    place = base + lo * lane + (d - lo) * step
    for i in range(lo, hi + 1):
        out[i] = matrix[place]
        place += lane - step


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
    """Fill the value of a row, and the soft-min weights of its cells where there is room for them.

    ``up`` and ``left`` (packed) are the weights of the cells (i - 1, j) and (i, j - 1) in the soft minimum of (i, j);
    what is missing to 1 is that of (i - 1, j - 1). At gamma = 0 one of the three is 1. Empty arrays are left alone.
    """
    lanes, count = n[b], n[b] + m[b] - 1
    keep = len(up) > 0
    kept_up, kept_left = (up, left) if keep else (np.empty(lanes, up.dtype), np.empty(lanes, up.dtype))
    place = start[b] if keep else 0
    row = (
        cost, b * strides[0], strides[1], strides[2], low[b, :count], high[b, :count], lanes, place, keep, kept_up,
        kept_left,
    )  # fmt: skip
    values[b] = _soft_row(*row, gamma) if gamma > 0 else np.inf
    if values[b] == np.inf:  # also where the costs leave the range that gamma has
        values[b] = _hard_row(*row)


@compiled
def forward_rows(task: int, run: int, order: np.ndarray, *arguments: Any) -> None:
    """:func:`forward_row` of the rows that ``each_rows`` gives."""
    for place in range(task * run, min(len(order), (task + 1) * run)):
        forward_row(order[place], *arguments)


@compiled
def _soft_row(
    cost: np.ndarray,
    base: int,
    lane: int,
    step: int,
    low: np.ndarray,
    high: np.ndarray,
    lanes: int,
    place: int,
    keep: bool,
    up: np.ndarray,
    left: np.ndarray,
    gamma: float,
) -> float:
    """The value of one row.

    exp(-R / gamma) is kept as mantissa and exponent of two, which is a whole number of any size: there is no
    logarithm in the loop, no digits are lost as R grows, and the exponentials do not wait for each other.
    """
    width = lanes + 2
    mantissa, exponent = np.ones(3 * width), np.full(3 * width, -_IMPOSSIBLE)
    exponent[width] = 0.0  # what precedes the first cell
    scale = -1.0 / (gamma * math.log(2.0))
    buffer = np.empty(lanes)
    now = 0
    for d in range(len(low)):
        lo, hi = low[d], high[d]
        now, one, two = d % 3 * width, (d + 2) % 3 * width, (d + 1) % 3 * width
        gather(cost, base, lane, step, d, lo, hi, buffer)
        _soft_diagonal(buffer, mantissa, exponent, now, one, two, lo, hi, place - lo, scale, up, left)
        exponent[now + lo] = exponent[now + hi + 2] = -_IMPOSSIBLE
        place += (hi - lo + 1) if keep else 0
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
    place: int,
    scale: float,
    up: np.ndarray,
    left: np.ndarray,
) -> None:
    """One diagonal from the two before it. Branch-free: LLVM makes vectors of it."""
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
        write(up, place + i, from_up * share)
        write(left, place + i, from_left * share)
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
    place: int,
    keep: bool,
    up: np.ndarray,
    left: np.ndarray,
) -> float:
    """The cost of the best path of one row; on ties the diagonal step goes first."""
    width = lanes + 2
    best = np.full(3 * width, np.inf)
    best[width] = 0.0
    buffer = np.empty(lanes)
    now = 0
    for d in range(len(low)):
        lo, hi = low[d], high[d]
        now, one, two = d % 3 * width, (d + 2) % 3 * width, (d + 1) % 3 * width
        gather(cost, base, lane, step, d, lo, hi, buffer)
        _hard_diagonal(buffer, best, now, one, two, lo, hi, place - lo, up, left)
        best[now + lo] = best[now + hi + 2] = np.inf
        place += (hi - lo + 1) if keep else 0
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
    place: int,
    up: np.ndarray,
    left: np.ndarray,
) -> None:
    for i in range(lo, hi + 1):
        of_up, of_left, of_both = read(best, one + i), read(best, one + i + 1), read(best, two + i)
        least = np.minimum(np.minimum(of_up, of_left), of_both)  # NaN if one is
        write(up, place + i, 1.0 if (of_up <= of_left) & (of_up < of_both) else 0.0)
        write(left, place + i, 1.0 if (of_left < of_up) & (of_left < of_both) else 0.0)
        write(best, now + i + 1, read(cost, i) + least)
