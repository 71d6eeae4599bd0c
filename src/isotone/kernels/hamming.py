"""Hamming distances between binary codes, and counts of items by distance: ranking by counting sort, on the CPU.

A code of b bits is held in W = ceil(b / 64) words of 64 bits. The loops are compiled by numba, release the GIL
and run on ``torch.get_num_threads()`` Python threads.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from isotone.kernels._hamming import QUERIES, distance_rows, histogram_rows
from isotone.kernels._inputs import to_numpy
from isotone.kernels.threads import each_task

Codes = npt.NDArray[np.uint64]
#: Affinities are held in a byte.
MAX_AFFINITY = 127


def pack(bits: npt.ArrayLike | Tensor) -> Codes:
    """Pack bits into words.

    Args:
        bits: ``(N, b)``; a bit is one where the value is above 0, so that booleans, 0 / 1, -1 / 1 and relaxed
            codes all do.

    Returns:
        ``(N, ceil(b / 64))`` uint64: bit i is bit i mod 64 of word i // 64; the bits past b are 0.

    Raises:
        ValueError: another shape, or no bits.
    """
    values = to_numpy(bits)
    if values.ndim != 2 or values.shape[1] == 0:
        raise ValueError(f"pack expects bits of shape (N, b) with b >= 1; got {values.shape}.")
    packed = np.packbits(values > 0, axis=1, bitorder="little")
    words = np.zeros((len(packed), -(-values.shape[1] // 64) * 8), np.uint8)
    words[:, : packed.shape[1]] = packed
    return words.view("<u8").astype(np.uint64, copy=False)


def distances(queries: Codes, codes: Codes) -> npt.NDArray[np.uint16]:
    """Hamming distances of all pairs: ``(Q, N)``.

    Args:
        queries: ``(Q, W)`` uint64, of :func:`pack`.
        codes: ``(N, W)`` uint64.

    Raises:
        ValueError: codes that are not packed, or of different lengths.
    """
    queries, words = _words(queries, codes)
    out = np.zeros((len(queries), len(codes)), np.uint16)
    each_task(distance_rows, -(-len(queries) // QUERIES), out.size, queries, words, out)
    return out


def histogram(
    queries: Codes, codes: Codes, affinity: npt.ArrayLike | Tensor, bits: int
) -> npt.NDArray[np.int64]:
    r"""Count the items of each affinity at each distance from a query: :math:`n_{d,v}` of TALR, section 3.2.

    Counting takes O(W Q N) word operations and no memory beyond the result.

    Args:
        queries: ``(Q, W)`` uint64, of :func:`pack`.
        codes: ``(N, W)`` uint64.
        affinity: ``(Q, N)`` bool or integers: 0 for an item that is not similar to the query, 1 for one that is (up
            to 127 where there are levels). Negative: the item is not there (the query itself, padding).
        bits: b, bits per code.

    Returns:
        ``(Q, b + 1, V)`` int64, V the largest affinity plus 1 (at least 2).

    Raises:
        ValueError: codes that are not packed, shapes that do not fit together, or affinities that are no
            integers up to 127.
    """
    queries, words = _words(queries, codes)
    levels_of = check_affinity(affinity, (len(queries), len(codes)))
    if not 64 * (words.shape[0] - 1) < bits <= 64 * words.shape[0]:
        raise ValueError(f"Codes of {words.shape[0]} words do not have {bits} bits.")
    binary = getattr(affinity, "dtype", None) in (np.bool_, torch.bool)
    levels = 2 if binary else max(2, int(levels_of.max(initial=0)) + 1)
    out = np.zeros((len(queries), 64 * words.shape[0] + 1, levels), np.int64)
    cells = 2 * len(queries) * len(codes)
    each_task(histogram_rows, -(-len(queries) // QUERIES), cells, queries, words, levels_of, out)
    if out[:, bits + 1 :].any():
        raise ValueError(f"Two codes differ in more than {bits} bits: the bits past them are to be 0.")
    return np.ascontiguousarray(out[:, : bits + 1])


def check_affinity(affinity: npt.ArrayLike | Tensor, shape: tuple[int, int]) -> npt.NDArray[np.int8]:
    """Convert affinities ``(Q, N)`` to bytes; booleans are not copied.

    Raises:
        ValueError: another shape than ``shape``, no integers, or above 127.
    """
    values = to_numpy(affinity)
    if values.shape != shape:
        raise ValueError(f"Expected affinities of shape {shape}, one per query and item; got {values.shape}.")
    if values.dtype == np.bool_:
        return np.ascontiguousarray(values).view(np.int8)
    if values.dtype.kind not in "iu":
        raise ValueError(f"Expected affinities that are bool or integers; got {values.dtype}.")
    if values.size and values.max() > MAX_AFFINITY:
        raise ValueError(f"Expected affinities up to {MAX_AFFINITY}; got {values.max()}.")
    if values.dtype.kind == "i" and values.dtype.itemsize > 1:
        values = np.maximum(values, -1)
    return np.ascontiguousarray(values, np.int8)


def _words(queries: Codes, codes: Codes) -> tuple[Codes, Codes]:
    """Check both and return the queries, and the codes word by word ``(W, N)``."""
    for name, array in (("queries", queries), ("codes", codes)):
        if not isinstance(array, np.ndarray) or array.dtype != np.uint64 or array.ndim != 2:
            kind = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
            raise ValueError(f"Expected {name} of shape (N, W) and type uint64, as pack gives; got {kind}.")
    if queries.shape[1] != codes.shape[1] or queries.shape[1] == 0:
        raise ValueError(
            f"Expected codes of as many words, at least 1; got {queries.shape[1]} and {codes.shape[1]}."
        )
    return np.ascontiguousarray(queries), np.ascontiguousarray(codes.T)
