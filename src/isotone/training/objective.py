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
    """A model and its weighted losses.

    Args:
        model: Encoder and heads.
        terms: Term name to ``head``, ``loss`` (``name`` and options) and ``weight``. Terms of weight 0 are left out;
            heads that no term needs are not computed.

    Attributes:
        views: Number of times that the model sees every utterance of a batch: the largest number of views of the
            losses, see :class:`isotone.interfaces.Loss`.

    Raises:
        ValueError: a term names a head that the model does not have, all weights are 0, or two losses need different
            numbers of views above one.
    """

    def __init__(self, model: Model, terms: Mapping[str, Any]) -> None:
        super().__init__()
        self.model = model
        for name, term in terms.items():
            if term["head"] not in model.heads:
                raise ValueError(
                    f"Objective term {name!r} names a head {term['head']!r}; the model has: {', '.join(model.heads)}."
                )
        terms = {name: term for name, term in terms.items() if term["weight"]}
        if not terms:
            raise ValueError("An objective needs a term whose weight is not 0.")
        self.heads = {name: str(term["head"]) for name, term in terms.items()}
        self.weights = {name: float(term["weight"]) for name, term in terms.items()}
        built = {name: losses.create(term["loss"]) for name, term in terms.items()}
        self.losses = nn.ModuleDict(built)
        self._views = {name: loss.views for name, loss in built.items()}
        self.views = max(self._views.values(), default=1)
        if any(views not in (1, self.views) for views in self._views.values()):
            raise ValueError(
                f"The losses of an objective see one number of views, or one; got {self._views}."
            )

    def forward(self, audio: Tensor, lengths: Tensor, targets: Targets) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the weighted sum of the terms ``(B,)``, and each term ``(B,)`` detached; both are means over views.

        Raises:
            ValueError: a loss gives another shape than one value per utterance.
        """
        size = len(audio)
        if self.views > 1:
            audio, lengths = audio.repeat(self.views, 1), lengths.repeat(self.views)
            targets = _repeat(targets, self.views)
        emissions = self.model(audio, lengths, set(self.heads.values()))
        total = torch.zeros(size, device=audio.device)
        parts: dict[str, Tensor] = {}
        for name, loss in self.losses.items():
            value = loss(emissions[self.heads[name]], targets)
            self._check(name, value, size)
            if self._views[name] < self.views:  # a loss of one view got all of them as rows: average
                value = value.view(self.views, size).mean(0)
            total = total + self.weights[name] * value
            parts[name] = value.detach()
        return total, parts

    def _check(self, name: str, value: Any, size: int) -> None:
        """Check that a loss gave one value per row: another shape would be spread over the batch, and count wrongly."""
        rows = size * self.views // self._views[name]
        if isinstance(value, Tensor) and value.shape == (rows,):
            return
        found = f"a tensor {tuple(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
        raise ValueError(
            f"The loss of term {name!r} ({type(self.losses[name]).__name__}) gave {found}; expected ({rows},), one "
            "value per utterance, without a mean or a sum over the batch."
        )

    def set_progress(self, progress: float) -> None:
        """Tell heads and losses which share of the training is done (0 to 1)."""
        for module in self.modules():
            if isinstance(module, Scheduled):
                module.progress = progress


def _repeat(targets: Targets, views: int) -> Targets:
    """Repeat the targets for each view: all rows of the first view, then all of the second."""
    return targets.rows(list(range(len(targets.lengths))) * views)
