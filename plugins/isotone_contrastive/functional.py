r"""Mathematics of contrastive pairs: costs between views, and losses of rows of costs.

A cost is low where two items are alike: a Euclidean distance, or minus a cosine. ``R`` rows (anchors) choose among
``C`` columns (candidates), one of which, ``positive``, is the other view of the anchor's item. Every loss here is the
structured loss of an assignment problem whose rows are independent ("batch-hard mining"),

.. math:: L_i = h_{i, gt} - \min_{u \in \Delta} \langle h_i, u \rangle,

its minimum as it is (hinge) or smoothed by log-sum-exp (InfoNCE) or by sparsemax (SparseCLR); or, in
:func:`assignment_loss`, of one where columns are taken once.
"""

from __future__ import annotations

from typing import Literal

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor
from torch.nn import functional as F

Metric = Literal["euclidean", "cosine"]
METRICS = ("euclidean", "cosine")
#: Pairs that compete: view A's rows against B; also B's against A; or every item against all others of both.
Pairs = Literal["rows", "symmetric", "all"]
PAIRS = ("rows", "symmetric", "all")

# Squared distances below this share of the squared lengths are rounding: the vectors are equal.
_EQUAL = 1e-14


def check_views(a: Tensor, b: Tensor) -> None:
    """Raise ValueError unless two views are ``(N, D)`` each, with N at least 2."""
    if a.ndim != 2 or a.shape != b.shape or len(a) < 2 or not a.is_floating_point():
        raise ValueError(
            "Expected two views (N, D) of the same N >= 2 items, floating, row i of both of item i; got "
            f"{tuple(a.shape)} {a.dtype} and {tuple(b.shape)} {b.dtype}."
        )


def costs(a: Tensor, b: Tensor, metric: Metric) -> Tensor:
    """Compute costs between all rows of two sets of vectors: Euclidean distances, or minus the cosines.

    Args:
        a: ``(N, D)``.
        b: ``(M, D)``.
        metric: ``"euclidean"`` or ``"cosine"`` (a zero vector has cosine 0 with everything).

    Returns:
        ``(N, M)``, float32 at least. The distance of equal vectors has gradient 0.
    """
    a, b = (widened(x) for x in (a, b))
    with torch.autocast(a.device.type, enabled=False):
        return -F.normalize(a, dim=1) @ F.normalize(b, dim=1).mT if metric == "cosine" else _distances(a, b)


def widened(values: Tensor) -> Tensor:
    """Convert half precision to float32."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def _distances(a: Tensor, b: Tensor) -> Tensor:
    if a.dtype == torch.float64:
        return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")
    # |a|^2 + |b|^2 - 2ab loses short distances in float32; in float64 it keeps them, and is faster than differences
    wide_a, wide_b = a.double(), b.double()
    squares = wide_a.square().sum(1)[:, None] + wide_b.square().sum(1)
    difference = squares - 2 * wide_a @ wide_b.mT
    apart = difference > _EQUAL * squares
    return torch.where(apart, difference, 1.0).sqrt().where(apart, 0.0).to(a.dtype)


def candidates(a: Tensor, b: Tensor, metric: Metric, pairs: Pairs = "rows") -> tuple[Tensor, Tensor]:
    """Compute the rows of costs of a batch of two views, and the columns of the positives.

    Args:
        a: ``(N, D)`` one view of N items.
        b: ``(N, D)`` the other, in the same order.
        metric: See :func:`costs`.
        pairs: ``"rows"``: each of A among B's. ``"symmetric"``: each of B among A's as well. ``"all"``: each of
            both among the 2N - 1 others (SimCLR's).

    Returns:
        Costs ``(R, C)`` and the positive column of every row ``(R,)`` int64; ``(N, N)``, ``(2N, N)`` or
        ``(2N, 2N - 1)``.

    Raises:
        ValueError: not two views of the same items.
    """
    check_views(a, b)
    size = len(a)
    index = torch.arange(size, device=a.device)
    if pairs == "all":
        both = torch.cat([a, b])
        others = ~torch.eye(2 * size, dtype=torch.bool, device=a.device)
        rows = costs(both, both, metric)[others].view(2 * size, 2 * size - 1)
        return rows, torch.cat([index + size - 1, index])
    between = costs(a, b, metric)
    if pairs == "symmetric":
        return torch.cat([between, between.mT]), torch.cat([index, index])
    return between, index


def of_positives(values: Tensor, positive: Tensor) -> Tensor:
    """Pick the positive's value in every row: ``(R, C)``, ``(R,)`` -> ``(R,)``."""
    return values.gather(1, positive[:, None])[:, 0]


def is_positive(values: Tensor, positive: Tensor) -> Tensor:
    """Mark the positives: ``(R, C)`` bool."""
    return torch.arange(values.shape[1], device=values.device) == positive[:, None]


def assignment_loss(rows: Tensor, margin: float = 0.0) -> Tensor:
    r"""Structured linear assignment loss with one-to-one mining, the paper's equation 3.

    .. math:: L(S_m, Y_{gt}) = \mathrm{tr}(S_m) - \min_{Y \in \Pi} \mathrm{tr}(S_m Y^T), \quad S_m = S + m I

    Args:
        rows: Costs ``(N, N)``, positives on the diagonal.
        margin: m, by which positives have to be cheaper.

    Returns:
        Each row's share ``(N,)``; their sum is the loss, at least 0 (a single share may be below). The minimum is
        exact (scipy's Jonker-Volgenant, on the CPU, O(N^3)); the gradient is that at the minimiser.

    Raises:
        ValueError: not square, or not finite.
    """
    if rows.ndim != 2 or rows.shape[0] != rows.shape[1]:
        raise ValueError(
            f"The one-to-one assignment expects costs (N, N), positives on the diagonal; got {tuple(rows.shape)}."
        )
    if not torch.isfinite(rows).all():
        raise ValueError("The one-to-one assignment expects finite costs; look for NaN in the embeddings.")
    raised = rows + margin * torch.eye(len(rows), dtype=rows.dtype, device=rows.device)
    _, columns = linear_sum_assignment(raised.detach().cpu().double().numpy())
    return raised.diagonal() - of_positives(raised, torch.from_numpy(columns).to(rows.device))


def hinge_loss(rows: Tensor, positive: Tensor, margin: float) -> Tensor:
    r"""Margin triplet loss with batch-hard mining: :math:`\max(0, m + h_{gt} - \min_{j \ne gt} h_j)`.

    Equal to the batch-hard structured assignment loss of costs whose positives are raised by m (proposition 1).

    Args:
        rows: Costs ``(R, C)``, C at least 2.
        positive: ``(R,)`` int64.
        margin: m, at least 0, in the unit of the costs.

    Returns:
        ``(R,)``, at least 0.
    """
    hardest = rows.masked_fill(is_positive(rows, positive), torch.inf).amin(1)
    return F.relu(margin + of_positives(rows, positive) - hardest)


def info_nce_loss(rows: Tensor, positive: Tensor, temperature: float) -> Tensor:
    r"""InfoNCE: :math:`h_{gt} / \tau + \log \sum_j \exp(-h_j / \tau)`, the paper's equation 13 over tau.

    Args:
        rows: Costs ``(R, C)``.
        positive: ``(R,)`` int64.
        temperature: tau, above 0.

    Returns:
        ``(R,)`` nats, at least 0.
    """
    return F.cross_entropy(-rows / temperature, positive, reduction="none")


def logistic_loss(rows: Tensor, positive: Tensor, temperature: float, threshold: float) -> Tensor:
    r"""NT-Logistic: :math:`-\log \sigma(s_{gt}) - \frac{1}{C - 1} \sum_{j \ne gt} \log \sigma(-s_j)`.

    Args:
        rows: Costs ``(R, C)``, C at least 2.
        positive: ``(R,)`` int64.
        temperature: tau in s = (threshold - h) / tau, above 0.
        threshold: The cost at which a pair is as likely a positive as not; 0 for cosines in SimCLR's table.

    Returns:
        ``(R,)`` nats, at least 0.
    """
    scores = (threshold - rows) / temperature
    wrong = F.softplus(scores).masked_fill(is_positive(rows, positive), 0.0).sum(1) / (rows.shape[1] - 1)
    return F.softplus(-of_positives(scores, positive)) + wrong


def sparsemax(scores: Tensor) -> Tensor:
    """Projection of each row onto the probability simplex (Martins & Astudillo 2016).

    Args:
        scores: ``(..., C)`` finite.

    Returns:
        ``(..., C)``, non-negative, rows sum to 1; mostly zeros where scores differ by more than 1. Differentiable.
        O(C log C) per row.
    """
    shifted, threshold = _thresholded(scores)
    return F.relu(shifted - threshold)


def _thresholded(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Return the scores less their row's best ``(..., C)``, and sparsemax's threshold of these ``(..., 1)``."""
    # large sums would lose the small differences between scores
    shifted = scores - scores.detach().amax(-1, keepdim=True)
    ranked = shifted.sort(-1, descending=True).values
    sums = ranked.cumsum(-1)
    count = torch.arange(1, scores.shape[-1] + 1, device=scores.device, dtype=scores.dtype)
    size = (1 + count * ranked > sums).sum(-1, keepdim=True)
    return shifted, (sums.gather(-1, size - 1) - 1) / size


def sparse_loss(rows: Tensor, positive: Tensor, temperature: float = 1.0) -> Tensor:
    r"""SparseCLR with batch-hard mining: the sparsemax loss of z = -h / tau.

    .. math:: L = -z_{gt} + \tfrac12 \sum_{j \in \Omega(z)} (z_j^2 - T(z)^2) + \tfrac12

    Convex and non-negative; 0 where the positive is 1 cheaper than all others. (The paper's equations 8 and 14 have
    a minus before the sum; with it the loss is neither, and has no lower bound.) Negatives outside of the support
    :math:`\Omega` have no gradient at all.

    Args:
        rows: Costs ``(R, C)``.
        positive: ``(R,)`` int64.
        temperature: tau, above 0; the paper's is 1. Lower is sparser.

    Returns:
        ``(R,)``.

    Numerics: since sum p = 1 for p = sparsemax(z), the formula is |p|^2 / 2 + 1/2 - (z_gt - T): no squares of large
    scores are subtracted.
    """
    shifted, threshold = _thresholded(-rows / temperature)
    probability = F.relu(shifted - threshold)
    above = of_positives(shifted - threshold, positive)
    return 0.5 * probability.square().sum(1) + 0.5 - above
