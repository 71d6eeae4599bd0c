"""The states of a graph's tokens for the compiled loops: what may follow what, and when a path can be there.

A token is a chain of states of one frame each. One without a longest duration has as many as its least frames, and
stays in the last. One with a longest duration has as many as that, stays in none, and is entered at any state from
which enough are left. Every token is left from its last state.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isotone.kernels._lattice import fill, gather, symbol_table
from isotone.kernels.native import compiled

#: More frames than any recording has.
_NEVER = 1 << 60


class States(NamedTuple):
    """One utterance: its scores, the states of its tokens in topological order, and the ways between them.

    A joint is a token that paths enter in more ways than from the last state of the token before it, at no cost.
    """

    log_probs: np.ndarray  # (T, V)
    symbols: np.ndarray  # (K,) distinct labels
    symbol_of: np.ndarray  # (S,) index of each state's label among them
    token: np.ndarray  # (S,) the token of each state
    stay: np.ndarray  # (S,) 0 where a path may stay in the state, -inf where it may not
    joints: np.ndarray  # (J,) first states of the joints, ascending
    entries: np.ndarray  # (J,) number of states that each of them can be entered at, from the first on
    reach: int  # the largest of these
    ways: np.ndarray  # (J + 1,) first of each joint's ways in
    source: (
        np.ndarray
    )  # (W,) one more than the state that a way comes from, 0 for the start; ascending per joint
    cost: np.ndarray  # (W,) its cost in nats
    last: np.ndarray  # (E,) states that a path may end in, ascending
    last_cost: np.ndarray  # (E,)
    low: np.ndarray  # (T,) first state of every frame
    high: np.ndarray  # (T,) last
    begin: np.ndarray  # (S,) first frame of each state without a cost; (0,) where no frame has one
    end: np.ndarray  # (S,) last
    far_cost: float  # nats per frame outside


@compiled
def set_up(
    log_probs: np.ndarray,
    labels: np.ndarray,
    first: np.ndarray,
    before: np.ndarray,
    costs: np.ndarray,
    least: np.ndarray,
    most: np.ndarray,
    near: np.ndarray,
    far_cost: float,
) -> tuple[States, bool]:
    """Set up a row of T > 0 frames; return also whether there are enough frames for a path."""
    frames, count = len(log_probs), len(labels)
    symbols, symbol_of_token = symbol_table(labels, -1, log_probs.shape[1])
    at = np.zeros(count + 1, np.int64)  # first state of every token
    for u in range(count):
        at[u + 1] = at[u] + (most[u] if most[u] > 0 else least[u])
    size = at[count]
    symbol_of, token, stay = np.empty(size, np.uint32), np.empty(size, np.int64), np.full(size, -np.inf)
    begin = np.empty(size if len(near) > 0 else 0, np.int64)
    end = np.empty(len(begin), np.int64)
    for u in range(count):
        for s in range(at[u], at[u + 1]):
            symbol_of[s], token[s] = symbol_of_token[u], u
            if len(near) > 0:
                begin[s], end[s] = near[u, 0], near[u, 1]
        if most[u] == 0:
            stay[at[u + 1] - 1] = 0.0
    joints, entries, ways, source, cost = _joints(at, first, before, costs, least, most)
    ends = before[first[count] : first[count + 1]]
    last, last_cost = at[ends + 1] - 1, costs[first[count] : first[count + 1]]
    low, high = np.empty(frames, np.int64), np.empty(frames, np.int64)
    enough = _limits(size, joints, entries, ways, source, last, low, high)
    reach = entries.max() if len(entries) > 0 else 1
    states = States(
        log_probs, symbols, symbol_of, token, stay, joints, entries, reach, ways, source, cost, last, last_cost,
        low, high, begin, end, far_cost,
    )  # fmt: skip
    return states, enough


@compiled
def _joints(
    at: np.ndarray,
    first: np.ndarray,
    before: np.ndarray,
    costs: np.ndarray,
    least: np.ndarray,
    most: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Find the joints: their first states, their numbers of entries, and their ways in."""
    count = len(at) - 1
    joints, entries = np.empty(count, np.uint32), np.empty(count, np.uint32)
    ways = np.zeros(count + 1, np.uint32)
    source, cost = np.empty(first[count], np.uint32), np.empty(first[count])
    number = total = 0
    for u in range(count):
        a, b = first[u], first[u + 1]
        entry = most[u] - least[u] + 1 if most[u] > 0 else 1
        if b - a == 1 and entry == 1 and u > 0 and before[a] == u - 1 and costs[a] == 0:
            continue
        joints[number], entries[number] = at[u], entry
        for k in range(a, b):
            source[total] = at[before[k] + 1] if before[k] >= 0 else 0
            cost[total] = costs[k]
            total += 1
        number += 1
        ways[number] = total
    return joints[:number], entries[:number], ways[: number + 1], source[:total], cost[:total]


@compiled
def _limits(
    size: int,
    joints: np.ndarray,
    entries: np.ndarray,
    ways: np.ndarray,
    source: np.ndarray,
    last: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> bool:
    """Fill the first and last state of every frame that paths can be in; neither decreases.

    A state has its fewest frames before it and after it. Returns whether some path has no more frames than there are.
    """
    frames = len(low)
    sooner, later = np.full(size, _NEVER), np.full(size, _NEVER)
    i = 0
    for s in range(size):
        if i < len(joints) and joints[i] == s:
            base = _NEVER
            for k in range(ways[i], ways[i + 1]):
                base = min(base, sooner[source[k] - 1] + 1 if source[k] > 0 else 0)
            for j in range(entries[i]):
                sooner[s + j] = base
            i += 1
        elif s > 0:
            sooner[s] = min(sooner[s], sooner[s - 1] + 1)
    for s in last:
        later[s] = 0
    i = len(joints) - 1
    for s in range(size - 1, -1, -1):
        if i >= 0 and joints[i] == s:
            rest = _NEVER
            for j in range(entries[i]):
                rest = min(rest, later[s + j])
            for k in range(ways[i], ways[i + 1]):
                if source[k] > 0:
                    later[source[k] - 1] = min(later[source[k] - 1], rest + 1)
            i -= 1
        elif s > 0:
            later[s - 1] = min(later[s - 1], later[s] + 1)
    fill(low, size - 1)
    fill(high, 0)
    enough = False
    for s in range(size):
        if sooner[s] + later[s] < frames:
            enough = True
            low[frames - 1 - later[s]] = min(low[frames - 1 - later[s]], s)
            high[sooner[s]] = max(high[sooner[s]], s)
    for t in range(frames - 2, -1, -1):
        low[t] = min(low[t], low[t + 1])
    for t in range(1, frames):
        high[t] = max(high[t], high[t - 1])
    return enough


@compiled
def state_scores(row: States, t: int, lo: int, stop: int, emitted: np.ndarray, score: np.ndarray) -> None:
    """Fill the scores of the states from ``lo`` to ``stop`` in frame t, given those of the symbols."""
    gather(emitted, row.symbol_of[lo:stop], score)
    if len(row.begin) > 0:
        _charge(row.begin[lo:stop], row.end[lo:stop], t, row.far_cost, score)


@compiled
def _charge(begin: np.ndarray, end: np.ndarray, t: int, far_cost: float, score: np.ndarray) -> None:
    for s in range(len(begin)):
        score[s] -= far_cost if (t < begin[s]) | (t > end[s]) else 0.0


@compiled
def lowest_sources(row: States) -> np.ndarray:
    """Find for each state the lowest one that it, or a later one, is reached from in one frame."""
    size = len(row.token)
    found = np.empty(size, np.int64)
    i = len(row.joints) - 1
    lowest = size - 1
    for s in range(size - 1, -1, -1):
        lowest = min(lowest, s)
        if i >= 0 and row.joints[i] == s:
            for k in range(row.ways[i], row.ways[i + 1]):
                if row.source[k] > 0:
                    lowest = min(lowest, int(row.source[k]) - 1)
            i -= 1
        elif s > 0:
            lowest = min(lowest, s - 1)
        found[s] = lowest
    # a joint's later entries are reached from where its first one is
    for i in range(len(row.joints)):
        for j in range(1, row.entries[i]):
            found[row.joints[i] + j] = found[row.joints[i]]
    return found
