"""The search that :func:`ctc_path`, :func:`monotone_path` and :func:`banded_path` share, on arrays of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from isotone.kernels._inputs import (
    Array,
    as_arrays,
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

#: Frames between stored rows, unless these would take more bytes than this for a row of the batch.
LEAST_BLOCK = 64
STORED_BYTES = 32 << 20


def best_paths(
    log_probs: Array,
    labels: Array,
    frame_lengths: Array,
    label_lengths: Array,
    blank: int | None,
    optional: Array | None,
    min_frames: int,
    band: int | None,
    ranges: tuple[Array | None, float] = (None, 0.0),
    traced: bool = True,
) -> tuple[Array, Array, Array]:
    """Find paths, scores and touched bands in CTC's lattice or, with no blank, in that without.

    ``ranges`` are ``near`` and ``far_cost`` of :func:`isotone.kernels.viterbi.monotone_path`. In CTC's lattice paths
    need not be ``traced``, where only scores are wanted: they then have no frames.
    """
    plain = optional is None and min_frames == 1 and band is None and ranges[0] is None
    if plain and getattr(log_probs, "is_cuda", False):
        from isotone.kernels.backends import on_cuda  # needs torch, as arrays do not

        tensor: Any = log_probs
        cuda: Any = on_cuda("isotone.kernels.viterbi.cuda", tensor.device)
        found: Any = cuda and cuda.best_paths(log_probs, labels, frame_lengths, label_lengths, blank)
        if found:  # else: what is wrong, or too large for the device, shows below
            return found
    scores_in, labels_in, frames, tokens = as_arrays(log_probs, labels, frame_lengths, label_lengths)
    free = optional_tokens(optional, labels_in)
    check_targets(labels_in, frames, tokens, scores_in.shape[2], blank, free, min_frames)
    paths = np.full((len(scores_in), scores_in.shape[1] if traced else 0), PADDING, np.int64)
    scores, touched = np.zeros(len(scores_in)), np.zeros(len(scores_in), np.bool_)
    half = -1 if band is None else band
    cells = frames * (tokens if band is None else np.minimum(tokens, 2 * half + 1))
    common = scores_in, labels_in, frames, tokens, free
    rest = half, LEAST_BLOCK, STORED_BYTES, paths, scores, touched
    if blank is None:
        near, far_cost = near_tokens(*ranges, paths.shape)
        each_row(monotone_row, cells, *common, near, far_cost, min_frames, *rest)
    else:
        each_row(ctc_row, cells, *common, blank, *rest)
    check_scores(scores, band)
    scores = scores.astype(scores_in.dtype)
    return like(log_probs, paths), like(log_probs, scores), like(log_probs, touched)
