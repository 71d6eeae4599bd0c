"""The compiled loops of :mod:`isotone_opas.align`: plain arrays in and out, nothing is checked here."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isotone.kernels.native import compiled


class Guide(NamedTuple):
    """The frames in which another head allows every token.

    Attributes:
        near: ``(n, 2)`` int64, the first and the last token that each frame may have; ``(0, 2)``: all may.
        cost: Nats per frame of the others.
    """

    near: np.ndarray
    cost: float


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
    guide: Guide,
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
        guide: Cost of selected frames in which the guide does not allow the token.
        block: Tokens per block.
        anchors: ``(m,)`` int64, written: the selected frames, -1 for tokens left out.
    """
    m, n = len(row), scores.shape[1]
    count = (m + block - 1) // block
    starts = np.empty((count, n + 1))
    back = np.empty((block, n + 1), np.uint8)
    best, following = np.zeros(n + 1), np.empty(n + 1)
    costs, gained = slope > 0 or len(guide.near) > 0, np.empty(n)
    for j in range(m):
        if j % block == 0:
            starts[j // block] = best
        score = _less_costs(scores[row[j]], slope, j, m, guide, gained) if costs else scores[row[j]]
        _advance(score, bonus[j], optional[j], spacing, best, following, back[j % block])
        best, following = following, best
    value = float(best[n])
    t = n
    for b in range(count - 1, -1, -1):
        first, last = b * block, min(m, (b + 1) * block)
        if b < count - 1:  # the last block's back-pointers are still there
            best[:] = starts[b]
            for j in range(first, last):
                score = _less_costs(scores[row[j]], slope, j, m, guide, gained) if costs else scores[row[j]]
                _advance(score, bonus[j], optional[j], spacing, best, following, back[j - first])
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
def _less_costs(
    score: np.ndarray, slope: float, j: int, m: int, guide: Guide, gained: np.ndarray
) -> np.ndarray:
    """Fill ``gained`` with the scores of token j of m less the costs of every frame."""
    n = len(score)
    for t in range(n):
        gained[t] = score[t] - _far(guide, t, j) - slope * abs((t + 0.5) / n - (j + 0.5) / m)
    return gained


@compiled
def _far(guide: Guide, t: int, j: int) -> float:
    """The cost of token j in frame t."""
    near = guide.near
    if len(near) == 0 or near[t, 0] <= j <= near[t, 1]:
        return 0.0
    return guide.cost


@compiled
def _advance(
    score: np.ndarray,
    bonus: float,
    optional: bool,
    spacing: int,
    before: np.ndarray,
    after: np.ndarray,
    back: np.ndarray,
) -> None:
    """Add one token: ``after`` and its back-pointers, from the best sums ``before`` it."""
    n = len(score)
    running = before[0] if optional else -np.inf
    after[0], back[0] = running, _SKIP if optional else _STAY
    # the token before lies at least `spacing` frames to the left; there is none before the first
    first = min(spacing, n + 1)
    for t in range(1, first):
        running, back[t] = _better(before[0] + score[t - 1] + bonus, running)
        if optional and before[t] > running:
            running, back[t] = before[t], _SKIP
        after[t] = running
    score, here, after, back = score[first - 1 :], before[first:], after[first:], back[first:]
    if optional:
        for i in range(len(after)):
            running, back[i] = _better(before[i] + score[i] + bonus, running)
            if here[i] > running:
                running, back[i] = here[i], _SKIP
            after[i] = running
    else:
        for i in range(len(after)):
            running, back[i] = _better(before[i] + score[i] + bonus, running)
            after[i] = running


@compiled
def _better(taken: float, running: float) -> tuple[float, int]:
    """The larger of two sums, and which it is; ties go to the right."""
    take = taken >= running
    return taken if take else running, _TAKE if take else _STAY


@compiled
def cut_row(
    scores: np.ndarray,
    row: np.ndarray,
    anchors: np.ndarray,
    outside: np.ndarray,
    least: int,
    fill: bool,
    guide: Guide,
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
        guide: Cost of frames in which the guide does not allow their token.
        path: ``(n,)`` int64, -1 in every frame; written: the token of every frame.
    """
    n = scores.shape[1]
    last, start = -1, 0
    for j in range(len(row)):
        here = anchors[j]
        if here < 0:
            continue
        if last < 0:
            start = 0 if fill else _first(scores[row[j]], outside, here, guide, j)
        else:
            border = _border(scores, row, anchors, last, j, start + least, guide)
            path[start:border] = last
            start = border
        last = j
    if last >= 0:
        least_end = min(n, start + least)
        end = n if fill else _end(scores[row[last]], outside, anchors[last], least_end, guide, last)
        path[start:end] = last


@compiled
def _border(
    scores: np.ndarray, row: np.ndarray, anchors: np.ndarray, i: int, j: int, least: int, guide: Guide
) -> int:
    """The first frame of token j after i: the best cut between their selected frames, not before ``least``."""
    before, after, left = scores[row[i]], scores[row[j]], anchors[i]
    gained, best, border = 0.0, 0.0, left + 1
    for t in range(left + 1, anchors[j]):
        gained += before[t] - _far(guide, t, i) - after[t] + _far(guide, t, j)
        if gained > best or t + 1 <= least:
            best, border = gained, t + 1
    return border


@compiled
def _first(token: np.ndarray, outside: np.ndarray, anchor: int, guide: Guide, j: int) -> int:
    """The first frame of the first token, j."""
    gained, best, first = 0.0, 0.0, anchor
    for t in range(anchor - 1, -1, -1):
        gained += token[t] - _far(guide, t, j) - outside[t]
        if gained > best:
            best, first = gained, t
    return first


@compiled
def _end(token: np.ndarray, outside: np.ndarray, anchor: int, least: int, guide: Guide, j: int) -> int:
    """One past the last frame of the last token, j, not before ``least``."""
    gained, best, end = 0.0, 0.0, anchor + 1
    for t in range(anchor + 1, len(token)):
        gained += token[t] - _far(guide, t, j) - outside[t]
        if gained > best or t + 1 <= least:
            best, end = gained, t + 1
    return end
