"""Losses of the methods that the TALR paper compares with, over a minibatch whose items query each other.

All take real codes ``u (M, b)`` in [-1, 1] or beyond, and affinities ``(M, M)``; similar is what is above 0. Affinities
of items to themselves are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from isotone_hashing.functional import relaxed_distances, soft_histogram
from isotone_hashing.loss import TALRLoss
from torch import Tensor
from torch.nn import functional as F

#: From codes and affinities to a scalar.
Objective = Callable[[Tensor, Tensor], Tensor]


def _off_diagonal(size: int) -> Tensor:
    return ~torch.eye(size, dtype=torch.bool)


def dpsh(*, quantisation: float = 0.1) -> Objective:
    r"""Build DPSH (Li et al. 2016): logistic likelihood of pairs.

    .. math:: \log(1 + e^{\Theta_{ij}}) - s_{ij} \Theta_{ij}, \quad \Theta = u^T u / 2

    Args:
        quantisation: Weight of the mean of :math:`(u - sgn(u))^2`.
    """

    def loss(codes: Tensor, affinity: Tensor) -> Tensor:
        theta = codes @ codes.T / 2
        pairs = F.softplus(theta) - (affinity > 0) * theta
        return pairs[_off_diagonal(len(codes))].mean() + quantisation * _rounding(codes)

    return loss


def hashnet(*, slope: float = 10.0) -> Objective:
    r"""Build HashNet (Cao et al. 2017): weighted likelihood of pairs, with tanh codes that sharpen.

    Similar pairs, which are few, weigh as much as the others together.

    Args:
        slope: Of the likelihood: :math:`\Theta` is the mean product of bits times this.
    """

    def loss(codes: Tensor, affinity: Tensor) -> Tensor:
        similar = (affinity > 0) & _off_diagonal(len(codes))
        others = ~(affinity > 0) & _off_diagonal(len(codes))
        theta = slope * codes @ codes.T / codes.shape[1]
        pairs = F.softplus(theta) - similar * theta
        sums = [(pairs * part).sum() / part.sum().clamp(min=1) for part in (similar, others)]
        return torch.stack(sums).mean()

    return loss


def dtsh(*, margin: float = 0.25, quantisation: float = 0.1) -> Objective:
    r"""Build DTSH (Wang et al. 2016): logistic likelihood of triplets of a query, a similar item and another.

    .. math:: \log(1 + e^{-x}), \quad x = \Theta_{qp} - \Theta_{qn} - m, \quad \Theta = u^T u / 2

    Args:
        margin: m, as a share of the bits.
        quantisation: As in :func:`dpsh`.
    """

    def loss(codes: Tensor, affinity: Tensor) -> Tensor:
        theta = codes @ codes.T / 2
        similar = (affinity > 0) & _off_diagonal(len(codes))
        others = ~(affinity > 0) & _off_diagonal(len(codes))
        there = similar[:, :, None] & others[:, None]
        ahead = theta[:, :, None] - theta[:, None] - margin * codes.shape[1]
        triplets = (F.softplus(-ahead) * there).sum() / there.sum().clamp(min=1)
        return triplets + quantisation * _rounding(codes)

    return loss


def mihash() -> Objective:
    r"""Build MIHash (Cakir et al. 2017): mutual information of distance and similarity.

    .. math:: -\frac1M \sum_q [H(D) - p^+ H(D | +) - p^- H(D | -)]

    over soft histograms of each query's distances, as TALR's.
    """

    def loss(codes: Tensor, affinity: Tensor) -> Tensor:
        level = (affinity > 0).long().masked_fill(~_off_diagonal(len(codes)), -1)
        counts = soft_histogram(relaxed_distances(codes, codes), level, codes.shape[1], 2)
        total = counts.sum((1, 2), keepdim=True).clamp(min=1)
        share = counts.sum(1) / total[:, 0]
        of_level = counts / counts.sum(1, keepdim=True).clamp(min=1e-12)
        conditional = (share * _entropy(of_level, 1)).sum(1)
        return -(_entropy((counts / total).sum(2), 1) - conditional).mean()

    return loss


def talr(**options: Any) -> Objective:
    """Build TALR, see :class:`isotone_hashing.loss.TALRLoss`."""
    ranking = TALRLoss(**options)
    return lambda codes, affinity: ranking(codes, affinity).mean()


def _entropy(share: Tensor, dim: int) -> Tensor:
    return -(share * share.clamp(min=1e-12).log()).sum(dim)


def _rounding(codes: Tensor) -> Tensor:
    return (codes - codes.detach().sign()).square().mean()


#: Objectives by the kind that a configuration gives.
OBJECTIVES: dict[str, Callable[..., Objective]] = {
    "dpsh": dpsh, "hashnet": hashnet, "dtsh": dtsh, "mihash": mihash, "talr": talr,
}  # fmt: skip


def build(options: Mapping[str, Any]) -> Objective:
    """Build an objective from its configuration, without ``kind`` and the scales of the tanh."""
    rest = {key: value for key, value in options.items() if key not in ("kind", "scale", "first_scale")}
    return OBJECTIVES[options["kind"]](**rest)
