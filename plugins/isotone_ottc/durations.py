"""Durations of labels, predicted from the label sequence alone by a small network."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from isotone.types import length_mask


class DurationNetwork(nn.Module):
    """Label weights from labels: an embedding, convolutions over the sequence, and one duration per label.

    Args:
        labels: Size of the vocabulary; label numbers beyond it are an error.
        width: Channels.
        kernel: Labels seen by each of the two convolutions, odd.
        floor: f, share of the weight that is divided evenly: no label of m weighs less than ``f / m``.
    """

    def __init__(self, labels: int, *, width: int = 32, kernel: int = 5, floor: float = 0.1) -> None:
        super().__init__()
        self.labels = labels
        self.floor = floor
        self.embedding = nn.Embedding(labels, width)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(width, width, kernel, padding=kernel // 2) for _ in range(2)
        )
        self.last = nn.Linear(width, 1)
        # at first all labels have the same duration
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def forward(self, labels: Tensor, lengths: Tensor) -> Tensor:
        r"""Compute label weights :math:`\beta_j = f / m + (1 - f) d_j / \sum_k d_k`, :math:`d_j = e^{h_j} > 0`.

        Args:
            labels: ``(B, m)`` int64; padding is never read.
            lengths: ``(B,)`` int64.

        Returns:
            ``(B, m)``, rows sum to 1; zero beyond the lengths.
        """
        mask = length_mask(lengths, labels.shape[1])
        x = self.embedding(torch.where(mask, labels, 0)).masked_fill(~mask[..., None], 0.0)
        for convolution in self.convolutions:
            x = (x + nn.functional.gelu(convolution(x.mT).mT)).masked_fill(~mask[..., None], 0.0)
        # a row without labels stays unmasked: a softmax over -inf alone would be NaN
        scores = self.last(x).squeeze(-1).masked_fill(~mask & mask.any(1, keepdim=True), -torch.inf)
        even = 1 / lengths.clamp(min=1)[:, None]
        weights = self.floor * even + (1 - self.floor) * scores.softmax(-1)
        return torch.where(mask, weights, 0.0)


def divergence(target: Tensor, weights: Tensor) -> Tensor:
    r"""Compute the Kullback-Leibler divergence :math:`\sum_j t_j \log (t_j / w_j)` of rows of weights: ``(B,)``, nats.

    Both are ``(B, m)``. Gradients reach ``weights`` and, where a target is above 0, ``target``.
    """
    # 0 log 0 is 0; the inner where keeps NaN out of the gradient
    used = target > 0
    ratio = torch.where(used, target, 1.0).log() - torch.where(used, weights, 1.0).log()
    return torch.where(used, target * ratio, 0.0).sum(1)
