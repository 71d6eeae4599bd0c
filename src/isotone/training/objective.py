"""The objective: a weighted sum of (head, loss) pairs over one encoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from isotone.interfaces import Scheduled
from isotone.model import Model
from isotone.registries import losses
from isotone.types import Targets


class Objective(nn.Module):
    """A model and what it is trained to do.

    Args:
        model: Encoder and heads.
        terms: Term name to ``head``, ``loss`` (``name`` and options) and ``weight``.

    Raises:
        ValueError: a term names a head that the model does not have.
    """

    def __init__(self, model: Model, terms: Mapping[str, Any]) -> None:
        super().__init__()
        self.model = model
        self.heads = {name: str(term["head"]) for name, term in terms.items()}
        self.weights = {name: float(term["weight"]) for name, term in terms.items()}
        for name, head in self.heads.items():
            if head not in model.heads:
                raise ValueError(
                    f"Objective term {name!r} names a head {head!r}; the model has: {', '.join(model.heads)}."
                )
        self.losses = nn.ModuleDict({name: losses.create(term["loss"]) for name, term in terms.items()})

    def forward(self, audio: Tensor, lengths: Tensor, targets: Targets) -> tuple[Tensor, dict[str, Tensor]]:
        """The weighted sum of the terms, ``(B,)``, and each term, ``(B,)``, detached."""
        emissions = self.model(audio, lengths, set(self.heads.values()))
        total = torch.zeros(len(audio), device=audio.device)
        parts: dict[str, Tensor] = {}
        for name, loss in self.losses.items():
            value = loss(emissions[self.heads[name]], targets)
            total = total + self.weights[name] * value
            parts[name] = value.detach()
        return total, parts

    def set_progress(self, progress: float) -> None:
        """Tell heads and losses which share of the training is done (0 to 1)."""
        for module in self.modules():
            if isinstance(module, Scheduled):
                module.progress = progress
