"""The phones of every letter: alignment of spellings and pronunciations by expectation maximisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np

from pronunciations.source import Symbols

Array = np.ndarray[Any, Any]

#: Phones of one letter, at most.
MOST = 2


def align(entries: Sequence[tuple[str, Symbols]], rounds: int = 12) -> list[tuple[Symbols, ...] | None]:
    """Return the phones of every letter, none to two, for each (word, phones); None where there are more.

    The model has a probability for every letter and phones, and letters are independent: expectation maximisation,
    then the likeliest alignment.
    """
    letters = {c: i for i, c in enumerate(sorted({c for word, _ in entries for c in word}))}
    phones = {p: i for i, p in enumerate(sorted({p for _, some in entries for p in some}))}
    written = [np.array([letters[c] for c in word]) for word, _ in entries]
    spoken = [np.array([phones[p] for p in some]) for _, some in entries]
    ends = np.cumsum([0, *map(len, written)]), np.cumsum([0, *map(len, spoken)])
    flat = np.concatenate(written), np.concatenate(spoken)
    size = len(phones)
    # columns: no phone, one phone, two phones (rarer to begin with)
    table = np.ones((len(letters), 1 + size + size * size))
    table[:, 1 + size :] = 0.01
    for _ in range(rounds):
        table /= _totals(table)
        counts = np.zeros_like(table)
        with np.errstate(divide="ignore"):
            _expect(*flat, *ends, np.log(table), size, counts)
        table = counts
    table /= _totals(table)
    lengths = np.zeros(len(flat[0]), np.int64)
    with np.errstate(divide="ignore"):
        _best(*flat, *ends, np.log(table), size, lengths)
    return [_cut(some, lengths[a:b]) for (_, some), a, b in zip(entries, ends[0], ends[0][1:])]


def _totals(table: Array) -> Array:
    """Return the sum of every row; 1 for letters that occur only in words with too many phones."""
    sums = table.sum(axis=1, keepdims=True)
    return np.where(sums > 0, sums, 1.0)


def _cut(phones: Symbols, lengths: Array) -> tuple[Symbols, ...] | None:
    ends = np.cumsum(lengths)
    if ends[-1] != len(phones):
        return None
    return tuple(phones[end - size : end] for end, size in zip(ends, lengths))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _column(phones: Array, start: int, count: int, size: int) -> int:
    if count == 0:
        return 0
    if count == 1:
        return int(1 + phones[start])
    return int(1 + size + phones[start] * size + phones[start + 1])


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _forward(letters: Array, phones: Array, table: Array, size: int, best: bool) -> tuple[Array, Array]:
    """Scores (letters + 1, phones + 1) of all ways, or of the best one, and the best numbers of phones."""
    n, m = len(letters), len(phones)
    score = np.full((n + 1, m + 1), -np.inf)
    taken = np.zeros((n + 1, m + 1), np.int64)
    score[0, 0] = 0.0
    for i in range(n):
        for j in range(m + 1):
            if score[i, j] == -np.inf:
                continue
            for k in range(min(MOST, m - j) + 1):
                new = score[i, j] + table[letters[i], _column(phones, j, k, size)]
                old = score[i + 1, j + k]
                if new > old:
                    taken[i + 1, j + k] = k
                if best or old == -np.inf or new == -np.inf:
                    score[i + 1, j + k] = max(new, old)
                else:
                    score[i + 1, j + k] = np.logaddexp(new, old)
    return score, taken


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _backward(letters: Array, phones: Array, table: Array, size: int) -> Array:
    n, m = len(letters), len(phones)
    score = np.full((n + 1, m + 1), -np.inf)
    score[n, m] = 0.0
    for i in range(n - 1, -1, -1):
        for j in range(m + 1):
            for k in range(min(MOST, m - j) + 1):
                new = score[i + 1, j + k] + table[letters[i], _column(phones, j, k, size)]
                if new != -np.inf:
                    old = score[i, j]
                    score[i, j] = new if old == -np.inf else np.logaddexp(new, old)
    return score


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _expect(
    letters: Array, phones: Array, words: Array, spoken: Array, table: Array, size: int, counts: Array
) -> None:
    """Add the expected numbers of every letter and phones; words with too many phones add nothing."""
    for w in range(len(words) - 1):
        some, said = letters[words[w] : words[w + 1]], phones[spoken[w] : spoken[w + 1]]
        n, m = len(some), len(said)
        before, _ = _forward(some, said, table, size, False)
        if before[n, m] == -np.inf:
            continue
        after = _backward(some, said, table, size)
        for i in range(n):
            for j in range(m + 1):
                for k in range(min(MOST, m - j) + 1):
                    column = _column(said, j, k, size)
                    log = before[i, j] + table[some[i], column] + after[i + 1, j + k] - before[n, m]
                    if log > -30:
                        counts[some[i], column] += np.exp(log)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _best(
    letters: Array, phones: Array, words: Array, spoken: Array, table: Array, size: int, lengths: Array
) -> None:
    """Write the number of phones of every letter; all 0 for words with too many phones."""
    for w in range(len(words) - 1):
        some, said = letters[words[w] : words[w + 1]], phones[spoken[w] : spoken[w + 1]]
        score, taken = _forward(some, said, table, size, True)
        j = len(said)
        if score[len(some), j] == -np.inf:
            continue
        for i in range(len(some), 0, -1):
            lengths[words[w] + i - 1] = taken[i, j]
            j -= taken[i, j]
