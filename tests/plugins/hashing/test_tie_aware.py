"""Tie-aware measures against all orders of tied items and scikit-learn."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from isotone_hashing.figures import tie_range_figure

from isotone.evaluation import ranking


def orders(counts):
    """Every order of the items of one query ``(G, V)``, as lists of affinities."""
    groups = [[v for v, n in enumerate(of_group) for _ in range(n)] for of_group in counts]
    for order in itertools.product(*(itertools.permutations(g) for g in groups)):
        yield [v for of_group in order for v in of_group]


def plain_ap(ranked, top=None):
    hits = [a > 0 for a in ranked]
    return sum(sum(hits[: k + 1]) / (k + 1) for k, hit in enumerate(hits[:top]) if hit) / sum(hits)


def plain_dcg(ranked, top=None):
    return sum((2**a - 1) / np.log2(k + 2) for k, a in enumerate(ranked[:top]))


def plain_ndcg(ranked, top=None):
    return plain_dcg(ranked, top) / plain_dcg(sorted(ranked, reverse=True), top)


def plain_rr(ranked):
    return 1 / (1 + next(k for k, a in enumerate(ranked) if a > 0))


tables = st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3), min_size=1, max_size=4).filter(
    lambda t: sum(map(sum, t)) <= 6 and any(sum(row[1:]) for row in t)
)


@settings(max_examples=40, deadline=None)
@given(tables, st.one_of(st.none(), st.integers(1, 7)))
def test_measures_are_means_over_all_orders(table, top):
    ranked = list(orders(table))
    counts = np.array([table])
    aps = [plain_ap(r, top) for r in ranked]
    assert ranking.average_precision_of(counts, top)[0] == pytest.approx(np.mean(aps), abs=1e-12)
    assert ranking.dcg_of(counts, top)[0] == pytest.approx(np.mean([plain_dcg(r, top) for r in ranked]))
    assert ranking.ndcg_of(counts, top)[0] == pytest.approx(np.mean([plain_ndcg(r, top) for r in ranked]))
    assert ranking.reciprocal_rank_of(counts)[0] == pytest.approx(np.mean([plain_rr(r) for r in ranked]))
    if top is None:
        spread = ranking.average_precision_range(counts)
        assert spread.low[0] == pytest.approx(min(aps), abs=1e-12)
        assert spread.high[0] == pytest.approx(max(aps), abs=1e-12)
        assert spread.mean[0] == pytest.approx(np.mean(aps), abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**7), st.integers(0, 3000))
def test_harmonic_sums_keep_their_decimals(low, n):
    direct = (1.0 / np.arange(low + 1, low + n + 1, dtype=np.longdouble)).sum()
    assert ranking.harmonic_between(low, low + n) == pytest.approx(float(direct), rel=1e-14, abs=0)


def test_without_ties_sklearn_agrees():
    sklearn = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    rng = np.random.default_rng(0)
    scores, relevant = rng.normal(size=(6, 300)), rng.random((6, 300)) < 0.1
    theirs = [sklearn.average_precision_score(r, s) for r, s in zip(relevant, scores)]
    np.testing.assert_allclose(ranking.average_precision(scores, relevant), theirs, rtol=1e-12)
    graded = rng.integers(0, 4, (6, 300))
    theirs = [sklearn.ndcg_score([2.0**g - 1], [s], k=50) for g, s in zip(graded, scores)]
    np.testing.assert_allclose(ranking.ndcg(scores, graded, top=50), theirs, rtol=1e-12)


def test_sklearn_ndcg_agrees_on_ties():
    sklearn = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    rng = np.random.default_rng(1)
    scores, graded = rng.integers(0, 5, (6, 80)), rng.integers(0, 4, (6, 80))
    theirs = [sklearn.ndcg_score([2.0**g - 1], [s]) for g, s in zip(graded, scores)]
    np.testing.assert_allclose(ranking.ndcg(scores, graded), theirs, rtol=1e-12)


def test_lengths_and_absent_items_are_not_read():
    rng = np.random.default_rng(3)
    scores, relevant = rng.normal(size=(3, 40)).round(1), rng.integers(0, 2, (3, 40))
    lengths = [40, 17, 5]
    padded, absent = scores.copy(), relevant.copy()
    for row, n in enumerate(lengths):
        padded[row, n:] = np.nan
        absent[row, n:] = -1
    for measure in (ranking.average_precision, ranking.ndcg, ranking.reciprocal_rank):
        alone = [measure(scores[[q], :n], relevant[[q], :n])[0] for q, n in enumerate(lengths)]
        np.testing.assert_allclose(measure(padded, relevant, lengths), alone, rtol=1e-12)
        np.testing.assert_allclose(measure(padded, absent), alone, rtol=1e-12)
        as_tensors = measure(torch.tensor(padded), torch.tensor(relevant), torch.tensor(lengths))
        np.testing.assert_allclose(as_tensors, alone, rtol=1e-12)


def test_scores_of_minus_infinity_come_before_what_is_not_there():
    counts = ranking.tie_counts([[-np.inf, 1.0, 5.0]], [[1, 0, -1]])
    assert counts.tolist() == [[[1, 0], [0, 1]]]


def test_queries_without_relevant_items_have_no_value():
    scores, none = np.ones((1, 3)), np.zeros((1, 3), bool)
    for measure in (ranking.average_precision, ranking.ndcg, ranking.reciprocal_rank):
        assert np.isnan(measure(scores, none)).all()


def test_recall_counts_each_item_once():
    found = [["a", "b", "a"], ["x"], []]
    values = ranking.recall_at(found, [{"a", "z"}, {"x"}, set()], 3)
    assert values[:2].tolist() == [0.5, 1.0]
    assert np.isnan(values[2])
    assert ranking.recall_at([["a", "b"]], [["b"]], 1)[0] == 0


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: ranking.average_precision([[np.nan, 1]], [[1, 0]]), "Row 0: a score is NaN"),
        (lambda: ranking.average_precision([1.0], [1]), r"shape \(Q, N\)"),
        (lambda: ranking.average_precision([[1.0]], [[0.5]]), "bool or integers"),
        (lambda: ranking.average_precision([[1.0]], [[128]]), "up to 127"),
        (lambda: ranking.average_precision([[1.0]], [[1]], [2]), "lengths from 0 to 1"),
        (lambda: ranking.average_precision([[1.0]], [[1]], top=0), "top >= 1"),
        (lambda: ranking.dcg_of(np.zeros((2, 3))), r"shape \(Q, G, V\)"),
        (lambda: ranking.recall_at([[]], [], 1), "all 1 queries"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_figure_of_ranges():
    spread = ranking.Spread(np.array([0.2, np.nan]), np.array([0.3, np.nan]), np.array([0.5, np.nan]))
    figure = tie_range_figure({"a": spread, "b": spread}, title="Ties")
    (axes,) = figure.axes
    assert [bar.get_x() for bar in axes.patches] == [0.2, 0.2]
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([0.3, 0.3])
    assert [line.get_xdata()[0] for line in axes.lines] == [0.3, 0.3]
    with pytest.raises(ValueError, match="at least one system"):
        tie_range_figure({})
