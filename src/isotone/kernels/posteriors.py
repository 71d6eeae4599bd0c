"""Confidence of the emissions in a path: posteriors of its tokens, and the likelihood of their sequence.

Inputs are those of :mod:`isotone.kernels.viterbi` and the paths that it returns. Results are float64, of the
kind (array or tensor) of ``log_probs``. A token that no frame of the path carries (an optional one left out, padding)
has NaN. Time O(T U), memory O(T + U) beyond the inputs: an hour of audio needs no more than its emissions.
"""

from __future__ import annotations

import numpy as np

from isotone.kernels._inputs import (
    Array,
    as_arrays,
    check_scores,
    check_targets,
    each_row,
    like,
    optional_tokens,
    to_numpy,
)
from isotone.kernels._lattice import PADDING
from isotone.kernels._posteriors import confidence_row, half_row


def token_posteriors(
    log_probs: Array,
    paths: Array,
    labels: Array,
    frame_lengths: Array,
    label_lengths: Array,
    blank: int | None,
    *,
    optional: Array | None = None,
) -> tuple[Array, Array]:
    r"""Find the posterior of each token in the frames of its path, and the likelihood of the label sequence.

    The posterior that frame t carries token u is, summed over all alignments a of the label sequence y,

    .. math:: \gamma_t(u) = \sum_{a: a(t) = u} p(a | x) \Big/ \sum_a p(a | x)

    (Rabiner 1989, eq. 27; for CTC Graves et al. 2006, section 4.1). A token's confidence is the mean of
    :math:`\gamma_t(u)` over the frames t that the path gives it: near 1 where no other alignment is likely.
    It does not say whether y was spoken: for that see :mod:`isotone.pipeline.scores`.

    Args:
        log_probs: ``(B, T, V)`` nats; -inf is allowed.
        paths: ``(B, T)`` integers, as :func:`isotone.kernels.viterbi.ctc_path` or ``monotone_path`` return them,
            or any others: -1 and -2 mark frames without a token.
        labels: ``(B, U)`` integers, of the tokens in the paths.
        frame_lengths: ``(B,)`` frames.
        label_lengths: ``(B,)`` tokens.
        blank: Label number of CTC's blank; None for the lattice without blanks of ``monotone_path``.
        optional: ``(B, U)`` bool, tokens that alignments may leave out. Default: none.

    Returns:
        Confidences ``(B, U)`` float64 in [0, 1], NaN for a token without frames, and log-likelihoods ``(B,)`` float64
        of the label sequences in nats: for CTC minus :func:`torch.nn.functional.ctc_loss`.

    Raises:
        AlignmentError: a row has too few frames, is NaN or +inf where it was read, or has no alignment of
            probability above zero; the message names the row.
        ValueError: shapes, lengths, labels or paths that do not fit together.
    """
    scores_in, labels_in, frames, tokens = as_arrays(log_probs, labels, frame_lengths, label_lengths)
    free = optional_tokens(optional, labels_in)
    check_targets(labels_in, frames, tokens, scores_in.shape[2], blank, free)
    paths_in = _check_paths(paths, scores_in, frames, tokens)
    records = np.zeros((2 * len(scores_in), scores_in.shape[1]))
    totals = np.zeros(2 * len(scores_in))
    each_row(
        half_row, np.repeat(frames * tokens, 2), scores_in, labels_in, frames, tokens, free,
        -1 if blank is None else blank, paths_in, records, totals,
    )  # fmt: skip
    check_scores(totals)
    confidence = np.full(labels_in.shape, np.nan)
    each_row(
        confidence_row, frames, scores_in, labels_in, frames, tokens, paths_in, records, totals, confidence,
    )  # fmt: skip
    return like(log_probs, confidence), like(log_probs, totals[::2].copy())


def _check_paths(paths: Array, scores: np.ndarray, frames: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    found = np.ascontiguousarray(to_numpy(paths), np.int64)
    if found.shape != scores.shape[:2]:
        raise ValueError(f"Expected paths of shape {scores.shape[:2]}; got {found.shape}.")
    found = np.where(np.arange(found.shape[1]) < frames[:, None], found, PADDING)
    outside = (found >= tokens[:, None]) | (found < PADDING)
    if outside.any():
        row, frame = np.argwhere(outside)[0]
        raise ValueError(
            f"Row {row}: frame {frame} of its path is in token {found[row, frame]}; "
            f"expected tokens from 0 to {tokens[row] - 1}, -1 or -2."
        )
    return found
