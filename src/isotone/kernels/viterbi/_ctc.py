"""The compiled loops of :func:`isotone.kernels.viterbi.ctc_path`: plain arrays in and out, nothing is checked here.

Token u and the blank before it make one cell, so a frame is one pass over U + 1 cells; the last cell has a blank only.
The forward pass keeps no back-pointers: it stores its two rows of scores every so many frames. The back-trace then
computes the frames again, block by block, from the stored row before each block. Of a block it computes only the cone
of cells that the path's cell at its end can come from: a small share. The sums are the same in the same order, so every
decision is the one that a whole trellis would have recorded.
"""

from __future__ import annotations

import numpy as np

from isotone.kernels._lattice import (
    NOWHERE,
    TILE,
    Row,
    checkpoints,
    copy,
    emit,
    fill,
    gather,
    lattice_row,
    touches,
)
from isotone.kernels.native import compiled
from isotone.kernels.viterbi._ctc_skips import enter_past_free, past_free
from isotone.kernels.viterbi._ctc_trace import trace


@compiled
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

    A band below 0 means none. The score is NaN where the input was NaN or +inf, -inf where there is no path. Paths
    without frames are not filled, and nothing is stored for them.
    """
    b = order[task]
    n, m = frames[b], tokens[b]
    if n == 0:
        return
    traced = paths.shape[1] > 0
    row = lattice_row(log_probs[b, :n], labels[b, :m], free[b, :m], blank, 1, band, NOWHERE, 0.0)
    stored, block = checkpoints(row, 2, least_block if traced else n, budget)
    scores[b], u, in_blank = _forward(row, block, stored)
    if traced and scores[b] > -np.inf:
        trace(row, block, stored, u, in_blank, paths[b, :n])
        touched[b] = band >= 0 and touches(row, paths[b, :n])


@compiled
def _forward(row: Row, block: int, stored: np.ndarray) -> tuple[float, int, bool]:
    """Fill the stored rows; return the best score, the number of the cell it ends in, and true if in the blank.

    Frames are computed in place. The new score of token u, from its cell and the one before, is written over that of
    token u - 1, which is no longer needed: all tokens move down by one per frame. Token u lies at ``u + 1 + shift``.
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
            # shift is 0: there is no room left to move down, so the tokens go back to the top
            copy(token[was_low + 1 : end + 1], kept[0])
            copy(blanks[was_low:end], kept[1])
            fill(token, -np.inf)
            shift = block
            copy(kept[0], token[was_low + 1 + shift : end + 1 + shift])
        ok &= emit(log_probs[t], symbols, emitted)
        lo, end = low[t], high[t] + 1
        if len(entry) > 0:
            past_free(row, was_low, lo, end, token[shift:], blanks, entry, skips)
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
        token[end + shift] = -np.inf  # no path is in this token yet
        shift -= 1
        # nor in the one before the first, should the next frame begin here as well
        token[lo + shift] = -np.inf
        if len(entry) > 0:
            enter_past_free(row, lo, end, emitted, entry, token[shift:], skips)
    if not ok:
        return np.nan, 0, False
    return _best_end(row, token[shift:], blanks)


@compiled
def _step(
    token: np.ndarray, blanks: np.ndarray, floor: np.ndarray, score: np.ndarray, blank_score: float
) -> None:
    for u in range(len(score)):
        before, stay, resting = token[u], token[u + 1], blanks[u]
        direct = before + floor[u]
        best = stay if stay > resting else resting
        token[u] = (best if best > direct else direct) + score[u]
        blanks[u] = (resting if resting > before else before) + blank_score


@compiled
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
