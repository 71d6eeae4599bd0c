"""The maths of CTC: tensors in, tensors out."""

from __future__ import annotations

import torch
from torch import Tensor

from isotone.types import length_mask, mask_rows


def ctc(
    logits: Tensor,
    labels: Tensor,
    frame_lengths: Tensor,
    label_lengths: Tensor,
    blank: int,
    *,
    zero_infinity: bool = True,
) -> Tensor:
    r"""The negative log-likelihood :math:`-\log \sum_\pi \prod_t p_t(\pi_t)` over all CTC paths.

    Args:
        logits: ``(B, T, V)``, of any scale: they are normalised here, in float32 at least.
        labels: ``(B, U)`` int64.
        frame_lengths: ``(B,)`` int64, frames.
        label_lengths: ``(B,)`` int64, tokens.
        blank: Label number of the blank.
        zero_infinity: Where the labels need more frames than a row has, give 0 and no gradient, not infinity.

    Returns:
        ``(B,)`` nats an utterance. Frames and labels past their lengths have no influence and no gradient.

    References: Graves et al., ICML 2006; the sum over paths is inside the logarithm.
    """
    # NaN in the padding would come back through the gradient of the normalisation
    logits = mask_rows(logits.to(torch.promote_types(logits.dtype, torch.float32)), frame_lengths)
    return torch.nn.functional.ctc_loss(
        torch.log_softmax(logits, dim=-1).transpose(0, 1),
        labels,
        frame_lengths,
        label_lengths,
        blank=blank,
        reduction="none",
        zero_infinity=zero_infinity,
    )


def collapse(frame_labels: Tensor, frame_lengths: Tensor, blank: int) -> tuple[Tensor, Tensor, Tensor]:
    """Merge repeats and remove blanks: CTC's map from a label a frame to a sequence of tokens.

    Args:
        frame_labels: ``(B, T)`` int64.
        frame_lengths: ``(B,)`` int64, frames.
        blank: Label number of the blank.

    Returns:
        The tokens' labels ``(B, U)`` padded with the blank (U at least 1), their number ``(B,)``, and paths
        ``(B, T)``: for every frame its token's number, -1 for blank, -2 past the end.
    """
    valid = length_mask(frame_lengths, frame_labels.shape[1])
    carried = valid & (frame_labels != blank)
    begins = carried.clone()
    begins[:, 1:] &= frame_labels[:, 1:] != frame_labels[:, :-1]
    number = begins.cumsum(1) - 1
    paths = torch.where(carried, number, -1).masked_fill(~valid, -2)
    counts = begins.sum(1)
    size = max(1, int(counts.max()) if counts.numel() else 1)
    # every frame that begins a token writes its label; the others write to a place that is cut off
    labels = frame_labels.new_full((len(frame_labels), size + 1), blank)
    labels.scatter_(1, torch.where(begins, number, size), frame_labels)
    return labels[:, :size].contiguous(), counts, paths
