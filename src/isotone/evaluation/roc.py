"""The receiver operating characteristic of a score that separates right from wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata


@dataclass(frozen=True)
class ROC:
    """The receiver operating characteristic of a score: cases at or above the threshold are accepted as right.

    Attributes:
        auc: Area under the curve: the probability that a right case scores higher than a wrong one, ties counted half.
        equal_error_rate: The rate, 0 to 1, at which the share of right cases refused equals the share of wrong
            cases accepted, interpolated linearly between thresholds.
        threshold: The one at which the larger of the two shares is least, halfway between neighbouring scores.
        right, wrong: Number of cases.
    """

    auc: float
    equal_error_rate: float
    threshold: float
    right: int
    wrong: int


def roc(right: npt.ArrayLike, wrong: npt.ArrayLike) -> ROC:
    r"""Compute the ROC of a score that should be high for right cases.

    .. math:: AUC = P(R > W) + \tfrac12 P(R = W) = \frac{\sum_i rank(r_i) - n (n + 1) / 2}{n m}

    by the ranks of the n right among all n + m scores (Mann & Whitney 1947), ties sharing their mean rank: exact.

    Args:
        right: ``(n,)`` scores of right cases, n at least 1; -inf and inf are scores.
        wrong: ``(m,)`` scores of wrong cases, m at least 1.

    Raises:
        ValueError: no right or no wrong scores, or a score that is NaN.
    """
    r, w = (np.asarray(x, np.float64).ravel() for x in (right, wrong))
    if not len(r) or not len(w) or np.isnan(r).any() or np.isnan(w).any():
        raise ValueError(
            f"roc expects scores of right and of wrong cases, none NaN; got {len(r)} and {len(w)}, "
            f"{int(np.isnan(r).sum() + np.isnan(w).sum())} of them NaN."
        )
    ranks = rankdata(np.concatenate([r, w]))[: len(r)]
    auc = (ranks.sum() - len(r) * (len(r) + 1) / 2) / (len(r) * len(w))
    # a threshold at every score that occurs, and one above them all
    scores = np.unique(np.concatenate([r, w]))
    refused = np.append(np.searchsorted(np.sort(r), scores), len(r)) / len(r)
    accepted = np.append(len(w) - np.searchsorted(np.sort(w), scores), 0) / len(w)
    best = int(np.argmin(np.maximum(refused, accepted)))
    # halfway between scores, so that neither side is decided by rounding
    around = scores[max(0, best - 1) : best + 1]
    around = around[np.isfinite(around)]
    threshold = float(around.mean()) if len(around) else float(scores[min(best, len(scores) - 1)])
    return ROC(float(auc), _equal(refused, accepted), threshold, len(r), len(w))


def _equal(refused: npt.NDArray[np.float64], accepted: npt.NDArray[np.float64]) -> float:
    """Find the crossing of a share that rises from 0 to 1 with one that falls from 1 to 0."""
    gap = refused - accepted
    after = int(np.argmax(gap >= 0))
    if gap[after] == 0:
        return float(refused[after])
    part = -gap[after - 1] / (gap[after] - gap[after - 1])
    return float(refused[after - 1] + part * (refused[after] - refused[after - 1]))
