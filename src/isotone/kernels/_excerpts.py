"""The compiled loops of :mod:`isotone.kernels.excerpts`: plain arrays in and out, nothing is checked here."""

from __future__ import annotations

import numpy as np

from isotone.kernels.native import compiled

#: Positions that may be skipped before a matched one.
SKIPS = 2

# Steps of the way back: numbers up to SKIPS are matches after so many skipped positions.
_UNMATCHED, _LAST = SKIPS + 1, SKIPS + 2
_NEVER = np.int32(-(1 << 30))

# Rows of the way back whose steps are kept at once.
_BLOCK = 1024


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

    Each row looks at the positions at most ``reach`` away from the best one of the row after it. Values are kept for
    every so many rows, from which the steps of a block are computed again on the way: so memory hardly grows.
    """
    width = 2 * reach + 1
    kept, bases = np.empty((16, width), np.int32), np.empty(16, np.int64)
    after, now, steps = np.full(width, _NEVER, np.int32), np.empty(width, np.int32), np.empty(width, np.int8)
    base_after = position - reach
    first, start, best_total = last, position, -(1 << 62)
    for i in range(last, -1, -1):
        block, row = divmod(last - i, _BLOCK)
        if row == 0:
            if block == len(kept):
                kept, bases = np.concatenate((kept, kept)), np.concatenate((bases, bases))
            kept[block], bases[block] = after, base_after
        value, j, base_after = _row(
            scores, sequence, gap, skip, last, position, i, base_after, after, now, steps
        )
        if value > _NEVER and value + total[i] - entry > best_total:
            first, start, best_total = i, j, value + total[i] - entry
        if best_total >= total[last + 1]:
            break
        after, now = now, after
    return _walk(scores, sequence, gap, skip, last, position, kept, bases, first, start, pairs)


@compiled
def _row(
    scores: np.ndarray,
    sequence: np.ndarray,
    gap: int,
    skip: int,
    last: int,
    position: int,
    i: int,
    base_after: int,
    after: np.ndarray,
    now: np.ndarray,
    steps: np.ndarray,
) -> tuple[int, int, int]:
    """Fill the values and steps of a row by those of the row after it, whose first position is ``base_after``.

    Returns:
        The best value of a match, its position, and the first position of the row.
    """
    m, width = len(sequence), len(after)
    base = base_after if i == last else base_after + int(np.argmax(after)) - 1 - width // 2
    best, where = int(_NEVER), -1
    for b in range(width):
        j = base + b
        now[b], steps[b] = _NEVER, _UNMATCHED
        if j < 0 or j >= m:
            continue
        matched, step = _matched(after, j + 1 - base_after, skip)
        if i == last:
            matched, step = (0, _LAST) if j == position else (int(_NEVER), _LAST)
        matched += scores[i, sequence[j]] if matched > _NEVER else 0
        if matched > best:
            best, where = matched, j
        same = j - base_after
        unmatched = after[same] - gap if i < last and 0 <= same < width and after[same] > _NEVER else _NEVER
        now[b] = max(matched, unmatched)
        if matched >= unmatched:
            steps[b] = step
    return best, where, base


@compiled
def _matched(after: np.ndarray, place: int, skip: int) -> tuple[int, int]:
    """Return the best value of the next row after a match, and the number of positions that are skipped."""
    best, step = int(_NEVER), 0
    for k in range(SKIPS + 1):
        if 0 <= place + k < len(after) and after[place + k] > _NEVER and after[place + k] - k * skip > best:
            best, step = after[place + k] - k * skip, k
    return best, step


@compiled
def _walk(
    scores: np.ndarray,
    sequence: np.ndarray,
    gap: int,
    skip: int,
    last: int,
    position: int,
    kept: np.ndarray,
    kept_bases: np.ndarray,
    i: int,
    j: int,
    pairs: np.ndarray,
) -> int:
    """Write the pairs from the first match on, with the values ``kept`` before every block; return their number."""
    width = kept.shape[1]
    steps, bases = np.empty((_BLOCK, width), np.int8), np.empty(_BLOCK, np.int64)
    after, now = np.empty(width, np.int32), np.empty(width, np.int32)
    count = 0
    for block in range((last - i) // _BLOCK, -1, -1):
        top = last - block * _BLOCK
        after[:], base = kept[block], kept_bases[block]
        for row in range(min(_BLOCK, top - i + 1)):
            _, _, base = _row(
                scores, sequence, gap, skip, last, position, top - row, base, after, now, steps[row]
            )
            bases[row] = base
            after, now = now, after
        while i <= top:
            step = steps[top - i, j - bases[top - i]]
            if step != _UNMATCHED:
                pairs[count, 0], pairs[count, 1] = i, j
                count += 1
                j += 1 + step
            i += 1
    return count
