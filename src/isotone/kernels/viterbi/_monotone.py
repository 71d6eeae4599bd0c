"""The compiled loops of :func:`isotone.kernels.viterbi.monotone_path`: plain arrays in and out, nothing is checked.

The scores of a token make ``min_frames`` rows. Row d < min_frames - 1 is the best path that is d + 1 frames into the
token; the last row is the best path whose token has had its least frames. Rows are stored, and blocks computed again,
as in :mod:`isotone.kernels.viterbi._ctc`.
"""

from __future__ import annotations

import numpy as np

from isotone.kernels._lattice import (
    TILE,
    Row,
    charge,
    checkpoints,
    cone,
    copy,
    emit,
    fill,
    gather,
    jumps,
    lattice_row,
    touches,
)
from isotone.kernels.native import compiled


@compiled
def monotone_row(
    task: int,
    order: np.ndarray,
    log_probs: np.ndarray,
    labels: np.ndarray,
    frames: np.ndarray,
    tokens: np.ndarray,
    free: np.ndarray,
    near: np.ndarray,
    far_cost: float,
    min_frames: int,
    band: int,
    least_block: int,
    budget: int,
    paths: np.ndarray,
    scores: np.ndarray,
    touched: np.ndarray,
) -> None:
    """Fill the path and score of row ``order[task]``, and whether the path touches its band's edge.

    A band below 0 means none. The score is NaN where the input was NaN or +inf, -inf where there is no path.
    """
    b = order[task]
    n, m = frames[b], tokens[b]
    row = lattice_row(
        log_probs[b, :n], labels[b, :m], free[b, :m], -1, min_frames, band, near[b, :n], far_cost
    )
    stored, block = checkpoints(row, min_frames, least_block, budget)
    plain = min_frames == 1 and not row.free.any()
    scores[b], u = _forward_plain(row, block, stored) if plain else _forward(row, block, stored)
    if scores[b] > -np.inf:
        _trace(row, block, stored, u, paths[b, :n])
        touched[b] = band >= 0 and touches(row, paths[b, :n])


@compiled
def _forward_plain(row: Row, block: int, stored: np.ndarray) -> tuple[float, int]:
    """Run :func:`_forward` where tokens need one frame each and none is optional: in place, as for CTC."""
    frames, cells = len(row.log_probs), len(row.symbol_of)
    low, high, log_probs, symbols, symbol_of = row.low, row.high, row.log_probs, row.symbols, row.symbol_of
    shift = block
    held = np.full(cells + 1 + block, -np.inf)  # token u lies at u + 1 + shift
    held[shift] = 0.0  # before the first token
    emitted, score = np.empty(len(symbols)), np.empty(min(cells, TILE))
    ok = True
    for t in range(frames):
        if t % block == 0 and t > 0:
            was_low, end = low[t - 1], high[t - 1] + 1
            kept = stored[t // block, 0, : end - was_low]
            # shift is 0: there is no room left to move down, so the tokens go back to the top
            copy(held[was_low + 1 : end + 1], kept)
            fill(held, -np.inf)
            shift = block
            copy(kept, held[was_low + 1 + shift : end + 1 + shift])
        ok &= emit(log_probs[t], symbols, emitted)
        lo, end = low[t], high[t] + 1
        for u in range(lo, end, TILE):
            n = min(end, u + TILE) - u
            gather(emitted, symbol_of[u : u + n], score[:n])
            charge(row, t, u, score[:n])
            _step(held[u + shift : u + n + 1 + shift], score[:n])
        held[end + shift] = -np.inf  # no path is in this token yet
        shift -= 1
        # nor in the one before the first, should the next frame begin here as well
        held[lo + shift] = -np.inf
    return (held[cells + shift] if ok else np.nan), cells - 1


@compiled
def _step(held: np.ndarray, score: np.ndarray) -> None:
    for u in range(len(score)):
        before, stay = held[u], held[u + 1]
        held[u] = (stay if stay > before else before) + score[u]


@compiled
def _forward(row: Row, block: int, stored: np.ndarray) -> tuple[float, int]:
    """Fill the stored rows; return the best score and the token it ends in."""
    frames, cells = len(row.log_probs), len(row.symbol_of)
    state = np.full((stored.shape[1], cells), -np.inf)
    enter, score, emitted = np.empty(cells), np.empty(cells), np.empty(len(row.symbols))
    no_marks = np.empty(0, np.uint8)
    ok = True
    for t in range(frames):
        was_low = row.low[t - 1] if t > 0 else 0
        if t % block == 0 and t > 0:
            n = row.high[t - 1] + 1 - was_low
            for d in range(len(state)):
                copy(state[d, was_low:], stored[t // block, d, :n])
        ok &= emit(row.log_probs[t], row.symbols, emitted)
        lo, end = row.low[t], row.high[t] + 1
        gather(emitted, row.symbol_of[lo:end], score[lo:end])
        charge(row, t, lo, score[lo:end])
        held = state[-1]
        _enter(row, t, was_low, end, held, enter, no_marks)
        ready = enter if len(state) == 1 else state[-2]
        _stay_or_enter(held[lo:end], ready[lo:end], score[lo:end])
        if len(state) > 1:
            _advance(state, enter, score, lo, end)
    if not ok:
        return np.nan, 0
    held = state[-1]
    best = u = cells - 1
    while row.free[u] and u > row.low[-1]:
        u -= 1
        best = u if held[u] > held[best] else best
    return held[best], best


@compiled
def _enter(
    row: Row, t: int, was_low: int, end: int, held: np.ndarray, enter: np.ndarray, marks: np.ndarray
) -> None:
    """Fill the best scores of paths that may enter tokens at frame t, from cell ``was_low``.

    Bit 1 of ``marks[u - was_low]``, unless the array is empty, is set if the best path that enters token u leaves out
    the one before it.
    """
    enter[was_low] = 0.0 if t == 0 else -np.inf
    copy(held[was_low:], enter[was_low + 1 : end])
    fill(marks[: end - was_low], 0)
    for i in range(np.searchsorted(row.after_free, was_low + 1), len(row.after_free)):
        u = row.after_free[i]
        if u >= end:
            break
        if enter[u - 1] > enter[u]:
            enter[u] = enter[u - 1]
            if len(marks) > 0:
                marks[u - was_low] = 2


@compiled
def _stay_or_enter(held: np.ndarray, ready: np.ndarray, score: np.ndarray) -> None:
    for u in range(len(held)):
        held[u] = (held[u] if held[u] > ready[u] else ready[u]) + score[u]


@compiled
def _mark_entered(held: np.ndarray, ready: np.ndarray, marks: np.ndarray) -> None:
    for u in range(len(held)):
        marks[u] += 1 if ready[u] > held[u] else 0


@compiled
def _advance(state: np.ndarray, enter: np.ndarray, score: np.ndarray, lo: int, end: int) -> None:
    """Move one frame further into tokens that have not had their least frames."""
    for d in range(len(state) - 2, -1, -1):
        source = state[d - 1] if d > 0 else enter
        for u in range(lo, end):
            state[d, u] = source[u] + score[u]


@compiled
def _trace(row: Row, block: int, stored: np.ndarray, u: int, path: np.ndarray) -> None:
    """Fill the path that ends in token u."""
    frames, cells, min_frames = len(path), len(row.symbol_of), stored.shape[1]
    plain = min_frames == 1 and not row.free.any()
    jump = jumps(row.free, cells)
    marks = np.empty((block, cells if len(row.after_free) > 0 else min(cells, block + 1)), np.uint8)
    # where the marks of each frame begin: its own first cell is that of the next
    first = np.empty(block + 1, np.int64)
    state, enter, score = np.empty((min_frames, cells)), np.empty(cells), np.empty(cells)
    left = 0  # frames left of the present token's least ones
    for k in range(len(stored) - 1, -1, -1):
        start, end = k * block, min(frames, (k + 1) * block)
        cone(jump, u, row.low[start:end], first[1:])
        first[0] = 0 if start == 0 else max(jump[first[1]], row.low[start - 1])
        _load(row, start, stored[k], first[0], u, state)
        if plain:
            _recompute_plain(row, start, end, first, u, state[0], score, marks)
        else:
            _recompute(row, start, end, first, u, state, enter, score, marks)
        for t in range(end - 1, start - 1, -1):
            path[t] = u
            mark, base = marks[t - start], first[t - start]
            if left == 0 and mark[u - base] & 1:
                left = min_frames
            if left > 0:
                left -= 1
                if left == 0:
                    while mark[u - base] & 2:
                        u -= 1
                    u -= 1


@compiled
def _load(row: Row, start: int, stored: np.ndarray, base: int, top: int, state: np.ndarray) -> None:
    """Load the scores before frame ``start`` of the cells from base to top; base lies in that frame's range."""
    for d in range(len(state)):
        fill(state[d, base : top + 1], -np.inf)
        if start > 0:
            was_low, end = row.low[start - 1], min(top, row.high[start - 1]) + 1
            copy(stored[d, base - was_low :], state[d, base:end])


@compiled
def _recompute(
    row: Row,
    start: int,
    end: int,
    first: np.ndarray,
    top: int,
    state: np.ndarray,
    enter: np.ndarray,
    score: np.ndarray,
    marks: np.ndarray,
) -> None:
    """Fill the marks of the frames from start to end, of cells ``first[t - start]`` to ``top``.

    One byte per cell: bit 0 is set if the token has just had its least frames, bit 1 if the best path that enters the
    token in this frame leaves out the one before it.
    """
    emitted = np.empty(len(row.symbols))
    for t in range(start, end):
        emit(row.log_probs[t], row.symbols, emitted)
        base, lo, stop = first[t - start], first[t - start + 1], min(top, row.high[t]) + 1
        mark, held = marks[t - start], state[-1]
        gather(emitted, row.symbol_of[lo:stop], score[lo:stop])
        charge(row, t, lo, score[lo:stop])
        _enter(row, t, base, stop, held, enter, mark)
        ready = enter if len(state) == 1 else state[-2]
        _mark_entered(held[lo:stop], ready[lo:stop], mark[lo - base : stop - base])
        _stay_or_enter(held[lo:stop], ready[lo:stop], score[lo:stop])
        if len(state) > 1:
            _advance(state, enter, score, lo, stop)


@compiled
def _recompute_plain(
    row: Row,
    start: int,
    end: int,
    first: np.ndarray,
    top: int,
    held: np.ndarray,
    score: np.ndarray,
    marks: np.ndarray,
) -> None:
    """Run :func:`_recompute` where tokens need one frame each and none is optional."""
    log_probs, symbols, symbol_of, high = row.log_probs, row.symbols, row.symbol_of, row.high
    emitted = np.empty(len(symbols))
    for t in range(start, end):
        emit(log_probs[t], symbols, emitted)
        base, lo, stop = first[t - start], first[t - start + 1], min(top, high[t]) + 1
        gather(emitted, symbol_of[lo:stop], score[lo:stop])
        charge(row, t, lo, score[lo:stop])
        before = held[lo - 1] if lo > base else -np.inf
        if t == 0:
            before = 0.0
        _step_mark(held[lo:stop], before, score[lo:stop], marks[t - start, lo - base : stop - base])


@compiled
def _step_mark(held: np.ndarray, before: float, score: np.ndarray, marks: np.ndarray) -> None:
    """Step with the score ``before`` of the token before the first, and mark the tokens that were entered."""
    for u in range(len(score)):
        stay = held[u]
        entered = before > stay
        held[u] = (before if entered else stay) + score[u]
        marks[u] = entered
        before = stay
