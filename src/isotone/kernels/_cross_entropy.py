"""The compiled loops of :mod:`isotone.kernels.cross_entropy`: plain float32 arrays in and out.

Frames come in blocks: task ``b * blocks + i`` is block i of row b. Each block has its own partial sum, so results do
not depend on the number of threads.
"""

from __future__ import annotations

import numpy as np

from isotone.kernels.arithmetic import exp32
from isotone.kernels.native import compiled

_ZERO = np.float32(0.0)


@compiled
def _ordered(bits: np.int32) -> np.int32:
    """Map a float's bits to an integer of the same order, and back: of negative numbers all bits but the sign flip."""
    return np.int32(bits ^ np.int32(np.int32(bits >> 31) & np.int32(0x7FFFFFFF)))


@compiled
def _peak(row: np.ndarray) -> np.float32:
    """Return the largest value; where there are NaN, NaN or the largest number.

    The maximum of integers becomes vector code; that of floats does not.
    """
    best = np.int32(-2147483648)
    bits = row.view(np.int32)
    for v in range(len(bits)):  # by index: numba's iterators do not become vector code
        best = max(best, _ordered(bits[v]))
    return np.int32(_ordered(best)).view(np.float32)


@compiled(fastmath={"reassoc", "contract"})
def _sum_exp(row: np.ndarray, peak: np.float32) -> np.float32:
    total = _ZERO
    for v in range(len(row)):
        total += exp32(row[v] - peak)
    return total


@compiled
def block_losses(
    task: int,
    size: int,
    logits: np.ndarray,
    mass: np.ndarray,
    source: np.ndarray,
    label: np.ndarray,
    lengths: np.ndarray,
    norms: np.ndarray,
    parts: np.ndarray,
) -> None:
    """Fill the norms of a block's frames, and their float64 sum of mass times -log p in ``parts``.

    A norm is two numbers: the largest score, and the log-sum-exp of the scores less the largest. As one number, their
    sum, it would round as coarsely as the largest score.
    """
    b, i = task // parts.shape[1], task % parts.shape[1]
    begin, end = i * size, min((i + 1) * size, lengths[b])
    entries, vocab_size = source.shape[1], logits.shape[2]
    if lengths[b] > logits.shape[1]:
        raise IndexError("A row is longer than the logits: expected lengths up to T.")
    k = np.searchsorted(source[b], begin)
    total = 0.0
    for t in range(begin, end):
        row = logits[b, t]
        peak = _peak(row)
        norms[b, t, 0], norms[b, t, 1] = peak, np.log(_sum_exp(row, peak))
        while k < entries and source[b, k] == t:
            if not 0 <= label[b, k] < vocab_size:
                raise IndexError("A label is not in the vocabulary: expected 0 to V - 1.")
            # without mass, an impossible label costs nothing
            if mass[b, k] != 0:
                total += np.float64(mass[b, k]) * np.float64(norms[b, t, 1] - (row[label[b, k]] - peak))
            k += 1
    parts[b, i] = total


@compiled
def block_gradients(
    task: int,
    size: int,
    logits: np.ndarray,
    mass: np.ndarray,
    source: np.ndarray,
    label: np.ndarray,
    lengths: np.ndarray,
    norms: np.ndarray,
    grad: np.ndarray,
    grad_logits: np.ndarray,
    grad_mass: np.ndarray,
) -> None:
    """Fill the gradients of a block; those of the masses come in zeroed. An empty array is skipped."""
    blocks = (logits.shape[1] + size - 1) // size
    b, i = task // blocks, task % blocks
    entries = source.shape[1]
    k = np.searchsorted(source[b], i * size)
    for t in range(i * size, min((i + 1) * size, logits.shape[1])):
        if t >= lengths[b]:
            if len(grad_logits):
                grad_logits[b, t] = _ZERO
            continue
        row, first, weighted = logits[b, t], k, _ZERO
        peak, rest = norms[b, t, 0], norms[b, t, 1]
        while k < entries and source[b, k] == t:
            weighted += grad[b] * mass[b, k]
            if len(grad_mass):
                grad_mass[b, k] = grad[b] * (rest - (row[label[b, k]] - peak))
            k += 1
        if len(grad_logits):
            _scaled_softmax(row, peak, rest, weighted, grad_logits[b, t])
            for pair in range(first, k):
                grad_logits[b, t, label[b, pair]] -= grad[b] * mass[b, pair]


@compiled
def _scaled_softmax(
    row: np.ndarray, peak: np.float32, rest: np.float32, scale: np.float32, out: np.ndarray
) -> None:
    if scale == 0:
        out[:] = _ZERO
        return
    for v in range(len(row)):
        out[v] = exp32((row[v] - peak) - rest) * scale
