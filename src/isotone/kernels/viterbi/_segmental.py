"""The compiled loops of :func:`isotone.kernels.viterbi.segmental_decode`: plain arrays, nothing is checked here."""

from __future__ import annotations

import numpy as np

from isotone.kernels._lattice import BLANK
from isotone.kernels.native import compiled


@compiled
def segmental_row(
    task: int,
    order: np.ndarray,
    log_probs: np.ndarray,
    frames: np.ndarray,
    penalty: float,
    blank: int,
    min_frames: int,
    paths: np.ndarray,
    labels: np.ndarray,
    counts: np.ndarray,
    scores: np.ndarray,
) -> None:
    """Fill the path, labels, token count and score of row ``order[task]``."""
    b = order[task]
    n = frames[b]
    if n > 0:
        scores[b], counts[b] = _segmental_row(
            log_probs[b, :n], penalty, blank, min(min_frames, n), paths[b, :n], labels[b]
        )


@compiled
def _segmental_row(
    log_probs: np.ndarray, penalty: float, blank: int, min_frames: int, path: np.ndarray, labels: np.ndarray
) -> tuple[float, int]:
    """Fill one path and its labels; return the score (NaN where the input was NaN) and the number of tokens.

    ``held[v]`` is the best score of a path whose label v has had its least frames, ``fresh[d, v]`` that of one that is
    d + 1 frames into it. There are no back-pointers: every cell carries the frame where its segment began, and every
    frame keeps its best cell.
    """
    frames, vocab = log_probs.shape
    held = np.full(vocab, -np.inf)
    fresh = np.full((min_frames - 1, vocab), -np.inf)
    began = np.zeros(vocab, np.int64)
    ready = np.empty(vocab)
    best = np.empty(frames, np.int64)
    start = np.empty(frames, np.int64)
    enter = 0.0
    ok = True
    for t in range(frames):
        row = log_probs[t]
        if min_frames == 1:
            ready[:] = enter
        else:
            ready[:] = fresh[min_frames - 2]
        for v in range(vocab):
            ok &= row[v] < np.inf
            entered = ready[v] > held[v]
            began[v] = t - min_frames + 1 if entered else began[v]
            held[v] = (ready[v] if entered else held[v]) + row[v]
        for d in range(min_frames - 2, 0, -1):
            fresh[d] = fresh[d - 1] + row
        if min_frames > 1:
            fresh[0] = enter + row
        best[t] = held.argmax()  # on ties the lowest label
        start[t] = began[best[t]]
        enter = held[best[t]] - penalty
    score = held[best[frames - 1]]
    if not ok:
        return np.nan, 0
    count = 0
    if score == -np.inf:
        return score, count
    # from the end: token numbers and labels come out reversed
    t = frames - 1
    while t >= 0:
        token = BLANK if best[t] == blank else count
        path[start[t] : t + 1] = token
        if token >= 0:
            labels[count] = best[t]
            count += 1
        t = start[t] - 1
    labels[:count] = labels[:count][::-1].copy()
    for t in range(frames):
        path[t] = path[t] if path[t] < 0 else count - 1 - path[t]
    return score, count
