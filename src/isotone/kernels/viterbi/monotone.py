"""The best path of known label sequences without blanks."""

from __future__ import annotations

from isotone.kernels._inputs import Array
from isotone.kernels.viterbi.search import best_paths


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
    """The best path without blanks: each frame has a token, and each token in turn takes consecutive frames.

    Maximises ``sum_t log p_t(y_{a(t)})`` over the non-decreasing a that visit every token that is not optional and give
    at least ``min_frames`` frames to each that they visit. Equal neighbours are allowed. Time O(T U min_frames), less
    the cells that no path can reach. With ``near``, every frame t whose token a(t) is not among
    ``near[t, 0] .. near[t, 1]`` costs ``far_cost`` nats: so another source can tell roughly where tokens are.

    On ties, the path that is at the later token in the last frame in which they differ wins.

    Args:
        log_probs: ``(B, T, V)`` as in :func:`isotone.kernels.viterbi.ctc_path`.
        labels: ``(B, U)`` integers.
        frame_lengths: ``(B,)`` frames.
        label_lengths: ``(B,)`` tokens, at least 1.
        optional: ``(B, U)`` bool, tokens that may be left out (silence between words). Default: none.
        min_frames: Least frames per token.
        near: ``(B, T, 2)`` integers, the first and last token that a frame may have at no cost; they may lie outside
            0 to U - 1. Default: all.
        far_cost: Nats per frame with any other token, 0 or more.

    Returns:
        Paths ``(B, T)`` int64, without -1, and their scores ``(B,)`` in nats, less those costs.

    Raises:
        AlignmentError: as in :func:`isotone.kernels.viterbi.ctc_path`; also for a row without tokens.
        ValueError: shapes, lengths or labels that do not fit together.
    """
    ranges = near, far_cost
    return best_paths(
        log_probs, labels, frame_lengths, label_lengths, None, optional, min_frames, None, ranges
    )[:2]
