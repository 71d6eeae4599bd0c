"""The compiled backward loops of soft-DTW: best paths and expected alignments, by the conventions of ``_forward``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from isotone.kernels.native import compiled, read, write


@compiled
def scatter(
    values: np.ndarray, base: int, lane: int, step: int, d: int, lo: int, hi: int, out: np.ndarray
) -> None:
    """Write a diagonal of a matrix."""
    index = base + lo * lane + (d - lo) * step
    for i in range(lo, hi + 1):
        out[index] = values[i]
        index += lane - step


@njit(nogil=True)
def shares(up: float, left: float, least: float) -> tuple[float, float, float]:
    """Return the three weights of a cell's soft minimum, which sum to 1, from the two that are kept.

    The rest up to 1 is the third weight if it is at least ``least``. Less is the rounding of the two, and goes to the
    larger one: otherwise a path would lose as much at every step.
    """
    rest = 1.0 - up - left
    rounding = rest if rest < least else 0.0
    of_up = rounding if up >= left else 0.0
    return up + of_up, left + (rounding - of_up), rest - rounding


@compiled
def path_row(
    b: int,
    up: np.ndarray,
    left: np.ndarray,
    n: np.ndarray,
    m: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    start: np.ndarray,
    lanes: np.ndarray,
    steps: np.ndarray,
    count: np.ndarray,
) -> None:
    """Fill the cells of a row's best path and their number, from the weights at gamma = 0. There must be a path.

    ``lanes`` and ``steps`` are ``(B, N + M - 1)``; after the path they repeat its last cell.
    """
    i, d, packed, at = n[b] - 1, n[b] + m[b] - 2, start[b + 1], lanes.shape[1]
    while d >= 0:
        at -= 1
        lanes[b, at], steps[b, at] = i, d - i
        packed -= high[b, d] - low[b, d] + 1
        cell = packed + i - low[b, d]
        # not to the left: up or diagonally, one lane back in either case
        i -= left[cell] == 0.0
        d -= 1
        if d >= 0 and up[cell] == left[cell]:  # both 0: the diagonal step, over one more diagonal
            packed -= high[b, d] - low[b, d] + 1
            d -= 1
    count[b] = lanes.shape[1] - at
    for k in range(lanes.shape[1]):
        source = min(at + k, lanes.shape[1] - 1)
        lanes[b, k], steps[b, k] = lanes[b, source], steps[b, source]


@compiled
def path_rows(task: int, run: int, order: np.ndarray, *arguments: Any) -> None:
    """:func:`path_row` of the rows that ``each_rows`` gives."""
    for index in range(task * run, min(len(order), (task + 1) * run)):
        path_row(order[index], *arguments)


@compiled
def backward_row(
    b: int,
    up: np.ndarray,
    left: np.ndarray,
    n: np.ndarray,
    m: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    start: np.ndarray,
    cells: np.ndarray,
    weight: np.ndarray,
    strides: tuple[int, int, int],
    least: float,
    out: np.ndarray,
) -> None:
    """Fill the expected alignment of a row, times its weight; cells that are not visited come in zeroed.

    ``least`` is as in :func:`shares`.
    """
    lanes, count = n[b], n[b] + m[b] - 1
    width = lanes + 2
    # visits that diagonals pass back to (i - 1, j), (i, j - 1) and (i - 1, j - 1)
    to_up, to_left, to_both = np.zeros(3 * width), np.zeros(3 * width), np.zeros(3 * width)
    to_both[(count + 1) % 3 * width + lanes + 1] = weight[b]  # as if from a cell after the last one
    visits = np.empty(lanes)
    packed = start[b] + cells[b]
    for d in range(count - 1, -1, -1):
        lo, hi = low[b, d], high[b, d]
        packed -= hi - lo + 1
        now, one, two = d % 3 * width, (d + 1) % 3 * width, (d + 2) % 3 * width
        _backward_diagonal(
            up, left, packed - lo, to_up, to_left, to_both, now, one, two, lo, hi, least, visits
        )
        to_up[now + lo] = to_left[now + lo] = to_both[now + lo] = 0.0
        to_up[now + hi + 2] = to_left[now + hi + 2] = to_both[now + hi + 2] = 0.0
        scatter(visits, b * strides[0], strides[1], strides[2], d, lo, hi, out)


@compiled
def backward_rows(task: int, run: int, order: np.ndarray, *arguments: Any) -> None:
    """:func:`backward_row` of the rows that ``each_rows`` gives."""
    for index in range(task * run, min(len(order), (task + 1) * run)):
        backward_row(order[index], *arguments)


@compiled(fastmath={"contract"})
def _backward_diagonal(
    up: np.ndarray,
    left: np.ndarray,
    packed: int,
    to_up: np.ndarray,
    to_left: np.ndarray,
    to_both: np.ndarray,
    now: int,
    one: int,
    two: int,
    lo: int,
    hi: int,
    least: float,
    visits: np.ndarray,
) -> None:
    """Fill the expected visits of a diagonal's cells from those that later cells pass back, and pass them on."""
    for i in range(lo, hi + 1):
        visit = read(to_up, one + i + 2) + read(to_left, one + i + 1) + read(to_both, two + i + 2)
        w_up, w_left, rest = shares(read(up, packed + i), read(left, packed + i), least)
        write(visits, i, visit)
        write(to_up, now + i + 1, visit * w_up)
        write(to_left, now + i + 1, visit * w_left)
        write(to_both, now + i + 1, visit * rest)
