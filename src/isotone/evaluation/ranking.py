r"""Measures of a ranking: average precision, NDCG and reciprocal rank, aware of ties.

Items of equal score can stand in any order, and the orders' values can be far apart. Here a measure is its mean
over all orders of tied items, in closed form (McSherry & Najork, "Computing information retrieval performance
measures efficiently in the presence of tied scores", ECIR 2008; He et al., "Hashing as tie-aware learning to
rank", CVPR 2018). Without ties this is the ordinary value.

All measures are functions of *counts* ``(Q, G, V)``: for every query, from the best score to the worst, how many
items of every affinity v share the score. :func:`tie_counts` makes them from scores, and
:func:`isotone.kernels.hamming.histogram` from binary codes without sorting anything. Affinity 0 is irrelevant;
average precision and reciprocal rank take every affinity above 0 as relevant. A query without relevant items has
no value: NaN.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from torch import Tensor

from isotone.evaluation.formulas import ratio
from isotone.evaluation.ties import check_scores, harmonic_between, tie_counts
from isotone.evaluation.tracks import Floats

# Items whose scores are turned into counts at a time.
_BLOCK_ITEMS = 1 << 22


class Spread(NamedTuple):
    """A measure over all orders of tied items: the least, the mean and the largest value, each ``(Q,)``."""

    low: Floats
    mean: Floats
    high: Floats


def average_precision(
    scores: npt.ArrayLike | Tensor,
    affinity: npt.ArrayLike | Tensor,
    lengths: npt.ArrayLike | Tensor | None = None,
    top: int | None = None,
) -> Floats:
    """Compute the average precision of every query, ``(Q,)``; its mean is MAP.

    Args:
        scores: ``(Q, N)``, higher is better.
        affinity: ``(Q, N)`` bool or integers up to 127; above 0 is relevant, negative is absent.
        lengths: ``(Q,)``, items of each query; those past it are absent. Default: N.
        top: As in :func:`average_precision_of`.

    Raises:
        ValueError: shapes that do not fit together, or a score that is NaN.
    """
    return _blockwise(average_precision_of, scores, affinity, lengths, top)


def ndcg(
    scores: npt.ArrayLike | Tensor,
    affinity: npt.ArrayLike | Tensor,
    lengths: npt.ArrayLike | Tensor | None = None,
    top: int | None = None,
) -> Floats:
    """Compute every query's normalised discounted cumulative gain, ``(Q,)``.

    Arguments as in :func:`average_precision`.
    """
    return _blockwise(ndcg_of, scores, affinity, lengths, top)


def reciprocal_rank(
    scores: npt.ArrayLike | Tensor,
    affinity: npt.ArrayLike | Tensor,
    lengths: npt.ArrayLike | Tensor | None = None,
) -> Floats:
    """Compute every query's reciprocal rank, ``(Q,)``; its mean is MRR. Arguments as in :func:`average_precision`."""
    return _blockwise(reciprocal_rank_of, scores, affinity, lengths)


def average_precision_of(counts: npt.ArrayLike, top: int | None = None) -> Floats:
    r"""Compute tie-aware average precision, ``(Q,)`` (TALR, proposition 1).

    .. math::
        AP_T = \sum_d \frac{n_d^+}{n_d N^+} \sum_{t = N_{d-1} + 1}^{\min(N_d, k)}
            \frac{N_{d-1}^+ + (t - N_{d-1} - 1) \frac{n_d^+ - 1}{n_d - 1} + 1}{t}

    with n the items of a group of ties, N those up to its end, + the relevant ones. The inner sum is a
    difference of harmonic numbers, so a query takes O(G).

    Args:
        counts: ``(Q, G, V)``, best group first.
        top: k, the rank up to which items are seen; N+ is of all items, as in TALR's Eq. 17. Default: all.

    Raises:
        ValueError: counts of another shape, or ``top`` below 1.
    """
    n, relevant = _relevant(counts)
    before, relevant_before = _before(n), _before(relevant)
    end = before + n if top is None else np.minimum(before + n, np.maximum(before, _checked(top)))
    # expected share of relevant items at each further rank inside a group of ties
    slope = np.where(n > 1, ratio(relevant - 1, n - 1), 0.0)
    inner = slope * (end - before)
    inner += (relevant_before + 1 - slope * (before + 1)) * harmonic_between(before, end)
    total = np.where(n > 0, ratio(relevant, n) * inner, 0.0).sum(1)
    return ratio(total, relevant.sum(1))


def average_precision_range(counts: npt.ArrayLike) -> Spread:
    """Compute average precision in the worst and the best order of tied items, and its mean over all orders.

    In the best order the relevant items of a group come first, in the worst last: the room that a free choice
    leaves (TALR, section 5.4 and figure 3). Ranks in closed form, O(G) per query.

    Args:
        counts: ``(Q, G, V)``, best group first.
    """
    n, relevant = _relevant(counts)
    before, relevant_before = _before(n), _before(relevant)

    def ordered(start: Floats) -> Floats:
        # relevant items i = 1 .. n+ at the ranks start + i: the sum of (N+ + i) / (start + i)
        harmonic = harmonic_between(start, start + relevant)
        return ratio((relevant + (relevant_before - start) * harmonic).sum(1), relevant.sum(1))

    return Spread(ordered(before + n - relevant), average_precision_of(counts), ordered(before))


def dcg_of(counts: npt.ArrayLike, top: int | None = None) -> Floats:
    r"""Compute tie-aware discounted cumulative gain, ``(Q,)`` (TALR, proposition 1).

    .. math::
        DCG_T = \sum_d \frac{\sum_v (2^v - 1)\, n_{d,v}}{n_d}
            \sum_{t = N_{d-1} + 1}^{\min(N_d, k)} \frac{1}{\log_2(t + 1)}

    Args:
        counts: ``(Q, G, V)``, best group first.
        top: k, the rank up to which items are seen. Default: all.
    """
    table = _counts(counts)
    n = table.sum(2)
    before = _before(n)
    end = before + n if top is None else np.minimum(before + n, np.maximum(before, _checked(top)))
    summed = _discounts(int(n.sum(1).max(initial=0)))
    gains = table @ _gains(table.shape[2])
    mean_gain = np.where(n > 0, ratio(gains, n), 0.0)
    return (mean_gain * (summed[end.astype(np.int64)] - summed[before.astype(np.int64)])).sum(1)


def ndcg_of(counts: npt.ArrayLike, top: int | None = None) -> Floats:
    """Compute tie-aware DCG over that of the best possible ranking, ``(Q,)``; arguments as in :func:`dcg_of`."""
    table = _counts(counts)
    # the ideal ranking's groups are the affinities themselves, from the highest to 0
    per_level = table.sum(1)[:, ::-1]
    ideal = np.zeros((*per_level.shape, per_level.shape[1]))
    level = np.arange(per_level.shape[1])
    ideal[:, level, level[::-1]] = per_level
    return ratio(dcg_of(table, top), dcg_of(ideal, top))


def reciprocal_rank_of(counts: npt.ArrayLike) -> Floats:
    """Compute the tie-aware reciprocal rank of the first relevant item, ``(Q,)``.

    Among n tied items, p of them relevant, the first relevant one comes j-th with probability
    C(n - j, p - 1) / C(n, p).

    Args:
        counts: ``(Q, G, V)``, best group first.
    """
    n, relevant = _relevant(counts)
    before = _before(n)
    out = np.full(len(n), np.nan)
    for q in np.flatnonzero(relevant.any(1)):
        group = int((relevant[q] > 0).argmax())
        size, hits = n[q, group], relevant[q, group]
        j = np.arange(1.0, size - hits + 2)
        share = np.cumprod(np.concatenate([[hits / size], (size - j[:-1] - hits + 1) / (size - j[:-1])]))
        out[q] = (share / (before[q, group] + j)).sum()
    return out


def recall_at(
    found: Sequence[Sequence[Hashable]], relevant: Sequence[Collection[Hashable]], top: int
) -> Floats:
    """Compute recall@k, ``(Q,)``: the share of every query's relevant items among the first ``top`` found.

    Args:
        found: For every query the items found, best first, such as the ids of
            :meth:`isotone.interfaces.Index.search`.
        relevant: For every query the relevant items.
        top: k.

    Raises:
        ValueError: the two have different numbers of queries, or ``top`` is below 1.
    """
    if len(found) != len(relevant):
        raise ValueError(f"Expected relevant items of all {len(found)} queries; got {len(relevant)}.")
    k = _checked(top)
    hits = [len({*items[:k]} & {*good}) for items, good in zip(found, relevant)]
    return ratio(hits, [len({*good}) for good in relevant])


def _blockwise(measure: Any, scores: Any, affinity: Any, lengths: Any, *options: Any) -> Floats:
    values, levels = check_scores(scores, affinity, lengths)
    return np.concatenate(
        [
            np.zeros(0),
            *(measure(tie_counts(values[rows], levels[rows]), *options) for rows in _blocks(values)),
        ]
    )


def _blocks(values: np.ndarray) -> Iterator[slice]:
    rows = max(1, _BLOCK_ITEMS // max(1, values.shape[1]))
    for begin in range(0, len(values), rows):
        yield slice(begin, begin + rows)


def _counts(counts: npt.ArrayLike) -> np.ndarray:
    table = np.asarray(counts, float)
    if table.ndim != 3 or table.shape[2] < 2 or (table < 0).any():
        raise ValueError(
            f"Expected counts of shape (Q, G, V), V at least 2 and none below 0; got shape {table.shape}."
        )
    return table


def _relevant(counts: npt.ArrayLike) -> tuple[Floats, Floats]:
    table = _counts(counts)
    return table.sum(2), table[:, :, 1:].sum(2)


def _before(items: Floats) -> Floats:
    """Count the items in the groups before each."""
    return np.cumsum(items, axis=1) - items


def _gains(levels: int) -> Floats:
    return np.exp2(np.arange(levels, dtype=np.float64)) - 1.0


def _discounts(ranks: int) -> Floats:
    """Sum the first 0, 1, .. ``ranks`` discounts 1 / log2(t + 1)."""
    sums = np.zeros(ranks + 1)
    np.cumsum(1.0 / np.log2(np.arange(2.0, ranks + 2)), out=sums[1:])
    return sums


def _checked(top: int) -> int:
    if top < 1:
        raise ValueError(f"Expected top >= 1, a rank; got {top}.")
    return top
