"""Matching of predicted segments and boundaries with those of the reference, by exact dynamic programmes."""

from __future__ import annotations

import numpy as np
from numba import njit

from isotone.evaluation.tracks import SILENT, Boundaries, Ints, Track

# One integer orders paths by edits first, then by overlap: overlaps stay below 2**42 ticks (5 days of audio).
_EDIT = 1 << 42
_INFINITE = 1 << 61


def count_start_matches(hyp: Track, ref: Track, collars: Ints, strict: bool = True) -> Ints:
    """Count the true positives of the start-boundary F1, at several collars.

    The size of the largest set of pairs (i, j) of predicted and reference segments such that no segment is in
    two pairs, pairs keep order (i < k implies j < l), ``|start_i - start_j| <= collar`` and, if ``strict``,
    the labels are equal. Found exactly, as a longest increasing subsequence over the admissible pairs (Hunt &
    Szymanski 1977).

    Args:
        hyp, ref: The segments.
        collars: ``(C,)`` ticks.
        strict: True where labels have to agree.

    Returns:
        ``(C,)`` counts.
    """
    a, b = (hyp.labels, ref.labels) if strict else (np.zeros_like(hyp.labels), np.zeros_like(ref.labels))
    none_a, none_b = np.full_like(a, SILENT), np.full_like(b, SILENT)
    return _largest_matchings(hyp.starts, none_a, a, ref.starts, none_b, b, collars)


def count_boundary_hits(hyp: Boundaries, ref: Boundaries, tolerance: int, strict: bool = True) -> int:
    """Count the boundaries that are found: the largest one-to-one matching in order within a tolerance.

    Args:
        hyp, ref: The boundaries.
        tolerance: Ticks.
        strict: True where two boundaries need a label in common on the same side: the segment that ends
            there, or the one that starts there.

    Returns:
        The number of pairs.
    """
    collars = np.array([tolerance], dtype=np.int64)
    if strict:
        arrays = hyp.times, hyp.left, hyp.right, ref.times, ref.left, ref.right
    else:
        a, b = np.zeros_like(hyp.times), np.zeros_like(ref.times)
        arrays = hyp.times, a, a, ref.times, b, b
    return int(_largest_matchings(*arrays, collars)[0])


def pair_by_edits(hyp: Track, ref: Track) -> Ints:
    """Pair each reference segment with a predicted one by minimum edit distance over the labels.

    Substitutions, deletions and insertions cost 1 each. Of the cheapest pairings the one with the largest
    total overlap in time is taken (substituted pairs included), and of these the one whose non-overlapping
    pairs lie closest together. Remaining ties are settled from the end: a pair is preferred to a deletion,
    and a deletion to an insertion, so that late segments are paired.

    Args:
        hyp, ref: n and m segments. Time O((n + m) d) and memory O(m d) for an edit distance d, so that an
            hour of speech can be compared.

    Returns:
        ``(m,)`` index into ``hyp``, -1 for a deletion.
    """
    n, m = len(hyp), len(ref)
    # All paths of cost <= band stay within band of the diagonal: a path that costs no more than its band is
    # optimal, and so is every tie.
    band = max(abs(n - m), 4)
    while True:
        pairs, edits = _edit_band(hyp.labels, hyp.starts, hyp.ends, ref.labels, ref.starts, ref.ends, band)
        if edits <= band:
            return pairs
        band = min(edits, 2 * band)


@njit(cache=True)
def _largest_matchings(
    hyp_times: Ints,
    hyp_left: Ints,
    hyp_right: Ints,
    ref_times: Ints,
    ref_left: Ints,
    ref_right: Ints,
    collars: Ints,
) -> Ints:
    n, m = len(hyp_times), len(ref_times)
    out = np.zeros(len(collars), dtype=np.int64)
    tails = np.empty(min(n, m) + 1, dtype=np.int64)  # tails[k]: the smallest last j of k + 1 matched pairs
    for c in range(len(collars)):
        size, low = 0, 0
        for i in range(n):
            # starts ascend, so the window of references within the collar only moves to the right
            while low < m and ref_times[low] < hyp_times[i] - collars[c]:
                low += 1
            high = low
            while high < m and ref_times[high] <= hyp_times[i] + collars[c]:
                high += 1
            # from the right: a pair of this i then cannot extend another pair of the same i
            for j in range(high - 1, low - 1, -1):
                same_left = hyp_left[i] == ref_left[j] and hyp_left[i] != SILENT
                same_right = hyp_right[i] == ref_right[j] and hyp_right[i] != SILENT
                if same_left or same_right:
                    # a strictly increasing subsequence: j replaces the first tail that is not smaller
                    k = np.searchsorted(tails[:size], j)
                    tails[k] = j
                    if k == size:
                        size += 1
        out[c] = size
    return out


@njit(cache=True)
def _edit_band(
    hyp: Ints, hyp_starts: Ints, hyp_ends: Ints, ref: Ints, ref_starts: Ints, ref_ends: Ints, band: int
) -> tuple[Ints, int]:
    n, m = len(hyp), len(ref)
    cost, above = np.full(n + 1, _INFINITE), np.full(n + 1, _INFINITE)  # edits, then minus the overlap
    apart, apart_above = np.zeros(n + 1, dtype=np.int64), np.zeros(n + 1, dtype=np.int64)
    step = np.zeros((m + 1, 2 * band + 1), dtype=np.uint8)  # 0 pair, 1 deletion, 2 insertion
    # row i of the table is ref[:i], column j is hyp[:j]; only columns i - band to i + band are computed
    for j in range(min(n, band) + 1):
        above[j] = j * _EDIT
        step[0, j + band] = 2
    for i in range(1, m + 1):
        low, high = max(0, i - band), min(n, i + band)
        if low > 0:
            cost[low - 1] = _INFINITE  # left of the band; the array still holds the row before last
        for j in range(low, high + 1):
            best, best_apart, best_step = above[j] + _EDIT, apart_above[j], 1
            if j > 0:
                start = max(ref_starts[i - 1], hyp_starts[j - 1])
                end = min(ref_ends[i - 1], hyp_ends[j - 1])
                new = above[j - 1] - max(0, end - start)
                if ref[i - 1] != hyp[j - 1]:
                    new += _EDIT
                new_apart = apart_above[j - 1] + max(0, start - end)
                if new < best or (new == best and new_apart <= best_apart):
                    best, best_apart, best_step = new, new_apart, 0
                new, new_apart = cost[j - 1] + _EDIT, apart[j - 1]
                if new < best or (new == best and new_apart < best_apart):
                    best, best_apart, best_step = new, new_apart, 2
            cost[j], apart[j], step[i, j - i + band] = best, best_apart, best_step
        cost, above = above, cost
        apart, apart_above = apart_above, apart
    pairs = np.full(m, -1, dtype=np.int64)
    i, j = m, n
    while i > 0:
        taken = step[i, j - i + band]
        if taken == 0:
            pairs[i - 1] = j - 1
        if taken != 2:
            i -= 1
        if taken != 1:
            j -= 1
    # the overlaps subtracted are less than one edit: rounding up leaves the edits
    return pairs, -(-above[n] // _EDIT)
