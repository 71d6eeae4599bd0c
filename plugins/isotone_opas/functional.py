"""The maths of OPAS: positions, rewards, the two scores, and the margin loss."""

from __future__ import annotations

import math

import torch
from torch import Tensor

# Positions beyond this lose their differences in single precision.
_LARGEST_POSITION = 1e5


def positions(size: int, growth: float | None = 1.2) -> Tensor:
    """Return the a of the order's constraint: ``growth ** j``, or ``j`` itself where growth is None.

    Args:
        size: n, the length of the longest corpus item.
        growth: v > 1; the paper takes 1.2 for n of 20 and 40, and ``0 .. n - 1`` for 500.

    Returns:
        ``(n,)`` float32.

    Raises:
        ValueError: growth of 1 or less, or one that grows beyond single precision.
    """
    if growth is None:
        return torch.arange(size, dtype=torch.float32)
    if not growth > 1:
        raise ValueError(f"positions expects growth > 1, or None for 0 .. n - 1; got {growth}.")
    if (size - 1) * math.log(growth) > math.log(_LARGEST_POSITION):
        raise ValueError(
            f"positions expects growth ** (n - 1) up to {_LARGEST_POSITION:.0e}; got {growth} and n = {size}. "
            "Set growth to None for corpus items of this length."
        )
    return (growth ** torch.arange(size, dtype=torch.float64)).float()


def similarities(queries: Tensor, corpus: Tensor) -> Tensor:
    """Return inner products ``(B, m, n)`` of ``(B, m, d)`` and ``(B, n, d)``."""
    return queries @ corpus.mT


def theorem1_reward(similarity: Tensor, corpus: Tensor, penalties: Tensor, positions: Tensor) -> Tensor:
    r"""The reward matrix Z whose best assignment minimises the objective (Theorem 1, equation 18).

    :math:`Z_{ij} = 2 x_i \cdot c_j + (A^\top \lambda)_i a_j + 1 - \|c_j\|^2`. The last two terms are 0 for the unit
    rows that the paper assumes; with them the theorem holds for zero rows (silent windows) as well.

    Args:
        similarity: ``(B, m, n)``.
        corpus: ``(B, n, d)``.
        penalties: lambda ``(B, m)``, 0 in the first row and beyond the lengths.
        positions: a ``(n,)``.

    Returns:
        ``(B, m, n)``, the first m rows of the paper's n x n matrix, whose other rows are zero.
    """
    push = penalties - torch.nn.functional.pad(penalties[:, 1:], (0, 1))
    bonus = 1 - corpus.square().sum(-1)
    return 2 * similarity + bonus[:, None] + push[..., None] * positions[: similarity.shape[2]]


def hinge_reward(queries: Tensor, corpus: Tensor) -> Tensor:
    """The paper's alternative PHS ``(B, m, n)``: minus the sum of the positive parts of ``x_i - c_j``."""
    return -(queries[:, :, None] - corpus[:, None]).clamp(min=0).sum(-1)


def fit_score(queries: Tensor, corpus: Tensor, plan: Tensor) -> Tensor:
    """Equation 6, ``s_F = -||X_q - P X_c||_F^2``, ``(B,)``; queries are zero beyond their lengths, as is the plan."""
    return -(queries - plan @ corpus).square().sum((1, 2))


def order_score(
    plan: Tensor, penalties: Tensor, positions: Tensor, margin: float = 1.0, hinge: bool = False
) -> Tensor:
    """Equation 7, ``s_lambda = -<lambda, b - A P a>``, ``(B,)``; with ``hinge`` the positive parts of the bracket.

    Args:
        plan: ``(B, m, n)``.
        penalties: ``(B, m)``, 0 in the first row and beyond the lengths.
        positions: a ``(n,)``.
        margin: b.
        hinge: True to stop rewarding increases beyond the margin.
    """
    expected = plan @ positions[: plan.shape[2]]
    violation = margin - expected.diff(dim=1, prepend=expected.new_zeros(len(expected), 1))
    return -(penalties * (violation.clamp(min=0) if hinge else violation)).sum(1)


def margin_loss(scores: Tensor, relevant: Tensor, margin: float = 0.3, valid: Tensor | None = None) -> Tensor:
    r"""Equation 9 with the hinge of its text: :math:`\sum_{c^+, c^-} [\Delta + s(q, c^-) - s(q, c^+)]_+`.

    Args:
        scores: ``(Q, K)`` of K candidates of each query.
        relevant: ``(Q, K)`` bool.
        margin: Delta, in units of the score.
        valid: ``(Q, K)`` bool, candidates that count. Default: all.

    Returns:
        ``(Q,)`` means over a query's pairs; 0 without a positive or a negative one.
    """
    valid = torch.ones_like(relevant) if valid is None else valid
    positive, negative = relevant & valid, ~relevant & valid
    # positives are few: they are moved to the front, and only so many columns are paired with all others
    most = int(positive.sum(1).max()) if positive.numel() else 0
    first = torch.argsort(~positive, dim=1, stable=True)[:, :most]
    gap = margin + scores[:, None] - scores.gather(1, first)[..., None]
    pairs = positive.gather(1, first)[..., None] & negative[:, None]
    total = torch.where(pairs, gap.clamp(min=0), 0.0).sum((1, 2))
    return total / pairs.sum((1, 2)).clamp(min=1)


def explore_negatives(
    relevant: Tensor,
    negatives: int = 800,
    positives: int | None = None,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:
    """Draw candidates of each query: (some of) its positives and some negatives, uniformly without replacement.

    Args:
        relevant: ``(Q, C)`` bool.
        negatives: Negatives per query (the paper: 800); all where there are fewer.
        positives: Positives per query. Default: all.
        generator: Source of randomness, on the CPU.

    Returns:
        Corpus item numbers ``(Q, K)`` int64, and which of them count ``(Q, K)`` bool. Padding repeats the item 0.
    """
    count = relevant.shape[1]
    noise = torch.rand(relevant.shape, generator=generator).to(relevant.device)
    picks = []
    for kind, limit in ((relevant, count if positives is None else positives), (~relevant, negatives)):
        order = torch.where(kind, noise, 2.0).argsort(1)[:, : min(limit, int(kind.sum(1).max()))]
        picks.append((order, kind.gather(1, order)))
    items, valid = (torch.cat(parts, 1) for parts in zip(*picks))
    return torch.where(valid, items, 0), valid


def shift_rows(similarity: Tensor, stagger: int) -> Tensor:
    """Turn ``(B, m, n)`` into ``(B, stagger + 1, m, n)``: channel k has row i + k at row i, or zeros past the last."""
    shifted = [torch.nn.functional.pad(similarity[:, k:], (0, 0, 0, min(k, similarity.shape[1])))
               for k in range(stagger + 1)]  # fmt: skip
    return torch.stack(shifted, 1)
