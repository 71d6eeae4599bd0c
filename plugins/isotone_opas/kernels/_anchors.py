"""The compiled loops of :mod:`isotone_opas.align`: plain arrays in and out, nothing is checked here."""

from __future__ import annotations

import numpy as np

from isotone.kernels.native import compiled

# back-pointers: stay (the token lies further left), take this frame, or leave the token out
_STAY, _TAKE, _SKIP = 0, 1, 2


@compiled
def select_row(
    scores: np.ndarray,
    row: np.ndarray,
    bonus: np.ndarray,
    optional: np.ndarray,
    spacing: int,
    slope: float,
    block: int,
    anchors: np.ndarray,
) -> float:
    """Select a frame for every token, in order, with the best sum: the anchors of one utterance, and the sum.

    ``best[t]`` is the best sum of the tokens so far, all of them selected before frame t. Only the values at the
    beginning of every block of tokens are kept; back-pointers are computed again, block by block, from the last one on.
    So memory grows with the square root of the tokens.

    Args:
        scores: ``(L, n)`` float64, scores of labels in frames.
        row: ``(m,)``, the label of every token.
        bonus: ``(m,)``, added to the token's score.
        optional: ``(m,)`` bool, tokens that may be left out.
        spacing: Least frames from one selected frame to the next.
        slope: Cost of the distance from the diagonal, as a share of the utterance.
        block: Tokens per block.
        anchors: ``(m,)`` int64, written: the selected frames, -1 for tokens left out.
    """
    m, n = len(row), scores.shape[1]
    count = (m + block - 1) // block
    starts = np.empty((count, n + 1))
    back = np.empty((block, n + 1), np.uint8)
    best, following = np.zeros(n + 1), np.empty(n + 1)
    for j in range(m):
        if j % block == 0:
            starts[j // block] = best
        _advance(
            scores[row[j]],
            bonus[j],
            optional[j],
            spacing,
            slope,
            (j + 0.5) / m,
            best,
            following,
            back[j % block],
        )
        best, following = following, best
    value = float(best[n])
    t = n
    for b in range(count - 1, -1, -1):
        first, last = b * block, min(m, (b + 1) * block)
        if b < count - 1:  # the last block's back-pointers are still there
            best[:] = starts[b]
            for j in range(first, last):
                _advance(
                    scores[row[j]], bonus[j], optional[j], spacing, slope, (j + 0.5) / m, best, following,
                    back[j - first],
                )  # fmt: skip
                best, following = following, best
        for j in range(last - 1, first - 1, -1):
            while back[j - first, t] == _STAY and t > 0:
                t -= 1
            anchors[j] = -1
            if back[j - first, t] == _TAKE:
                anchors[j] = t - 1
                t = max(0, t - spacing)
    return value


@compiled
def _advance(
    score: np.ndarray,
    bonus: float,
    optional: bool,
    spacing: int,
    slope: float,
    middle: float,
    before: np.ndarray,
    after: np.ndarray,
    back: np.ndarray,
) -> None:
    """Add one token: ``after`` and its back-pointers, from the best sums ``before`` it."""
    n = len(score)
    gained = score
    if slope > 0:
        gained = np.empty(n)
        for t in range(n):
            gained[t] = score[t] - slope * abs((t + 0.5) / n - middle)
    running, code = (before[0], _SKIP) if optional else (-np.inf, _STAY)
    after[0], back[0] = running, code
    for t in range(1, n + 1):
        # the token before lies at least `spacing` frames to the left; there is none before the first
        taken = before[max(0, t - spacing)] + gained[t - 1] + bonus
        code = _STAY
        if taken >= running and taken > -np.inf:  # ties go to the right
            running, code = taken, _TAKE
        if optional and before[t] > running:
            running, code = before[t], _SKIP
        after[t], back[t] = running, code


@compiled
def cut_row(
    scores: np.ndarray,
    row: np.ndarray,
    anchors: np.ndarray,
    outside: np.ndarray,
    least: int,
    fill: bool,
    path: np.ndarray,
) -> None:
    """Give the frames between two selected ones to their tokens, cut where that has the best sum.

    Args:
        scores: ``(L, n)``, scores of labels in frames.
        row: ``(m,)``, the label of every token.
        anchors: ``(m,)``, selected frames, -1 for tokens left out; at least ``least`` apart.
        outside: ``(n,)``, scores of frames before the first token and after the last that are no token's.
        least: Least frames of a token, where there are so many.
        fill: Give those frames to the first and the last token all the same.
        path: ``(n,)`` int64, -1 in every frame; written: the token of every frame.
    """
    n = scores.shape[1]
    last, start = -1, 0
    for j in range(len(row)):
        here = anchors[j]
        if here < 0:
            continue
        if last < 0:
            start = 0 if fill else _first(scores[row[j]], outside, here)
        else:
            border = _border(scores[row[last]], scores[row[j]], anchors[last], here, start + least)
            path[start:border] = last
            start = border
        last = j
    if last >= 0:
        end = n if fill else _end(scores[row[last]], outside, anchors[last], min(n, start + least))
        path[start:end] = last


@compiled
def _border(before: np.ndarray, after: np.ndarray, left: int, right: int, least: int) -> int:
    """The first frame of the token after: the best cut between two selected frames, not before ``least``."""
    gained, best, border = 0.0, 0.0, left + 1
    for t in range(left + 1, right):
        gained += before[t] - after[t]
        if gained > best or t + 1 <= least:
            best, border = gained, t + 1
    return border


@compiled
def _first(token: np.ndarray, outside: np.ndarray, anchor: int) -> int:
    """The first frame of the first token."""
    gained, best, first = 0.0, 0.0, anchor
    for t in range(anchor - 1, -1, -1):
        gained += token[t] - outside[t]
        if gained > best:
            best, first = gained, t
    return first


@compiled
def _end(token: np.ndarray, outside: np.ndarray, anchor: int, least: int) -> int:
    """One past the last frame of the last token, not before ``least``."""
    gained, best, end = 0.0, 0.0, anchor + 1
    for t in range(anchor + 1, len(token)):
        gained += token[t] - outside[t]
        if gained > best or t + 1 <= least:
            best, end = gained, t + 1
    return end
