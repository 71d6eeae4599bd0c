"""A measure of how well a score tells ordered from unordered."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import torch
from torch import Tensor

# Queries that are scored at a time.
_BLOCK = 1024


def ordering_consistency(
    score: Callable[[Tensor, Tensor], Tensor],
    query: Tensor,
    positives: Tensor,
    shuffles: int | None = None,
    generator: torch.Generator | None = None,
) -> float:
    r"""Order-discriminative capacity of one query, equation 30.

    The fraction of pairs of a positive c and a shuffled copy :math:`\tilde q` of the query with
    :math:`s(q, c) > s(\tilde q, c)`, equal scores counting one half: 1 for a score that always prefers the order,
    1/2 for one that does not see it.

    Args:
        score: From queries ``(Q, m, d)`` and items ``(C, n, d)`` to ``(Q, C)``.
        query: ``(m, d)``.
        positives: ``(C, n, d)``.
        shuffles: l, the number of orders other than the query's own, drawn with replacement. Default: all m! - 1.
        generator: Of the draw.

    Returns:
        A fraction, 0 to 1. (Scores that differ by less than a millionth of their size are equal.)

    Raises:
        ValueError: a query of one element, which has one order; no positives; or all orders requested for a query of
            more than 8 elements.
    """
    m = len(query)
    if m < 2 or not len(positives):
        raise ValueError(
            f"ordering_consistency expects a query of two elements or more and a positive item; got {m} and "
            f"{len(positives)}."
        )
    if shuffles is None and m > 8:
        raise ValueError(
            f"A query of {m} elements has {math.factorial(m)} orders: give a number of shuffles."
        )
    orders = _all_orders(m) if shuffles is None else _drawn_orders(m, shuffles, generator)
    own = score(query[None], positives)
    wins = 0.0
    for first in range(0, len(orders), _BLOCK):
        other = score(query[orders[first : first + _BLOCK]], positives)
        scale = torch.maximum(own.abs(), other.abs())
        equal = (own - other).abs() <= 1e-6 * scale
        wins += float(torch.where(equal, 0.5, (own > other).double()).sum())
    return wins / (len(orders) * len(positives))


def _all_orders(m: int) -> Tensor:
    return torch.tensor(list(itertools.permutations(range(m)))[1:])


def _drawn_orders(m: int, count: int, generator: torch.Generator | None) -> Tensor:
    """Draw orders other than 0 .. m - 1."""
    orders = torch.rand(count, m, generator=generator).argsort(1)
    own = torch.arange(m)
    while len(same := (orders == own).all(1).nonzero()[:, 0]):
        orders[same] = torch.rand(len(same), m, generator=generator).argsort(1)
    return orders
