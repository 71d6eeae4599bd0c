"""Soft-DTW of vector sequences, its divergences, and alignments."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from isotone.kernels import softdtw as kernel
from isotone.kernels.coupling import couple
from isotone.kernels.softdtw import SubsequenceMatch
from isotone.types import Coupling, mask_rows
from isotone_softdtw.costs import Cost, check, pairwise_cost

_Value = Callable[[Tensor, Tensor, Tensor | None, Tensor | None], Tensor]


def soft_dtw(
    x: Tensor,
    y: Tensor,
    gamma: float = 1.0,
    source_lengths: Tensor | None = None,
    target_lengths: Tensor | None = None,
    *,
    cost: Cost = "sqeuclidean",
    band: int | None = None,
) -> Tensor:
    r"""The soft minimum of the costs of all alignments, :func:`isotone.kernels.softdtw.soft_dtw`.

    Args:
        x, y: ``(B, n, d)`` and ``(B, m, d)`` floating; padding is never read.
        gamma: Width of the soft minimum, in the unit of the cost; 0 is DTW, with the gradient of one best path.
        source_lengths, target_lengths: ``(B,)`` int64, at least 1. Default: all.
        cost: See :func:`~isotone_softdtw.costs.pairwise_cost`. With the squared Euclidean cost nothing of size
            ``(B, n, m)`` is stored on the CPU.
        band: Half width of a Sakoe-Chiba band, see :func:`isotone.kernels.softdtw.soft_dtw`.

    Returns:
        ``(B,)`` in the unit of the cost. It may be negative, and x = y is not its minimum: see
        :func:`soft_dtw_divergence`. Differentiable twice.

    Raises:
        ValueError: shapes, lengths or options that do not fit.
    """
    check(x, y, cost)
    x, y = mask_rows(x, source_lengths), mask_rows(y, target_lengths)
    if cost == "sqeuclidean":
        return kernel.soft_dtw_sqeuclidean(x, y, gamma, source_lengths, target_lengths, band=band)
    return kernel.soft_dtw(pairwise_cost(x, y, cost), gamma, source_lengths, target_lengths, band=band)


def soft_dtw_divergence(
    x: Tensor,
    y: Tensor,
    gamma: float = 1.0,
    source_lengths: Tensor | None = None,
    target_lengths: Tensor | None = None,
    *,
    cost: Cost = "sqeuclidean",
) -> Tensor:
    r""":math:`D_\gamma(x, y) = \mathrm{sdtw}(x, y) - \frac12 \mathrm{sdtw}(x, x) - \frac12 \mathrm{sdtw}(y, y)`.

    It is 0 at x = y, and for costs such as :math:`\gamma (\delta + \log(2 - e^{-\delta}))` with
    :math:`\delta = |x_i - y_j|^2 / (2 \gamma)` it is a divergence: above 0 everywhere else.

    Args, returns, raises: As :func:`soft_dtw`; the cost must be symmetric.

    References: Blondel, Mensch & Vert, "Differentiable divergences between time series", AISTATS 2021, section 3.
    """

    def value(a: Tensor, b: Tensor, n: Tensor | None, m: Tensor | None) -> Tensor:
        return soft_dtw(a, b, gamma, n, m, cost=cost)

    return _debiased(value, x, y, source_lengths, target_lengths)


def sharp_soft_dtw(
    x: Tensor,
    y: Tensor,
    gamma: float = 1.0,
    source_lengths: Tensor | None = None,
    target_lengths: Tensor | None = None,
    *,
    cost: Cost = "sqeuclidean",
) -> Tensor:
    r"""The expected cost :math:`\langle E_\gamma(C), C \rangle` of an alignment: soft-DTW without its entropy.

    Args, returns, raises: As :func:`soft_dtw`, but differentiable once; never below DTW. The gradient,
    :math:`E + \nabla^2 \mathrm{sdtw}(C)\, C`, costs about twice that of soft-DTW.

    References: Blondel et al. 2021, section 3.
    """
    costs = _costs(x, y, source_lengths, target_lengths, cost)
    expected = kernel.expected_alignment(costs, gamma, source_lengths, target_lengths)
    return _inner(expected, costs)


def sharp_divergence(
    x: Tensor,
    y: Tensor,
    gamma: float = 1.0,
    source_lengths: Tensor | None = None,
    target_lengths: Tensor | None = None,
    *,
    cost: Cost = "sqeuclidean",
) -> Tensor:
    r"""The divergence :math:`S_\gamma` made of :func:`sharp_soft_dtw` as :func:`soft_dtw_divergence` is of soft-DTW."""

    def value(a: Tensor, b: Tensor, n: Tensor | None, m: Tensor | None) -> Tensor:
        return sharp_soft_dtw(a, b, gamma, n, m, cost=cost)

    return _debiased(value, x, y, source_lengths, target_lengths)


def mean_cost(
    x: Tensor,
    y: Tensor,
    source_lengths: Tensor | None = None,
    target_lengths: Tensor | None = None,
    *,
    cost: Cost = "sqeuclidean",
) -> Tensor:
    r"""The mean cost :math:`\langle \bar A, C \rangle` over all alignments alike, the sharp value at infinite gamma.

    Their mean :math:`\bar A` depends on n and m alone (there are Delannoy(n - 1, m - 1) alignments).

    Args, returns, raises: As :func:`soft_dtw`.

    References: Blondel et al. 2021, section 3.
    """
    costs = _costs(x, y, source_lengths, target_lengths, cost)
    mean = kernel.expected_alignment(torch.zeros_like(costs), 1.0, source_lengths, target_lengths)
    return _inner(mean, costs)


def mean_cost_divergence(
    x: Tensor,
    y: Tensor,
    source_lengths: Tensor | None = None,
    target_lengths: Tensor | None = None,
    *,
    cost: Cost = "sqeuclidean",
) -> Tensor:
    """The divergence made of :func:`mean_cost` as :func:`soft_dtw_divergence` is of soft-DTW."""

    def value(a: Tensor, b: Tensor, n: Tensor | None, m: Tensor | None) -> Tensor:
        return mean_cost(a, b, n, m, cost=cost)

    return _debiased(value, x, y, source_lengths, target_lengths)


def dtw(
    x: Tensor,
    y: Tensor,
    source_lengths: Tensor | None = None,
    target_lengths: Tensor | None = None,
    *,
    cost: Cost = "sqeuclidean",
    band: int | None = None,
) -> Coupling:
    """The best alignment, :func:`isotone.kernels.softdtw.dtw`: mass 1 per pair, ``score`` minus the cost."""
    costs = _costs(x, y, source_lengths, target_lengths, cost)
    return kernel.dtw(costs, source_lengths, target_lengths, band=band)


def subsequence_dtw(
    query: Tensor,
    sequence: Tensor,
    query_lengths: Tensor | None = None,
    sequence_lengths: Tensor | None = None,
    *,
    cost: Cost = "sqeuclidean",
) -> SubsequenceMatch:
    """The part of a longer sequence that a query matches, :func:`isotone.kernels.softdtw.subsequence_dtw`."""
    costs = _costs(query, sequence, query_lengths, sequence_lengths, cost)
    return kernel.subsequence_dtw(costs, query_lengths, sequence_lengths)


def expected_coupling(
    x: Tensor,
    y: Tensor,
    gamma: float = 1.0,
    source_lengths: Tensor | None = None,
    target_lengths: Tensor | None = None,
    *,
    cost: Cost = "sqeuclidean",
    band: int | None = None,
) -> Coupling:
    r"""The monotone coupling with the marginals of the expected alignment :math:`E_\gamma`.

    E itself is not monotone: it spreads over a neighbourhood of the best path. Its sums over target positions and over
    source positions, each divided by its total, are coupled in order: this is the one monotone coupling with these
    marginals.

    Args:
        x, y, gamma, source_lengths, target_lengths, cost, band: As in :func:`soft_dtw`.

    Returns:
        A soft coupling of mass 1, differentiable once; ``score`` is minus the soft-DTW value.
    """
    costs = _costs(x, y, source_lengths, target_lengths, cost)
    expected = kernel.expected_alignment(costs, gamma, source_lengths, target_lengths, band=band)
    soft = couple(expected.sum(2), expected.sum(1), source_lengths, target_lengths)
    score = -kernel.soft_dtw(costs.detach(), gamma, source_lengths, target_lengths, band=band)
    return Coupling(soft.source, soft.target, soft.mass, soft.source_lengths, soft.target_lengths, score)


def _costs(
    x: Tensor, y: Tensor, source_lengths: Tensor | None, target_lengths: Tensor | None, cost: Cost
) -> Tensor:
    check(x, y, cost)
    return pairwise_cost(mask_rows(x, source_lengths), mask_rows(y, target_lengths), cost, target_lengths)


def _inner(expected: Tensor, costs: Tensor) -> Tensor:
    # forbidden pairs and padding have no mass: they cost nothing, not 0 times infinity
    return (expected * torch.where(expected > 0, costs, 0.0)).sum((1, 2))


def _debiased(
    value: _Value, x: Tensor, y: Tensor, source_lengths: Tensor | None, target_lengths: Tensor | None
) -> Tensor:
    own = value(x, x, source_lengths, source_lengths) + value(y, y, target_lengths, target_lengths)
    return value(x, y, source_lengths, target_lengths) - own / 2
