"""CTC losses: over all paths, and over one path from a teacher."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from isotone.interfaces import Loss
from isotone.kernels.cross_entropy import pair_cross_entropy
from isotone.types import Emissions, Targets, length_mask, mask_rows
from isotone_ctc.functional import ctc, delay_bonus


class CTCLoss(Loss):
    r"""CTC: minus the log-probability of the targets, summed over all alignments.

    Two options reduce peaks and delay. Each is a factor in every path's probability, with which the loss may be
    negative:

    - ``prior`` a divides posteriors by the label priors, :math:`p_t(v) / p(v)^a`, so that the blank is no longer the
      cheapest label of every frame (Huang et al., "Less peaky and more accurate CTC forced alignment by label
      priors", ICASSP 2024: a = 0.3). Frames are not normalised again: that would only shift the logits.
    - ``delay_penalty`` :math:`\lambda` multiplies by :math:`e^{\lambda ((T - 1) / 2 - t)}` in every frame t that
      carries a token. (Yao et al., "Delay-penalized CTC implemented based on finite state transducer", 2023, and k2
      have the factor only in the first frame of a token.) So it also lengthens tokens in the first half of an utterance
      and shortens them in the second. Use small values, such as 0.001.

    Args:
        normalize: Divide the loss of an utterance by its number of ``"tokens"`` or ``"frames"``, or by nothing
            (``"none"``).
        zero_infinity: Give 0 and no gradient, not infinity, where the targets need more frames than there are.
        prior: Power a of the label priors (the head must track them).
        delay_penalty: :math:`\lambda`, nats per frame.
        skip_optional: Leave out optional tokens, such as pauses: the blank takes their frames.

    Raises:
        ValueError: an option outside its range.
    """

    def __init__(
        self,
        *,
        normalize: Literal["tokens", "frames", "none"] = "tokens",
        zero_infinity: bool = True,
        prior: float = 0.0,
        delay_penalty: float = 0.0,
        skip_optional: bool = False,
    ) -> None:
        super().__init__()
        if normalize not in ("tokens", "frames", "none"):
            raise ValueError(f"CTCLoss expects normalize 'tokens', 'frames' or 'none'; got {normalize!r}.")
        if not (prior >= 0 and delay_penalty >= 0):
            raise ValueError(
                f"CTCLoss expects prior >= 0 and delay_penalty >= 0; got {prior} and {delay_penalty}."
            )
        self.normalize = normalize
        self.zero_infinity = zero_infinity
        self.prior = prior
        self.delay_penalty = delay_penalty
        self.skip_optional = skip_optional

    def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
        """Compute the loss of each utterance.

        Args:
            emissions: Logits ``(B, T, V)``.
            targets: Labels ``(B, U)`` without blanks.

        Returns:
            ``(B,)`` nats (per token, frame or utterance), float32 at least.

        Raises:
            ValueError: ``prior`` is above 0, and the head tracks no priors.
        """
        logits, log_norm = self._weighted(emissions)
        if self.skip_optional:
            targets = targets.required()
        loss = ctc(
            logits, targets.labels, emissions.lengths, targets.lengths, emissions.blank,
            zero_infinity=self.zero_infinity, log_norm=log_norm,
        )  # fmt: skip
        if self.normalize == "none":
            return loss
        lengths = targets.lengths if self.normalize == "tokens" else emissions.lengths
        return loss / lengths.clamp(min=1)

    def _weighted(self, emissions: Emissions) -> tuple[Tensor, Tensor | None]:
        """Return the logits with priors and delay penalty, and their log-sum-exp without these (None: none added)."""
        if not (self.prior or self.delay_penalty):
            return emissions.logits, None
        before = mask_rows(emissions.logits, emissions.lengths)
        before = before.to(torch.promote_types(before.dtype, torch.float32))
        # the loss subtracts norms from each other: large scores would cancel and lose digits
        before = before - before.detach().amax(-1, keepdim=True)
        logits = replace(emissions, logits=before).without_prior(self.prior).logits
        if self.delay_penalty:
            size, vocab_size = logits.shape[1:]
            logits = logits + self.delay_penalty * delay_bonus(
                emissions.lengths, size, vocab_size, emissions.blank
            )
        return logits, torch.logsumexp(before, -1)


class SinglePathLoss(Loss):
    """Cross-entropy along one fixed alignment, such as a teacher's path.

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
        """Compute the loss of each utterance.

        Args:
            emissions: Logits ``(B, T, V)``.
            targets: Labels with paths. Frames past a path's end are left out: all of a row without an alignment.

        Returns:
            ``(B,)`` nats per frame, float32 at least.

        Raises:
            ValueError: the targets have no paths, or paths of another shape than the logits.
        """
        if targets.paths is None:
            raise ValueError(
                "SinglePathLoss expects targets with paths and got none: give training a teacher, whose "
                "alignments become Targets.paths."
            )
        paths = targets.paths.tokens
        if paths.shape != emissions.logits.shape[:2]:
            raise ValueError(
                f"SinglePathLoss expects paths of shape {tuple(emissions.logits.shape[:2])}, one per frame; "
                f"got {tuple(paths.shape)}: the teacher's frames must be the model's."
            )
        used = length_mask(emissions.lengths, paths.shape[1]) & targets.paths.valid
        carried = used & (paths >= 0)
        token = paths.masked_fill(~carried, 0)
        labels = torch.where(carried, targets.labels.gather(1, token), emissions.blank)
        weight = torch.where(carried, 1.0, self.blank_weight) * used
        mass = weight / weight.sum(1, keepdim=True).clamp(min=1e-30)
        frame = torch.arange(paths.shape[1], device=paths.device).expand_as(paths)
        return pair_cross_entropy(emissions.logits, mass, frame, labels, emissions.lengths)
