"""Best paths through a lattice of label scores, on the CPU.

The loops are compiled by numba and release the GIL; the rows of a batch run on ``torch.get_num_threads()``
Python threads. Scores are summed in float64 whatever the input is, so that an hour of frames keeps its decimals.

Ties: of paths of equal score the one wins that is further along in the last frame in which they differ. Later tokens
are further along than earlier ones, and a blank further than the token before it. Where all scores are alike, tokens
come as early as they can. Scores are equal where their sums in float64, frame by frame, are.

Inputs are arrays or tensors; what comes back is of the same kind, tensors on the device of ``log_probs``.
Frames and labels past their lengths are never read. In a path, frame t has the number (0 .. U - 1) of the
token that it carries, -1 for blank, and -2 past the end.

Memory: no trellis is kept, but a row of scores every so many frames, from which the back-trace computes again what
it crosses; decisions are those of a whole trellis. Beyond inputs and paths a row of a batch takes at most about
40 MiB while T U < 2e9 or so (an hour of 20 ms frames and 15,000 tokens: 2.7e9, 27 MiB), and O(T^0.5 U) bytes above.

Where tokens are optional, time grows with the length of their runs as well.

For speech that a transcript leaves out, a star, give ``log_probs`` one column more, as
:func:`isotone.pipeline.stars.star_scores` makes it; its number is the star's label, which like others may be optional.
"""

from __future__ import annotations

from typing import Generic, NamedTuple

import numpy as np

from isotone.kernels._inputs import (
    Array,
    as_arrays,
    check_ctc,
    check_scores,
    check_targets,
    each_row,
    like,
    near_tokens,
    optional_tokens,
)
from isotone.kernels._lattice import PADDING
from isotone.kernels.viterbi._ctc import ctc_row
from isotone.kernels.viterbi._monotone import monotone_row
from isotone.kernels.viterbi._segmental import segmental_row

# Frames between stored rows, unless those would take more bytes than this a row of the batch.
_LEAST_BLOCK = 64
_STORED_BYTES = 32 << 20


class BandedPaths(NamedTuple, Generic[Array]):
    """What :func:`banded_path` finds.

    Attributes:
        paths: ``(B, T)`` int64.
        scores: ``(B,)`` nats.
        touched: ``(B,)`` bool, whether the path runs along the edge of its band anywhere: a better one may lie outside.
            Where it is false the path is better than all that leave it for neighbouring cells only.
    """

    paths: Array
    scores: Array
    touched: Array


def ctc_path(
    log_probs: Array,
    labels: Array,
    frame_lengths: Array,
    label_lengths: Array,
    blank: int,
    optional: Array | None = None,
) -> tuple[Array, Array]:
    """The best CTC path of known label sequences: blanks allowed anywhere, required between equal neighbours.

    Maximises ``sum_t log p_t(s_t)`` over the sequences s of T labels that become the target when repeats
    are merged and blanks removed (Graves et al. 2006, section 4). Time O(T U), less what no path can reach.

    On ties, the path wins that is further along in the last frame in which they differ: at a later token, or in the
    blank after the token that another is still in.

    Args:
        log_probs: ``(B, T, V)`` float32 or float64 (other types are converted), nats; -inf is allowed.
        labels: ``(B, U)`` integers.
        frame_lengths: ``(B,)`` frames.
        label_lengths: ``(B,)`` tokens; 0 gives a path of blanks.
        blank: Label number of the blank.
        optional: ``(B, U)`` bool, tokens that may be left out. Default: none.

    Returns:
        Paths ``(B, T)`` int64 and their scores ``(B,)`` in nats, of the type of ``log_probs``.

    Raises:
        AlignmentError: a row has too few frames, holds NaN or +inf in a label that its target has, or has no path
            of probability above zero; the message names the row.
        ValueError: shapes, lengths or labels that do not fit together.
    """
    return _best(log_probs, labels, frame_lengths, label_lengths, blank, optional, 1, None)[:2]


def monotone_path(
    log_probs: Array,
    labels: Array,
    frame_lengths: Array,
    label_lengths: Array,
    optional: Array | None = None,
    min_frames: int = 1,
    near: Array | None = None,
    far_cost: float = 0.0,
) -> tuple[Array, Array]:
    """The best path without blanks: every frame has a token, every token in turn takes consecutive frames.

    Maximises ``sum_t log p_t(y_{a(t)})`` over the non-decreasing a that visit every token that is not
    optional and give at least ``min_frames`` frames to each that they visit. Equal neighbours are allowed.
    Time O(T U min_frames), less what no path can reach. With ``near``, every frame t whose token a(t) is not among
    ``near[t, 0] .. near[t, 1]`` costs ``far_cost`` nats: what another source says of where the tokens are.

    On ties, the path wins that is at the later token in the last frame in which they differ.

    Args:
        log_probs: ``(B, T, V)`` as in :func:`ctc_path`.
        labels: ``(B, U)`` integers.
        frame_lengths: ``(B,)`` frames.
        label_lengths: ``(B,)`` tokens, at least 1.
        optional: ``(B, U)`` bool, tokens that may be left out (silence between words). Default: none.
        min_frames: Frames that a token takes at least.
        near: ``(B, T, 2)`` integers, the first and last token that a frame may have at no cost; beyond the tokens there
            are is allowed. Default: all.
        far_cost: Nats a frame with any other token, 0 or more.

    Returns:
        Paths ``(B, T)`` int64, without -1, and their scores ``(B,)`` in nats, less those costs.

    Raises:
        AlignmentError: as in :func:`ctc_path`; also for a row without tokens.
        ValueError: shapes, lengths or labels that do not fit together.
    """
    ranges = near, far_cost
    return _best(log_probs, labels, frame_lengths, label_lengths, None, optional, min_frames, None, ranges)[
        :2
    ]


def banded_path(
    log_probs: Array,
    labels: Array,
    frame_lengths: Array,
    label_lengths: Array,
    band: int,
    blank: int | None = None,
    optional: Array | None = None,
    min_frames: int = 1,
) -> BandedPaths[Array]:
    """The best path near the straight line from the first frame and token to the last: faster, and maybe not the best.

    Of every frame only the tokens within ``band`` of that line are looked at: time O(T band). Where the
    whole best path lies inside, the result is that of :func:`ctc_path` or :func:`monotone_path`. A path that does
    not touch the band's edge is no proof of that, but a sign; one that does is a reason to double the band.

    Args:
        log_probs: ``(B, T, V)`` as in :func:`ctc_path`.
        labels: ``(B, U)`` integers.
        frame_lengths: ``(B,)`` frames.
        label_lengths: ``(B,)`` tokens.
        band: Half-width in tokens, at least 1.
        blank: Label number of the blank for CTC paths; None for paths without blanks.
        optional: ``(B, U)`` bool, tokens that may be left out. Default: none.
        min_frames: Frames that a token takes at least, in paths without blanks.

    Returns:
        Paths, scores, and whether the band's edge was touched, a row each.

    Raises:
        AlignmentError: as in :func:`ctc_path`; also where no path lies in the band.
        ValueError: shapes, lengths, labels or options that do not fit together.
    """
    if band < 1 or (blank is not None and min_frames != 1):
        raise ValueError(
            "banded_path expects a band of at least 1 token, and min_frames only without a blank; "
            f"got {band} and {min_frames}."
        )
    found = _best(log_probs, labels, frame_lengths, label_lengths, blank, optional, min_frames, band)
    return BandedPaths(*found)


def _best(
    log_probs: Array,
    labels: Array,
    frame_lengths: Array,
    label_lengths: Array,
    blank: int | None,
    optional: Array | None,
    min_frames: int,
    band: int | None,
    ranges: tuple[Array | None, float] = (None, 0.0),
) -> tuple[Array, Array, Array]:
    """Paths, scores and touched bands of either lattice; of that without blanks, tokens near and the cost of others."""
    scores_in, labels_in, frames, tokens = as_arrays(log_probs, labels, frame_lengths, label_lengths)
    free = optional_tokens(optional, labels_in)
    check_targets(labels_in, frames, tokens, scores_in.shape[2], blank, free, min_frames)
    paths = np.full(scores_in.shape[:2], PADDING, np.int64)
    scores, touched = np.zeros(len(scores_in)), np.zeros(len(scores_in), np.bool_)
    half = -1 if band is None else band
    cells = frames * (tokens if band is None else np.minimum(tokens, 2 * half + 1))
    common = scores_in, labels_in, frames, tokens, free
    rest = half, _LEAST_BLOCK, _STORED_BYTES, paths, scores, touched
    if blank is None:
        near, far_cost = near_tokens(*ranges, paths.shape)
        each_row(monotone_row, cells, *common, near, far_cost, min_frames, *rest)
    else:
        each_row(ctc_row, cells, *common, blank, *rest)
    check_scores(scores, band)
    scores = scores.astype(scores_in.dtype)
    return like(log_probs, paths), like(log_probs, scores), like(log_probs, touched)


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

    On ties, the last segment has the lowest label, then the greatest length; then the segment before it, and so on.

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
    scores_in, _, frames, _ = as_arrays(log_probs, none, frame_lengths, np.zeros(len(log_probs), np.int64))
    paths = np.full(scores_in.shape[:2], PADDING, np.int64)
    labels = np.empty_like(paths)
    counts = np.zeros(len(scores_in), np.int64)
    scores = np.zeros(len(scores_in))
    blank_label = -1 if blank is None else blank
    if blank is not None and not 0 <= blank < scores_in.shape[2]:
        raise ValueError(f"segmental_decode expects a blank from 0 to {scores_in.shape[2] - 1}; got {blank}.")
    each_row(
        segmental_row, frames * scores_in.shape[2],
        scores_in, frames, float(change_penalty), blank_label, min_frames, paths, labels, counts, scores,
    )  # fmt: skip
    check_scores(scores)
    return [row[:n].tolist() for row, n in zip(labels, counts)], like(log_probs, paths)


__all__ = [
    "BandedPaths",
    "banded_path",
    "check_ctc",
    "ctc_path",
    "monotone_path",
    "segmental_decode",
]
