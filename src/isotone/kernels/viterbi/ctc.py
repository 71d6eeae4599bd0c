"""The best CTC path of known label sequences."""

from __future__ import annotations

from isotone.kernels._inputs import Array
from isotone.kernels.viterbi.search import best_paths


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
    are merged and blanks removed (Graves et al. 2006, section 4). Time O(T U), less the cells that no path can reach.

    On ties, the path that is further along in the last frame in which they differ wins: it is at a later token, or in
    the blank after the token that the other is still in.

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
        AlignmentError: a row has too few frames, holds NaN or +inf in a label of its target, or has no path of
            probability above zero; the message names the row.
        ValueError: shapes, lengths or labels that do not fit together.
    """
    return best_paths(log_probs, labels, frame_lengths, label_lengths, blank, optional, 1, None)[:2]


def ctc_score(
    log_probs: Array,
    labels: Array,
    frame_lengths: Array,
    label_lengths: Array,
    blank: int,
    optional: Array | None = None,
) -> Array:
    """The scores ``(B,)`` of :func:`ctc_path` alone, in less time; it raises the same."""
    return best_paths(
        log_probs, labels, frame_lengths, label_lengths, blank, optional, 1, None, traced=False
    )[1]
