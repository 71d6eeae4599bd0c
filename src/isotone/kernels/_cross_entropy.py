"""The compiled loops of :mod:`isotone.kernels.cross_entropy`: plain float32 arrays in and out.

Frames come in blocks, task ``b * blocks + i`` being block i of row b, and a block's partial sums have their
own place: results do not depend on the number of threads.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# exp(x) = 2^k exp(r) with k = round(x / ln 2): adding 1.5 * 2^23 rounds, and leaves k in the low bits.
_PER_LN2 = np.float32(1.4426950408889634)
_ROUND = np.float32(12582912.0)
_LN2_HIGH = np.float32(0.693359375)  # ln 2 in two parts: k times the first is exact
_LN2_LOW = np.float32(-2.12194440e-4)
# below, results are subnormal: 0
_UNDERFLOW = np.float32(-87.3)
# minimax polynomial of (exp(r) - 1 - r) / r^2 on |r| <= ln 2 / 2 (Moshier's Cephes, expf)
_C5, _C4, _C3 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
_C2, _C1, _C0 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)
_ONE, _ZERO, _BIAS = np.float32(1.0), np.float32(0.0), np.int32(127)


@njit(nogil=True, cache=True, fastmath={"contract"})
def exp32(x: np.float32) -> np.float32:
    """exp(x) for x <= 88, to a relative 1e-7; 0 below -87.3, NaN for NaN. Loops over it become vector code.

    (math.exp is a call for each value, four times as slow as all the rest.)
    """
    shifted = np.float32(x * _PER_LN2 + _ROUND)
    k = shifted - _ROUND
    r = x - k * _LN2_HIGH
    r = r - k * _LN2_LOW
    p = ((((_C5 * r + _C4) * r + _C3) * r + _C2) * r + _C1) * r + _C0
    p = p * (r * r) + r + _ONE
    bits = np.int32((np.int32(shifted.view(np.int32)) + _BIAS) << 23)
    value = p * bits.view(np.float32)
    return _ZERO if x < _UNDERFLOW else value


@njit(nogil=True, cache=True)
def _ordered(bits: np.int32) -> np.int32:
    """A float's bits to an integer of the same order, and back: negative numbers have all but the sign flipped."""
    return np.int32(bits ^ np.int32(np.int32(bits >> 31) & np.int32(0x7FFFFFFF)))


@njit(nogil=True, cache=True)
def _peak(row: np.ndarray) -> np.float32:
    """The largest value; or NaN, or what is not NaN, where there are NaN.

    The maximum of integers becomes vector code; that of floats does not.
    """
    best = np.int32(-2147483648)
    bits = row.view(np.int32)
    for v in range(len(bits)):  # by index: numba's iterators do not become vector code
        best = max(best, _ordered(bits[v]))
    return np.int32(_ordered(best)).view(np.float32)


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _sum_exp(row: np.ndarray, peak: np.float32) -> np.float32:
    total = _ZERO
    for v in range(len(row)):
        total += exp32(row[v] - peak)
    return total


@njit(nogil=True, cache=True)
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

    A norm is two numbers, the largest score and the log-sum-exp of what the scores lie below it: their sum would round
    as the largest score does.
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
            # where no mass goes, an impossible label costs nothing
            if mass[b, k] != 0:
                total += np.float64(mass[b, k]) * np.float64(norms[b, t, 1] - (row[label[b, k]] - peak))
            k += 1
    parts[b, i] = total


@njit(nogil=True, cache=True)
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
    """Fill the gradients of a block, those of the masses zeroed before; an empty array is left out."""
    blocks = (logits.shape[1] + size - 1) // size
    b, i = task // blocks, task % blocks
    entries = source.shape[1]
    k = np.searchsorted(source[b], i * size)
    for t in range(i * size, min((i + 1) * size, logits.shape[1])):
        if t >= lengths[b]:
            if len(grad_logits):
                grad_logits[b, t] = _ZERO
            continue
        row, first, pulled = logits[b, t], k, _ZERO
        peak, rest = norms[b, t, 0], norms[b, t, 1]
        while k < entries and source[b, k] == t:
            pulled += grad[b] * mass[b, k]
            if len(grad_mass):
                grad_mass[b, k] = grad[b] * (rest - (row[label[b, k]] - peak))
            k += 1
        if len(grad_logits):
            _scaled_softmax(row, peak, rest, pulled, grad_logits[b, t])
            for pair in range(first, k):
                grad_logits[b, t, label[b, pair]] -= grad[b] * mass[b, pair]


@njit(nogil=True, cache=True)
def _scaled_softmax(
    row: np.ndarray, peak: np.float32, rest: np.float32, scale: np.float32, out: np.ndarray
) -> None:
    if scale == 0:
        out[:] = _ZERO
        return
    for v in range(len(row)):
        out[v] = exp32((row[v] - peak) - rest) * scale
