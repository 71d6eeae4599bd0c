"""Inputs of the kernels' public functions: arrays of known types, checks, and threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from isotone.alignment import AlignmentError
from isotone.kernels.threads import each_run, each_task
from isotone.types import check_integers

if TYPE_CHECKING:
    from torch import Tensor

Array = TypeVar("Array", np.ndarray, "Tensor")


def check_targets(
    labels: np.ndarray,
    frames: np.ndarray,
    tokens: np.ndarray,
    vocab_size: int,
    blank: int | None,
    free: np.ndarray,
    min_frames: int = 1,
) -> None:
    """Raise AlignmentError for the first row without a path: in CTC's lattice, or with no blank in that without."""
    if blank is None:
        check_labels(labels, tokens, vocab_size)
        check_monotone(free, frames, tokens, min_frames)
    else:
        check_ctc(labels, frames, tokens, vocab_size, blank, free)


def check_ctc(
    labels: np.ndarray,
    frame_lengths: np.ndarray,
    label_lengths: np.ndarray,
    vocab_size: int,
    blank: int,
    optional: np.ndarray | None = None,
) -> None:
    """Check that CTC can align every row: U tokens, of which r repeat their neighbour, need U + r frames.

    Args:
        labels: ``(B, U)``.
        frame_lengths: ``(B,)`` frames.
        label_lengths: ``(B,)`` tokens.
        vocab_size: V.
        blank: Label number of the blank.
        optional: ``(B, U)`` bool, tokens that need no frames. Default: none.

    Raises:
        AlignmentError: a row has too few frames.
        ValueError: a label outside the vocabulary, or a blank among the labels.
    """
    if not 0 <= blank < vocab_size:
        raise ValueError(f"CTC expects a blank from 0 to {vocab_size - 1}; got {blank}.")
    check_labels(labels, label_lengths, vocab_size)
    valid = np.arange(labels.shape[1]) < label_lengths[:, None]
    blanks = (labels == blank) & valid
    if blanks.any():
        row, token = np.argwhere(blanks)[0]
        raise ValueError(
            f"Row {row}: token {token} is the blank ({blank}); CTC targets are given without blanks."
        )
    required, needed = label_lengths, valid
    if optional is not None and optional.any():
        needed = valid & ~optional
        required = needed.sum(1)
        # required tokens come first, in their order, so that those in a row with optional ones between are neighbours
        order = np.argsort(~needed, axis=1, kind="stable")
        labels, needed = np.take_along_axis(labels, order, 1), np.take_along_axis(needed, order, 1)
    repeats = ((labels[:, 1:] == labels[:, :-1]) & needed[:, 1:]).sum(1)
    short = np.flatnonzero(frame_lengths < required + repeats)
    if len(short):
        b = short[0]
        raise AlignmentError(
            f"{required[b]} tokens ({repeats[b]} repeats) need at least "
            f"{required[b] + repeats[b]} frames, got {frame_lengths[b]}.",
            row=int(b),
        )


def check_monotone(free: np.ndarray, frames: np.ndarray, tokens: np.ndarray, min_frames: int) -> None:
    """Raise for the first row that has no tokens, or fewer frames than they need."""
    if min_frames < 1:
        raise ValueError(f"monotone_path expects min_frames >= 1; got {min_frames}.")
    empty = np.flatnonzero(tokens == 0)
    if len(empty):
        raise AlignmentError("no tokens; a path without blanks needs at least one.", row=int(empty[0]))
    required = (~free & (np.arange(free.shape[1]) < tokens[:, None])).sum(1)
    need = np.maximum(required, 1) * min_frames
    short = np.flatnonzero(frames < need)
    if len(short):
        b = short[0]
        of_them = f", {tokens[b] - required[b]} of them optional," if required[b] < tokens[b] else ""
        each = f" of {min_frames} frames" if min_frames > 1 else ""
        raise AlignmentError(
            f"{tokens[b]} tokens{each}{of_them} need at least {need[b]} frames, got {frames[b]}.", row=int(b)
        )


def check_labels(labels: np.ndarray, tokens: np.ndarray, vocab_size: int) -> None:
    """Raise ValueError for the first label that is outside the vocabulary."""
    outside = ((labels < 0) | (labels >= vocab_size)) & (np.arange(labels.shape[1]) < tokens[:, None])
    if outside.any():
        row, token = np.argwhere(outside)[0]
        raise ValueError(
            f"Row {row}: token {token} has label {labels[row, token]}; "
            f"expected labels from 0 to {vocab_size - 1}."
        )


def optional_tokens(optional: Any, labels: np.ndarray) -> np.ndarray:
    """Return the mask of optional tokens ``(B, U)``; all false where none is given."""
    if optional is None:
        return np.zeros(labels.shape, np.bool_)
    free = np.ascontiguousarray(to_numpy(optional), np.bool_)
    if free.shape != labels.shape:
        raise ValueError(f"Expected optional of shape {labels.shape}; got {free.shape}.")
    return free


def near_tokens(near: Any, far_cost: float, shape: tuple[int, ...]) -> tuple[np.ndarray, float]:
    """Return the ranges that cost nothing, of tokens per frame or of frames per token, and the cost of others.

    Where nothing costs anything, the ranges are of no frames (or tokens).
    """
    if near is None:
        return np.empty((shape[0], 0, 2), np.int64), 0.0
    ranges = np.ascontiguousarray(to_numpy(near), np.int64)
    if ranges.shape != (*shape, 2) or not 0 <= far_cost < np.inf:
        raise ValueError(
            f"Expected near of shape {(*shape, 2)} and a finite far_cost of 0 nats or more; "
            f"got {ranges.shape} and {far_cost}."
        )
    return ranges, float(far_cost)


def check_scores(scores: np.ndarray, band: int | None = None) -> None:
    """Raise AlignmentError for the first score that is not finite."""
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad):
        b = bad[0]
        if np.isnan(scores[b]):
            reason = "its log-probabilities hold NaN or +inf"
        else:
            within = "" if band is None else f" within {band} tokens of the straight line; widen the band"
            reason = f"every path has probability 0{within}"
        raise AlignmentError(f"{reason}.", row=int(b))


def to_numpy(x: Any) -> np.ndarray:
    """Convert to an array; half precision to float32."""
    if hasattr(x, "detach"):  # a tensor; torch is not imported for its sake
        x = x.detach()
        return (x.float() if x.is_floating_point() and x.element_size() < 4 else x).cpu().numpy()
    return np.asarray(x)


def like(example: Array, result: np.ndarray) -> Any:
    """Convert the result to the kind of the example: an array, or a tensor on its device."""
    if isinstance(example, np.ndarray):
        return result.view(type(example))
    if not hasattr(example, "detach"):
        return result
    from torch import from_numpy  # imported before: there is a tensor

    return from_numpy(result).to(example.device)


def as_arrays(log_probs: Any, labels: Any, frame_lengths: Any, label_lengths: Any) -> tuple[np.ndarray, ...]:
    """Convert to contiguous arrays of the types that the loops are compiled for, and check shapes and lengths."""
    lp = to_numpy(log_probs)
    if lp.ndim != 3 or lp.shape[2] == 0:
        raise ValueError(
            f"Expected log_probs of shape (B, T, V); got {lp.shape}. For one row use log_probs[None]."
        )
    lp = np.ascontiguousarray(lp, lp.dtype if lp.dtype in (np.float32, np.float64) else np.float32)
    y = np.ascontiguousarray(to_numpy(labels), np.int64)
    if y.ndim != 2 or len(y) != len(lp):
        raise ValueError(f"Expected labels of shape ({len(lp)}, U); got {y.shape}.")
    out = []
    for name, values, size in (("frame", frame_lengths, lp.shape[1]), ("label", label_lengths, y.shape[1])):
        n = as_lengths(values)
        if n.shape != (len(lp),) or ((n < 0) | (n > size)).any():
            raise ValueError(f"Expected {len(lp)} {name} lengths from 0 to {size}; got {n.tolist()}.")
        out.append(n)
    return lp, y, *out


def as_lengths(values: Any) -> np.ndarray:
    """Convert lengths to a contiguous array of int64; ValueError where they are no integers."""
    given = to_numpy(values)
    check_integers(given)
    return np.ascontiguousarray(given, np.int64)


def each_row(loop: Callable[..., None], cells: np.ndarray, *arguments: Any) -> None:
    """Call ``loop(task, order, *arguments)`` on threads for the rows ``order[task]``, those of most cells first."""
    # the largest first: at the end all threads are busy with small ones
    order = np.argsort(-cells, kind="stable")
    each_task(loop, len(order), int(cells.sum()), order, *arguments)


def each_rows(loop: Callable[..., None], cells: np.ndarray, *arguments: Any) -> None:
    """Call ``loop(task, run, order, *arguments)`` on threads for the rows ``order[task * run :][:run]``.

    As :func:`each_row`, for rows so small that a task is several of them.
    """
    order = np.argsort(-cells, kind="stable")
    each_run(loop, len(order), int(cells.sum()), order, *arguments)
