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


class Work(NamedTuple):
    """Arguments of :func:`select_row` that do not change; ``free`` are the numbers of the optional tokens."""

    scores: np.ndarray
    row: np.ndarray
    bonus: np.ndarray
    free: np.ndarray
    slope: float
    guide: Guide


# back-pointers: stay (the token lies further left), take this frame, or leave the token out
_STAY, _TAKE, _SKIP = 0, 1, 2


@compiled
def take_row(
    b: int, log_probs: np.ndarray, found: np.ndarray, frames: np.ndarray, scores: np.ndarray
) -> None:
    """Fill row b of ``scores (B, T, L)`` with the scores ``(B, T, V)`` of the labels that were found."""
    for t in range(frames[b]):
        for v in range(len(found)):
            scores[b, t, v] = log_probs[b, t, found[v]]


@compiled
def average_row(b: int, width: int, scores: np.ndarray, frames: np.ndarray, averaged: np.ndarray) -> None:
    """Fill row b of ``averaged (B, T, L)`` with means of scores over the frames at most ``width`` away.

    Weights are a triangle, so that of equal means that of the frame itself counts.
    """
    n, size = frames[b], scores.shape[2]
    for t in range(n):
        mean, total = averaged[b, t], 0
        for s in range(max(0, t - width), min(n, t + width + 1)):
            weight, score = width + 1 - abs(s - t), scores[b, s]
            total += weight
            for v in range(size):
                mean[v] += weight * score[v]
        for v in range(size):
            mean[v] /= total


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

    ``best[t, j + 1]`` is the best sum of tokens 0 to j, all of them selected before frame t. Of it the last ``spacing``
    rows are kept, and those before every block of frames; back-pointers are computed again, block by block, from the
    last one on. So memory grows with the square root of the frames.

    Args:
        scores: ``(n, L)`` float64, scores of labels in frames.
        row: ``(m,)``, the label of every token.
        bonus: ``(m,)``, added to the token's score.
        optional: ``(m,)`` bool, tokens that may be left out.
        spacing: Least frames from one selected frame to the next.
        slope: Cost of the distance from the diagonal, as a share of the utterance.
        guide: Cost of selected frames in which the guide does not allow the token.
        block: Frames per block.
        anchors: ``(m,)`` int64, written: the selected frames, -1 for tokens left out.
    """
    m, n = len(row), scores.shape[0]
    work = Work(scores, row, bonus, np.flatnonzero(optional), slope, guide)
    best, count = np.full((spacing, m + 1), -np.inf), (n + block - 1) // block
    best[:, 0] = 0.0
    for u in work.free:
        best[:, u + 1] = best[:, u]
    kept, back = np.empty((count, spacing, m + 1)), np.empty((block, m), np.uint8)
    for b in range(count):
        kept[b] = best
        _advance(work, b * block, min(n, (b + 1) * block), best, back)
    value = float(best[n % spacing, m])
    j, t, known = m - 1, n, count - 1
    while j >= 0 and t > 0:
        if (t - 1) // block < known:  # the last block's back-pointers are still there
            known = (t - 1) // block
            best[:] = kept[known]
            _advance(work, known * block, (known + 1) * block, best, back)
        code = back[(t - 1) % block, j]
        if code == _STAY:
            t -= 1
            continue
        anchors[j] = t - 1 if code == _TAKE else -1
        t = max(0, t - spacing) if code == _TAKE else t
        j -= 1
    anchors[: j + 1] = -1
    return value


@compiled
def _advance(work: Work, first: int, end: int, best: np.ndarray, back: np.ndarray) -> None:
    """Add the frames from first to end: the last rows of ``best``, and the back-pointers."""
    m, spacing = len(work.row), len(best)
    gained, row = np.empty(m), np.empty(m + 1)
    for t in range(first, end):
        _gain(work, t, gained)
        # the token before lies at least `spacing` frames to the left; there is none before the first
        stay, ready, codes = best[t % spacing], best[(t + 1) % spacing], back[t - first]
        row[0] = 0.0
        for j in range(m):
            taken = ready[j] + gained[j]
            take = taken >= stay[j + 1]  # ties go to the right
            row[j + 1] = taken if take else stay[j + 1]
            codes[j] = _TAKE if take else _STAY
        for u in work.free:
            if row[u] > row[u + 1]:
                row[u + 1], codes[u] = row[u], _SKIP
        ready[:] = row


@compiled
def _gain(work: Work, t: int, gained: np.ndarray) -> None:
    """Fill what every token gains by frame t, costs subtracted."""
    score, row, bonus, m, n = work.scores[t], work.row, work.bonus, len(work.row), len(work.scores)
    for j in range(m):
        gained[j] = score[row[j]] + bonus[j]
    if work.slope > 0:
        for j in range(m):
            gained[j] -= work.slope * abs((t + 0.5) / n - (j + 0.5) / m)
    near = work.guide.near
    if len(near) > 0:
        for j in range(m):
            gained[j] -= 0.0 if near[t, 0] <= j <= near[t, 1] else work.guide.cost


@compiled
def _far(guide: Guide, t: int, j: int) -> float:
    """The cost of token j in frame t."""
    near = guide.near
    if len(near) == 0 or near[t, 0] <= j <= near[t, 1]:
        return 0.0
    return guide.cost


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
        scores: ``(n, L)``, scores of labels in frames.
        row: ``(m,)``, the label of every token.
        anchors: ``(m,)``, selected frames, -1 for tokens left out; at least ``least`` apart.
        outside: ``(n,)``, scores of frames before the first token and after the last that are no token's.
        least: Least frames of a token, where there are so many.
        fill: Give those frames to the first and the last token all the same.
        guide: Cost of frames in which the guide does not allow their token.
        path: ``(n,)`` int64, -1 in every frame; written: the token of every frame.
    """
    n = len(scores)
    last, start = -1, 0
    for j in range(len(row)):
        here = anchors[j]
        if here < 0:
            continue
        if last < 0:
            start = 0 if fill else _first(scores[:, row[j]], outside, here, guide, j)
        else:
            border = _border(scores, row, anchors, last, j, start + least, guide)
            path[start:border] = last
            start = border
        last = j
    if last >= 0:
        least_end = min(n, start + least)
        end = n if fill else _end(scores[:, row[last]], outside, anchors[last], least_end, guide, last)
        path[start:end] = last


@compiled
def score_path(scores: np.ndarray, row: np.ndarray, outside: np.ndarray, path: np.ndarray) -> float:
    """The sum of the scores that frames have on a path of :func:`cut_row`; NaN where one of ``outside`` is."""
    total = 0.0
    for t in range(len(path)):
        inside = path[t] >= 0
        total += scores[t, row[path[t]]] if inside else outside[t]
        if np.isnan(outside[t]):
            return np.nan
    return total


@compiled
def _border(
    scores: np.ndarray, row: np.ndarray, anchors: np.ndarray, i: int, j: int, least: int, guide: Guide
) -> int:
    """The first frame of token j after i: the best cut between their selected frames, not before ``least``."""
    before, after, left = scores[:, row[i]], scores[:, row[j]], anchors[i]
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
