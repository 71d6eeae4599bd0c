"""The best path through a graph of tokens: pronunciations that run in parallel, parts that may be left out."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple

import numpy as np

from isotone.alignment import AlignmentError
from isotone.kernels._inputs import (
    Array,
    as_arrays,
    as_lengths,
    check_labels,
    check_scores,
    each_row,
    like,
    near_tokens,
    to_numpy,
)
from isotone.kernels._lattice import PADDING
from isotone.kernels.native import compiled
from isotone.kernels.viterbi._graph import MOST_WAYS, graph_row
from isotone.kernels.viterbi.search import LEAST_BLOCK, STORED_BYTES


class Arcs(NamedTuple, Generic[Array]):
    """Arcs of graphs of tokens, in compressed rows.

    Tokens are numbered in topological order. The arcs into token u are ``first[u] .. first[u + 1] - 1``; those into the
    end of a row of n tokens are ``first[n] .. first[n + 1] - 1``.

    Attributes:
        first: ``(B, U + 2)`` integers.
        before: ``(B, A)`` integers, the token that each arc comes from, ascending per token; -1 is the start.
        costs: ``(B, A)`` nats, 0 or more.
    """

    first: Array
    before: Array
    costs: Array


def graph_path(
    log_probs: Array,
    labels: Array,
    frame_lengths: Array,
    label_lengths: Array,
    arcs: Arcs[Array],
    least: Array | None = None,
    most: Array | None = None,
    near: Array | None = None,
    far_cost: float = 0.0,
) -> tuple[Array, Array]:
    """The best path from the start to the end of a graph of tokens: each frame has a token of it.

    Maximises ``sum_t log p_t(y_{a(t)})``, less the costs of the arcs, over the paths a that give every token that they
    visit from ``least`` to ``most`` consecutive frames. Time O(T (S + A)), where S is the number of frames that
    the tokens have at most, or at least where there is no most; less the states that no path can reach. On a graph in
    which every arc comes from the token before, or skips tokens, this is
    :func:`isotone.kernels.viterbi.monotone_path`, path for path.

    On ties, the path that is at the later token in the last frame in which they differ wins.

    Args:
        log_probs: ``(B, T, V)`` as in :func:`isotone.kernels.viterbi.ctc_path`.
        labels: ``(B, U)`` integers.
        frame_lengths: ``(B,)`` frames.
        label_lengths: ``(B,)`` tokens, at least 1. A row without frames and tokens is left out: its score is 0.
        arcs: What may come before what; at most 253 arcs into one token.
        least: ``(B, U)`` integers, least frames of a token that is visited. Default: 1.
        most: ``(B, U)`` integers, most frames, 0 for any number. Default: 0.
        near: ``(B, U, 2)`` integers, the first and last frame that a token may have at no cost. Default: all.
        far_cost: Nats per other frame of the token, 0 or more.

    Returns:
        Paths ``(B, T)`` int64, without -1, and their scores ``(B,)`` in nats, less all costs.

    Raises:
        AlignmentError: as in :func:`isotone.kernels.viterbi.ctc_path`; also for a row without tokens.
        ValueError: shapes, lengths, labels or arcs that do not fit together.
    """
    scores_in, labels_in, frames, tokens = as_arrays(log_probs, labels, frame_lengths, label_lengths)
    check_labels(labels_in, tokens, scores_in.shape[2])
    if len(empty := np.flatnonzero((tokens == 0) & (frames > 0))):
        raise AlignmentError("no tokens; a path through a graph needs at least one.", row=int(empty[0]))
    ways = _checked_arcs(arcs, labels_in.shape, tokens)
    shortest = _frames("least", least, 1, labels_in.shape, tokens)
    longest = _frames("most", most, 0, labels_in.shape, tokens)
    if ((longest > 0) & (longest < shortest)).any():
        raise ValueError("graph_path expects most to be 0, or no fewer frames than least.")
    within, cost = near_tokens(near if far_cost else None, far_cost, labels_in.shape)
    needed = _fewest(ways, tokens, shortest)
    short = np.flatnonzero((frames < needed) & (tokens > 0))
    if len(short):
        b = short[0]
        raise AlignmentError(
            f"{tokens[b]} tokens in a graph need at least {needed[b]} frames, got {frames[b]}.", row=int(b)
        )
    paths, scores = np.full(scores_in.shape[:2], PADDING, np.int64), np.zeros(len(scores_in))
    each_row(
        graph_row, frames * tokens,
        scores_in, labels_in, frames, tokens, *ways, shortest, longest, within, cost, LEAST_BLOCK, STORED_BYTES,
        paths, scores,
    )  # fmt: skip
    check_scores(scores)
    return like(log_probs, paths), like(log_probs, scores.astype(scores_in.dtype))


def fewest_frames(arcs: Arcs[Array], label_lengths: Array, least: Array) -> Array:
    """Count the frames of the shortest path through the graph of each row.

    Args:
        arcs: As in :func:`graph_path`.
        label_lengths: ``(B,)`` tokens; 0 needs no frames.
        least: ``(B, U)`` integers, least frames of each token.

    Returns:
        ``(B,)`` int64; 2^60 or more where no path leads to the end.
    """
    tokens = as_lengths(label_lengths)
    shape = to_numpy(least).shape
    ways = _checked_arcs(arcs, shape, tokens)
    return like(label_lengths, _fewest(ways, tokens, _frames("least", least, 1, shape, tokens)))


def _checked_arcs(arcs: Arcs[Any], shape: tuple[int, ...], tokens: np.ndarray) -> Arcs[np.ndarray]:
    """Convert arcs to arrays, and raise ValueError where they are none of a graph in topological order."""
    first, before = (np.ascontiguousarray(to_numpy(x), np.int64) for x in arcs[:2])
    costs = np.ascontiguousarray(to_numpy(arcs.costs), np.float64)
    if first.shape != (shape[0], shape[1] + 2) or before.ndim != 2 or before.shape != costs.shape:
        raise ValueError(
            f"Expected arcs with first of shape {(shape[0], shape[1] + 2)}, and before and costs of one shape "
            f"(B, A); got {first.shape}, {before.shape} and {costs.shape}."
        )
    for row, count in enumerate(tokens):
        own = first[row, : count + 2]
        counts = np.diff(own)
        if count and (own[0] != 0 or (counts < 0).any() or own[-1] > before.shape[1] or counts[-1] == 0):
            raise ValueError(f"Row {row}: arcs.first does not ascend from 0, or nothing leads to the end.")
        if (counts[:-1] > MOST_WAYS).any():  # the end takes any number
            raise ValueError(
                f"Row {row}: token {counts[:-1].argmax()} has {counts[:-1].max()} arcs; at most {MOST_WAYS}."
            )
        source, cost = before[row, : own[-1]], costs[row, : own[-1]]
        into = np.repeat(np.arange(count + 1), counts) if count else source
        ordered = (into[1:] > into[:-1]) | (source[1:] >= source[:-1])
        if not (ordered.all() and (source < into).all() and (source >= np.where(into < count, -1, 0)).all()):
            raise ValueError(
                f"Row {row}: arcs come from earlier tokens, ascending; -1 is the start, and not the end's neighbour."
            )
        if not ((cost >= 0) & (cost < np.inf)).all():
            raise ValueError(f"Row {row}: the costs of arcs are finite and 0 nats or more.")
    return Arcs(first, before, costs)


def _frames(name: str, given: Any, default: int, shape: tuple[int, ...], tokens: np.ndarray) -> np.ndarray:
    """Convert frames per token to an array; ValueError where they have another shape, or one is too low."""
    if given is None:
        return np.full(shape, default, np.int64)
    frames = np.ascontiguousarray(to_numpy(given), np.int64)
    if frames.shape != shape or ((frames < default) & (np.arange(shape[1]) < tokens[:, None])).any():
        raise ValueError(f"Expected {name} of shape {shape}, {default} or more; got {frames.shape}.")
    return frames


def _fewest(ways: Arcs[np.ndarray], tokens: np.ndarray, least: np.ndarray) -> np.ndarray:
    out = np.zeros(len(tokens), np.int64)
    _fill_fewest(ways.first, ways.before, tokens, least, out)
    return out


@compiled
def _fill_fewest(
    first: np.ndarray, before: np.ndarray, tokens: np.ndarray, least: np.ndarray, out: np.ndarray
) -> None:
    for b in range(len(out)):
        after = np.zeros(tokens[b] + 1, np.int64)
        for u in range(tokens[b] + 1):
            best = 1 << 60
            for k in range(first[b, u], first[b, u + 1]):
                p = before[b, k]
                best = min(best, after[p] if p >= 0 else 0)
            after[u] = best + (least[b, u] if u < tokens[b] else 0)
        out[b] = after[tokens[b]] if tokens[b] > 0 else 0
