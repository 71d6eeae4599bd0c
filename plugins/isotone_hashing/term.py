"""Tie-aware learning to rank as a term of an objective."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from isotone.interfaces import Loss
from isotone.types import Emissions, Targets, mask_rows
from isotone_hashing.loss import TALRLoss


class TALRTerm(Loss):
    r"""TALR of the utterances of a batch: their mean vectors become codes that rank the batch by Hamming distance.

    Codes are :math:`\tanh(\alpha f)` with f the mean vector of an utterance at length 1; the sign of f is the code that
    is searched. :math:`\alpha` grows in equal ratios from ``first_scale`` to ``scale`` as training goes on (TALR,
    appendix D). Both views of each utterance query all others.

    Args:
        affinity: The relevant items. ``"views"``: the other view of the utterance. ``"labels"``: also utterances with
            the same label sequence. ``"shared"``: all utterances with a label of the query's; the affinity is the
            number of different labels that both have, as in the paper's experiment on NUS-WIDE.
        metric, relaxation, width: As in :class:`isotone_hashing.loss.TALRLoss`; ``"ndcg"`` for ``"shared"``.
        scale, first_scale: alpha at the end and at the beginning.
        most: Largest affinity of ``"shared"``: the gain of an item is 2 to its power.

    Raises:
        ValueError: an option outside its range.
    """

    views = 2

    def __init__(
        self,
        *,
        affinity: Literal["views", "labels", "shared"] = "views",
        metric: Literal["ap", "ndcg"] = "ap",
        relaxation: Literal["simplified", "integral"] = "simplified",
        width: float = 1.0,
        scale: float = 40.0,
        first_scale: float = 1.0,
        most: int = 5,
    ) -> None:
        super().__init__()
        if affinity not in ("views", "labels", "shared") or not min(scale, first_scale) > 0 or most < 1:
            raise ValueError(
                "TALRTerm expects affinity 'views', 'labels' or 'shared', scales above 0 and most >= 1; got "
                f"{affinity!r}, {scale}, {first_scale} and {most}."
            )
        self.ranking = TALRLoss(metric=metric, relaxation=relaxation, width=width)
        self.affinity = affinity
        self.scale, self.first_scale, self.most = scale, first_scale, most

    def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
        """Compute the loss of each utterance, the mean of its views' queries.

        Args:
            emissions: Vectors of frames ``(2 B, T, b)`` as logits, one view after the other.
            targets: Labels of the utterances, once per view; not read with ``"views"``.

        Returns:
            ``(B,)``, float32 at least; 0 without gradient where nothing else is in the batch.

        Raises:
            ValueError: an odd number of rows.
        """
        self.split_views(emissions.lengths)
        logits = emissions.logits.to(torch.promote_types(emissions.logits.dtype, torch.float32))
        # a sum has the direction of the mean
        vectors = F.normalize(mask_rows(logits, emissions.lengths).sum(1), dim=1)
        alpha = self.first_scale ** (1 - self.progress) * self.scale**self.progress
        value = self.ranking(
            torch.tanh(alpha * vectors), self._affinity(targets, len(vectors)).to(vectors.device)
        )
        return torch.stack(self.split_views(value)).mean(0)

    def _affinity(self, targets: Targets, rows: int) -> Tensor:
        """Return the affinities ``(2 B, 2 B)``; an item's affinity to itself is not read."""
        number = torch.arange(rows) % max(1, rows // 2)
        same = (number[:, None] == number).long()
        if self.affinity == "views":
            return same
        labels = targets.tolist()
        if self.affinity == "labels":
            known = {row: n for n, row in enumerate(dict.fromkeys(map(tuple, labels)))}
            of_row = torch.tensor([known[tuple(row)] for row in labels])
            return (of_row[:, None] == of_row).long() | same
        present = torch.zeros(rows, 1 + max([0, *(label for row in labels for label in row)]))
        for row, of_one in enumerate(labels):
            present[row, [label for label in of_one if label >= 0]] = 1.0
        return torch.maximum((present @ present.T).long(), same).clamp(max=self.most)
