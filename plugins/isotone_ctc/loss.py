"""CTC losses: over all paths, and over one path from a teacher."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from isotone.interfaces import Loss
from isotone.kernels.cross_entropy import pair_cross_entropy
from isotone.types import Emissions, Targets, length_mask
from isotone_ctc.functional import ctc


class CTCLoss(Loss):
    """CTC: minus the log-probability of the targets, summed over all alignments.

    Args:
        normalize: Divide the loss of an utterance by its number of ``"tokens"`` or of ``"frames"``, or by
            nothing (``"none"``).
        zero_infinity: Give 0 and no gradient where the targets need more frames than there are; infinity
            otherwise.
    """

    def __init__(
        self, *, normalize: Literal["tokens", "frames", "none"] = "tokens", zero_infinity: bool = True
    ) -> None:
        super().__init__()
        if normalize not in ("tokens", "frames", "none"):
            raise ValueError(f"CTCLoss expects normalize 'tokens', 'frames' or 'none'; got {normalize!r}.")
        self.normalize = normalize
        self.zero_infinity = zero_infinity

    def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
        """The loss of each utterance.

        Args:
            emissions: Logits ``(B, T, V)``; their ``blank`` is the blank.
            targets: Labels ``(B, U)`` without blanks.

        Returns:
            ``(B,)`` nats (a token, a frame or an utterance), float32 at least.
        """
        loss = ctc(
            emissions.logits, targets.labels, emissions.lengths, targets.lengths, emissions.blank,
            zero_infinity=self.zero_infinity,
        )  # fmt: skip
        if self.normalize == "none":
            return loss
        lengths = targets.lengths if self.normalize == "tokens" else emissions.lengths
        return loss / lengths.clamp(min=1)


class SinglePathLoss(Loss):
    """Cross-entropy of one fixed alignment: the path that a teacher found.

    The loss of an utterance is the weighted mean over its frames of ``-log p_t(y_t)``, where y_t is the label
    of the token that ``targets.paths`` gives frame t, or the blank.

    Args:
        blank_weight: Weight of blank frames; frames of tokens weigh 1.
    """

    def __init__(self, *, blank_weight: float = 1.0) -> None:
        super().__init__()
        if not blank_weight >= 0:
            raise ValueError(f"SinglePathLoss expects blank_weight >= 0; got {blank_weight}.")
        self.blank_weight = blank_weight

    def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
        """The loss of each utterance.

        Args:
            emissions: Logits ``(B, T, V)``.
            targets: With ``paths (B, T)``; frames whose path is -2 (a row that the teacher could not align)
                are left out.

        Returns:
            ``(B,)`` nats a frame, float32 at least.

        Raises:
            ValueError: the targets have no paths, or paths of another shape than the logits.
        """
        paths = targets.paths
        if paths is None:
            raise ValueError(
                "SinglePathLoss expects targets with paths and got none: give training a teacher, whose "
                "alignments become Targets.paths."
            )
        if paths.shape != emissions.logits.shape[:2]:
            raise ValueError(
                f"SinglePathLoss expects paths of shape {tuple(emissions.logits.shape[:2])}, one a frame; "
                f"got {tuple(paths.shape)}: the teacher's frames must be the model's."
            )
        used = length_mask(emissions.lengths, paths.shape[1]) & (paths > -2)
        carried = used & (paths >= 0)
        token = paths.masked_fill(~carried, 0)
        labels = torch.where(carried, targets.labels.gather(1, token), emissions.blank)
        weight = torch.where(carried, 1.0, self.blank_weight) * used
        mass = weight / weight.sum(1, keepdim=True).clamp(min=1e-30)
        frame = torch.arange(paths.shape[1], device=paths.device).expand_as(paths)
        return pair_cross_entropy(emissions.logits, mass, frame, labels, emissions.lengths)
