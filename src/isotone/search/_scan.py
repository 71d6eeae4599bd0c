"""Compiled loop of the first stage: best ordered selection of every item's codes, from a table of the query."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotone.kernels.native import compiled, ordered_sums

#: Query windows that one vector of the loop holds: the fewest that do are the fastest.
LANES = (8, 16)
#: A number below every possible sum.
LOWEST = -30_000

_TOGETHER = 4
_one_of_8, _one_of_16 = (ordered_sums(lanes, 1, LOWEST) for lanes in LANES)
_four_of_8, _four_of_16 = (ordered_sums(lanes, _TOGETHER, LOWEST) for lanes in LANES)


@compiled
def scan_block(
    block: int,
    size: int,
    codes: NDArray[np.uint16],
    lengths: NDArray[np.uint16],
    table: NDArray[np.int16],
    query_windows: int,
    out: NDArray[np.int16],
) -> None:
    """Compute the best sums of items ``block * size ..`` of codes ``(I, n)``, with a table ``(K, 8)`` or ``(K, 16)``.

    Items that are shorter than the query get LOWEST.
    """
    n, few = codes.shape[1], table.shape[1] == 8
    flat, rows, last = codes.reshape(codes.size), table.reshape(table.size), np.int64(query_windows - 1)
    item, end = block * size, min((block + 1) * size, len(codes))
    while item < end:
        length = np.int64(lengths[item])
        alike = item + _TOGETHER <= end
        for other in range(item + 1, item + _TOGETHER if alike else 0):
            alike = alike and np.int64(lengths[other]) == length
        if length < query_windows:
            out[item] = LOWEST
            item += 1
        elif alike:
            if few:
                _four_of_8(flat, np.int64(item), n, length, rows, last, out)
            else:
                _four_of_16(flat, np.int64(item), n, length, rows, last, out)
            item += _TOGETHER
        else:
            if few:
                _one_of_8(flat, np.int64(item), n, length, rows, last, out)
            else:
                _one_of_16(flat, np.int64(item), n, length, rows, last, out)
            item += 1
