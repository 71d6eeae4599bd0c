"""A row of a lattice for the compiled loops: its symbols, the cells that paths can reach, bands and blocks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isotone.kernels.native import compiled

#: :attr:`Row.near` of rows whose tokens may be anywhere.
NOWHERE = np.empty((0, 2), np.int64)

#: Numbers in a path for frames without a token: blank, and past the end.
BLANK, PADDING = -1, -2

#: Cells that are computed together: their scores stay in the first-level cache.
TILE = 512


class Row(NamedTuple):
    """One utterance: its scores, its labels and what may follow what, the cells of every frame.

    A cell is a token. In lattices with a blank it is a token and the blank before it; one cell more, at the end, has a
    blank only.
    """

    log_probs: np.ndarray  # (T, V)
    symbols: np.ndarray  # (K,) distinct labels, the blank first if there is one
    symbol_of: np.ndarray  # (cells,) index of each cell's label among them, the blank for CTC's last cell
    labels: np.ndarray  # (U,)
    free: np.ndarray  # (U,) bool, optional tokens
    after_free: np.ndarray  # tokens that follow an optional one, ascending
    floor: np.ndarray  # (cells,) 0 where a token may follow its neighbour directly, -inf where it may not
    low: np.ndarray  # (T,) first cell of every frame
    high: np.ndarray  # (T,) last
    limits: np.ndarray  # (2, T) both, if there were no band
    near: np.ndarray  # (T, 2) first and last cell without a cost; (0, 2) where no cell has one
    far_cost: float  # nats per frame of the others


@compiled
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
    """Set up a row of T > 0 frames; a blank or band below 0 means none."""
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


@compiled
def symbol_table(labels: np.ndarray, blank: int, vocab: int) -> tuple[np.ndarray, np.ndarray]:
    """Find the distinct labels of a row, and for each token the index of its label among them.

    The first symbol is the blank, if there is one (``blank >= 0``). One more cell, after the last token, reads the
    first symbol. Indices are unsigned: numba then does not check for those that count from the end.
    """
    index_of = np.full(vocab, -1, np.int64)
    symbols = np.zeros(min(len(labels), vocab) + 1, np.uint32)
    symbol_of = np.zeros(len(labels) + 1, np.uint32)
    count = 0
    if blank >= 0:
        symbols[0] = blank
        index_of[blank] = 0
        count = 1
    for u in range(len(labels)):
        if index_of[labels[u]] < 0:
            index_of[labels[u]] = count
            symbols[count] = labels[u]
            count += 1
        symbol_of[u] = index_of[labels[u]]
    return symbols[:count], symbol_of


@compiled
def emit(row: np.ndarray, symbols: np.ndarray, out: np.ndarray) -> bool:
    """Fill the scores of the symbols in one frame; return whether none is NaN or +inf."""
    ok = True
    for k in range(len(symbols)):
        out[k] = row[symbols[k]]
        ok &= out[k] < np.inf
    return ok


@compiled
def gather(scores: np.ndarray, index: np.ndarray, out: np.ndarray) -> None:
    """Set ``out[u] = scores[index[u]]``."""
    for u in range(len(index)):
        out[u] = scores[index[u]]


@compiled
def charge(row: Row, t: int, first: int, score: np.ndarray) -> None:
    """Subtract in frame t, from the scores of the cells from ``first`` on, the cost of those outside ``near``."""
    if len(row.near) == 0:
        return
    for u in range(min(len(score), row.near[t, 0] - first)):
        score[u] -= row.far_cost
    for u in range(max(0, row.near[t, 1] + 1 - first), len(score)):
        score[u] -= row.far_cost


@compiled
def fill(out: np.ndarray, value: float) -> None:
    """Set ``out[:] = value``, which numba takes longer to compile."""
    for u in range(len(out)):
        out[u] = value


@compiled
def copy(source: np.ndarray, out: np.ndarray) -> None:
    """Set ``out[:] = source``, which numba takes longer to compile."""
    for u in range(len(out)):
        out[u] = source[u]


@compiled
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
        # the frames left must do for the tokens after the first cell, those so far for the tokens before the last
        while after[first] > frames - 1 - t:
            first += 1
        while last + 1 < cells and before[last + 1] <= t:
            last += 1
        limits[0, t], limits[1, t] = first, last


@compiled
def clip(limits: np.ndarray, cells: int, half: int) -> np.ndarray:
    """Clip the limits of :func:`reach` to ``half`` cells around the straight line from the first cell to the last."""
    frames = limits.shape[1]
    inner = limits.copy()
    for t in range(frames):
        centre = t * (cells - 1) / max(1, frames - 1)
        inner[0, t] = min(limits[1, t], max(limits[0, t], np.int64(np.floor(centre)) - half))
        inner[1, t] = max(limits[0, t], min(limits[1, t], np.int64(np.ceil(centre)) + half))
    return inner


@compiled
def touches(row: Row, path: np.ndarray) -> bool:
    """Return whether the path runs along an edge of the band that is no limit of the lattice."""
    cell = 0  # of blanks: that after the last token
    for t in range(len(path)):
        u = path[t]
        if u >= 0:
            cell = u + 1
        at = u if u >= 0 else cell
        if (at == row.low[t] and at > row.limits[0, t]) or (at == row.high[t] and at < row.limits[1, t]):
            return True
    return False


@compiled
def checkpoints(row: Row, depth: int, least: int, budget: int) -> tuple[np.ndarray, int]:
    """Allocate the stored rows of scores, ``depth`` numbers per cell, and find the frames per block."""
    frames, width = len(row.low), 1
    for t in range(frames):
        width = max(width, row.high[t] - row.low[t] + 1)
    block = block_frames(frames, width, 8 * depth, least, budget)
    return np.empty(((frames + block - 1) // block, depth, width)), block


@compiled
def block_frames(frames: int, width: int, cell_bytes: int, least: int, budget: int) -> int:
    """Find the frames between two stored rows: few, so that a block's back-pointers stay in the cache.

    Where the stored rows would take more than ``budget`` bytes the blocks are longer, until one block takes more memory
    than the stored rows.
    """
    block = max(1, least)
    while block < frames:
        checkpoints = (frames // block) * width * cell_bytes
        if checkpoints <= max(budget, block * min(width, block)):
            break
        block *= 2
    return min(block, max(1, frames))


@compiled
def jumps(free: np.ndarray, cells: int) -> np.ndarray:
    """Find for each cell the lowest one that a path can come from within one frame; these never decrease."""
    jump = np.zeros(cells, np.int64)
    for u in range(2, cells):
        # CTC's last cell has no token that could be entered past another
        jump[u] = jump[u - 1] if u < len(free) and free[u - 1] else u - 1
    return jump


@compiled
def cone(jump: np.ndarray, u: int, low: np.ndarray, out: np.ndarray) -> None:
    """Fill the first cells of a block's frames that cell u in its last frame can come from."""
    for t in range(len(low) - 1, -1, -1):
        out[t] = max(u, low[t])
        u = jump[u]
