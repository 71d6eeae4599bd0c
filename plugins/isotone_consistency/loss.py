"""Consistency of two views as a term of an objective."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from isotone.interfaces import Loss
from isotone.types import Emissions, Targets, length_mask, mask_rows
from isotone_consistency.functional import mutual_divergence


class ConsistencyLoss(Loss):
    r"""Consistency regularisation: the divergence between a head's outputs for two views of an utterance.

    .. math:: L_{CR} = \tfrac12 \sum_t D(\mathrm{sg}(z^b_t) \| z^a_t) + D(\mathrm{sg}(z^a_t) \| z^b_t)

    over the valid frames, divided according to ``normalize``. The paper's CR-CTC is the mean of the CTC losses of both
    views plus 0.2 times that sum. The objective takes the mean; this loss is another term, with the weight. Beside a
    loss per token, such as ``ctc``, the paper's weight is 0.2 with ``"tokens"``; with ``"frames"`` it is 0.2 times the
    number of frames per token. Beside ``ottc``, a loss per frame, use ``"frames"``.

    Args:
        normalize: Divide the sum over an utterance's frames by their number (``"frames"``), by that of its
            ``"tokens"``, or by nothing (``"none"``).
        ot_weights: Weight of the same divergence between the OT weights alpha of both views, for heads with OT weights.
            Each is a distribution over the frames of the utterance: nats per utterance, whatever ``normalize`` is.

    Raises:
        ValueError: an option outside its range.

    References: Yao et al., "CR-CTC", 2024, arXiv:2410.05101.
    """

    views = 2

    def __init__(
        self, *, normalize: Literal["frames", "tokens", "none"] = "frames", ot_weights: float = 0.0
    ) -> None:
        super().__init__()
        if normalize not in ("frames", "tokens", "none"):
            raise ValueError(
                f"ConsistencyLoss expects normalize 'frames', 'tokens' or 'none'; got {normalize!r}."
            )
        if not ot_weights >= 0:
            raise ValueError(f"ConsistencyLoss expects ot_weights >= 0; got {ot_weights}.")
        self.normalize = normalize
        self.ot_weights = ot_weights

    def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
        """Compute the divergence of each utterance.

        Args:
            emissions: Logits ``(2 B, T, V)``, one view after the other.
            targets: 2 B rows, of which only the lengths are read, to divide by them.

        Returns:
            ``(B,)`` nats (per frame, token or utterance), float32 at least.

        Raises:
            ValueError: an odd number of rows, or ``ot_weights`` for a head without OT weights.
        """
        frames, _ = self.split_views(emissions.lengths)
        # NaN in the padding would reach the gradient through the normalisation
        read = replace(emissions, logits=mask_rows(emissions.logits, emissions.lengths))
        loss = mutual_divergence(*self.split_views(read.log_probs())).sum(1)
        if self.normalize != "none":
            tokens, _ = self.split_views(targets.lengths)
            loss = loss / (frames if self.normalize == "frames" else tokens).clamp(min=1)
        if not self.ot_weights:
            return loss
        return loss + self.ot_weights * mutual_divergence(*self.split_views(_log_weights(emissions)))


def _log_weights(emissions: Emissions) -> Tensor:
    """Return the logarithms of the OT weights ``(2 B, T)``; beyond the lengths 0, which adds nothing."""
    logits = emissions.weight_logits
    if logits is None:
        raise ValueError(
            "ConsistencyLoss(ot_weights=...) expects emissions with OT weights, as the ottc head gives them; got none. "
            "Name another head, or set ot_weights to 0."
        )
    padding = ~length_mask(emissions.lengths, logits.shape[1])
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return torch.log_softmax(wide.masked_fill(padding, -torch.inf), -1).masked_fill(padding, 0.0)
