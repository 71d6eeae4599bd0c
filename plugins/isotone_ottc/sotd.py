"""The Sequence Optimal Transport Distance, for given OT weights and for the best ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from isotone.kernels.assignment import ordered_minimum
from isotone.kernels.coupling import couple
from isotone.types import Coupling


class SOTD(NamedTuple):
    """The result of :func:`sotd`.

    Attributes:
        value: Scalar, in the unit of the cost.
        alpha: ``(p,)`` the weights of the longer sequence.
        coupling: A batch of one: longer sequence to shorter.
        path: ``(q,)`` int64, for each element of the shorter sequence the index of the element of the longer one that
            carries all of it; None unless ``exact``.
    """

    value: Tensor
    alpha: Tensor
    coupling: Coupling
    path: Tensor | None


def euclidean(a: Tensor, b: Tensor) -> Tensor:
    """Compute the Euclidean distance of vectors along the last axis."""
    return torch.linalg.vector_norm(a - b, dim=-1)


def sotd(
    x: Tensor,
    y: Tensor,
    cost: Callable[[Tensor, Tensor], Tensor] = euclidean,
    r: float = 1.0,
    *,
    alpha: Tensor | None = None,
    beta: Tensor | None = None,
    exact: bool = False,
) -> SOTD:
    r"""Compute the transport :math:`(\sum_{ij} \gamma(\alpha, \beta)_{ij} C(x_i, y_j)^r)^{1/r}` between two sequences.

    The longer sequence has the weights alpha and the shorter beta (at equal lengths x has alpha). The distance of the
    paper, its equation 6, is the minimum over alpha: ``exact=True``. For fixed beta that minimum is a dynamic
    programme, :math:`\min_{i_1 \le .. \le i_q} \sum_j \beta_j C(i_j, j)^r`, since alpha may put :math:`\beta_j` on any
    element, in order.

    With given weights of both sequences the value is a pseudo-metric if C is a metric. The minimum over alpha violates
    the triangle inequality, contrary to the paper's proposition 3. By dropping an element, x = (a, b) is at distance 0
    of both (a) and (b), which are C(a, b) apart. At equal lengths it is not symmetric either: only x may drop elements.

    Args:
        x: ``(n, ...)`` elements.
        y: ``(m, ...)`` elements.
        cost: C, non-negative, of elements broadcast against each other: ``(K, ...), (K, ...) -> (K,)``; with
            ``exact`` also ``(n, 1, ...), (1, m, ...) -> (n, m)``. The first argument has elements of x.
        r: Exponent, at least 1.
        alpha: Weights of the longer sequence, ``(max(n, m),)``; divided by their sum.
        beta: Weights of the shorter, ``(min(n, m),)``. Default: uniform.
        exact: Minimise over alpha, in O(nm) time; otherwise O(n + m).

    Returns:
        The result; its value is differentiable in x and y (and in alpha and beta if given). With ``exact`` the gradient
        is that at the best path.

    Raises:
        ValueError: an empty sequence, weights of another size, r < 1, or not exactly one of alpha and exact.
    """
    p, q = max(len(x), len(y)), min(len(x), len(y))
    if q == 0 or r < 1:
        raise ValueError(
            f"sotd expects sequences of at least one element and r >= 1; got {q} elements, r = {r}."
        )
    if (alpha is not None) == exact:
        raise ValueError("sotd expects either alpha, the weights of the longer sequence, or exact=True.")
    if (alpha is not None and alpha.shape != (p,)) or (beta is not None and beta.shape != (q,)):
        raise ValueError(
            f"sotd expects {p} weights alpha and {q} weights beta; got {_shape(alpha)}, {_shape(beta)}."
        )
    if beta is None:
        beta = x.new_ones(q) if x.is_floating_point() else torch.ones(q, device=x.device)
    swapped = len(x) < len(y)
    path = None
    if alpha is None:
        costs = cost(x[:, None], y[None]).detach() ** r
        path = ordered_minimum((costs.mT if swapped else costs)[None], beta[None])[0][0]
        alpha = beta.new_zeros(p).index_add(0, path, beta / beta.sum())
    coupling = couple(alpha[None], beta[None])
    longer, shorter, mass = coupling.source[0], coupling.target[0], coupling.mass[0]
    if path is not None:  # the same coupling along the path, whose masses keep the gradient in beta
        longer, shorter, mass = path, torch.arange(q, device=path.device), beta / beta.sum()
    of_x, of_y = (shorter, longer) if swapped else (longer, shorter)
    total = (mass * cost(x[of_x], y[of_y]) ** r).sum()
    return SOTD(total ** (1 / r), alpha, coupling, path)


def _shape(weights: Tensor | None) -> tuple[int, ...] | None:
    return None if weights is None else tuple(weights.shape)
