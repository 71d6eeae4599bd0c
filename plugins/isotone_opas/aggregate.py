"""One vector per sequence of vectors (the paper's SetAggr), for nearest-neighbour search and hashing."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from isotone.types import length_mask, mask_rows


class DeepSets(nn.Module):
    r"""A multilayer perceptron on :math:`G(X) = \sum_j ReLU(\Omega x_j + \mu)` (Zaheer et al. 2017; Theorem 2).

    The rows of Omega start on the unit sphere and mu in [-1, 1], both uniformly: the random features of Theorem 2 for
    vectors of norm 1.

    Args:
        size: d of the vectors.
        width: Number of features.
        out: Size of the result. None leaves the perceptron out.
        hidden: Width within the perceptron.
    """

    def __init__(
        self, *, size: int = 128, width: int = 256, out: int | None = 128, hidden: int = 256
    ) -> None:
        super().__init__()
        self.features = nn.Linear(size, width)
        with torch.no_grad():
            self.features.weight.normal_()
            self.features.weight /= self.features.weight.norm(dim=1, keepdim=True)
            self.features.bias.uniform_(-1, 1)
        self.out = None
        if out is not None:
            self.out = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, out))

    def forward(self, vectors: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Turn ``(B, L, d)`` with lengths ``(B,)`` into ``(B, out)``."""
        total = mask_rows(self.features(mask_rows(vectors, lengths)).relu(), lengths).sum(1)
        return total if self.out is None else self.out(total)


class SetTransformer(nn.Module):
    """Two induced self-attention blocks and pooling by attention (Lee et al. 2019).

    Args:
        size: d of the vectors.
        width: Width inside.
        out: Size of the result.
        heads: Of every attention.
        inducing: Points that each block attends through.
    """

    def __init__(
        self, *, size: int = 128, width: int = 128, out: int = 128, heads: int = 4, inducing: int = 16
    ) -> None:
        super().__init__()
        self.project = nn.Linear(size, width)
        self.blocks = nn.ModuleList(_InducedAttention(width, heads, inducing) for _ in range(2))
        self.seed = nn.Parameter(torch.randn(1, 1, width) * width**-0.5)
        self.pool = _Attention(width, heads)
        self.out = nn.Linear(width, out)

    def forward(self, vectors: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Turn ``(B, L, d)`` with lengths ``(B,)``, at least 1, into ``(B, out)``."""
        padding = None if lengths is None else ~length_mask(lengths, vectors.shape[1])
        values = self.project(mask_rows(vectors, lengths))
        for block in self.blocks:
            values = block(values, padding)
        return self.out(self.pool(self.seed.expand(len(values), -1, -1), values, padding)[:, 0])


class _Attention(nn.Module):
    """Multi-head attention with a residual connection, then a row-wise layer with another."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.row = nn.Sequential(nn.Linear(width, width), nn.ReLU())
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))

    def forward(self, queries: Tensor, values: Tensor, padding: Tensor | None) -> Tensor:
        attended, _ = self.attention(queries, values, values, key_padding_mask=padding, need_weights=False)
        hidden = self.norms[0](queries + attended)
        return self.norms[1](hidden + self.row(hidden))


class _InducedAttention(nn.Module):
    """The set attends to some learned points that attend to the set: linear in its size."""

    def __init__(self, width: int, heads: int, points: int) -> None:
        super().__init__()
        self.points = nn.Parameter(torch.randn(1, points, width) * width**-0.5)
        self.gather, self.spread = _Attention(width, heads), _Attention(width, heads)

    def forward(self, values: Tensor, padding: Tensor | None) -> Tensor:
        gathered = self.gather(self.points.expand(len(values), -1, -1), values, padding)
        return self.spread(values, gathered, None)


def aggregation_loss(
    query_vectors: Tensor,
    corpus_vectors: Tensor,
    fit: Tensor,
    *,
    kind: Literal["regression", "bound"] = "regression",
    slope: float = 1.0,
) -> Tensor:
    r"""Make the distance of two set vectors tell how well the sets match.

    The paper states the property of set vectors (Theorem 2), not the loss that trains them. ``"regression"`` is the
    square of :math:`\|h_q - h_c\| - \kappa \|X_q - P X_c\|_F`: Euclidean neighbours are then those of s_F. ``"bound"``
    is the square of the positive part of :math:`\kappa \|X_q - P X_c\|_F^2 - \|h_q - h_c\|`, the theorem's lower bound
    alone: without positive pairs whose distances are small everything moves apart.

    Args:
        query_vectors, corpus_vectors: ``(B, h)`` of pairs.
        fit: s_F ``(B,)`` of the pairs, at most 0; no gradient reaches it.
        kind: Which of the two.
        slope: kappa.

    Returns:
        ``(B,)``.

    Raises:
        ValueError: another kind.
    """
    apart = torch.linalg.vector_norm(query_vectors - corpus_vectors, dim=-1)
    squared = (-fit.detach()).clamp(min=0)
    if kind == "regression":
        return (apart - slope * squared.sqrt()).square()
    if kind == "bound":
        return (slope * squared - apart).clamp(min=0).square()
    raise ValueError(f"aggregation_loss expects kind 'regression' or 'bound'; got {kind!r}.")
