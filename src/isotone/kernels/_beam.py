"""The compiled loops of :mod:`isotone.kernels.beam`: plain arrays in and out, nothing is checked here.

Prefixes are nodes of a trie that only grows. So a prefix that leaves the beam and returns is the same node, and its
children in the beam are known to be its children. Each frame looks at every prefix of the beam as it stands, then at
the extensions in order of their probability, until no more can enter the beam.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from isotone.kernels.native import compiled

# Columns of the trie: a node's parent, label, first child, next sibling, and its slot when it was last in the beam.
_PARENT, _LABEL, _CHILD, _SIBLING, _SLOT = 0, 1, 2, 3, 4


class _Beam(NamedTuple):
    """The prefixes of a frame: their nodes, and log-probabilities of ending in a blank, in a label, in either."""

    node: np.ndarray  # (beam,)
    last: np.ndarray  # (beam,) last label, -1 for the empty prefix
    blank_end: np.ndarray
    label_end: np.ndarray
    total: np.ndarray


class _Best(NamedTuple):
    """The best candidates so far: a heap with the worst of them first."""

    score: np.ndarray  # (beam,)
    item: np.ndarray  # (beam,) slot for a prefix that stays, beam + slot * V + label for an extension


@compiled
def _log_add(a: float, b: float) -> float:
    high, low = max(a, b), min(a, b)
    return high if low == -np.inf else high + math.log1p(math.exp(low - high))


@compiled
def _offer(best: _Best, size: int, score: float, item: int) -> int:
    """Put a candidate among the best if it belongs there; return their number."""
    beam = len(best.score)
    if size < beam:
        at = size
        size += 1
        while at > 0 and best.score[(at - 1) // 2] > score:
            best.score[at], best.item[at] = best.score[(at - 1) // 2], best.item[(at - 1) // 2]
            at = (at - 1) // 2
    elif score <= best.score[0]:
        return size
    else:
        at = 0
        while 2 * at + 1 < beam:
            child = 2 * at + 1
            if child + 1 < beam and best.score[child + 1] < best.score[child]:
                child += 1
            if best.score[child] >= score:
                break
            best.score[at], best.item[at] = best.score[child], best.item[child]
            at = child
    best.score[at], best.item[at] = score, item
    return size


@compiled
def _likely(row: np.ndarray, blank: int, prune: float, beam: int) -> np.ndarray:
    """Return the labels at most ``prune`` nats below the best, the likeliest first, as many as can enter a beam."""
    floor = row.max() - prune
    found = np.empty(len(row), np.int64)
    count = 0
    for v in range(len(row)):
        if v != blank and row[v] >= floor and row[v] > -np.inf:
            found[count] = v
            count += 1
    found = found[:count]
    if count > beam + 1:
        # an extension that enters has fewer than beam better ones of its prefix, besides the repeat of the last label
        found = found[row[found] >= np.partition(row[found], count - beam - 1)[count - beam - 1]]
    return found[np.argsort(-row[found], kind="mergesort")]


@compiled
def _stay(
    row: np.ndarray,
    blank: int,
    now: _Beam,
    size: int,
    trie: np.ndarray,
    stay: _Beam,
    taken: np.ndarray,
    t: int,
) -> None:
    """Fill the probabilities of the prefixes that stay: by a blank, a repeat, or from their parents in the beam.

    Extensions that are in the beam already are marked with the frame's number in ``taken (beam, V)``.
    """
    for j in range(size):
        trie[now.node[j], _SLOT] = j
        stay.blank_end[j] = now.total[j] + row[blank]
        stay.label_end[j] = now.label_end[j] + row[now.last[j]] if now.last[j] >= 0 else -np.inf
    for j in range(size):
        parent = trie[now.node[j], _PARENT]
        # a slot may be of an earlier frame: it counts only where the beam has the parent there
        i = trie[parent, _SLOT] if parent >= 0 else -1
        if 0 <= i < size and now.node[i] == parent:
            label = now.last[j]
            before = now.blank_end[i] if label == now.last[i] else now.total[i]
            stay.label_end[j] = _log_add(stay.label_end[j], before + row[label])
            taken[i, label] = t
        stay.total[j] = _log_add(stay.blank_end[j], stay.label_end[j])


@compiled
def _choose(
    row: np.ndarray, blank: int, prune: float, now: _Beam, size: int, stay: _Beam, taken: np.ndarray, t: int,
    best: _Best,
) -> int:  # fmt: skip
    """Fill the best candidates of a frame; return their number."""
    kept = 0
    for j in range(size):
        if stay.total[j] > -np.inf:
            kept = _offer(best, kept, stay.total[j], j)
    beam = len(best.score)
    for v in _likely(row, blank, prune, beam):
        entered = False  # true where some prefix's extension by v is not worse than the worst candidate
        for i in range(size):
            if kept == beam and now.total[i] + row[v] <= best.score[0]:
                continue
            entered = True
            score = (now.blank_end[i] if v == now.last[i] else now.total[i]) + row[v]
            if taken[i, v] != t and score > -np.inf:
                kept = _offer(best, kept, score, beam + i * len(row) + v)
        if not entered:  # a less likely label cannot enter either
            break
    return kept


@compiled
def _child(trie: np.ndarray, used: int, parent: int, label: int) -> tuple[int, int]:
    """Find a parent's child with a label, or make it; return its node and the number of nodes."""
    node = trie[parent, _CHILD]
    while node >= 0:
        if trie[node, _LABEL] == label:
            return node, used
        node = trie[node, _SIBLING]
    trie[used, _PARENT], trie[used, _LABEL], trie[used, _CHILD] = parent, label, -1
    trie[used, _SIBLING], trie[used, _SLOT] = trie[parent, _CHILD], -1
    trie[parent, _CHILD] = used
    return used, used + 1


@compiled
def _advance(
    best: _Best, kept: int, vocab: int, now: _Beam, stay: _Beam, after: _Beam, trie: np.ndarray, used: int
) -> int:
    """Fill the next beam with the best candidates; return the number of nodes."""
    beam = len(best.score)
    for k in range(kept):
        item = best.item[k]
        if item < beam:
            after.node[k], after.last[k] = now.node[item], now.last[item]
            after.blank_end[k], after.label_end[k] = stay.blank_end[item], stay.label_end[item]
        else:
            slot, label = divmod(item - beam, vocab)
            after.node[k], used = _child(trie, used, now.node[slot], label)
            after.last[k] = label
            after.blank_end[k], after.label_end[k] = -np.inf, best.score[k]
        after.total[k] = best.score[k]
    return used


@compiled
def _empty(beam: int) -> _Beam:
    return _Beam(
        np.zeros(beam, np.int64), np.full(beam, -1, np.int64),
        np.full(beam, -np.inf), np.full(beam, -np.inf), np.full(beam, -np.inf),
    )  # fmt: skip


@compiled
def _search(
    log_probs: np.ndarray, blank: int, beam: int, prune: float
) -> tuple[_Beam, int, np.ndarray, bool]:
    """Search one row; return the last beam, its size, the trie, and false if anything was NaN or +inf."""
    vocab = log_probs.shape[1]
    trie = np.full((4 * beam + 1, 5), -1, np.int32)
    taken = np.full((beam, vocab), -1, np.int64)
    now, stay, after = _empty(beam), _empty(beam), _empty(beam)
    best = _Best(np.empty(beam), np.empty(beam, np.int64))
    now.blank_end[0] = now.total[0] = 0.0
    size = used = 1
    for t in range(len(log_probs)):
        row = log_probs[t].astype(np.float64)
        for v in range(vocab):
            if not row[v] < np.inf:
                return now, size, trie, False
        if used + beam > len(trie):
            grown = np.full((2 * len(trie), 5), -1, np.int32)
            grown[:used] = trie[:used]
            trie = grown
        _stay(row, blank, now, size, trie, stay, taken, t)
        size_after = _choose(row, blank, prune, now, size, stay, taken, t, best)
        used = _advance(best, size_after, vocab, now, stay, after, trie, used)
        now, after, size = after, now, size_after
    return now, size, trie, True


@compiled
def beam_row(
    task: int,
    order: np.ndarray,
    log_probs: np.ndarray,
    frames: np.ndarray,
    blank: int,
    beam: int,
    prune: float,
    labels: np.ndarray,
    lengths: np.ndarray,
    scores: np.ndarray,
) -> None:
    """Fill the best hypotheses of row ``order[task]``: labels ``(B, N, T)``, lengths and scores ``(B, N)``.

    Scores are -inf beyond the hypotheses there are; the first is NaN where the input was NaN or +inf.
    """
    b = order[task]
    last, size, trie, ok = _search(log_probs[b, : frames[b]], blank, beam, prune)
    if not ok:
        scores[b, 0] = np.nan
        return
    ranked = np.argsort(-last.total[:size], kind="mergesort")
    for k in range(min(size, scores.shape[1])):
        scores[b, k] = last.total[ranked[k]]
        node, count = last.node[ranked[k]], 0
        while trie[node, _PARENT] >= 0:
            labels[b, k, count] = trie[node, _LABEL]
            node = trie[node, _PARENT]
            count += 1
        labels[b, k, :count] = labels[b, k, :count][::-1].copy()
        lengths[b, k] = count
