"""A contrastive loss of two views as a term of an objective."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from isotone.interfaces import Loss
from isotone.types import Emissions, Targets, mask_rows
from isotone_contrastive.functional import widened
from isotone_contrastive.qare import build_loss


class ContrastiveTerm(Loss):
    """Contrastive loss of two views of a batch, with or without QARe: an auxiliary term beside the loss of labels.

    Positives are the same element in both views. The value of an utterance depends on the other elements that it is
    compared with.

    Args:
        pairwise: A loss of :data:`isotone_contrastive.losses.contrastive_losses`: its name, or ``name`` and options.
        qare: Options of :class:`isotone_contrastive.qare.QARe` around it. Default: the loss alone.
        elements: The vectors that are compared. ``"utterances"``: the mean vectors of the batch; every utterance has
            the loss of the batch. ``"frames"``: the frames of one utterance.
        stride: Distance in frames between compared frames, for ``"frames"``: neighbours are poor negatives, and the
            cost grows with the square of the number of frames.

    Raises:
        ValueError: an option outside its range. Also what the parts raise.
    """

    views = 2

    def __init__(
        self,
        *,
        pairwise: str | Mapping[str, Any] = "info-nce",
        qare: Mapping[str, Any] | None = None,
        elements: Literal["utterances", "frames"] = "utterances",
        stride: int = 1,
    ) -> None:
        super().__init__()
        if elements not in ("utterances", "frames") or stride < 1:
            raise ValueError(
                f"ContrastiveTerm expects elements 'utterances' or 'frames' and stride >= 1; got {elements!r} and "
                f"{stride}."
            )
        self.contrast = build_loss(pairwise, qare)
        self.elements = elements
        self.stride = stride

    def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
        """Compute the loss of each utterance.

        Args:
            emissions: Vectors of frames ``(2 B, T, D)`` as logits, one view after the other; they are compared at
                length 1.
            targets: Not read.

        Returns:
            ``(B,)``, float32 at least; 0 where there are fewer than two elements.

        Raises:
            ValueError: an odd number of rows.
        """
        lengths, _ = self.split_views(emissions.lengths)
        vectors = mask_rows(widened(emissions.logits), emissions.lengths)
        a, b = self.split_views(vectors)
        if self.elements == "utterances":
            # a sum has the direction of the mean
            return self._contrast(a.sum(1), b.sum(1)).expand(len(a))
        rows = [
            self._contrast(x[: n : self.stride], y[: n : self.stride])
            for x, y, n in zip(a, b, lengths.tolist())
        ]
        return torch.stack(rows) if rows else a.sum((1, 2))

    def _contrast(self, a: Tensor, b: Tensor) -> Tensor:
        """Compute the loss of two views ``(N, D)``."""
        if len(a) < 2:
            return 0.0 * (a.sum() + b.sum())
        return self.contrast(F.normalize(a, dim=1), F.normalize(b, dim=1))
