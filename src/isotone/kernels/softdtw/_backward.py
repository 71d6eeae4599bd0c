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
    place = base + lo * lane + (d - lo) * step
    for i in range(lo, hi + 1):
        out[place] = values[i]
        place += lane - step


@njit(nogil=True)
def shares(up: float, left: float, least: float) -> tuple[float, float, float]:
    """The three weights of a cell's soft minimum, which sum to 1, from the two that are kept.

    What is missing to 1 counts from ``least`` on: less is their rounding. It then belongs to the larger of the two,
    or a path would lose as much at every step.
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
    """Fill the cells of a row's best path, which exists, and their number, from the weights at gamma = 0.

    ``lanes`` and ``steps`` are ``(B, N + M - 1)``; after the path they repeat its last cell.
    """
    i, d, place, at = n[b] - 1, n[b] + m[b] - 2, start[b + 1], lanes.shape[1]
    while d >= 0:
        at -= 1
        lanes[b, at], steps[b, at] = i, d - i
        place -= high[b, d] - low[b, d] + 1
        cell = place + i - low[b, d]
        i -= left[cell] == 0.0
        d -= 1
        if d >= 0 and up[cell] == left[cell]:  # both 0: the diagonal step
            place -= high[b, d] - low[b, d] + 1
            d -= 1
    count[b] = lanes.shape[1] - at
    for k in range(lanes.shape[1]):
        source = min(at + k, lanes.shape[1] - 1)
        lanes[b, k], steps[b, k] = lanes[b, source], steps[b, source]


@compiled
def path_rows(task: int, run: int, order: np.ndarray, *arguments: Any) -> None:
    """:func:`path_row` of the rows that ``each_rows`` gives."""
    for place in range(task * run, min(len(order), (task + 1) * run)):
        path_row(order[place], *arguments)


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
    # what diagonals hand back to (i - 1, j), (i, j - 1) and (i - 1, j - 1)
    to_up, to_left, to_both = np.zeros(3 * width), np.zeros(3 * width), np.zeros(3 * width)
    to_both[(count + 1) % 3 * width + lanes + 1] = weight[b]  # what follows the last cell
    visits = np.empty(lanes)
    place = start[b] + cells[b]
    for d in range(count - 1, -1, -1):
        lo, hi = low[b, d], high[b, d]
        place -= hi - lo + 1
        now, one, two = d % 3 * width, (d + 1) % 3 * width, (d + 2) % 3 * width
        _backward_diagonal(
            up, left, place - lo, to_up, to_left, to_both, now, one, two, lo, hi, least, visits
        )
        to_up[now + lo] = to_left[now + lo] = to_both[now + lo] = 0.0
        to_up[now + hi + 2] = to_left[now + hi + 2] = to_both[now + hi + 2] = 0.0
        scatter(visits, b * strides[0], strides[1], strides[2], d, lo, hi, out)


@compiled
def backward_rows(task: int, run: int, order: np.ndarray, *arguments: Any) -> None:
    """:func:`backward_row` of the rows that ``each_rows`` gives."""
    for place in range(task * run, min(len(order), (task + 1) * run)):
        backward_row(order[place], *arguments)


@compiled(fastmath={"contract"})
def _backward_diagonal(
    up: np.ndarray,
    left: np.ndarray,
    place: int,
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
    """The expected visits of a diagonal's cells, from what the cells after them hand back; and what they hand back."""
    for i in range(lo, hi + 1):
        visit = read(to_up, one + i + 2) + read(to_left, one + i + 1) + read(to_both, two + i + 2)
        w_up, w_left, rest = shares(read(up, place + i), read(left, place + i), least)
        write(visits, i, visit)
        write(to_up, now + i + 1, visit * w_up)
        write(to_left, now + i + 1, visit * w_left)
        write(to_both, now + i + 1, visit * rest)
