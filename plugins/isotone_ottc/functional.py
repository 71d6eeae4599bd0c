"""The loss of OTTC."""

from __future__ import annotations

import torch
from torch import Tensor

from isotone.kernels.coupling import couple
from isotone.kernels.cross_entropy import pair_cross_entropy


def ottc_loss(
    logits: Tensor,
    alpha: Tensor,
    labels: Tensor,
    beta: Tensor,
    frame_lengths: Tensor,
    label_lengths: Tensor,
    required: Tensor | None = None,
) -> Tensor:
    r"""Compute the loss of Optimal Temporal Transport Classification: cross-entropy along a coupling.

    :math:`L = -\sum_{ij} \gamma(\alpha, \beta)_{ij} \log p_{y_j}(x_i)` couples n frames and m labels. It is computed
    at the n + m - 1 pairs where the coupling may not be zero. The first derivative is exact in logits, alpha and beta.

    Args:
        logits: ``(B, T, V)`` unnormalised, nats; frames beyond their lengths are never read and get gradient 0.
        alpha: ``(B, T)`` OT weights of the frames, non-negative; divided by their sum. See
            :func:`isotone.kernels.coupling.frame_weights`.
        labels: ``(B, U)`` int64, blanks between repeats already inserted.
        beta: ``(B, U)`` weights of the labels, non-negative; divided by their sum.
        frame_lengths, label_lengths: ``(B,)`` int64.
        required: ``(B,)`` fewest frames of a row. Default: one per label.

    Returns:
        ``(B,)`` nats per unit of mass; float64 for float64 logits, else float32. 0, without gradient, for rows with
        fewer frames than they need, or without labels.

    Raises:
        ValueError: shapes that do not match.

    Numerics: log-sum-exp in float32 (float64 for float64), prefix sums of the weights in float64. The only tensor
    as large as the logits is their gradient: there is no (B, T, U) tensor and no stored log-softmax. Other devices
    are never synchronised with the host; torch.compile takes it as one graph.

    References: "A Differentiable Alignment Framework for Sequence-to-Sequence Modeling via Optimal
    Transport", 2025, equation 11.
    """
    if logits.ndim != 3 or alpha.shape != logits.shape[:2] or beta.shape != labels.shape:
        raise ValueError(
            "ottc_loss expects logits (B, T, V), alpha (B, T), labels (B, U) and beta (B, U); got "
            f"{tuple(logits.shape)}, {tuple(alpha.shape)}, {tuple(labels.shape)} and {tuple(beta.shape)}."
        )
    if logits.shape[1] == 0 or labels.shape[1] == 0:
        return logits.new_zeros(len(logits), dtype=torch.promote_types(logits.dtype, torch.float32))
    # rows that cannot be aligned get no frames, and so neither loss nor gradient
    feasible = (label_lengths > 0) & ((label_lengths if required is None else required) <= frame_lengths)
    coupling = couple(alpha, beta, frame_lengths, label_lengths)
    return pair_cross_entropy(
        logits,
        coupling.mass,
        coupling.source,
        labels.gather(1, coupling.target),
        torch.where(feasible, frame_lengths, 0),
    )
