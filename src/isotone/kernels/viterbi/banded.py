"""The best path near the straight line from the first frame and token to the last."""

from __future__ import annotations

from typing import Generic, NamedTuple

from isotone.kernels._inputs import Array
from isotone.kernels.viterbi.search import best_paths


class BandedPaths(NamedTuple, Generic[Array]):
    """Results of :func:`banded_path`.

    Attributes:
        paths: ``(B, T)`` int64.
        scores: ``(B,)`` nats.
        touched: ``(B,)`` bool, true where the path runs along the edge of its band anywhere: a better one may lie
            outside. Where it is false the path is better than all paths that differ in neighbouring cells only.
    """

    paths: Array
    scores: Array
    touched: Array


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

    In each frame only the tokens within ``band`` of that line are considered: time O(T band). Where the whole best path
    lies inside, the result is that of :func:`isotone.kernels.viterbi.ctc_path` or ``monotone_path``. A path that does
    not touch the band's edge is a sign of that, but no proof; one that does is a reason to double the band.

    Args:
        log_probs: ``(B, T, V)`` as in :func:`isotone.kernels.viterbi.ctc_path`.
        labels: ``(B, U)`` integers.
        frame_lengths: ``(B,)`` frames.
        label_lengths: ``(B,)`` tokens.
        band: Half-width in tokens, at least 1.
        blank: Label number of the blank for CTC paths; None for paths without blanks.
        optional: ``(B, U)`` bool, tokens that may be left out. Default: none.
        min_frames: Least frames per token, in paths without blanks.

    Returns:
        Paths, scores, and true for rows whose path touches the band's edge.

    Raises:
        AlignmentError: as in :func:`isotone.kernels.viterbi.ctc_path`; also where no path lies in the band.
        ValueError: shapes, lengths, labels or options that do not fit together.
    """
    if band < 1 or (blank is not None and min_frames != 1):
        raise ValueError(
            "banded_path expects a band of at least 1 token, and min_frames only without a blank; "
            f"got {band} and {min_frames}."
        )
    found = best_paths(log_probs, labels, frame_lengths, label_lengths, blank, optional, min_frames, band)
    return BandedPaths(*found)
