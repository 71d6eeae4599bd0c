"""The order-preserving selection score as a training loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from isotone.interfaces import Loss, Relaxation
from isotone.registries import relaxations
from isotone.types import Emissions, Targets, mask_rows
from isotone_opas.selection import Between, best_selection, selection_rewards, soft_selection


class OPASLoss(Loss):
    def __init__(
        self,
        *,
        relaxation: str | Mapping[str, Any] = "ordered",
        temperature: float = 1.0,
        between: Between = "neighbours",
        weight: float = 1.0,
        slope: float = 0.0,
        slope_until: float = 0.3,
        prior: float = 0.0,
        normalize: Literal["frames", "tokens", "none"] = "frames",
    ) -> None:
        super().__init__()
        self.relaxation: Relaxation | None = None
        if relaxation != "ordered":
            self.relaxation = relaxations.create(relaxation)
        self.temperature = temperature
        self.between: Between = between
        self.weight = weight
        self.slope = slope
        self.slope_until = slope_until
        self.prior = prior
        self.normalize = normalize

    def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
        logits, frames, tokens = emissions.logits, emissions.lengths, targets.lengths
        dtype = torch.promote_types(logits.dtype, torch.float32)
        if logits.shape[1] == 0 or targets.labels.shape[1] == 0:
            return logits.new_zeros(len(logits), dtype=dtype)
        feasible = (tokens > 0) & (tokens <= frames)
        # other rows are read as one token in one frame
        sizes = [torch.where(feasible, lengths, 1) for lengths in (frames, tokens)]
        log_probs = torch.log_softmax(mask_rows(logits, frames).to(dtype), -1)
        if self.prior:
            log_probs = log_probs - self.prior * emissions.log_prior
        rewards, rest = selection_rewards(
            log_probs, targets.labels, *sizes, emissions.blank, between=self.between, weight=self.weight
        )
        rewards = rewards - self._slope(*sizes, rewards)
        if self.relaxation is not None:
            plan = self.relaxation(rewards, sizes[1], sizes[0])
            score = (plan * rewards).sum((1, 2))
        elif self.temperature == 0:
            score = best_selection(rewards, *sizes)
        else:
            score = soft_selection(rewards, *sizes, self.temperature)
        loss = torch.where(feasible, -(score + rest), 0.0).to(dtype)
        if self.normalize == "none":
            return loss
        return loss / (frames if self.normalize == "frames" else tokens).clamp(min=1)

    def _slope(self, frames: Tensor, tokens: Tensor, rewards: Tensor) -> Tensor:
        cost = self.slope * max(0.0, 1 - self.progress / self.slope_until) if self.slope_until > 0 else self.slope
        t = torch.arange(rewards.shape[2], device=rewards.device) + 0.5
        j = torch.arange(rewards.shape[1], device=rewards.device) + 0.5
        return cost * ((t / frames[:, None])[:, None] - (j / tokens[:, None])[..., None]).abs()
