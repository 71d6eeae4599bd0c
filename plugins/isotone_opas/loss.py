"""The order-preserving selection score as a training loss."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from isotone.interfaces import Loss
from isotone.types import Emissions, Targets, mask_rows, widened
from isotone_opas.selection import Between, best_selection, selection_rewards, soft_selection


class OPASLoss(Loss):
    r"""Minus the score of the best ordered selections of frames by tokens, the other frames counted less.

    A selection :math:`t_1 < .. < t_m` gives every token a frame. Its score is

    .. math:: \sum_j \log p_{t_j}(y_j) + w \sum_j \sum_{t_j < t < t_{j+1}} g_{j,t}
              - \kappa \sum_j \Bigl|\frac{t_j + 1/2}{T} - \frac{j + 1/2}{m}\Bigr|,

    where :math:`g_{j,t} = \log(p_t(y_j) + p_t(y_{j+1}))`: a frame between two selected ones belongs to either token.
    The loss is minus the soft maximum over all selections, :math:`\tau \log \sum e^{s / \tau}`; with
    :math:`\tau = 0` minus the score of the best one. It is OPAS with the tokens as its query and the frames as its
    corpus sequence. The relaxed selection keeps order exactly. Sinkhorn's plan does not: no frames lie between then.

    The selected frames are contrasted with all other labels by the softmax. With w = 1 the frames between outnumber
    them, and a label that stands beside many others (silence) takes them all. With w = 0 they are free.

    Args:
        temperature: :math:`\tau`, nats; 0 is the best selection alone. Above 0 the loss may be negative: selections of
            equal score add up.
        between: :math:`g_{j,t}`: ``"neighbours"`` as above, ``"mean"`` the mean of both logarithms, ``"blank"`` the
            logarithm of the blank's probability: then models are peaky, as CTC's.
        weight: w.
        slope: :math:`\kappa`, nats, at the beginning of training. It falls to 0.
        slope_until: Share of the training until the slope is 0.
        normalize: Divide the loss of an utterance by its number of ``"tokens"`` or ``"frames"``, or by nothing
            (``"none"``).

    Raises:
        ValueError: an option outside its range.

    References: "Learning Right Monotone Permutation Matrices for Neural Subsequence Search".
    """

    def __init__(
        self,
        *,
        temperature: float = 1.0,
        between: Between = "neighbours",
        weight: float = 0.1,
        slope: float = 0.0,
        slope_until: float = 0.3,
        normalize: Literal["frames", "tokens", "none"] = "frames",
    ) -> None:
        super().__init__()
        if not (temperature >= 0 and weight >= 0 and slope >= 0 and 0 < slope_until <= 1):
            raise ValueError(
                "OPASLoss expects temperature, weight and slope >= 0, and slope_until above 0 and at most 1; "
                f"got {temperature}, {weight}, {slope} and {slope_until}."
            )
        if between not in get_args(Between) or normalize not in ("frames", "tokens", "none"):
            raise ValueError(
                f"OPASLoss expects between among {get_args(Between)} and normalize 'frames', 'tokens' or 'none'; "
                f"got {between!r} and {normalize!r}."
            )
        self.temperature = temperature
        self.between: Between = between
        self.weight = weight
        self.slope = slope
        self.slope_until = slope_until
        self.normalize = normalize

    def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
        """Compute the loss of each utterance.

        Args:
            emissions: Logits ``(B, T, V)``.
            targets: Labels ``(B, U)`` without blanks; all of them are selected, optional ones too.

        Returns:
            ``(B,)`` nats (per frame, token or utterance), float32 at least. 0 without gradient where there are
            fewer frames than labels, or no labels. Sums are float64.
        """
        logits, frames, tokens = widened(emissions.logits), emissions.lengths, targets.lengths
        if logits.shape[1] == 0 or targets.labels.shape[1] == 0:
            return logits.new_zeros(len(logits))
        feasible = (tokens > 0) & (tokens <= frames)
        # the others are read as one token in one frame
        sizes = torch.where(feasible, frames, 1), torch.where(feasible, tokens, 1)
        log_probs = torch.log_softmax(mask_rows(logits, frames), -1)
        labels = mask_rows(targets.labels, tokens)
        rewards, rest = selection_rewards(
            log_probs, labels, *sizes, emissions.blank, between=self.between, weight=self.weight
        )
        if self.slope > 0:
            rewards = rewards - self._cost() * _distance(*sizes, rewards)
        if self.temperature == 0:
            score = best_selection(rewards, *sizes)
        else:
            score = soft_selection(rewards, *sizes, self.temperature)
        loss = torch.where(feasible, -(score + rest), 0.0).to(logits.dtype)
        if self.normalize == "none":
            return loss
        return loss / (frames if self.normalize == "frames" else tokens).clamp(min=1)

    def _cost(self) -> float:
        """The slope of this step, nats."""
        return self.slope * max(0.0, 1 - self.progress / self.slope_until)


def _distance(frames: Tensor, tokens: Tensor, rewards: Tensor) -> Tensor:
    """Distances ``(B, U, T)`` from the diagonal, as shares of the utterance."""
    t = torch.arange(rewards.shape[2], device=rewards.device) + 0.5
    j = torch.arange(rewards.shape[1], device=rewards.device) + 0.5
    return ((t / frames[:, None])[:, None] - (j / tokens[:, None])[..., None]).abs()
