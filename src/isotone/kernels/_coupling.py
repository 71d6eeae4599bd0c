"""The compiled loops of :mod:`isotone.kernels.coupling`: plain arrays in and out, nothing is checked here."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def _sum(weights: np.ndarray) -> float:
    total = 0.0
    for w in weights:
        total += w
    return total


@njit(nogil=True, cache=True)
def merge_rows(
    alpha: np.ndarray,
    beta: np.ndarray,
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
    source: np.ndarray,
    target: np.ndarray,
    mass: np.ndarray,
) -> None:
    """Fill the couplings of all rows; everything comes in zeroed. Running sums are float64."""
    for b in range(len(alpha)):
        n, m = source_lengths[b], target_lengths[b]
        f_total, g_total = _sum(alpha[b, :n]), _sum(beta[b, :m])
        if n == 0 or m == 0 or f_total == 0 or g_total == 0:
            continue
        i = j = 0
        f_sum, g_sum = np.float64(alpha[b, 0]), np.float64(beta[b, 0])
        f, g, end = f_sum / f_total, g_sum / g_total, 0.0
        for k in range(n + m - 1):
            source[b, k], target[b, k] = min(i, n - 1), min(j, m - 1)
            begin = end
            if j == m or (i < n and f <= g):
                end = f
                i += 1
                if i < n:
                    f_sum += alpha[b, i]
                    f = f_sum / f_total
            else:
                end = g
                j += 1
                if j < m:
                    g_sum += beta[b, j]
                    g = g_sum / g_total
            mass[b, k] = end - begin
        source[b, n + m - 1 :] = source[b, n + m - 2]
        target[b, n + m - 1 :] = target[b, n + m - 2]


@njit(nogil=True, cache=True)
def merge_rows_backward(
    alpha: np.ndarray,
    beta: np.ndarray,
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
    grad_mass: np.ndarray,
    grad_alpha: np.ndarray,
    grad_beta: np.ndarray,
) -> None:
    """Fill the gradients of all rows, zeroed float64, from those of the masses: the merge once more."""
    for b in range(len(alpha)):
        n, m = source_lengths[b], target_lengths[b]
        f_total, g_total = _sum(alpha[b, :n]), _sum(beta[b, :m])
        if n == 0 or m == 0 or f_total == 0 or g_total == 0:
            continue
        i = j = 0
        f_sum, g_sum = np.float64(alpha[b, 0]), np.float64(beta[b, 0])
        f, g, f_mean, g_mean = f_sum / f_total, g_sum / g_total, 0.0, 0.0
        for k in range(n + m - 1):
            # mass_k is its end minus the end before: an end counts once for, once against
            grad = np.float64(grad_mass[b, k])
            if k < n + m - 2:
                grad -= grad_mass[b, k + 1]
            if j == m or (i < n and f <= g):
                grad_alpha[b, i] = grad
                f_mean += grad * f
                i += 1
                if i < n:
                    f_sum += alpha[b, i]
                    f = f_sum / f_total
            else:
                grad_beta[b, j] = grad
                g_mean += grad * g
                j += 1
                if j < m:
                    g_sum += beta[b, j]
                    g = g_sum / g_total
        _through_sums(grad_alpha[b, :n], f_mean, f_total)
        _through_sums(grad_beta[b, :m], g_mean, g_total)


@njit(nogil=True, cache=True)
def _through_sums(grad: np.ndarray, mean: float, total: float) -> None:
    """From the gradient in normalised prefix sums to that in weights, in place."""
    tail = 0.0
    for i in range(len(grad) - 1, -1, -1):
        tail += grad[i]
        grad[i] = (tail - mean) / total


@njit(nogil=True, cache=True)
def ordered_path(costs: np.ndarray) -> np.ndarray:
    """Of costs ``(m, n)``: ``better[j, i]`` says that ending j at i beats ending it at any smaller index."""
    m, n = costs.shape
    best = np.zeros(n)
    better = np.zeros((m, n), np.bool_)
    for j in range(m):
        low = np.inf
        for i in range(n):
            value = best[i] + costs[j, i]
            if value < low or i == 0:
                low = value
                better[j, i] = True
            best[i] = low
    path = np.empty(m, np.int64)
    i = n - 1
    for j in range(m - 1, -1, -1):
        while not better[j, i]:
            i -= 1
        path[j] = i
    return path
