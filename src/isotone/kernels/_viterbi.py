"""The compiled loops of :mod:`isotone.kernels.viterbi`: plain arrays in and out, nothing is checked here."""

from __future__ import annotations

import numpy as np
from numba import njit

#: Numbers in a path that are no tokens.
BLANK, PADDING = -1, -2


@njit(nogil=True, cache=True)
def ctc_rows(
    rows: np.ndarray,
    log_probs: np.ndarray,
    labels: np.ndarray,
    frames: np.ndarray,
    tokens: np.ndarray,
    blank: int,
    paths: np.ndarray,
    scores: np.ndarray,
) -> None:
    """Fill the paths and scores of some rows."""
    for b in rows:
        n = frames[b]
        scores[b] = _ctc_row(log_probs[b, :n], labels[b, : tokens[b]], blank, paths[b, :n])


@njit(nogil=True, cache=True)
def _ctc_row(log_probs: np.ndarray, labels: np.ndarray, blank: int, path: np.ndarray) -> float:
    """Fill one path; the score, NaN where the input was NaN.

    Token u and the blank before it make one cell, so a frame is one pass over U + 1 cells. The last cell's
    token does not exist: it reads the blank's score and nothing follows it. One byte a cell keeps where it
    came from: bits 0-1 for the token (0 itself, 1 its blank, 2 the token before), bit 2 for the blank (0
    itself, 1 the token before).
    """
    frames, count = len(log_probs), len(labels)
    label = np.full(count + 1, blank)
    label[:count] = labels
    floor = np.zeros(count + 1)  # 0 where a token may follow its neighbour directly, -inf where it may not
    floor[0] = -np.inf
    for u in range(1, count):
        if label[u] == label[u - 1]:
            floor[u] = -np.inf
    on_token = np.full(count + 1, -np.inf)
    on_blank = np.full(count + 1, -np.inf)
    on_blank[0] = 0.0  # before the first frame
    enter = np.empty(count + 1)
    score = np.empty(count + 1)
    back = np.empty((frames, count + 1), np.uint8)
    ok = True
    for t in range(frames):
        row = log_probs[t]
        # cells that can be reached from the start, and from which the end can be reached
        low, high = max(0, count - frames + t), min(count, t)
        n = high + 1 - low
        # once above 0, low rises by 1 a frame: the cell below it is as new as the others
        enter[0] = on_token[low - 1] if low > 0 else -np.inf
        enter[1:n] = on_token[low:high]
        ok &= _gather(row, label[low : high + 1], score[:n]) and row[blank] < np.inf
        _ctc_step(
            score[:n], row[blank], floor[low : high + 1], enter[:n],
            on_token[low : high + 1], on_blank[low : high + 1], back[t, low : high + 1],
        )  # fmt: skip
    blanks = count == 0 or not on_token[count - 1] > on_blank[count]
    u = count if blanks else count - 1
    total = on_blank[u] if blanks else on_token[u]
    if not ok:
        return np.nan
    if total > -np.inf:
        _trace_ctc(back, u, blanks, path)
    return total


@njit(nogil=True, cache=True)
def _trace_ctc(back: np.ndarray, u: int, blanks: bool, path: np.ndarray) -> None:
    for t in range(len(path) - 1, -1, -1):
        path[t] = BLANK if blanks else u
        came = back[t, u]
        if blanks:
            blanks = came < 4
            u -= not blanks
        else:
            came &= 3
            blanks = came == 1
            u -= came == 2


@njit(nogil=True, cache=True)
def _ctc_step(
    score: np.ndarray,
    blank_score: float,
    floor: np.ndarray,
    enter: np.ndarray,
    on_token: np.ndarray,
    on_blank: np.ndarray,
    back: np.ndarray,
) -> None:
    for u in range(len(score)):
        token, resting, before = on_token[u], on_blank[u], enter[u]
        direct = before + floor[u]
        left = before > resting
        on_blank[u] = (before if left else resting) + blank_score
        from_blank = resting > token
        best = resting if from_blank else token
        skipped = direct > best
        on_token[u] = (direct if skipped else best) + score[u]
        back[u] = (2 if skipped else (1 if from_blank else 0)) + (4 if left else 0)


@njit(nogil=True, cache=True)
def monotone_rows(
    rows: np.ndarray,
    log_probs: np.ndarray,
    labels: np.ndarray,
    frames: np.ndarray,
    tokens: np.ndarray,
    free: np.ndarray,
    min_frames: int,
    paths: np.ndarray,
    scores: np.ndarray,
) -> None:
    """Fill the paths and scores of some rows."""
    for b in rows:
        n, m = frames[b], tokens[b]
        scores[b] = _monotone_row(log_probs[b, :n], labels[b, :m], free[b, :m], min_frames, paths[b, :n])


@njit(nogil=True, cache=True)
def _monotone_row(
    log_probs: np.ndarray, labels: np.ndarray, free: np.ndarray, min_frames: int, path: np.ndarray
) -> float:
    """Fill one path; the score, NaN where the input was NaN.

    ``held[u]`` is the best score of a path whose token u has had its least frames, ``fresh[d, u]`` of
    one that is d + 1 frames into it. One byte a cell: bit 0, the token has just had its least frames; bit 1,
    whoever enters the token in this frame leaves out the one before it.
    """
    frames, count = len(log_probs), len(labels)
    before = np.zeros(count, np.int64)  # frames that the required tokens before and after a token need
    after = np.zeros(count, np.int64)
    for u in range(1, count):
        before[u] = before[u - 1] + (0 if free[u - 1] else min_frames)
        after[count - 1 - u] = after[count - u] + (0 if free[count - u] else min_frames)
    held = np.full(count, -np.inf)
    fresh = np.full((min_frames - 1, count), -np.inf)
    enter = np.empty(count)
    passed = np.zeros(count, np.uint8)
    score = np.empty(count)
    back = np.empty((frames, count), np.uint8)
    any_free = free.any()
    low = high = 0
    ok = True
    for t in range(frames):
        first = low
        while after[low] > frames - 1 - t:
            low += 1
        while high < count and before[high] <= t:
            high += 1
        enter[first] = 0.0 if t == 0 else -np.inf
        enter[first + 1 : high] = held[first : high - 1]
        if any_free:
            for u in range(first + 1, high):
                passes = free[u - 1] and enter[u - 1] > enter[u]
                enter[u] = enter[u - 1] if passes else enter[u]
                passed[u] = 2 if passes else 0
            back[t, first:low] = passed[first:low]
        ok &= _gather(log_probs[t], labels[low:high], score[low:high])
        ready = enter if min_frames == 1 else fresh[min_frames - 2]
        _stay_or_enter(held[low:high], ready[low:high], score[low:high], passed[low:high], back[t, low:high])
        for d in range(min_frames - 2, -1, -1):
            fresh[d, low:high] = (fresh[d - 1] if d > 0 else enter)[low:high] + score[low:high]
    if not ok:
        return np.nan
    end = u = count - 1
    while free[u] and u > 0:
        u -= 1
        end = u if held[u] > held[end] else end
    if held[end] > -np.inf:
        _trace_monotone(back, end, min_frames, path)
    return held[end]


@njit(nogil=True, cache=True)
def _gather(row: np.ndarray, labels: np.ndarray, out: np.ndarray) -> bool:
    ok = True
    for u in range(len(labels)):
        score = row[labels[u]]
        ok &= score < np.inf
        out[u] = score
    return ok


@njit(nogil=True, cache=True)
def _stay_or_enter(
    held: np.ndarray, ready: np.ndarray, score: np.ndarray, passed: np.ndarray, back: np.ndarray
) -> None:
    for u in range(len(held)):
        stay, come = held[u], ready[u]
        entered = come > stay
        held[u] = (come if entered else stay) + score[u]
        back[u] = passed[u] + (1 if entered else 0)


@njit(nogil=True, cache=True)
def _trace_monotone(back: np.ndarray, u: int, min_frames: int, path: np.ndarray) -> None:
    t = len(path) - 1
    while t >= 0:
        path[t] = u
        if back[t, u] & 1:
            path[t - min_frames + 1 : t] = u
            t -= min_frames - 1
            while back[t, u] & 2:
                u -= 1
            u -= 1
        t -= 1


@njit(nogil=True, cache=True)
def segmental_rows(
    rows: np.ndarray,
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
    """Fill the paths, labels, token counts and scores of some rows."""
    for b in rows:
        n = frames[b]
        if n > 0:
            scores[b], counts[b] = _segmental_row(
                log_probs[b, :n], penalty, blank, min(min_frames, n), paths[b, :n], labels[b]
            )


@njit(nogil=True, cache=True)
def _segmental_row(
    log_probs: np.ndarray, penalty: float, blank: int, min_frames: int, path: np.ndarray, labels: np.ndarray
) -> tuple[float, int]:
    """Fill one path and its labels; the score (NaN where the input was NaN) and the number of tokens.

    ``held`` and ``fresh`` as in :func:`_monotone_row`, over the vocabulary. Instead of back-pointers of
    every cell, every cell carries the frame its segment began at, and every frame keeps its best cell.
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
        best[t] = held.argmax()
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
