"""Plain counterparts of :mod:`isotone.kernels.native.llvm_scalars` and ``llvm_selection``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

# Sums of neighbouring bits, of pairs, of nibbles; the product adds up the eight bytes in the highest one.
_ODD, _PAIRS, _NIBBLES = (
    np.uint64(0x5555555555555555),
    np.uint64(0x3333333333333333),
    np.uint64(0x0F0F0F0F0F0F0F0F),
)
_BYTES, _TOP = np.uint64(0x0101010101010101), np.uint64(56)
_ONE, _TWO, _FOUR = np.uint64(1), np.uint64(2), np.uint64(4)


@njit(nogil=True)
def read(array: np.ndarray, index: int) -> Any:
    """``array[index]``."""
    return array[index]


@njit(nogil=True)
def write(array: np.ndarray, index: int, value: Any) -> None:
    """``array[index] = value``."""
    array[index] = value


@njit(nogil=True)
def popcount(word: np.uint64) -> np.uint64:
    """Number of ones in a word of 64 bits."""
    word = word - ((word >> _ONE) & _ODD)
    word = (word & _PAIRS) + ((word >> _TWO) & _PAIRS)
    word = (word + (word >> _FOUR)) & _NIBBLES
    return (word * _BYTES) >> _TOP


def ordered_sums(lanes: int, items: int, lowest: int) -> Callable[..., Any]:
    """Make the loop of :func:`isotone.kernels.native.llvm_selection.ordered_sums`."""

    @njit(nogil=True)
    def loop(
        codes: np.ndarray, item: int, n: int, length: int, table: np.ndarray, lane: int, out: np.ndarray
    ) -> None:
        best = np.empty(lanes, np.int64)
        for i in range(item, item + items):
            best[:] = lowest
            for t in range(length):
                row = np.int64(codes[i * n + t]) * lanes
                # from above: the lower neighbour is still that of the step before
                for x in range(lanes - 1, 0, -1):
                    best[x] = max(best[x], best[x - 1] + table[row + x])
                best[0] = max(best[0], np.int64(table[row]))
            out[i] = best[lane]

    return loop
