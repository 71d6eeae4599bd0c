"""The compiled loops of :func:`isotone.kernels.viterbi.graph_path`: plain arrays in and out, nothing is checked here.

A frame is one pass over the states of :mod:`isotone.kernels.viterbi._graph_states`. Rows of scores are stored, and
blocks computed again, as in :mod:`isotone.kernels.viterbi._ctc`.
"""

from __future__ import annotations

import numpy as np

from isotone.kernels._lattice import TILE, checkpoints, cone, copy, emit, fill
from isotone.kernels.native import compiled
from isotone.kernels.viterbi._graph_states import States, lowest_sources, set_up, state_scores

#: How a path came to a state: it stayed, it came from the state before, or by a joint's way (_WAY its first).
_STAYED, _MOVED, _WAY = 0, 1, 2

#: Ways into a joint, at most: a mark is one byte.
MOST_WAYS = 255 - _WAY


@compiled
def graph_row(
    task: int,
    order: np.ndarray,
    log_probs: np.ndarray,
    labels: np.ndarray,
    frames: np.ndarray,
    tokens: np.ndarray,
    first: np.ndarray,
    before: np.ndarray,
    costs: np.ndarray,
    least: np.ndarray,
    most: np.ndarray,
    near: np.ndarray,
    far_cost: float,
    least_block: int,
    budget: int,
    paths: np.ndarray,
    scores: np.ndarray,
) -> None:
    """Fill the path and score of row ``order[task]``.

    The score is NaN where the input was NaN or +inf, -inf where there is no path.
    """
    b = order[task]
    n, m = frames[b], tokens[b]
    if n == 0:
        return
    row, enough = set_up(
        log_probs[b, :n], labels[b, :m], first[b, : m + 2], before[b], costs[b], least[b, :m], most[b, :m],
        near[b, :m], far_cost,
    )  # fmt: skip
    scores[b] = -np.inf
    if enough:
        stored, block = checkpoints(row, 1, least_block, budget)
        scores[b], s = _forward(row, block, stored)
        if scores[b] > -np.inf:
            _trace(row, block, stored, s, paths[b, :n])


@compiled
def _forward(row: States, block: int, stored: np.ndarray) -> tuple[float, int]:
    """Fill the stored rows; return the best score and the state it ends in."""
    frames, size = len(row.log_probs), len(row.token)
    # the first number is the start's, and all of states that are not of a frame are -inf
    held, new = np.full(size + 1, -np.inf), np.full(size + 1, -np.inf)
    held[0] = 0.0
    enter, score = np.empty(TILE), np.empty(TILE)
    emitted = np.empty(len(row.symbols))
    ok, cleared = True, 0
    for t in range(frames):
        first, end = row.low[t], row.high[t] + 1
        if t % block == 0 and t > 0:
            was_low, n = row.low[t - 1], row.high[t - 1] + 1 - row.low[t - 1]
            copy(held[was_low + 1 :], stored[t // block, 0, :n])
        ok &= emit(row.log_probs[t], row.symbols, emitted)
        for lo in range(first, end, TILE):
            stop = min(end, lo + TILE)
            state_scores(row, t, lo, stop, emitted, score)
            _enter(row, lo, stop, held, enter, None)
            _step(held[lo + 1 : stop + 1], row.stay[lo:stop], enter, score, new[lo + 1 : stop + 1])
        # what the frame before the last one left
        fill(new[cleared : first + 1], -np.inf)
        cleared = row.low[t - 1] if t > 0 else 0
        held, new = new, held
    if not ok:
        return np.nan, 0
    best, s = -np.inf, 0
    for k in range(len(row.last) - 1, -1, -1):
        value = held[row.last[k] + 1] - row.last_cost[k]
        if value > best:
            best, s = value, row.last[k]
    return best, s


@compiled
def _enter(
    row: States, lo: int, stop: int, held: np.ndarray, enter: np.ndarray, marks: np.ndarray | None
) -> None:
    """Fill the best scores of paths that enter the states from ``lo`` to ``stop``.

    State s has index ``s - lo``, and ``s + 1`` in ``held``. ``marks``, where there are any, become how the best paths
    came: of several ways that are as good by the last.
    """
    copy(held[lo:stop], enter[: stop - lo])
    if marks is not None:
        fill(marks[: stop - lo], _MOVED)
    # slices and unsigned numbers: numba then does not check for indices that count from the end
    lowest = np.searchsorted(row.joints, max(0, lo - row.reach + 1))
    joints, ways, entries = row.joints[lowest:], row.ways[lowest:], row.entries[lowest:]
    for i in range(len(joints)):
        s = int(joints[i])
        if s >= stop:
            break
        first, best, way = ways[i], -np.inf, 0
        source, cost = row.source[first : ways[i + 1]], row.cost[first : ways[i + 1]]
        for k in range(len(source)):
            value = held[source[k]] - cost[k]
            if value >= best:
                best, way = value, k
        if s >= lo:
            enter[s - lo] = best
            if marks is not None:
                marks[s - lo] = _WAY + way
        a, b = max(s + 1, lo) - lo, min(s + int(entries[i]), stop) - lo
        if a < b and marks is not None:
            _raise_mark(enter[a:b], best, marks[a:b], _WAY + way)
        elif a < b:
            _raise(enter[a:b], best)


@compiled
def _raise(enter: np.ndarray, least: float) -> None:
    for s in range(len(enter)):
        enter[s] = least if least > enter[s] else enter[s]


@compiled
def _raise_mark(enter: np.ndarray, least: float, marks: np.ndarray, mark: int) -> None:
    for s in range(len(enter)):
        if least > enter[s]:
            enter[s], marks[s] = least, mark


@compiled
def _step(held: np.ndarray, stay: np.ndarray, enter: np.ndarray, score: np.ndarray, new: np.ndarray) -> None:
    for s in range(len(held)):
        stayed = held[s] + stay[s]
        new[s] = (enter[s] if enter[s] > stayed else stayed) + score[s]


@compiled
def _step_mark(
    held: np.ndarray, stay: np.ndarray, enter: np.ndarray, score: np.ndarray, marks: np.ndarray
) -> None:
    for s in range(len(held)):
        stayed = held[s] + stay[s]
        entered = enter[s] > stayed
        held[s] = (enter[s] if entered else stayed) + score[s]
        marks[s] = marks[s] if entered else _STAYED


@compiled
def _trace(row: States, block: int, stored: np.ndarray, s: int, path: np.ndarray) -> None:
    """Fill the path that ends in state s."""
    frames, size = len(path), len(row.token)
    jump = lowest_sources(row)
    marks = np.empty((block, 1), np.uint8)
    first = np.empty(
        block + 1, np.int64
    )  # first state of the frame before the block, then of each of its frames
    held, enter, score = np.empty(size + 1), np.empty(size), np.empty(size)
    for k in range(len(stored) - 1, -1, -1):
        start, end = k * block, min(frames, (k + 1) * block)
        cone(jump, s, row.low[start:end], first[1:])
        first[0] = 0 if start == 0 else max(jump[first[1]], row.low[start - 1])
        if s - first[0] >= marks.shape[1]:
            marks = np.empty((block, s - first[0] + 1), np.uint8)
        fill(held[: s + 2], -np.inf)
        if start > 0:
            was_low, stop = row.low[start - 1], min(s, row.high[start - 1]) + 1
            copy(stored[k, 0, first[0] - was_low :], held[first[0] + 1 : stop + 1])
        else:
            held[0] = 0.0
        _recompute(row, start, end, first, s, held, enter, score, marks)
        for t in range(end - 1, start - 1, -1):
            path[t] = row.token[s]
            mark = marks[t - start, s - first[t - start + 1]]
            if mark == _MOVED:
                s -= 1
            elif mark >= _WAY:
                i = np.searchsorted(row.joints, s, "right") - 1
                s = row.source[row.ways[i] + mark - _WAY] - 1


@compiled
def _recompute(
    row: States,
    start: int,
    end: int,
    first: np.ndarray,
    top: int,
    held: np.ndarray,
    enter: np.ndarray,
    score: np.ndarray,
    marks: np.ndarray,
) -> None:
    """Fill the marks of the frames from start to end, of states ``first[t - start + 1]`` to ``top``."""
    emitted = np.empty(len(row.symbols))
    for t in range(start, end):
        lo, stop = first[t - start + 1], min(top, row.high[t]) + 1
        mark = marks[t - start]
        emit(row.log_probs[t], row.symbols, emitted)
        state_scores(row, t, lo, stop, emitted, score)
        _enter(row, lo, stop, held, enter, mark)
        _step_mark(held[lo + 1 : stop + 1], row.stay[lo:stop], enter, score, mark)
        # the next frame has none of the states before
        fill(held[first[t - start] : lo + 1], -np.inf)
