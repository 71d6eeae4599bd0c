"""The best label sequence of emissions, where each change of label has a cost."""

from __future__ import annotations

import numpy as np

from isotone.kernels._inputs import Array, as_arrays, check_scores, each_row, like
from isotone.kernels._lattice import PADDING
from isotone.kernels.viterbi._segmental import segmental_row


def segmental_decode(
    log_probs: Array,
    frame_lengths: Array,
    change_penalty: float,
    blank: int | None = None,
    min_frames: int = 1,
) -> tuple[list[list[int]], Array]:
    """The best label sequence where each change of label costs ``change_penalty``: Viterbi over free segments.

    Maximises ``sum_t log p_t(v_t) - change_penalty * #{t > 0: v_t != v_{t-1}}`` over label sequences v
    whose runs last at least ``min_frames`` frames. A penalty of 0 is the most likely label of every frame.
    Time O(T V min_frames), memory O(T + V min_frames).

    On ties, the last segment has the lowest label, then the greatest length; then the segment before it, and so on.

    Args:
        log_probs: ``(B, T, V)`` as in :func:`isotone.kernels.viterbi.ctc_path`.
        frame_lengths: ``(B,)`` frames.
        change_penalty: Nats per change, at least 0.
        blank: A label whose segments are not tokens; they separate equal labels. Default: every segment is a token.
        min_frames: Least frames per segment; rows that are shorter are one segment.

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
