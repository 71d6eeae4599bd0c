"""The compiled loops of :mod:`isotone.kernels.graphs`: plain arrays in and out, nothing is checked here."""

from __future__ import annotations

import numpy as np

from isotone.kernels.native import compiled

#: Rules for fillers, as in :data:`isotone.kernels.graphs.Fillers`.
REPEATS, ALL, CTC = 0, 1, 2

_NONE = -2


@compiled
def fill_row(
    labels: np.ndarray,
    first: np.ndarray,
    before: np.ndarray,
    costs: np.ndarray,
    rule: int,
    origin: np.ndarray,
    out_first: np.ndarray,
    out_before: np.ndarray,
    out_costs: np.ndarray,
) -> int:
    """Fill the origins and the arcs of a row with fillers; return its number of labels."""
    count = len(labels)
    repeated = np.zeros(count + 1, np.bool_)
    for u in range(count):
        for k in range(first[u], first[u + 1]):
            if before[k] >= 0 and labels[before[k]] == labels[u]:
                repeated[before[k]] = True
    # of tokens and the start, which comes first: their new number, and that of the filler behind them
    own, filler = np.full(count + 1, -1, np.int64), np.full(count + 1, _NONE, np.int64)
    size = arcs = 0
    for u in range(-1, count + 1):
        if u >= 0:
            for k in range(first[u], first[u + 1]):
                p = before[k]
                equal = p >= 0 and u < count and labels[p] == labels[u]
                if not (equal and rule == CTC) and not (p < 0 and u == count):
                    out_before[arcs], out_costs[arcs] = own[p + 1], costs[k]
                    arcs += 1
                if filler[p + 1] != _NONE and (equal or rule != REPEATS):
                    out_before[arcs], out_costs[arcs] = filler[p + 1], costs[k]
                    arcs += 1
            out_first[size + 1] = arcs
        if u == count:
            break
        if u >= 0:
            own[u + 1], origin[size] = size, u
            size += 1
        if rule != REPEATS or (u >= 0 and repeated[u]):
            filler[u + 1], origin[size] = size, -1
            out_before[arcs], out_costs[arcs] = own[u + 1], 0.0
            arcs += 1
            size += 1
            out_first[size] = arcs
    return size


@compiled
def near_row(
    origin: np.ndarray, first: np.ndarray, before: np.ndarray, path: np.ndarray, tokens: int, out: np.ndarray
) -> None:
    """Fill the first and last frame of every label, see :func:`isotone.kernels.graphs.near_frames`.

    ``origin`` has the tokens of the labels, -1 for fillers, and ``path`` those of the frames, all below ``tokens``.
    """
    count, frames = len(origin), len(path)
    begin, end = np.full(tokens, -1, np.int64), np.full(tokens, -1, np.int64)
    for t in range(frames):
        if path[t] >= 0:
            begin[path[t]] = begin[path[t]] if begin[path[t]] >= 0 else t
            end[path[t]] = t
    out[:, 0], out[:, 1] = 0, frames
    for u in range(count):
        for k in range(first[u], first[u + 1]):
            p = before[k]
            if p >= 0:
                known = origin[p] >= 0 and begin[origin[p]] >= 0
                out[u, 0] = max(out[u, 0], begin[origin[p]] if known else out[p, 0])
    for u in range(count, -1, -1):
        known = u < count and origin[u] >= 0 and end[origin[u]] >= 0
        last = end[origin[u]] if known else out[u, 1] if u < count else frames
        for k in range(first[u], first[u + 1]):
            if before[k] >= 0:
                out[before[k], 1] = min(out[before[k], 1], last)
