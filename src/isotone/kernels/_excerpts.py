"""The compiled loops of :mod:`isotone.kernels.excerpts`: plain arrays in and out, nothing is checked here."""

from __future__ import annotations

import numpy as np

from isotone.kernels.native import compiled

#: Positions that may be skipped before a matched one.
SKIPS = 2

# Steps of the way back: numbers up to SKIPS are matches after so many skipped positions.
_UNMATCHED, _LAST = SKIPS + 1, SKIPS + 2
_NEVER = np.int32(-(1 << 30))


@compiled
def best_totals(
    scores: np.ndarray,
    sequence: np.ndarray,
    gap: int,
    skip: int,
    entry: int,
    total: np.ndarray,
    end: np.ndarray,
) -> None:
    """Fill, for every row, the best total up to it, and the position of an excerpt that ends there and reaches it.

    ``total (n + 1,)`` begins with 0. ``end (n,)`` is -1 where no better total ends at the row. The values of a row are
    relative to that of an excerpt which begins there: so they fit in 16 bits, of which vectors hold many.
    """
    n, m = len(scores), len(sequence)
    before, now = np.zeros(m + SKIPS + 1, np.int16), np.zeros(m + SKIPS + 1, np.int16)
    own = np.empty(m, np.int16)
    gap16, skip16, twice16 = np.int16(gap), np.int16(skip), np.int16(2 * skip)
    none = np.int16(0)
    drop = none
    for i in range(n):
        row = scores[i]
        for j in range(m):
            own[j] = row[sequence[j]]
        top = none
        for j in range(m):
            best = max(before[j + 2], max(np.int16(before[j + 1] - skip16), np.int16(before[j] - twice16)))
            best = np.int16(max(np.int16(best - drop), none) + own[j])
            best = max(best, np.int16(np.int16(before[j + 3] - gap16) - drop))
            now[j + 3] = best
            top = max(top, best)
        drop = max(none, np.int16(top - np.int16(entry)))
        total[i + 1] = total[i] + drop
        end[i] = _position(now[3:], top, end[i - 1] if i else -1) if drop else -1
        before, now = now, before


@compiled
def _position(values: np.ndarray, value: int, near: int) -> int:
    """Find a value, first just after a position."""
    for j in range(max(0, near), min(len(values), near + 64)):
        if values[j] == value:
            return j
    for j in range(len(values)):
        if values[j] == value:
            return j
    return -1


@compiled
def way_back(
    scores: np.ndarray,
    sequence: np.ndarray,
    gap: int,
    skip: int,
    entry: int,
    total: np.ndarray,
    last: int,
    position: int,
    reach: int,
    pairs: np.ndarray,
) -> int:
    """Find the excerpt that ends with a match of row ``last``, and return the number of its pairs ``(k, 2)``.

    Each row looks at the positions at most ``reach`` away from the best one of the row after it.
    """
    m, width = len(sequence), 2 * reach + 1
    steps = np.empty((256, width), np.int8)
    bases = np.empty(256, np.int64)
    after, now = np.full(width, _NEVER, np.int32), np.full(width, _NEVER, np.int32)
    base_after = position - reach
    first, start, best_total = last, position, -(1 << 62)
    for i in range(last, -1, -1):
        at = last - i
        if at == len(bases):
            steps = np.concatenate((steps, np.empty_like(steps)))
            bases = np.concatenate((bases, np.empty_like(bases)))
        base = base_after if i == last else base_after + int(np.argmax(after)) - 1 - reach
        bases[at] = base
        for b in range(width):
            j = base + b
            now[b], steps[at, b] = _NEVER, _UNMATCHED
            if j < 0 or j >= m:
                continue
            matched, step = _matched(after, j + 1 - base_after, skip)
            if i == last:
                matched, step = (0, _LAST) if j == position else (_NEVER, _LAST)
            matched += scores[i, sequence[j]] if matched > _NEVER else 0
            if matched > _NEVER and matched + total[i] - entry > best_total:
                first, start, best_total = i, j, matched + total[i] - entry
            same = j - base_after
            unmatched = (
                after[same] - gap if i < last and 0 <= same < width and after[same] > _NEVER else _NEVER
            )
            now[b] = max(matched, unmatched)
            if matched >= unmatched:
                steps[at, b] = step
        if best_total >= total[last + 1]:
            break
        after, now = now, after
        base_after = base
    return _walk(steps, bases, last, first, start, pairs)


@compiled
def _matched(after: np.ndarray, place: int, skip: int) -> tuple[int, int]:
    """Return the best value of the next row after a match, and the number of positions that are skipped."""
    best, step = int(_NEVER), 0
    for k in range(SKIPS + 1):
        if 0 <= place + k < len(after) and after[place + k] > _NEVER and after[place + k] - k * skip > best:
            best, step = after[place + k] - k * skip, k
    return best, step


@compiled
def _walk(steps: np.ndarray, bases: np.ndarray, last: int, i: int, j: int, pairs: np.ndarray) -> int:
    """Write the pairs from the first match on; return their number."""
    count = 0
    while True:
        step = steps[last - i, j - bases[last - i]]
        if step != _UNMATCHED:
            pairs[count, 0], pairs[count, 1] = i, j
            count += 1
            if step == _LAST:
                return count
            j += 1 + step
        i += 1
