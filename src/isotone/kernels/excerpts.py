"""Excerpts: the parts of one long sequence that another one holds, in any order, with other things between them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotone.kernels._excerpts import SKIPS, best_totals, way_back

#: Largest entry cost and largest size of a score: sums of both are kept in 16 bits.
LARGEST = 12_000

# Positions on each side of the best one of a row that the way back looks at.
_REACH = 160


class Excerpt(NamedTuple):
    """A part of the sequence that the rows hold.

    Attributes:
        pairs: ``(k, 2)`` int64, rows and the positions that they match; both increase.
        value: Its share in the best total: its scores less the costs within it, without that of the entry.
    """

    pairs: NDArray[np.int64]
    value: int


def excerpts(
    scores: NDArray[np.int16], sequence: NDArray[np.integer], *, gap: int, skip: int, entry: int
) -> list[Excerpt]:
    r"""Find the excerpts of a sequence with the best total.

    An excerpt is a list of pairs (row i, position j) in which both increase, j by at most 3. It is worth the sum of
    ``scores[i, sequence[j]]``, less ``gap`` for every row and ``skip`` for every position that it leaves out. Every
    excerpt costs ``entry``, rows outside of excerpts cost nothing, and excerpts do not share rows. So recordings can
    begin and go on anywhere in a text, and hold other speech.

    Args:
        scores: ``(n, V)`` score of every symbol in every row.
        sequence: ``(m,)`` symbols, 0 to V - 1.
        gap, skip: Costs of rows and positions within an excerpt that match nothing, 0 or more.
        entry: Cost of an excerpt.

    Returns:
        The excerpts, in order of rows.

    Raises:
        ValueError: wrong shapes, symbols without scores, or costs or scores out of range.

    Numerics: whole numbers, so totals are exact. O(nm) time and O(n + m) memory. The pairs are exact where those of a
    row are within 160 positions of the row's best one.
    """
    _check(scores, sequence, gap, skip, entry)
    if not len(scores) or not len(sequence):
        return []
    total = np.zeros(len(scores) + 1, np.int64)
    end = np.empty(len(scores), np.int64)
    best_totals(np.ascontiguousarray(scores), np.ascontiguousarray(sequence), gap, skip, entry, total, end)
    found = []
    pairs = np.empty((len(scores), 2), np.int64)
    last = _last(end, len(scores))
    while last >= 0:
        count = way_back(scores, sequence, gap, skip, entry, total, last, end[last], _REACH, pairs)
        first = int(pairs[0, 0])
        found.append(Excerpt(pairs[:count].copy(), int(total[last + 1] - total[first]) + entry))
        last = _last(end, first)
    return found[::-1]


def _last(end: NDArray[np.int64], rows: int) -> int:
    """Return the last of the first rows at which an excerpt ends; -1 if there is none."""
    found = np.flatnonzero(end[:rows] >= 0)
    return int(found[-1]) if len(found) else -1


def _check(scores: NDArray[np.int16], sequence: NDArray[np.integer], gap: int, skip: int, entry: int) -> None:
    if scores.ndim != 2 or sequence.ndim != 1 or scores.dtype != np.int16:
        raise ValueError(
            "excerpts expects scores (n, V) of 16 bits and a sequence (m,); got "
            f"{scores.shape} of {scores.dtype} and {sequence.shape}."
        )
    if len(sequence) and not 0 <= sequence.min() <= sequence.max() < scores.shape[1]:
        raise ValueError(f"excerpts expects symbols 0 to {scores.shape[1] - 1}; got others.")
    if len(scores) and not -LARGEST <= scores.min() <= scores.max() <= LARGEST:
        raise ValueError(f"excerpts expects scores of -{LARGEST} to {LARGEST}; got others.")
    if not all(0 <= cost <= LARGEST // (SKIPS + 1) for cost in (gap, skip)) or not 0 < entry <= LARGEST:
        raise ValueError(
            f"excerpts expects an entry of 1 to {LARGEST}, and a gap and a skip of 0 to {LARGEST // (SKIPS + 1)}; got "
            f"{entry}, {gap} and {skip}."
        )
