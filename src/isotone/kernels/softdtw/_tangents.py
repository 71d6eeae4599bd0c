"""The compiled second derivative of soft-DTW, by the conventions of :mod:`isotone.kernels.softdtw._forward`.

These are the tangents of both recursions (Mensch & Blondel, "Differentiable dynamic programming", ICML 2018). With the
soft-min weights known, they consist of sums and products only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isotone.kernels.native import compiled, read, write
from isotone.kernels.softdtw._backward import scatter, shares
from isotone.kernels.softdtw._forward import gather


@compiled
def tangent_row(
    b: int,
    direction: np.ndarray,
    strides: tuple[int, int, int],
    up: np.ndarray,
    left: np.ndarray,
    n: np.ndarray,
    m: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    start: np.ndarray,
    sharpness: float,
    least: float,
    weight: np.ndarray,
    out: np.ndarray,
    inner: np.ndarray,
) -> None:
    """Fill a row's Hessian times a direction and the row's weight, and the gradient's inner product with the direction.

    ``sharpness`` is 1 / gamma, 0 for a hard minimum; ``out`` comes in zeroed, its strides are the direction's.
    ``least`` is as in :func:`isotone.kernels.softdtw._backward.shares`.
    """
    count = n[b] + m[b] - 1
    size = start[b + 1] - start[b]
    d_up, d_left = np.empty(size), np.empty(size)
    row = (b * strides[0], strides[1], strides[2], up, left, low[b, :count], high[b, :count], n[b], least)
    inner[b] = _forward_tangent(direction, *row, start[b], sharpness, d_up, d_left)
    _backward_tangent(out, *row, start[b], weight[b], d_up, d_left)


@compiled
def tangent_rows(task: int, run: int, order: np.ndarray, *arguments: Any) -> None:
    """:func:`tangent_row` of the rows that ``each_rows`` gives."""
    for index in range(task * run, min(len(order), (task + 1) * run)):
        tangent_row(order[index], *arguments)


@compiled
def _forward_tangent(
    direction: np.ndarray,
    base: int,
    lane: int,
    step: int,
    up: np.ndarray,
    left: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    lanes: int,
    least: float,
    start: int,
    sharpness: float,
    d_up: np.ndarray,
    d_left: np.ndarray,
) -> float:
    """Return the derivative of a row's value along the direction, and fill those of its weights."""
    width = lanes + 2
    tangent = np.zeros(3 * width)
    buffer = np.empty(lanes)
    now, own = 0, 0
    for d in range(len(low)):
        lo, hi = low[d], high[d]
        now, one, two = d % 3 * width, (d + 2) % 3 * width, (d + 1) % 3 * width
        gather(direction, base, lane, step, d, lo, hi, buffer)
        _forward_diagonal(
            buffer, tangent, now, one, two, up, left, start + own - lo, own - lo, lo, hi, sharpness, least, d_up,
            d_left,
        )  # fmt: skip
        tangent[now + lo] = tangent[now + hi + 2] = 0.0
        own += hi - lo + 1
    return tangent[now + lanes]


@compiled(fastmath={"contract"})
def _forward_diagonal(
    direction: np.ndarray,
    tangent: np.ndarray,
    now: int,
    one: int,
    two: int,
    up: np.ndarray,
    left: np.ndarray,
    packed: int,
    own: int,
    lo: int,
    hi: int,
    sharpness: float,
    least: float,
    d_up: np.ndarray,
    d_left: np.ndarray,
) -> None:
    for i in range(lo, hi + 1):
        w_up, w_left, rest = shares(read(up, packed + i), read(left, packed + i), least)
        of_up, of_left = read(tangent, one + i), read(tangent, one + i + 1)
        mean = w_up * of_up + w_left * of_left + rest * read(tangent, two + i)
        write(tangent, now + i + 1, mean + read(direction, i))
        write(d_up, own + i, sharpness * w_up * (mean - of_up))
        write(d_left, own + i, sharpness * w_left * (mean - of_left))


@compiled
def _backward_tangent(
    out: np.ndarray,
    base: int,
    lane: int,
    step: int,
    up: np.ndarray,
    left: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    lanes: int,
    least: float,
    start: int,
    weight: float,
    d_up: np.ndarray,
    d_left: np.ndarray,
) -> None:
    """Fill the derivative of a row's expected alignment along the direction."""
    width = lanes + 2
    below = 3 * width
    own = len(d_up)
    # visits that diagonals pass back to (i - 1, j), (i, j - 1) and (i - 1, j - 1), and from `below` on their tangents
    to_up, to_left, to_both = np.zeros(2 * below), np.zeros(2 * below), np.zeros(2 * below)
    to_both[(len(low) + 1) % 3 * width + lanes + 1] = weight
    buffer = np.empty(lanes)
    for d in range(len(low) - 1, -1, -1):
        lo, hi = low[d], high[d]
        own -= hi - lo + 1
        now, one, two = d % 3 * width, (d + 1) % 3 * width, (d + 2) % 3 * width
        _backward_diagonal(
            up, left, d_up, d_left, start + own - lo, own - lo, to_up, to_left, to_both, now, one, two, below, lo, hi,
            least, buffer,
        )  # fmt: skip
        for edge in (now + lo, now + hi + 2):
            to_up[edge] = to_left[edge] = to_both[edge] = 0.0
            to_up[below + edge] = to_left[below + edge] = to_both[below + edge] = 0.0
        scatter(buffer, base, lane, step, d, lo, hi, out)


@compiled(fastmath={"contract"})
def _backward_diagonal(
    up: np.ndarray,
    left: np.ndarray,
    d_up: np.ndarray,
    d_left: np.ndarray,
    packed: int,
    own: int,
    to_up: np.ndarray,
    to_left: np.ndarray,
    to_both: np.ndarray,
    now: int,
    one: int,
    two: int,
    below: int,
    lo: int,
    hi: int,
    least: float,
    out: np.ndarray,
) -> None:
    for i in range(lo, hi + 1):
        at_up, at_left, at_both = one + i + 2, one + i + 1, two + i + 2
        visit = read(to_up, at_up) + read(to_left, at_left) + read(to_both, at_both)
        change = read(to_up, below + at_up) + read(to_left, below + at_left) + read(to_both, below + at_both)
        w_up, w_left, rest = shares(read(up, packed + i), read(left, packed + i), least)
        of_up, of_left = read(d_up, own + i), read(d_left, own + i)
        write(out, i, change)
        write(to_up, now + i + 1, visit * w_up)
        write(to_left, now + i + 1, visit * w_left)
        write(to_both, now + i + 1, visit * rest)
        write(to_up, below + now + i + 1, change * w_up + visit * of_up)
        write(to_left, below + now + i + 1, change * w_left + visit * of_left)
        write(to_both, below + now + i + 1, change * rest - visit * (of_up + of_left))
