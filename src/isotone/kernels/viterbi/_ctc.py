"""The compiled loops of :func:`isotone.kernels.viterbi.ctc_path`: plain arrays in and out, nothing is checked here.

Token u and the blank before it make one cell, so a frame is one pass over U + 1 cells; the last cell has a blank
only. The forward pass keeps no back-pointers: it stores its two rows of scores every so many frames. The
back-trace then computes one block of frames after the other again, from the stored row before it, and of it only
the cone of cells that the path's cell at the end of the block can come from: a small share of the cells, with the
same sums in the same order, so that every decision is the one that a whole trellis would have recorded.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isotone.kernels._lattice import (
    BLANK,
    NOWHERE,
    TILE,
    Row,
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


@njit(nogil=True, cache=True)
def ctc_row(
    task: int,
    order: np.ndarray,
    log_probs: np.ndarray,
    labels: np.ndarray,
    frames: np.ndarray,
    tokens: np.ndarray,
    free: np.ndarray,
    blank: int,
    band: int,
    least_block: int,
    budget: int,
    paths: np.ndarray,
    scores: np.ndarray,
    touched: np.ndarray,
) -> None:
    """Fill the path and score of row ``order[task]``, and whether the path touches its band's edge.

    A band below 0 is none. The score is NaN where the input was NaN or +inf, -inf where there is no path.
    """
    b = order[task]
    n, m = frames[b], tokens[b]
    if n == 0:
        return
    row = lattice_row(log_probs[b, :n], labels[b, :m], free[b, :m], blank, 1, band, NOWHERE, 0.0)
    stored, block = checkpoints(row, 2, least_block, budget)
    scores[b], u, in_blank = _forward(row, block, stored)
    if scores[b] > -np.inf:
        _trace(row, block, stored, u, in_blank, paths[b, :n])
        touched[b] = band >= 0 and touches(row, paths[b, :n])


@njit(nogil=True, cache=True)
def _forward(row: Row, block: int, stored: np.ndarray) -> tuple[float, int, bool]:
    """Fill the stored rows; the best score, and the cell it ends in: number, and whether in its blank.

    Frames are computed in place: what token u gets from its cell and the one before it is written where that one's
    was, so that all tokens move down by one a frame. Token u lies at ``u + 1 + shift``.
    """
    frames, cells = len(row.log_probs), len(row.symbol_of)
    low, high, log_probs, symbols = row.low, row.high, row.log_probs, row.symbols
    symbol_of, floor = row.symbol_of, row.floor
    shift = block
    token, blanks = np.full(cells + 1 + block, -np.inf), np.full(cells, -np.inf)
    blanks[0] = 0.0  # before the first frame
    emitted, score = np.empty(len(row.symbols)), np.empty(min(cells, TILE))
    entry, skips = np.empty(len(row.after_free)), np.empty(0, np.int64)
    ok = True
    for t in range(frames):
        was_low = low[t - 1] if t > 0 else 0
        if t % block == 0 and t > 0:
            end = high[t - 1] + 1
            kept = stored[t // block, :, : end - was_low]
            copy(token[was_low + 1 : end + 1], kept[0])  # shift is 0
            copy(blanks[was_low:end], kept[1])
            fill(token, -np.inf)
            shift = block
            copy(kept[0], token[was_low + 1 + shift : end + 1 + shift])
        ok &= emit(log_probs[t], symbols, emitted)
        lo, end = low[t], high[t] + 1
        if len(entry) > 0:
            _past_free(row, was_low, lo, end, token[shift:], blanks, entry, skips)
        for u in range(lo, end, TILE):
            n = min(end, u + TILE) - u
            gather(emitted, symbol_of[u : u + n], score[:n])
            _step(
                token[u + shift : u + n + 1 + shift],
                blanks[u : u + n],
                floor[u : u + n],
                score[:n],
                emitted[0],
            )
        token[end + shift] = -np.inf  # no token yet
        shift -= 1
        token[lo + shift] = -np.inf  # no token any more, should the next frame begin here as well
        if len(entry) > 0:
            _enter_past_free(row, lo, end, emitted, entry, token[shift:], skips)
    if not ok:
        return np.nan, 0, False
    return _best_end(row, token[shift:], blanks)


@njit(nogil=True, cache=True)
def _step(
    token: np.ndarray, blanks: np.ndarray, floor: np.ndarray, score: np.ndarray, blank_score: float
) -> None:
    for u in range(len(score)):
        before, stay, resting = token[u], token[u + 1], blanks[u]
        direct = before + floor[u]
        best = stay if stay > resting else resting
        token[u] = (best if best > direct else direct) + score[u]
        blanks[u] = (resting if resting > before else before) + blank_score


@njit(nogil=True, cache=True)
def _best_end(row: Row, token: np.ndarray, blanks: np.ndarray) -> tuple[float, int, bool]:
    count = len(row.labels)
    best, cell, in_blank = blanks[count], count, True
    u = count - 1
    while u >= row.low[-1]:
        if token[u + 1] > best:
            best, cell, in_blank = token[u + 1], u, False
        if not row.free[u]:
            break
        if blanks[u] > best:
            best, cell, in_blank = blanks[u], u, True
        u -= 1
    return best, cell, in_blank


@njit(nogil=True, cache=True)
def _past_free(
    row: Row,
    was_low: int,
    lo: int,
    end: int,
    token: np.ndarray,
    blanks: np.ndarray,
    entry: np.ndarray,
    skips: np.ndarray,
) -> None:
    """Fill the best scores that enter tokens past optional ones: from the blank before those, or the token before it.

    Token u comes with index u + 1. ``skips[u - lo]``, unless empty, becomes 2 j - 1 where the best is the blank of cell
    u - j, 2 j where it is the token before that.
    """
    fill(skips[: end - lo], 0)
    for i in range(np.searchsorted(row.after_free, lo), len(row.after_free)):
        u = row.after_free[i]
        if u >= end:
            break
        best, skip = -np.inf, 0
        v = u - 1
        while v >= was_low and row.free[v]:
            if blanks[v] > best:
                best, skip = blanks[v], 2 * (u - v) - 1
            if v > was_low and row.labels[u] != row.labels[v - 1] and token[v] > best:
                best, skip = token[v], 2 * (u - v)
            v -= 1
        entry[i] = best
        if len(skips) > 0:
            skips[u - lo] = skip


@njit(nogil=True, cache=True)
def _enter_past_free(
    row: Row,
    lo: int,
    end: int,
    emitted: np.ndarray,
    entry: np.ndarray,
    token: np.ndarray,
    skips: np.ndarray,
) -> None:
    """Take the entries of :func:`_past_free` where they are better, and where not, their skips back."""
    for i in range(np.searchsorted(row.after_free, lo), len(row.after_free)):
        u = row.after_free[i]
        if u >= end:
            break
        value = entry[i] + emitted[row.symbol_of[u]]
        if value > token[u + 1]:
            token[u + 1] = value
        elif len(skips) > 0:
            skips[u - lo] = 0


@njit(nogil=True, cache=True)
def _trace(row: Row, block: int, stored: np.ndarray, u: int, in_blank: bool, path: np.ndarray) -> None:
    """Fill the path that ends in cell u."""
    frames, width, cells = len(path), stored.shape[2], len(row.symbol_of)
    skipping = len(row.after_free) > 0
    jump = jumps(row.free, cells)
    back = np.empty((block, width if skipping else min(width, block)), np.uint8)
    skips = np.empty((block if skipping else 0, width), np.int64)
    first = np.empty(block, np.int64)
    state, score = np.empty((4, cells + 1)), np.empty(cells)
    for k in range(len(stored) - 1, -1, -1):
        start, end = k * block, min(frames, (k + 1) * block)
        cone(jump, u, row.low[start:end], first)
        _load(row, start, stored[k], jump[first[0]], u, state)
        _recompute(row, start, end, first, jump[first[0]], u, state, score, back, skips)
        for t in range(end - 1, start - 1, -1):
            path[t] = BLANK if in_blank else u
            at = u - first[t - start]
            came = back[t - start, at]
            skip = skips[t - start, at] if skipping and not in_blank else 0
            if in_blank:
                in_blank = came < 4
                u -= not in_blank
            elif skip > 0:
                in_blank = skip % 2 == 1
                u -= (skip + 1) // 2 if in_blank else skip // 2 + 1
            else:
                came &= 3
                in_blank = came == 1
                u -= came == 2


@njit(nogil=True, cache=True)
def _load(row: Row, start: int, stored: np.ndarray, base: int, top: int, state: np.ndarray) -> None:
    """The scores before frame ``start`` of the cells from base to top; token u has index u + 1, its blank u."""
    for i in range(4):
        fill(state[i, base : top + 2], -np.inf)
    if start == 0:
        state[2, 0] = 0.0
        return
    was_low = row.low[start - 1]
    bottom, end = max(base, was_low), min(top, row.high[start - 1]) + 1
    copy(stored[0, bottom - was_low : end - was_low], state[0, bottom + 1 : end + 1])
    copy(stored[1, bottom - was_low : end - was_low], state[2, bottom:end])


@njit(nogil=True, cache=True)
def _recompute(
    row: Row,
    start: int,
    end: int,
    first: np.ndarray,
    base: int,
    top: int,
    state: np.ndarray,
    score: np.ndarray,
    back: np.ndarray,
    skips: np.ndarray,
) -> None:
    """Fill the back-pointers of the frames from start to end, of cells ``first[t - start]`` to ``top``.

    One byte a cell: bits 0-1 for the token (0 itself, 1 its blank, 2 the token before), bit 2 for the blank (0
    itself, 1 the token before).
    """
    token, new_token, blanks, new_blanks = state[0], state[1], state[2], state[3]
    emitted, entry = np.empty(len(row.symbols)), np.empty(len(row.after_free))
    was_low = 0 if start == 0 else max(base, row.low[start - 1])
    log_probs, symbols, high = row.log_probs, row.symbols, row.high
    symbol_of, floor = row.symbol_of, row.floor
    for t in range(start, end):
        emit(log_probs[t], symbols, emitted)
        lo, stop = first[t - start], min(top, high[t]) + 1
        gather(emitted, symbol_of[lo:stop], score[lo:stop])
        _step_back(
            token[lo : stop + 1], blanks[lo:stop], floor[lo:stop], score[lo:stop], emitted[0],
            new_token[lo + 1 : stop + 1], new_blanks[lo:stop], back[t - start],
        )  # fmt: skip
        if len(entry) > 0:
            _past_free(row, was_low, lo, stop, token, blanks, entry, skips[t - start])
            _enter_past_free(row, lo, stop, emitted, entry, new_token, skips[t - start])
        new_token[lo] = -np.inf
        token, new_token, blanks, new_blanks = new_token, token, new_blanks, blanks
        was_low = lo


@njit(nogil=True, cache=True)
def _step_back(
    token: np.ndarray,
    blanks: np.ndarray,
    floor: np.ndarray,
    score: np.ndarray,
    blank_score: float,
    new_token: np.ndarray,
    new_blanks: np.ndarray,
    back: np.ndarray,
) -> None:
    """:func:`_step` into other arrays, and where each came from."""
    for u in range(len(score)):
        before, stay, resting = token[u], token[u + 1], blanks[u]
        left = before > resting
        new_blanks[u] = (before if left else resting) + blank_score
        from_blank = resting > stay
        best = resting if from_blank else stay
        direct = before + floor[u]
        skipped = direct > best
        new_token[u] = (direct if skipped else best) + score[u]
        back[u] = (2 if skipped else (1 if from_blank else 0)) + (4 if left else 0)
