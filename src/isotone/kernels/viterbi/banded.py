"""The best path near the straight line from the first frame and token to the last."""

from __future__ import annotations

from typing import Generic, NamedTuple

from isotone.kernels._inputs import Array
from isotone.kernels.viterbi.search import best_paths


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
    found = best_paths(log_probs, labels, frame_lengths, label_lengths, blank, optional, min_frames, band)
    return BandedPaths(*found)
