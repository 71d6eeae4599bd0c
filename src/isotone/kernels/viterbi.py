"""Best paths through a lattice of label scores, on the CPU.

The loops are compiled by numba and release the GIL; the rows of a batch run on ``torch.get_num_threads()``
Python threads. (numba's parallel loops run on OpenMP, which ends a forked process, such as a data loader's
worker, whose parent has used them.) Scores are summed in float64 whatever the input is, so that an hour of
frames keeps its decimals. Among paths of equal score the one that stays longest in its present token wins,
seen from the end.

Inputs are arrays or tensors; what comes back is of the same kind, tensors on the device of ``log_probs``.
Frames and labels past their lengths are never read. In a path, frame t has the number (0 .. U - 1) of the
token that it carries, -1 for blank, and -2 past the end.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from isotone.alignment import AlignmentError
from isotone.kernels._viterbi import PADDING, ctc_rows, monotone_rows, segmental_rows

Array = TypeVar("Array", np.ndarray, Tensor)

# Below so many lattice cells a batch (a fifth of a millisecond), starting threads costs more than it saves.
_SERIAL_CELLS = 100_000


def ctc_path(
    log_probs: Array, labels: Array, frame_lengths: Array, label_lengths: Array, blank: int
) -> tuple[Array, Array]:
    """The best CTC path of known label sequences: blanks allowed anywhere, required between equal neighbours.

    Maximises ``sum_t log p_t(s_t)`` over the sequences s of T labels that become the target when repeats
    are merged and blanks removed (Graves et al. 2006, section 4). Time O(T U), less what no path can reach;
    memory T U bytes.

    Args:
        log_probs: ``(B, T, V)`` float32 or float64 (other types are converted), nats; -inf is allowed.
        labels: ``(B, U)`` integers.
        frame_lengths: ``(B,)`` frames.
        label_lengths: ``(B,)`` tokens; 0 gives a path of blanks.
        blank: Label number of the blank.

    Returns:
        Paths ``(B, T)`` int64 and their scores ``(B,)`` in nats, of the type of ``log_probs``.

    Raises:
        AlignmentError: a row has too few frames, is NaN or +inf where it was read, or has no path of
            probability above zero; the message names the row.
        ValueError: shapes, lengths or labels that do not fit together.
    """
    scores_in, labels_in, frames, tokens = _arrays(log_probs, labels, frame_lengths, label_lengths)
    check_ctc(labels_in, frames, tokens, scores_in.shape[2], blank)
    paths = np.full(scores_in.shape[:2], PADDING, np.int64)
    scores = np.zeros(len(scores_in))
    _each_row(ctc_rows, frames * tokens, scores_in, labels_in, frames, tokens, blank, paths, scores)
    _check_scores(scores)
    return _like(log_probs, paths), _like(log_probs, scores.astype(scores_in.dtype))


def monotone_path(
    log_probs: Array,
    labels: Array,
    frame_lengths: Array,
    label_lengths: Array,
    optional: Array | None = None,
    min_frames: int = 1,
) -> tuple[Array, Array]:
    """The best path without blanks: every frame has a token, every token in turn takes consecutive frames.

    Maximises ``sum_t log p_t(y_{a(t)})`` over the non-decreasing a that visit every token that is not
    optional and give at least ``min_frames`` frames to each that they visit. Equal neighbours are allowed.
    Time O(T U min_frames), less what no path can reach; memory T U bytes.

    Args:
        log_probs: ``(B, T, V)`` as in :func:`ctc_path`.
        labels: ``(B, U)`` integers.
        frame_lengths: ``(B,)`` frames.
        label_lengths: ``(B,)`` tokens, at least 1.
        optional: ``(B, U)`` bool, tokens that may be left out (silence between words). Default: none.
        min_frames: Frames that a token takes at least.

    Returns:
        Paths ``(B, T)`` int64, without -1, and their scores ``(B,)`` in nats.

    Raises:
        AlignmentError: as in :func:`ctc_path`; also for a row without tokens.
        ValueError: shapes, lengths or labels that do not fit together.
    """
    scores_in, labels_in, frames, tokens = _arrays(log_probs, labels, frame_lengths, label_lengths)
    free = np.zeros(labels_in.shape, np.bool_) if optional is None else _numpy(optional).astype(np.bool_)
    if free.shape != labels_in.shape:
        raise ValueError(f"monotone_path expects optional of shape {labels_in.shape}; got {free.shape}.")
    _check_labels(labels_in, tokens, scores_in.shape[2])
    _check_monotone(free, frames, tokens, min_frames)
    paths = np.full(scores_in.shape[:2], PADDING, np.int64)
    scores = np.zeros(len(scores_in))
    _each_row(
        monotone_rows, frames * tokens, scores_in, labels_in, frames, tokens, free, min_frames, paths, scores
    )
    _check_scores(scores)
    return _like(log_probs, paths), _like(log_probs, scores.astype(scores_in.dtype))


def segmental_decode(
    log_probs: Array,
    frame_lengths: Array,
    change_penalty: float,
    blank: int | None = None,
    min_frames: int = 1,
) -> tuple[list[list[int]], Array]:
    """The best label sequence where each change of label costs ``change_penalty``: Viterbi, free segments.

    Maximises ``sum_t log p_t(v_t) - change_penalty * #{t > 0: v_t != v_{t-1}}`` over label sequences v
    whose runs last at least ``min_frames`` frames. A penalty of 0 is the most likely label of every frame.
    Time O(T V min_frames), memory O(T + V min_frames).

    Args:
        log_probs: ``(B, T, V)`` as in :func:`ctc_path`.
        frame_lengths: ``(B,)`` frames.
        change_penalty: Nats a change, at least 0.
        blank: A label whose segments are not tokens; they separate equal labels. Default: every segment is
            a token.
        min_frames: Frames that a segment takes at least; rows that are shorter are one segment.

    Returns:
        The label sequence of every row, and paths ``(B, T)`` int64 with the numbers of the tokens in it.

    Raises:
        AlignmentError: a row is NaN or +inf, or no segmentation of it has a probability above zero.
        ValueError: shapes or options that do not fit together.
    """
    if not change_penalty >= 0 or min_frames < 1:
        raise ValueError(
            "segmental_decode expects change_penalty >= 0 and min_frames >= 1; "
            f"got {change_penalty} and {min_frames}."
        )
    none = np.zeros((len(log_probs), 0), np.int64)
    scores_in, _, frames, _ = _arrays(log_probs, none, frame_lengths, np.zeros(len(log_probs), np.int64))
    paths = np.full(scores_in.shape[:2], PADDING, np.int64)
    labels = np.empty_like(paths)
    counts = np.zeros(len(scores_in), np.int64)
    scores = np.zeros(len(scores_in))
    blank_label = -1 if blank is None else blank
    if blank is not None and not 0 <= blank < scores_in.shape[2]:
        raise ValueError(f"segmental_decode expects a blank from 0 to {scores_in.shape[2] - 1}; got {blank}.")
    _each_row(
        segmental_rows, frames * scores_in.shape[2],
        scores_in, frames, float(change_penalty), blank_label, min_frames, paths, labels, counts, scores,
    )  # fmt: skip
    _check_scores(scores)
    return [row[:n].tolist() for row, n in zip(labels, counts)], _like(log_probs, paths)


def check_ctc(
    labels: np.ndarray, frame_lengths: np.ndarray, label_lengths: np.ndarray, vocab_size: int, blank: int
) -> None:
    """Whether CTC can align every row: ``U`` tokens of which r repeat their neighbour need ``U + r`` frames.

    Args:
        labels: ``(B, U)``.
        frame_lengths: ``(B,)`` frames.
        label_lengths: ``(B,)`` tokens.
        vocab_size: V.
        blank: Label number of the blank.

    Raises:
        AlignmentError: a row has too few frames.
        ValueError: a label outside the vocabulary, or a blank among the labels.
    """
    if not 0 <= blank < vocab_size:
        raise ValueError(f"CTC expects a blank from 0 to {vocab_size - 1}; got {blank}.")
    _check_labels(labels, label_lengths, vocab_size)
    position = np.arange(labels.shape[1])
    blanks = (labels == blank) & (position < label_lengths[:, None])
    if blanks.any():
        row, token = np.argwhere(blanks)[0]
        raise ValueError(
            f"Row {row}: token {token} is the blank ({blank}); CTC targets are given without blanks."
        )
    repeats = ((labels[:, 1:] == labels[:, :-1]) & (position[1:] < label_lengths[:, None])).sum(1)
    short = np.flatnonzero(frame_lengths < label_lengths + repeats)
    if len(short):
        b = short[0]
        raise AlignmentError(
            f"Row {b}: {label_lengths[b]} tokens ({repeats[b]} repeats) need at least "
            f"{label_lengths[b] + repeats[b]} frames, got {frame_lengths[b]}."
        )


def _check_monotone(free: np.ndarray, frames: np.ndarray, tokens: np.ndarray, min_frames: int) -> None:
    if min_frames < 1:
        raise ValueError(f"monotone_path expects min_frames >= 1; got {min_frames}.")
    empty = np.flatnonzero(tokens == 0)
    if len(empty):
        raise AlignmentError(f"Row {empty[0]}: no tokens; a path without blanks needs at least one.")
    required = (~free & (np.arange(free.shape[1]) < tokens[:, None])).sum(1)
    need = np.maximum(required, 1) * min_frames
    short = np.flatnonzero(frames < need)
    if len(short):
        b = short[0]
        of_them = f", {tokens[b] - required[b]} of them optional," if required[b] < tokens[b] else ""
        each = f" of {min_frames} frames" if min_frames > 1 else ""
        raise AlignmentError(
            f"Row {b}: {tokens[b]} tokens{each}{of_them} need at least {need[b]} frames, got {frames[b]}."
        )


def _check_labels(labels: np.ndarray, tokens: np.ndarray, vocab_size: int) -> None:
    outside = ((labels < 0) | (labels >= vocab_size)) & (np.arange(labels.shape[1]) < tokens[:, None])
    if outside.any():
        row, token = np.argwhere(outside)[0]
        raise ValueError(
            f"Row {row}: token {token} has label {labels[row, token]}; "
            f"expected labels from 0 to {vocab_size - 1}."
        )


def _check_scores(scores: np.ndarray) -> None:
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad):
        b = bad[0]
        reason = (
            "its log-probabilities hold NaN or +inf"
            if np.isnan(scores[b])
            else "every path has probability 0"
        )
        raise AlignmentError(f"Row {b} cannot be aligned: {reason}.")


def _numpy(x: Any) -> np.ndarray:
    if isinstance(x, Tensor):
        x = x.detach()
        return (x.float() if x.dtype in (torch.half, torch.bfloat16) else x).cpu().numpy()
    return np.asarray(x)


def _like(example: Array, result: np.ndarray) -> Any:
    return torch.from_numpy(result).to(example.device) if isinstance(example, Tensor) else result


def _arrays(log_probs: Any, labels: Any, frame_lengths: Any, label_lengths: Any) -> tuple[np.ndarray, ...]:
    """Contiguous arrays of the types that the loops are compiled for, their shapes and lengths checked."""
    lp = _numpy(log_probs)
    if lp.ndim != 3 or lp.shape[2] == 0:
        raise ValueError(
            f"Expected log_probs of shape (B, T, V); got {lp.shape}. For one row use log_probs[None]."
        )
    lp = np.ascontiguousarray(lp, lp.dtype if lp.dtype in (np.float32, np.float64) else np.float32)
    y = np.ascontiguousarray(_numpy(labels), np.int64)
    if y.ndim != 2 or len(y) != len(lp):
        raise ValueError(f"Expected labels of shape ({len(lp)}, U); got {y.shape}.")
    out = []
    for name, values, size in (("frame", frame_lengths, lp.shape[1]), ("label", label_lengths, y.shape[1])):
        n = np.ascontiguousarray(_numpy(values), np.int64)
        if n.shape != (len(lp),) or ((n < 0) | (n > size)).any():
            raise ValueError(f"Expected {len(lp)} {name} lengths from 0 to {size}; got {n.tolist()}.")
        out.append(n)
    return lp, y, *out


def _each_row(loop: Callable[..., None], cells: np.ndarray, *arguments: Any) -> None:
    """Run ``loop(rows, *arguments)`` with the rows dealt out to threads, longest first."""
    order = np.argsort(-cells, kind="stable")
    threads = min(torch.get_num_threads(), len(order))
    if threads <= 1 or cells.sum() < _SERIAL_CELLS:
        loop(order, *arguments)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda i: loop(np.ascontiguousarray(order[i::threads]), *arguments), range(threads)))
