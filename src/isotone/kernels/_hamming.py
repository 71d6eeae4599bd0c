"""The compiled loops of :mod:`isotone.kernels.hamming`: plain arrays in and out, nothing is checked here."""

from __future__ import annotations

import numpy as np

from isotone.kernels.native import compiled, popcount

#: Queries per task: a block of codes stays in the cache for all of them.
QUERIES = 8
_BLOCK = 4096
# Neighbouring items are counted in separate tables: an addition need not wait for the one before it.
_TABLES = 4
# An addition takes longer than all steps before it. From so many items per entry of a table of pairs on, one addition
# counts two items.
_PAIRS_FROM = 8


@compiled
def distance_rows(task: int, queries: np.ndarray, words: np.ndarray, out: np.ndarray) -> None:
    """Fill the distances ``(Q, N)`` of the queries of a task; ``words (W, N)`` are the codes, word by word."""
    for q in range(task * QUERIES, min(len(queries), (task + 1) * QUERIES)):
        _distances(queries[q], words, 0, words.shape[1], out[q])


@compiled
def histogram_rows(
    task: int, queries: np.ndarray, words: np.ndarray, affinity: np.ndarray, out: np.ndarray
) -> None:
    """Add to ``out (Q, b + 1, V)`` the items at every distance and of every affinity ``(Q, N)``, if not below 0."""
    first, last = task * QUERIES, min(len(queries), (task + 1) * QUERIES)
    items = words.shape[1]
    bins, levels = out.shape[1], out.shape[2]
    shift = 0
    while 1 << shift < levels:
        shift += 1
    # the last entry of every table takes the items that are not there
    width = (bins << shift) + 1
    paired = items >= _PAIRS_FROM * width * width
    counts = np.zeros((last - first, _TABLES, width), np.int32)
    pairs = np.zeros((last - first, width * width if paired else 0), np.int32)
    key = np.empty(_BLOCK, np.uint32)
    for begin in range(0, items, _BLOCK):
        size = min(_BLOCK, items - begin)
        half = size // 2
        for q in range(first, last):
            _distances(queries[q], words, begin, begin + size, key)
            _keys(key[:size], affinity[q][begin : begin + size], shift, width - 1)
            if paired and size % 2 == 0:
                _pair(key[:half], key[half:size], width)
                _count_pairs(key[:half], pairs[q - first])
            else:
                _count(key[:size], counts[q - first])
    for q in range(first, last):
        total = np.zeros(width, np.int64)
        for t in range(_TABLES):
            total += counts[q - first, t]
        if paired:
            _add_pairs(pairs[q - first], total)
        for distance in range(bins):
            for value in range(levels):
                out[q, distance, value] += total[(distance << shift) + value]


@compiled
def _distances(query: np.ndarray, words: np.ndarray, begin: int, end: int, out: np.ndarray) -> None:
    for w in range(len(query)):
        word, column = query[w], words[w][begin:end]
        if w == 0:
            for i in range(end - begin):
                out[i] = popcount(word ^ column[i])
        else:
            for i in range(end - begin):
                out[i] += popcount(word ^ column[i])


@compiled
def _keys(distance: np.ndarray, affinity: np.ndarray, shift: int, last: int) -> None:
    """Turn distances into indices of a table; unsigned, so that numba does not check for negative ones."""
    absent, up = np.uint32(last), np.uint32(shift)
    for i in range(len(distance)):
        value = affinity[i]
        distance[i] = (distance[i] << up) + np.uint32(value) if value >= 0 else absent


@compiled
def _pair(first: np.ndarray, second: np.ndarray, width: int) -> None:
    """Turn the indices of two items into one index of a table of pairs, in place."""
    for i in range(len(first)):
        first[i] = first[i] * np.uint32(width) + second[i]


@compiled
def _count_pairs(key: np.ndarray, pairs: np.ndarray) -> None:
    for i in range(len(key)):
        pairs[key[i]] += 1


@compiled
def _count(key: np.ndarray, counts: np.ndarray) -> None:
    # one item of each quarter per turn, each in its own table
    a, b, c, d = counts[0], counts[1], counts[2], counts[3]
    quarter = len(key) // _TABLES
    for i in range(quarter):
        a[key[i]] += 1
        b[key[quarter + i]] += 1
        c[key[2 * quarter + i]] += 1
        d[key[3 * quarter + i]] += 1
    for i in range(_TABLES * quarter, len(key)):
        a[key[i]] += 1


@compiled
def _add_pairs(pairs: np.ndarray, total: np.ndarray) -> None:
    width = len(total)
    for i in range(width):
        row = pairs[i * width : (i + 1) * width]
        total[i] += row.sum()
        total += row
