"""The maths of learned codes: relaxations of tie-aware ranking (TALR), and the losses of trained hyperplanes."""

from __future__ import annotations

import math
from typing import Any

import torch
from scipy.special import expi
from torch import Tensor
from torch.autograd.function import once_differentiable

# In index of a denominator of 0, where the numerator is 0 too.
_TINY = 1e-12


def relaxed_distances(queries: Tensor, codes: Tensor) -> Tensor:
    r"""Hamming distances of relaxed codes, :math:`\hat d = (b - \hat\Phi^T \hat\Phi') / 2` (TALR, Eq. 1).

    Args:
        queries: ``(M, b)`` in [-1, 1].
        codes: ``(N, b)``.

    Returns:
        ``(M, N)``, from 0 to b.
    """
    return (queries.shape[1] - queries @ codes.T) / 2


def soft_histogram(distances: Tensor, affinity: Tensor, bits: int, levels: int, width: float = 1.0) -> Tensor:
    r"""Soft counts :math:`c_{d,v}` of the items at every distance and of every affinity (TALR, Eqs. 14, 15).

    An item counts :math:`1 - |\hat d - d| / \Delta` at each whole distance d that is nearer than :math:`\Delta`.

    Args:
        distances: ``(M, N)`` from 0 to ``bits``.
        affinity: ``(M, N)`` int64 from 0 to ``levels - 1``; negative: the item is not there.
        bits: b.
        levels: V.
        width: Delta, above 0. With 1 an item's counts sum to 1, and the work is O(M N) instead of O(b M N).

    Returns:
        ``(M, b + 1, V)``.

    Raises:
        ValueError: a width that is not above 0.
    """
    if not width > 0:
        raise ValueError(f"soft_histogram expects a width above 0; got {width}.")
    rows = len(distances)
    there = affinity >= 0
    level = affinity.clamp(min=0)
    if width == 1:
        below = distances.detach().floor().clamp(0, bits - 1)
        share = distances - below
        index = below.long() * levels + level
        counts = distances.new_zeros(rows, (bits + 1) * levels)
        counts = counts.scatter_add(1, index, torch.where(there, 1 - share, 0.0))
        counts = counts.scatter_add(1, index + levels, torch.where(there, share, 0.0))
        return counts.view(rows, bits + 1, levels)
    bins = torch.arange(bits + 1, dtype=distances.dtype, device=distances.device)
    near = (1 - (distances[..., None] - bins).abs() / width).clamp(min=0)
    one_hot = (level[..., None] == torch.arange(levels, device=level.device)) & there[..., None]
    return torch.einsum("mnd,mnv->mdv", near, one_hot.to(near.dtype))


def relaxed_ap(counts: Tensor, relevant_items: Tensor) -> Tensor:
    r"""AP_r: tie-aware average precision of soft counts (TALR, Eq. 11); for whole counts it is AP_T itself.

    .. math:: \frac{c_d^+}{c_d N^+} \Bigl[ \rho\, c_d + \bigl(C_{d-1}^+ + 1 - \rho (C_{d-1} + 1)\bigr)
        (\psi(C_d + 1) - \psi(C_{d-1} + 1)) \Bigr], \quad \rho = \frac{c_d^+ - 1}{c_d - 1}

    The paper has :math:`\ln(C_d / C_{d-1})`, infinite for the first distance with items, in place of the difference of
    digammas. This difference continues the harmonic numbers that the logarithm approximates. :math:`\rho` is held
    between 0 and 1, and is 0 where a distance has at most one item, near which it is singular.

    Args:
        counts: ``(M, b + 1, V)``.
        relevant_items: N+ ``(M,)``, number of items of each query with an affinity above 0.

    Returns:
        ``(M,)``; 0 for a query without relevant items.
    """
    c, relevant = counts.sum(2), counts[:, :, 1:].sum(2)
    before, relevant_before = _before(c), _before(relevant)
    many = c > 1
    slope = ((relevant - 1) / torch.where(many, c - 1, 1.0).clamp(min=_TINY)).clamp(0, 1)
    slope = torch.where(many, slope, 0.0)
    harmonic = torch.digamma(before + c + 1) - torch.digamma(before + 1)
    inner = slope * c + (relevant_before + 1 - slope * (before + 1)) * harmonic
    return _average(torch.where(c > _TINY, relevant / c.clamp(min=_TINY) * inner, 0.0), relevant_items)


def simplified_ap(counts: Tensor, relevant_items: Tensor) -> Tensor:
    r"""AP_s: average precision with the midpoint of each distance's ranks in place of all of them (TALR, Eq. 62).

    .. math:: AP_s = \sum_d \frac{c_d^+}{N^+} \frac{C_{d-1}^+ + C_d^+ + 1}{C_{d-1} + C_d + 1}

    Args:
        counts: ``(M, b + 1, V)``.
        relevant_items: N+ ``(M,)``, number of items of each query with an affinity above 0.

    Returns:
        ``(M,)``; AP itself where no items are tied, 0 for a query without relevant items.
    """
    c, relevant = counts.sum(2), counts[:, :, 1:].sum(2)
    ratio = (2 * _before(relevant) + relevant + 1) / (2 * _before(c) + c + 1)
    return _average(relevant * ratio, relevant_items)


def relaxed_dcg(counts: Tensor) -> Tensor:
    r"""DCG_r: tie-aware DCG of soft counts (TALR, Eq. 12).

    .. math:: \ln 2 \sum_d \frac{\sum_v (2^v - 1) c_{d,v}}{c_d} \int_{C_{d-1} + 3/2}^{C_d + 3/2} \frac{dt}{\ln t}

    The limits are those of the midpoint rule. The paper's are 1/2 lower and make the integral infinite for the first
    distance with items.

    Args:
        counts: ``(M, b + 1, V)``.

    Returns:
        ``(M,)``.
    """
    c = counts.sum(2)
    before = _before(c)
    integral: Tensor = _LogIntegral.apply(before + 1.5, before + c + 1.5)
    mean_gain = torch.where(c > _TINY, _gains(counts) / c.clamp(min=_TINY), 0.0)
    return math.log(2) * (mean_gain * integral).sum(1)


def simplified_dcg(counts: Tensor) -> Tensor:
    r"""DCG_s: a lower bound of tie-aware DCG (TALR, Eq. 66).

    .. math:: DCG_s = \sum_d \frac{\sum_v (2^v - 1) c_{d,v}}{\log_2(C_{d-1} + c_d / 2 + 3/2)}

    Args:
        counts: ``(M, b + 1, V)``.

    Returns:
        ``(M,)``; DCG itself where no items are tied.
    """
    c = counts.sum(2)
    return (_gains(counts) / torch.log2(_before(c) + c / 2 + 1.5)).sum(1)


def ideal_dcg(per_level: Tensor) -> Tensor:
    """DCG of the best ranking of so many items of each affinity: the denominator of NDCG.

    Args:
        per_level: ``(M, V)`` int64.

    Returns:
        ``(M,)`` float64.
    """
    ranks = int(per_level.sum(1).max()) if len(per_level) else 0
    steps = torch.arange(2, ranks + 2, dtype=torch.float64, device=per_level.device)
    summed = torch.cat([steps.new_zeros(1), torch.cumsum(1 / torch.log2(steps), 0)])
    ends = per_level.flip(1).cumsum(1).flip(1)
    gains = 2.0 ** torch.arange(per_level.shape[1], dtype=torch.float64, device=per_level.device) - 1
    return ((summed[ends] - summed[ends - per_level]) * gains).sum(1)


def collision_loss(queries: Tensor, corpus: Tensor, positive: Tensor) -> tuple[Tensor, int]:
    r"""D1, the collision minimiser: a query's code should be nearer to its positives' codes than to other items'.

    .. math:: \sum_q \sum_{c^+, c^-} [1 + t_q^T t_{c^-} - t_q^T t_{c^+}]_+, \quad t = \tanh(W h)

    (the OPAS paper's Eq. 23, with the hinge that its text names). Sorted sums make it
    O(Q C log C) instead of O(Q C^2).

    Args:
        queries: t_q ``(Q, K)``.
        corpus: t_c ``(C, K)``.
        positive: ``(Q, C)`` bool; the other items are the negatives.

    Returns:
        The sum, and the number of its terms.
    """
    score = queries @ corpus.T
    positives, negatives = positive.sum(1), (~positive).sum(1)
    # sorted negatives: those that break a positive's margin score above it less 1, and are the last ones
    negative, _ = torch.where(positive, torch.inf, score).sort(1)
    sums = torch.nn.functional.pad(torch.where(negative < torch.inf, negative, 0.0).cumsum(1), (1, 0))
    index = torch.searchsorted(negative.detach(), (score - 1).detach().contiguous())
    broken = (negatives[:, None] - index).clamp(min=0)
    excess = sums.gather(1, negatives[:, None]) - sums.gather(1, torch.minimum(index, negatives[:, None]))
    loss = torch.where(positive, excess + broken * (1 - score), 0.0).sum()
    return loss, int((positives * negatives).sum())


def fence_loss(codes: Tensor) -> Tensor:
    r"""D2, fence sitting: the distance of the relaxed bits from :math:`\pm 1`, :math:`\sum \| |t| - 1 \|_1`.

    The OPAS paper's Eq. 24 prints t - 1, which would drive all bits to 1 and contradicts D3.

    Args:
        codes: t ``(C, K)``.
    """
    return (1 - codes.abs()).abs().sum()


def balance_loss(codes: Tensor) -> tuple[Tensor, Tensor]:
    r"""D3, bit balance: each bit should be 1 for half of the corpus, and so should each product of two bits.

    .. math:: \Delta_3' = \sum_j \Bigl| \sum_c t_{c,j} \Bigr|, \quad
        R_3 = \sum_{i,j} \Bigl| \sum_c t_{c,i} t_{c,j} \Bigr|

    (the OPAS paper, section 3.3.1 and Eq. 11). R_3 is over all K^2 pairs, as in the paper. Those of a bit with itself
    cannot be balanced, and pull towards 0.

    Args:
        codes: t ``(C, K)``.

    Returns:
        The first-order term and R_3.
    """
    return codes.sum(0).abs().sum(), (codes.T @ codes).abs().sum()


class _LogIntegral(torch.autograd.Function):
    """The integral of 1 / ln t between limits above 1, elementwise."""

    @staticmethod
    def forward(ctx: Any, low: Tensor, high: Tensor) -> Tensor:
        ctx.save_for_backward(low, high)
        ends = [torch.from_numpy(expi(x.detach().double().log().cpu().numpy())) for x in (low, high)]
        return (ends[1] - ends[0]).to(low)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        low, high = ctx.saved_tensors
        return -grad / low.log(), grad / high.log()


def _before(counts: Tensor) -> Tensor:
    return torch.cumsum(counts, 1) - counts


def _gains(counts: Tensor) -> Tensor:
    """Return the gain at each distance: the sum over affinities of (2^v - 1) c."""
    level = torch.arange(counts.shape[2], dtype=counts.dtype, device=counts.device)
    return counts @ (2**level - 1)


def _average(parts: Tensor, relevant_items: Tensor) -> Tensor:
    return torch.where(relevant_items > 0, parts.sum(1) / relevant_items.clamp(min=1), 0.0)
