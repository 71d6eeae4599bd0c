"""The compiled loops of soft-DTW from vectors, by the conventions of :mod:`isotone.kernels.softdtw._forward`.

A pair of sequences goes from its costs to its gradients in buffers that the next pair uses again. Nothing of the size
(B, n, m) is stored, and no new memory is requested, which would take as long as the recursions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isotone.kernels.native import compiled
from isotone.kernels.softdtw._backward import backward_row
from isotone.kernels.softdtw._forward import forward_row

# Cells with fewer expected visits than this have no gradient.
_NEVER = 1e-20


@compiled
def sequences_row(
    b: int,
    first: np.ndarray,
    once: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    n: np.ndarray,
    m: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    cells: np.ndarray,
    gamma: float,
    least: float,
    buffers: np.ndarray,
    values: np.ndarray,
    of_x: np.ndarray,
    of_y: np.ndarray,
) -> None:
    """Fill the value of a row, and where ``of_x (B, n, d)`` is not empty half its gradients, which come in zeroed.

    ``y`` and ``of_y`` are ``(B, d, m)``; ``buffers`` are ``(4, n m)`` numbers, or ``(1, n m)`` without
    gradients; ``first`` and ``once`` are B zeros and ones.
    """
    rows, columns = n[b], m[b]
    # the buffers hold this row only: the row of the batch has no stride, and its cells begin at 0
    strides = (0, columns, 1)
    cost = buffers[0]
    _squared_distances(x[b], y[b], rows, columns, cost)
    if len(of_x) == 0:
        nothing = cost[:0]
        forward_row(b, cost, strides, n, m, low, high, first, gamma, nothing, nothing, values)
        return
    up, left, visits = buffers[1], buffers[2], buffers[3]
    forward_row(b, cost, strides, n, m, low, high, first, gamma, up, left, values)
    if cells[b] < rows * columns:
        visits[: rows * columns] = 0.0
    backward_row(b, up, left, n, m, low, high, first, cells, once, strides, least, visits)
    _add_gradients(x[b], y[b], rows, columns, visits, of_x[b], of_y[b])


@compiled
def sequences_rows(task: int, run: int, order: np.ndarray, *arguments: Any) -> None:
    """:func:`sequences_row` of the rows that ``each_rows`` gives."""
    for index in range(task * run, min(len(order), (task + 1) * run)):
        sequences_row(order[index], *arguments)


@compiled(fastmath={"contract"})
def _squared_distances(x: np.ndarray, y: np.ndarray, n: int, m: int, out: np.ndarray) -> None:
    """Fill squared distances. Differences are squared, not squares subtracted: no digits cancel."""
    size = x.shape[1]
    for i in range(n):
        row = out[i * m : (i + 1) * m]
        row[:] = 0.0
        k = 0
        while k + 4 <= size:
            a, b, c, d = x[i, k], x[i, k + 1], x[i, k + 2], x[i, k + 3]
            y_a, y_b, y_c, y_d = y[k], y[k + 1], y[k + 2], y[k + 3]
            for j in range(m):
                row[j] += (
                    (a - y_a[j]) * (a - y_a[j]) + (b - y_b[j]) * (b - y_b[j])
                    + (c - y_c[j]) * (c - y_c[j]) + (d - y_d[j]) * (d - y_d[j])
                )  # fmt: skip
            k += 4
        while k < size:
            a, y_a = x[i, k], y[k]
            for j in range(m):
                row[j] += (a - y_a[j]) * (a - y_a[j])
            k += 1


@compiled(fastmath={"contract", "reassoc"})
def _add_gradients(
    x: np.ndarray, y: np.ndarray, n: int, m: int, visits: np.ndarray, of_x: np.ndarray, of_y: np.ndarray
) -> None:
    """Fill half the gradient of sum_ij visits_ij |x_i - y_j|^2, in each row where paths visit it."""
    for i in range(n):
        row = visits[i * m : (i + 1) * m]
        begin, end = 0, m
        while begin < m and row[begin] < _NEVER:
            begin += 1
        while end > begin and row[end - 1] < _NEVER:
            end -= 1
        for k in range(x.shape[1]):
            value, y_k, of_y_k = x[i, k], y[k], of_y[k]
            total = value - value  # 0 of the value's type
            for j in range(begin, end):
                pull = row[j] * (value - y_k[j])
                total += pull
                of_y_k[j] -= pull
            of_x[i, k] = total
