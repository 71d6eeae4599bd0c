"""Losses over a minibatch of relaxed codes: tie-aware learning to rank, and that of trained hyperplanes."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from isotone_hashing.functional import (
    balance_loss,
    collision_loss,
    fence_loss,
    ideal_dcg,
    relaxed_ap,
    relaxed_dcg,
    relaxed_distances,
    simplified_ap,
    simplified_dcg,
    soft_histogram,
)


class TALRLoss(nn.Module):
    """TALR: 1 - a relaxation of tie-aware AP or NDCG of each query, ranked by Hamming distance.

    Args:
        metric: ``"ap"``, or ``"ndcg"`` for affinities of several levels.
        relaxation: ``"simplified"`` (AP_s, DCG_s) or ``"integral"`` (AP_r, DCG_r).
        width: Half-width of the soft histogram's triangles, in bits.

    Raises:
        ValueError: an option outside its range.
    """

    def __init__(
        self,
        *,
        metric: Literal["ap", "ndcg"] = "ap",
        relaxation: Literal["simplified", "integral"] = "simplified",
        width: float = 1.0,
    ) -> None:
        super().__init__()
        if metric not in ("ap", "ndcg") or relaxation not in ("simplified", "integral"):
            raise ValueError(
                "TALRLoss expects metric 'ap' or 'ndcg' and relaxation 'simplified' or 'integral'; "
                f"got {metric!r} and {relaxation!r}."
            )
        if not width > 0:
            raise ValueError(f"TALRLoss expects a width above 0 bits; got {width}.")
        self.metric = metric
        self.relaxation = relaxation
        self.width = width

    def forward(self, codes: Tensor, affinity: Tensor, corpus: Tensor | None = None) -> Tensor:
        """Return the loss of each query ``(M,)``, 0 to about 1; 0, without gradient, where nothing is relevant.

        Args:
            codes: ``(M, b)`` relaxed codes, in [-1, 1].
            affinity: ``(M, N)`` bool or integers: 0 for items that are not similar to the query, above 0 for those that
                are. Negative: the item is not there.
            corpus: ``(N, b)`` codes of the items. Default: each of ``codes`` queries the others.

        Raises:
            ValueError: shapes that do not fit together.
        """
        among = corpus is None
        items = codes if corpus is None else corpus
        if affinity.shape != (len(codes), len(items)) or codes.shape[1] != items.shape[1]:
            raise ValueError(
                f"TALRLoss expects affinities of shape {(len(codes), len(items))} and codes of one length; got "
                f"affinities {tuple(affinity.shape)} and codes {tuple(codes.shape)}, {tuple(items.shape)}."
            )
        affinity = affinity.long()
        if among:
            affinity = affinity.masked_fill(torch.eye(len(codes), dtype=torch.bool, device=codes.device), -1)
        levels = max(2, int(affinity.max()) + 1) if affinity.numel() else 2
        distances = relaxed_distances(codes, items)
        if distances.dtype != torch.float64:
            distances = distances.float()  # counts of half precision would not add up
        counts = soft_histogram(distances, affinity, codes.shape[1], levels, self.width)
        per_level = torch.stack([(affinity == level).sum(1) for level in range(levels)], 1)
        value, relevant = self._value(counts, per_level), per_level[:, 1:].sum(1) > 0
        return torch.where(relevant, 1 - value, 0.0)

    def _value(self, counts: Tensor, per_level: Tensor) -> Tensor:
        simplified = self.relaxation == "simplified"
        if self.metric == "ap":
            relevant = per_level[:, 1:].sum(1)
            return simplified_ap(counts, relevant) if simplified else relaxed_ap(counts, relevant)
        gained = simplified_dcg(counts) if simplified else relaxed_dcg(counts)
        return gained / ideal_dcg(per_level).to(gained).clamp(min=1)


class HyperplaneLoss(nn.Module):
    r"""The loss of trained hyperplanes, :math:`\kappa_1 D_1 + \kappa_2 D_2 + \kappa_3 (D_3' + \alpha R_3)` (OPAS,
    appendix I).

    Args:
        collision, fence, balance: The weights kappa of the collision minimiser, fence sitting and bit balance.
        pairs_of_bits: alpha, the weight of R_3 within bit balance.
        silver: Positives per query where none are known: the items whose codes agree most with the query's, as in the
            paper.
        reduction: ``"mean"`` divides each of the four sums by the number of its terms, so that the weights fit batches
            and codes of any size; ``"sum"`` is the paper's.
    """

    def __init__(
        self,
        *,
        collision: float = 1.0,
        fence: float = 0.1,
        balance: float = 1.0,
        pairs_of_bits: float = 1.0,
        silver: int = 5,
        reduction: Literal["mean", "sum"] = "mean",
    ) -> None:
        super().__init__()
        if reduction not in ("mean", "sum"):
            raise ValueError(f"HyperplaneLoss expects reduction 'mean' or 'sum'; got {reduction!r}.")
        if min(collision, fence, balance, pairs_of_bits) < 0 or silver < 1:
            raise ValueError(
                "HyperplaneLoss expects weights of at least 0 and silver of at least 1; got "
                f"{(collision, fence, balance, pairs_of_bits)} and {silver}."
            )
        self.collision, self.fence, self.balance = collision, fence, balance
        self.pairs_of_bits, self.silver, self.mean = pairs_of_bits, silver, reduction == "mean"

    def forward(self, queries: Tensor, corpus: Tensor, positive: Tensor | None = None) -> Tensor:
        """Return the loss, a scalar.

        Args:
            queries: ``(Q, K)`` relaxed codes of one table.
            corpus: ``(C, K)``.
            positive: ``(Q, C)`` bool. Default: silver labels.
        """
        if positive is None:
            best = (queries @ corpus.T).detach().topk(min(self.silver, len(corpus)), dim=1).indices
            positive = torch.zeros(len(queries), len(corpus), dtype=torch.bool, device=corpus.device)
            positive.scatter_(1, best, True)
        items, bits = corpus.shape
        collision, terms = collision_loss(queries, corpus, positive)
        balance, pairs = balance_loss(corpus)
        if self.mean:
            # the collisions' terms have a margin of 1 whatever K is: their number alone makes a mean
            collision, balance = collision / max(1, terms), balance / (items * bits)
            pairs = pairs / (items * bits * bits)
        fence = fence_loss(corpus) / (items * bits if self.mean else 1)
        return (
            self.collision * collision
            + self.fence * fence
            + self.balance * (balance + self.pairs_of_bits * pairs)
        )
