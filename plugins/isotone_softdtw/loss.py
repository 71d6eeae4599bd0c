"""Soft-DTW of frames and labels as a training loss."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from isotone.interfaces import Loss
from isotone.kernels.softdtw import soft_dtw
from isotone.types import Emissions, Targets
from isotone_softdtw.costs import label_costs


class SoftDTWLoss(Loss):
    r"""Soft-DTW of frames and labels, with the cost :math:`C_{ij} = -\log p_{y_j}(x_i)`.

    At gamma = 1 it is minus the logarithm of the sum, over all DTW paths, of the product of the probabilities on the
    path. Only the two ends must align. A frame may be shared by any number of labels, so a network can learn to pass
    over labels within single frames (see :meth:`isotone.types.Coupling.frameless_share`). The OTTC paper compares with
    it for that reason; CTC and OTTC give every label a frame.

    Args:
        gamma: Width of the soft minimum, nats; 0 is the best path.
        normalize: Divide the loss of an utterance by its number of ``"frames"`` or of ``"tokens"``, or by nothing
            (``"none"``).
        band: Half width of a Sakoe-Chiba band, in labels (where there are fewer labels than frames). Default: none.

    Raises:
        ValueError: an option outside its range.
    """

    def __init__(
        self,
        *,
        gamma: float = 1.0,
        normalize: Literal["frames", "tokens", "none"] = "frames",
        band: int | None = None,
    ) -> None:
        super().__init__()
        if not gamma >= 0 or (band is not None and band < 0):
            raise ValueError(
                f"SoftDTWLoss expects gamma >= 0 and a band >= 0 or none; got {gamma} and {band}."
            )
        if normalize not in ("frames", "tokens", "none"):
            raise ValueError(
                f"SoftDTWLoss expects normalize 'frames', 'tokens' or 'none'; got {normalize!r}."
            )
        self.gamma = gamma
        self.normalize = normalize
        self.band = band

    def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
        """The loss of each utterance.

        Args:
            emissions: Logits ``(B, T, V)``.
            targets: Labels ``(B, U)``. No blank is put between repeats.

        Returns:
            ``(B,)`` nats (a frame, a token or an utterance), float32 at least. 0 without gradient where there are
            fewer frames than labels, or no labels.
        """
        logits, frames, tokens = emissions.logits, emissions.lengths, targets.lengths
        if logits.shape[1] == 0 or targets.labels.shape[1] == 0:
            return logits.new_zeros(len(logits), dtype=torch.promote_types(logits.dtype, torch.float32))
        feasible = (tokens > 0) & (tokens <= frames)
        read = [torch.where(feasible, lengths, 0) for lengths in (frames, tokens)]
        costs = label_costs(logits, targets.labels, *read)
        loss = soft_dtw(costs, self.gamma, *(lengths.clamp(min=1) for lengths in read), band=self.band)
        loss = torch.where(feasible, loss, 0.0)
        if self.normalize == "none":
            return loss
        return loss / (frames if self.normalize == "frames" else tokens).clamp(min=1)
