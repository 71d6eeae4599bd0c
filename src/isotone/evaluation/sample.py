"""A corpus as a sample of utterances: resampling it gives confidence intervals and tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numba import njit

from isotone.evaluation.tracks import Floats, Ints

#: Quantiles of the absolute boundary errors that are kept.
QUANTILES = {"median": 0.5, "p90": 0.9}

_CELLS = 4_000_000  # Weights held in memory at a time.


@dataclass(frozen=True)
class Errors:
    """Absolute errors in ascending order, each with the utterance it comes from.

    Attributes:
        values: ``(N,)``, ascending.
        utterance: ``(N,)`` int64.
    """

    values: Floats
    utterance: Ints

    @classmethod
    def sort(cls, values: Floats, utterance: Ints) -> Errors:
        """Sort errors given in any order."""
        order = np.argsort(values, kind="stable")
        return cls(values[order], utterance[order])


@dataclass(frozen=True)
class Sample:
    """The contributions of every utterance, from which the measures of any resample follow exactly.

    Attributes:
        sums: Columns ``(U,)`` that add up over utterances.
        errors: Boundary errors by name, for their quantiles, which do not add up.
    """

    sums: Mapping[str, Floats]
    errors: Mapping[str, Errors]

    def __len__(self) -> int:
        return len(next(iter(self.sums.values())))

    def totals(self, weights: Ints) -> dict[str, Floats]:
        """Compute sums and error quantiles of resamples.

        Args:
            weights: ``(R, U)`` number of times that each utterance is drawn.

        Returns:
            ``(R,)`` per column, and ``<errors>_<quantile>`` for :data:`QUANTILES`, NaN where there is no error.
        """
        table = np.stack(list(self.sums.values()), 1)
        out = dict(zip(self.sums, (weights.astype(float) @ table).T))
        for name, errors in self.errors.items():
            found = _weighted_quantiles(
                errors.values, errors.utterance, weights, np.array(list(QUANTILES.values()))
            )
            out |= {f"{name}_{quantile}": found[:, q] for q, quantile in enumerate(QUANTILES)}
        return out

    def join(self, other: Sample) -> Sample:
        """Join both samples to one of U + U' utterances, with the columns that both have."""
        size = len(self)
        sums = {k: np.concatenate([v, other.sums[k]]) for k, v in self.sums.items() if k in other.sums}
        errors = {
            k: Errors.sort(
                np.concatenate([e.values, other.errors[k].values]),
                np.concatenate([e.utterance, other.errors[k].utterance + size]),
            )
            for k, e in self.errors.items()
        }
        return Sample(sums, errors)


def bootstrap_weights(utterances: int, resamples: int, seed: int) -> Iterator[Ints]:
    """Draw resamples with replacement: blocks ``(r, U)`` of counts per utterance."""
    rng = np.random.default_rng(seed)
    for rows in _blocks(utterances, resamples):
        # an offset per row makes one bincount count every row by itself
        drawn = rng.integers(0, utterances, (rows, utterances)) + utterances * np.arange(rows)[:, None]
        yield np.bincount(drawn.ravel(), minlength=rows * utterances).reshape(rows, utterances)


def swaps(utterances: int, resamples: int, seed: int) -> Iterator[Ints]:
    """Toss a fair coin per utterance: blocks ``(r, U)`` of 0 and 1."""
    rng = np.random.default_rng(seed)
    for rows in _blocks(utterances, resamples):
        yield rng.integers(0, 2, (rows, utterances))


def _blocks(utterances: int, resamples: int) -> Iterator[int]:
    size = max(1, _CELLS // max(1, utterances))
    for done in range(0, resamples, size):
        yield min(size, resamples - done)


@njit(cache=True)
def _weighted_quantiles(values: Floats, utterance: Ints, weights: Ints, quantiles: Floats) -> Floats:
    """Compute quantiles of each resample's errors, interpolated as ``numpy.quantile`` does.

    ``quantiles`` ascend; one pass over the sorted errors serves them all.
    """
    per_utterance = np.zeros(weights.shape[1], dtype=np.int64)
    for u in utterance:
        per_utterance[u] += 1
    out = np.full((len(weights), len(quantiles)), np.nan)
    for r in range(len(weights)):
        row = weights[r]
        # an utterance drawn twice brings each of its errors twice
        size = 0
        for u in range(len(row)):
            size += row[u] * per_utterance[u]
        if size == 0:
            continue
        seen, k = row[utterance[0]], 0
        for q in range(len(quantiles)):
            position = quantiles[q] * (size - 1)
            rank = int(np.floor(position))
            while seen <= rank:  # the error of that rank, counted from 0
                k += 1
                seen += row[utterance[k]]
            # the next rank is the same error, unless its copies end here
            lower, upper = values[k], values[k]
            if seen <= rank + 1 and rank + 1 < size:
                after = k + 1
                while row[utterance[after]] == 0:
                    after += 1
                upper = values[after]
            out[r, q] = lower + (upper - lower) * (position - rank)
    return out
