"""What the compiled loops share: the symbols of a row, the cells that paths can reach, bands and blocks."""

from __future__ import annotations

import numpy as np
from numba import njit

#: Numbers in a path that are no tokens.
BLANK, PADDING = -1, -2

#: The label of a token that stands for any speech: see :mod:`isotone.kernels.viterbi`.
STAR = -1

#: Cells that are computed together: their scores stay in the first-level cache.
TILE = 512


@njit(nogil=True, cache=True)
def symbol_table(labels: np.ndarray, blank: int, vocab: int) -> tuple[np.ndarray, np.ndarray, int]:
    """The distinct labels of a row, for every token the place of its label among them, and the star's place.

    The first symbol is the blank, if there is one (``blank >= 0``). The star's label reads 0; its place is -1 if
    there is none. (Unsigned numbers spare the loops a check for indices that count from the end.) One
    more cell, after the last token, reads the first symbol.
    """
    place = np.full(vocab + 1, -1, np.int64)
    symbols = np.zeros(min(len(labels), vocab + 1) + 1, np.uint32)
    symbol_of = np.zeros(len(labels) + 1, np.uint32)
    count = 0
    if blank >= 0:
        symbols[0] = blank
        place[blank] = 0
        count = 1
    for u in range(len(labels)):
        at = labels[u] if labels[u] != STAR else vocab
        if place[at] < 0:
            place[at] = count
            symbols[count] = labels[u] if labels[u] != STAR else 0
            count += 1
        symbol_of[u] = place[at]
    return symbols[:count], symbol_of, place[vocab]


@njit(nogil=True, cache=True)
def emit(row: np.ndarray, symbols: np.ndarray, star: int, star_cost: float, out: np.ndarray) -> bool:
    """Fill the scores of the symbols in one frame; whether none is NaN or +inf."""
    ok = True
    for k in range(len(symbols)):
        out[k] = row[symbols[k]]
        ok &= out[k] < np.inf
    if star >= 0:
        best = np.float64(row[0])
        for v in range(len(row)):
            ok &= row[v] < np.inf
            best = max(best, np.float64(row[v]))
        out[star] = best - star_cost
    return ok


@njit(nogil=True, cache=True)
def gather(scores: np.ndarray, index: np.ndarray, out: np.ndarray) -> None:
    """``out[u] = scores[index[u]]``."""
    for u in range(len(index)):
        out[u] = scores[index[u]]


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
def may_follow(labels: np.ndarray, u: int, w: int) -> bool:
    """Whether token u may follow token w without a blank between."""
    return labels[u] != labels[w] or labels[u] == STAR


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
def widest(limits: np.ndarray) -> int:
    """Cells of the widest frame."""
    width = 1
    for t in range(limits.shape[1]):
        width = max(width, limits[1, t] - limits[0, t] + 1)
    return width


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
