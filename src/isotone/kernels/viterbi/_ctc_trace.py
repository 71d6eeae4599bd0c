"""The back-trace of :mod:`isotone.kernels.viterbi._ctc`, one block of frames after the other."""

from __future__ import annotations

import numpy as np

from isotone.kernels._lattice import BLANK, Row, cone, copy, emit, fill, gather, jumps
from isotone.kernels.native import compiled
from isotone.kernels.viterbi._ctc_skips import enter_past_free, past_free


@compiled
def trace(row: Row, block: int, stored: np.ndarray, u: int, in_blank: bool, path: np.ndarray) -> None:
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
                in_blank = came < 4  # bit 2: from the token before
                u -= not in_blank
            elif skip > 0:  # past optional tokens: see past_free for its code
                in_blank = skip % 2 == 1
                u -= (skip + 1) // 2 if in_blank else skip // 2 + 1
            else:
                came &= 3
                in_blank = came == 1
                u -= came == 2


@compiled
def _load(row: Row, start: int, stored: np.ndarray, base: int, top: int, state: np.ndarray) -> None:
    """Load the scores before frame ``start`` of the cells from base to top; token u has index u + 1, its blank u."""
    for i in range(4):
        fill(state[i, base : top + 2], -np.inf)
    if start == 0:
        state[2, 0] = 0.0
        return
    was_low = row.low[start - 1]
    bottom, end = max(base, was_low), min(top, row.high[start - 1]) + 1
    copy(stored[0, bottom - was_low : end - was_low], state[0, bottom + 1 : end + 1])
    copy(stored[1, bottom - was_low : end - was_low], state[2, bottom:end])


@compiled
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

    One byte per cell: bits 0-1 for the token (0 itself, 1 its blank, 2 the token before), bit 2 for the blank (0
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
            past_free(row, was_low, lo, stop, token, blanks, entry, skips[t - start])
            enter_past_free(row, lo, stop, emitted, entry, new_token, skips[t - start])
        new_token[lo] = -np.inf
        token, new_token, blanks, new_blanks = new_token, token, new_blanks, blanks
        was_low = lo


@compiled
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
    """Step as in the forward pass, into other arrays, and fill where each score came from.

    On ties a score comes from what is furthest along: from itself, then from the blank, then from the token before.
    """
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
