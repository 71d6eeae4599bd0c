"""What the compiled loops share: a row's symbols, the cells that paths can reach, bands and blocks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

#: :attr:`Row.near` of rows whose tokens may be anywhere.
NOWHERE = np.empty((0, 2), np.int64)

#: Numbers in a path that are no tokens.
BLANK, PADDING = -1, -2

#: Cells that are computed together: their scores stay in the first-level cache.
TILE = 512


class Row(NamedTuple):
    """One utterance: its scores, its labels and what may follow what, the cells of every frame.

    A cell is a token, in lattices with a blank a token and the blank before it; these have one cell more at the end,
    of a blank only.
    """

    log_probs: np.ndarray  # (T, V)
    symbols: np.ndarray  # (K,) distinct labels, the blank first where there is one
    symbol_of: np.ndarray  # (cells,) every cell's token's among them; the cell without one reads the blank
    labels: np.ndarray  # (U,)
    free: np.ndarray  # (U,) bool, optional tokens
    after_free: np.ndarray  # tokens that follow an optional one
    floor: np.ndarray  # (cells,) 0 where a token may follow its neighbour directly, -inf where it may not
    low: np.ndarray  # (T,) first cell of every frame
    high: np.ndarray  # (T,) last
    limits: np.ndarray  # (2, T) both, were there no band
    near: np.ndarray  # (T, 2) first and last cell that may be had for nothing; (0, 2) where all may
    far_cost: float  # nats a frame of the others


@njit(nogil=True, cache=True)
def lattice_row(
    log_probs: np.ndarray,
    labels: np.ndarray,
    free: np.ndarray,
    blank: int,
    min_frames: int,
    band: int,
    near: np.ndarray,
    far_cost: float,
) -> Row:
    """Set up a row of T > 0 frames; a blank or band below 0 is none."""
    frames, count = len(log_probs), len(labels)
    cells = count + 1 if blank >= 0 else count
    symbols, symbol_of = symbol_table(labels, blank, log_probs.shape[1])
    floor = np.zeros(cells)
    if blank >= 0:
        floor[0] = floor[count] = -np.inf
        for u in range(1, count):
            if labels[u] == labels[u - 1]:
                floor[u] = -np.inf
    limits = np.empty((2, frames), np.int64)
    reach(free, min_frames, frames, cells, limits)
    inner = clip(limits, cells, band) if band >= 0 else limits
    after_free = np.flatnonzero(free[: max(0, count - 1)]) + 1
    return Row(
        log_probs, symbols, symbol_of[:cells], labels, free, after_free, floor, inner[0], inner[1], limits, near,
        far_cost,
    )  # fmt: skip


@njit(nogil=True, cache=True)
def symbol_table(labels: np.ndarray, blank: int, vocab: int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct labels of a row, and for every token the place of its label among them.

    The first symbol is the blank, if there is one (``blank >= 0``). (Unsigned numbers spare the loops a check for
    indices that count from the end.) One more cell, after the last token, reads the first symbol.
    """
    place = np.full(vocab, -1, np.int64)
    symbols = np.zeros(min(len(labels), vocab) + 1, np.uint32)
    symbol_of = np.zeros(len(labels) + 1, np.uint32)
    count = 0
    if blank >= 0:
        symbols[0] = blank
        place[blank] = 0
        count = 1
    for u in range(len(labels)):
        if place[labels[u]] < 0:
            place[labels[u]] = count
            symbols[count] = labels[u]
            count += 1
        symbol_of[u] = place[labels[u]]
    return symbols[:count], symbol_of


@njit(nogil=True, cache=True)
def emit(row: np.ndarray, symbols: np.ndarray, out: np.ndarray) -> bool:
    """Fill the scores of the symbols in one frame; whether none is NaN or +inf."""
    ok = True
    for k in range(len(symbols)):
        out[k] = row[symbols[k]]
        ok &= out[k] < np.inf
    return ok


@njit(nogil=True, cache=True)
def gather(scores: np.ndarray, index: np.ndarray, out: np.ndarray) -> None:
    """``out[u] = scores[index[u]]``."""
    for u in range(len(index)):
        out[u] = scores[index[u]]


@njit(nogil=True, cache=True)
def charge(row: Row, t: int, first: int, score: np.ndarray) -> None:
    """Take from the scores of the cells from ``first`` on what those far from where they should be cost in frame t."""
    if len(row.near) == 0:
        return
    for u in range(min(len(score), row.near[t, 0] - first)):
        score[u] -= row.far_cost
    for u in range(max(0, row.near[t, 1] + 1 - first), len(score)):
        score[u] -= row.far_cost


@njit(nogil=True, cache=True)
def fill(out: np.ndarray, value: float) -> None:
    """``out[:] = value``, which takes numba longer to compile."""
    for u in range(len(out)):
        out[u] = value


@njit(nogil=True, cache=True)
def copy(source: np.ndarray, out: np.ndarray) -> None:
    """``out[:] = source``, which takes numba longer to compile."""
    for u in range(len(out)):
        out[u] = source[u]


@njit(nogil=True, cache=True)
def reach(free: np.ndarray, min_frames: int, frames: int, cells: int, limits: np.ndarray) -> None:
    """Fill the first and last cell of every frame that lie on a path from the start to the end.

    Cell u comes after the tokens below u; those that are not free take ``min_frames`` frames each. Both
    limits never decrease.
    """
    before = np.zeros(cells, np.int64)
    after = np.zeros(cells, np.int64)
    for u in range(1, cells):
        before[u] = before[u - 1] + (0 if free[u - 1] else min_frames)
    for u in range(cells - 2, -1, -1):
        needs = u + 1 < len(free) and not free[u + 1]
        after[u] = after[u + 1] + (min_frames if needs else 0)
    first, last = 0, 0
    for t in range(frames):
        while after[first] > frames - 1 - t:
            first += 1
        while last + 1 < cells and before[last + 1] <= t:
            last += 1
        limits[0, t], limits[1, t] = first, last


@njit(nogil=True, cache=True)
def clip(limits: np.ndarray, cells: int, half: int) -> np.ndarray:
    """The limits of :func:`reach` within ``half`` cells of the straight line from the first cell to the last."""
    frames = limits.shape[1]
    inner = limits.copy()
    for t in range(frames):
        centre = t * (cells - 1) / max(1, frames - 1)
        inner[0, t] = min(limits[1, t], max(limits[0, t], np.int64(np.floor(centre)) - half))
        inner[1, t] = max(limits[0, t], min(limits[1, t], np.int64(np.ceil(centre)) + half))
    return inner


@njit(nogil=True, cache=True)
def touches(row: Row, path: np.ndarray) -> bool:
    """Whether the path runs along an edge that only the band has."""
    cell = 0  # of blanks: that after the last token
    for t in range(len(path)):
        u = path[t]
        if u >= 0:
            cell = u + 1
        at = u if u >= 0 else cell
        if (at == row.low[t] and at > row.limits[0, t]) or (at == row.high[t] and at < row.limits[1, t]):
            return True
    return False


@njit(nogil=True, cache=True)
def checkpoints(row: Row, depth: int, least: int, budget: int) -> tuple[np.ndarray, int]:
    """Room for the scores to be stored, ``depth`` of every cell, and the frames of a block."""
    frames, width = len(row.low), 1
    for t in range(frames):
        width = max(width, row.high[t] - row.low[t] + 1)
    block = block_frames(frames, width, 8 * depth, least, budget)
    return np.empty(((frames + block - 1) // block, depth, width)), block


@njit(nogil=True, cache=True)
def block_frames(frames: int, width: int, cell_bytes: int, least: int, budget: int) -> int:
    """Frames between two checkpoints: few, so that a block's back-pointers stay in the cache.

    Where the checkpoints would take more than ``budget`` bytes, as many more as that needs, until a block
    takes more than they do.
    """
    block = max(1, least)
    while block < frames:
        checkpoints = (frames // block) * width * cell_bytes
        if checkpoints <= max(budget, block * min(width, block)):
            break
        block *= 2
    return min(block, max(1, frames))


@njit(nogil=True, cache=True)
def jumps(free: np.ndarray, cells: int) -> np.ndarray:
    """For every cell the lowest that a path can come from within one frame; it never decreases."""
    jump = np.zeros(cells, np.int64)
    for u in range(2, cells):
        # CTC's last cell has no token that could be entered past another
        jump[u] = jump[u - 1] if u < len(free) and free[u - 1] else u - 1
    return jump


@njit(nogil=True, cache=True)
def cone(jump: np.ndarray, u: int, low: np.ndarray, out: np.ndarray) -> None:
    """Fill the first cells of a block's frames that cell u in its last frame can come from."""
    for t in range(len(low) - 1, -1, -1):
        out[t] = max(u, low[t])
        u = jump[u]
