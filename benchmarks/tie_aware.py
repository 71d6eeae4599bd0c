"""Tie-aware average precision by counting sort, against sorted rankings."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from benchmarks.harness import Bench, Peer, Size
from isotone.evaluation.ranking import average_precision_of, average_precision_range
from isotone.kernels.hamming import histogram


class Codes(NamedTuple):
    queries: np.ndarray  # (Q, 1) words of 64 bits
    items: np.ndarray  # (N, 1)
    relevant: np.ndarray  # (Q, N), a tenth


def codes(dims: Mapping[str, int]) -> Codes:
    rng = np.random.default_rng(0)
    words = rng.integers(0, 1 << 64, (dims["N"] + dims["Q"], 1), np.uint64)
    relevant = rng.random((dims["Q"], dims["N"]), np.float32) < 0.1
    return Codes(words[: dims["Q"]], words[dims["Q"] :], relevant)


def ours(given: Codes) -> np.ndarray:
    return average_precision_of(histogram(given.queries, given.items, given.relevant, 64))


def numpy_sort(given: Codes) -> np.ndarray:
    """Sort the distances (a radix sort: they are bytes) and average the precision at the relevant items."""
    out = []
    for query, relevant in zip(given.queries[:, 0], given.relevant):
        order = np.argsort(np.bitwise_count(query ^ given.items[:, 0]), kind="stable")
        ranks = np.flatnonzero(relevant[order]) + 1
        out.append((np.arange(1, len(ranks) + 1) / ranks).mean())
    return np.array(out)


def sklearn_sort(given: Codes) -> np.ndarray:
    from sklearn.metrics import average_precision_score

    return np.array(
        [
            average_precision_score(relevant, -np.bitwise_count(query ^ given.items[:, 0]).astype(np.float32))
            for query, relevant in zip(given.queries[:, 0], given.relevant)
        ]
    )


def numpy_count(given: Codes) -> np.ndarray:
    """Count without sorting, in whole-array operations; then sum over all ranks."""
    out = []
    for query, relevant in zip(given.queries[:, 0], given.relevant):
        distance = np.bitwise_count(query ^ given.items[:, 0])
        n = np.bincount(distance, minlength=65)
        hits = np.bincount(distance[relevant], minlength=65)
        out.append(_by_ranks(n, hits))
    return np.array(out)


def _by_ranks(n: np.ndarray, hits: np.ndarray) -> float:
    """Compute proposition 1 as printed: a sum over ranks."""
    group = np.repeat(np.arange(len(n)), n)
    before, hits_before = (np.cumsum(x) - x for x in (n, hits))
    rank = np.arange(1, len(group) + 1)
    slope = np.divide(hits - 1, n - 1, out=np.zeros(len(n)), where=n > 1)
    inside = hits_before[group] + (rank - before[group] - 1) * slope[group] + 1
    return float((hits[group] / n[group] * inside / rank).sum() / hits.sum())


def within_range(given: Codes, result: np.ndarray, theirs: np.ndarray) -> None:
    """Check that a sorted ranking, with ties in some order, lies between the worst and the best order."""
    spread = average_precision_range(histogram(given.queries, given.items, given.relevant, 64))
    assert (theirs >= spread.low - 1e-9).all(), "below the worst order of the ties"
    assert (theirs <= spread.high + 1e-9).all(), "above the best order of the ties"
    np.testing.assert_allclose(result, spread.mean, rtol=1e-12)


def by_thresholds(given: Codes, result: np.ndarray, theirs: np.ndarray) -> None:
    """Compare with scikit-learn, where each tied relevant item has the precision at its group's end."""
    counts = histogram(given.queries, given.items, given.relevant, 64)
    n, hits = counts.sum(2), counts[:, :, 1]
    precision = np.cumsum(hits, 1) / np.maximum(np.cumsum(n, 1), 1)
    np.testing.assert_allclose((hits * precision).sum(1) / hits.sum(1), theirs, rtol=1e-9)


def same(given: Codes, result: np.ndarray, theirs: np.ndarray) -> None:
    np.testing.assert_allclose(result, theirs, rtol=1e-9)


def check(given: Codes, result: np.ndarray) -> None:
    """Check that it equals sorting where there are no ties: one query's items at different distances."""
    _, first = np.unique(np.bitwise_count(given.queries[0, 0] ^ given.items[:, 0]), return_index=True)
    few = Codes(given.queries[:1], given.items[first], given.relevant[:1, first].copy())
    few.relevant[0, ::2] = True
    np.testing.assert_allclose(ours(few), numpy_sort(few), rtol=1e-12)
    if find_spec("sklearn") is not None:
        np.testing.assert_allclose(ours(few), sklearn_sort(few), rtol=1e-12)
    assert ((result > 0) & (result < 1)).all()


TARGETS = {"numpy sort": 0.1, "sklearn sort": 0.1}

BENCHES = [
    Bench(
        name="tie_aware",
        about="tie-aware average precision of Q queries over N items, 64 bits",
        inputs=codes,
        ours=ours,
        check=check,
        peers=[
            Peer("numpy sort", numpy_sort, within_range, yardstick=True),
            Peer(
                "sklearn sort",
                sklearn_sort,
                by_thresholds,
                yardstick=True,
                package="scikit-learn",
                module="sklearn",
            ),
            Peer("numpy count", numpy_count, same),
        ],
        sizes=[
            Size({"N": 2000, "Q": 100}, swept=True, quick=True),
            Size({"N": 20_000, "Q": 100}, swept=True),
            Size({"N": 200_000, "Q": 100}, swept=True),
            Size({"N": 1_000_000, "Q": 100}, swept=True, targets=TARGETS),
        ],
        axis="N",
    )
]
