"""The compiled loops of :mod:`isotone.kernels.coupling`: plain arrays in and out, nothing is checked here."""

from __future__ import annotations

import math

import numpy as np

from isotone.kernels.native import compiled


@compiled
def _sum(weights: np.ndarray) -> float:
    total = 0.0
    for w in weights:
        total += w
    return total


@compiled
def merge_row(
    b: int,
    alpha: np.ndarray,
    beta: np.ndarray,
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
    source: np.ndarray,
    target: np.ndarray,
    mass: np.ndarray,
) -> None:
    """Fill the coupling of row b: the merge of two lists of prefix sums. Running sums are float64."""
    n, m = source_lengths[b], target_lengths[b]
    if not (0 <= n <= alpha.shape[1] and 0 <= m <= beta.shape[1]):
        raise IndexError("A row is longer than its weights: expected lengths from 0 to their number.")
    f_total, g_total = _sum(alpha[b, :n]), _sum(beta[b, :m])
    filled = 0 if n == 0 or m == 0 or f_total == 0 or g_total == 0 else n + m - 1
    i = j = 0
    f_sum, g_sum = 0.0, 0.0
    f = g = end = 0.0
    if filled:
        f_sum, g_sum = np.float64(alpha[b, 0]), np.float64(beta[b, 0])
        f, g = f_sum / f_total, g_sum / g_total
    # f and g are the ends of source i and target j: the entry ends at the lower one, at a tie at the source's
    for k in range(filled):
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
    mass[b, filled:] = 0
    source[b, filled:] = source[b, filled - 1] if filled else 0
    target[b, filled:] = target[b, filled - 1] if filled else 0


@compiled
def merge_row_backward(
    b: int,
    alpha: np.ndarray,
    beta: np.ndarray,
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
    grad_mass: np.ndarray,
    grad_alpha: np.ndarray,
    grad_beta: np.ndarray,
) -> None:
    """Fill the gradients of row b, zeroed float64, from those of the masses, by the merge once more."""
    n, m = source_lengths[b], target_lengths[b]
    f_total, g_total = _sum(alpha[b, :n]), _sum(beta[b, :m])
    if n == 0 or m == 0 or f_total == 0 or g_total == 0:
        return
    i = j = 0
    f_sum, g_sum = np.float64(alpha[b, 0]), np.float64(beta[b, 0])
    f, g, f_mean, g_mean = f_sum / f_total, g_sum / g_total, 0.0, 0.0
    for k in range(n + m - 1):
        # mass_k is its end minus the one before: each end counts once with a plus, once with a minus
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


@compiled
def _through_sums(grad: np.ndarray, mean: float, total: float) -> None:
    """Turn the gradient in normalised prefix sums into that in weights, in place."""
    tail = 0.0
    for i in range(len(grad) - 1, -1, -1):
        tail += grad[i]
        grad[i] = (tail - mean) / total


@compiled
def softmax_row(b: int, logits: np.ndarray, lengths: np.ndarray, out: np.ndarray) -> None:
    """Fill the softmax over the valid part of row b, summed in float64."""
    if not 0 <= lengths[b] <= logits.shape[1]:
        raise IndexError("A row is longer than its logits: expected lengths from 0 to their number.")
    peak = -np.inf
    for t in range(lengths[b]):
        peak = max(peak, logits[b, t])
    total = 0.0
    for t in range(lengths[b]):
        out[b, t] = math.exp(logits[b, t] - peak)
        total += out[b, t]
    for t in range(lengths[b]):
        out[b, t] /= total
    out[b, lengths[b] :] = 0
