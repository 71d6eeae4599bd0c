"""The likeliest label sequences of CTC emissions, on the CPU: prefix beam search.

The loops are compiled by numba and release the GIL; the rows of a batch run on ``torch.get_num_threads()``
Python threads. Probabilities are summed as float64 logarithms.
"""

from __future__ import annotations

from typing import Generic, NamedTuple

import numpy as np

from isotone.kernels._beam import beam_row
from isotone.kernels._inputs import Array, as_arrays, check_scores, each_row, like

#: Prefixes that are kept after every frame, and nats by which labels may be less likely than their frame's best.
BEAM, PRUNE = 16, 12.0


class Hypotheses(NamedTuple, Generic[Array]):
    """Results of :func:`prefix_beam_search`, the best of each row first.

    Attributes:
        labels: ``(B, N, U)`` int64, U at least 1; zeros past the lengths.
        lengths: ``(B, N)`` int64, tokens.
        scores: ``(B, N)`` float64 nats; -inf where a row has fewer than N hypotheses.
    """

    labels: Array
    lengths: Array
    scores: Array


def prefix_beam_search(
    log_probs: Array,
    frame_lengths: Array,
    blank: int,
    *,
    beam: int = BEAM,
    count: int = 1,
    prune: float = PRUNE,
) -> Hypotheses[Array]:
    r"""The label sequences y of the highest probability :math:`\sum_{\pi \in paths(y)} \prod_t p_t(\pi_t)`.

    Greedy decoding finds the best path. But many paths give one label sequence, and the best sequence is not always
    that of the best path. After every frame the ``beam`` likeliest prefixes are kept, each with the probabilities of
    its paths that end in a blank and in its last label (Graves & Jaitly, ICML 2014, algorithm 1). Prefixes that leave
    the beam are lost, so scores are lower bounds. Scores and order are exact where nothing had to leave. Time
    O(T beam V) at most: labels that cannot enter the beam are skipped.

    Args:
        log_probs: ``(B, T, V)`` float32 or float64 (other types are converted), nats; -inf is allowed.
        frame_lengths: ``(B,)`` frames.
        blank: Label number of the blank.
        beam: Prefixes kept, at least 1.
        count: Hypotheses to return, N, at most ``beam``.
        prune: Labels that score more than so many nats below the best of their frame make no new prefixes. Infinity:
            all do.

    Raises:
        AlignmentError: a row holds NaN or +inf, or all its paths have probability 0; the message names it.
        ValueError: shapes or options that do not fit together.
    """
    if not 1 <= count <= beam or not prune >= 0:
        raise ValueError(
            "prefix_beam_search expects 1 <= count <= beam, and prune of 0 nats or more; "
            f"got count {count}, beam {beam} and prune {prune}."
        )
    none = np.zeros((len(log_probs), 0), np.int64)
    scores_in, _, frames, _ = as_arrays(log_probs, none, frame_lengths, none.sum(1))
    rows, size, vocab = scores_in.shape
    if not 0 <= blank < vocab:
        raise ValueError(f"prefix_beam_search expects a blank from 0 to {vocab - 1}; got {blank}.")
    labels = np.zeros((rows, count, max(1, size)), np.int64)
    lengths = np.zeros((rows, count), np.int64)
    scores = np.full((rows, count), -np.inf)
    each_row(
        beam_row, frames * (vocab + 100 * beam),
        scores_in, frames, blank, beam, float(prune), labels, lengths, scores,
    )  # fmt: skip
    check_scores(scores[:, 0])
    labels = np.ascontiguousarray(labels[:, :, : max(1, int(lengths.max(initial=0)))])
    return Hypotheses(like(log_probs, labels), like(log_probs, lengths), like(log_probs, scores))


__all__ = ["BEAM", "PRUNE", "Hypotheses", "check_scores", "prefix_beam_search"]
