"""Tie-aware metrics against all orders of tied items, their relaxations, and what training makes of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from isotone_hashing import functional
from isotone_hashing.figures import tie_range_figure
from isotone_hashing.head import HashHead
from isotone_hashing.loss import HyperplaneLoss, TALRLoss
from isotone_hashing.training import Pairs, fit_hyperplanes, fit_talr

from isotone.evaluation import ranking
from isotone.kernels import hamming


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


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 150), st.integers(1, 60), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_histogram_counts_the_distances(bits, items, queries, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.random((queries, bits)) < 0.5, rng.random((items, bits)) < 0.5
    affinity = rng.integers(-1, 4, (queries, items))
    distance = (a[:, None] != b).sum(2)
    packed = hamming.pack(a), hamming.pack(b)
    assert (hamming.distances(*packed) == distance).all()
    counts = hamming.histogram(*packed, affinity, bits)
    for v in range(counts.shape[2]):
        for d in range(bits + 1):
            expected = ((distance == d) & (affinity == v)).sum(1)
            assert (counts[:, d, v] == expected).all()
    by_scores = ranking.tie_counts(-distance, affinity)
    np.testing.assert_allclose(
        ranking.average_precision_of(counts), ranking.average_precision_of(by_scores), rtol=1e-12
    )
    np.testing.assert_allclose(ranking.ndcg_of(counts), ranking.ndcg_of(by_scores), rtol=1e-12)


@pytest.mark.parametrize(
    ("items", "queries"), [(10_001, 19), (140_001, 9)]
)  # the second counts pairs of items
def test_histogram_of_many_blocks_and_threads(items, queries):
    rng = np.random.default_rng(0)
    words = rng.integers(0, 1 << 64, (items, 1), np.uint64)
    asked, affinity = words[:queries], rng.choice([-1, 0, 1], (queries, items), p=[0.1, 0.8, 0.1])
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        counts = hamming.histogram(asked, words, affinity, 64)
    finally:
        torch.set_num_threads(threads)
    for q in range(queries):
        distance = np.bitwise_count(words[:, 0] ^ asked[q, 0])
        for value in (0, 1):
            expected = np.bincount(distance[affinity[q] == value], minlength=65)
            assert (counts[q, :, value] == expected).all()


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
        (lambda: hamming.pack(np.zeros((2, 0))), "b >= 1"),
        (lambda: hamming.distances(np.zeros((1, 1)), np.zeros((1, 1))), "type uint64"),
        (
            lambda: hamming.histogram(np.zeros((1, 1), "u8"), np.zeros((1, 1), "u8"), [[1]], 65),
            "do not have 65 bits",
        ),
        (
            lambda: hamming.histogram(np.zeros((1, 1), "u8"), np.full((1, 1), 7, "u8"), [[1]], 2),
            "more than 2 bits",
        ),
    ],
)
def test_what_is_wrong_is_said(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# Relaxations


def binary_batch(seed, queries=7, items=40, bits=8, levels=3):
    rng = np.random.default_rng(seed)
    a, b = rng.random((queries, bits)) < 0.5, rng.random((items, bits)) < 0.5
    affinity = rng.integers(0, levels, (queries, items))
    affinity[:, 0], affinity[:, 1] = 1, -1
    counts = hamming.histogram(hamming.pack(a), hamming.pack(b), affinity, bits)
    signs = [torch.tensor(x * 2.0 - 1, dtype=torch.float64) for x in (a, b)]
    return counts, signs, torch.tensor(affinity)


@pytest.mark.parametrize("width", [1.0, 0.5])
def test_soft_counts_of_binary_codes_are_counts(width):
    counts, (a, b), affinity = binary_batch(0)
    soft = functional.soft_histogram(functional.relaxed_distances(a, b), affinity, 8, counts.shape[2], width)
    np.testing.assert_allclose(soft.numpy(), counts, atol=1e-12)


def test_both_ways_to_count_softly_agree():
    generator = torch.Generator().manual_seed(0)
    distance = 8 * torch.rand(5, 30, generator=generator, dtype=torch.float64)
    distance[0, :3] = torch.tensor([0.0, 8.0, 4.0])
    affinity = torch.randint(-1, 3, (5, 30), generator=generator)
    one = functional.soft_histogram(distance, affinity, 8, 3)
    other = functional.soft_histogram(distance, affinity, 8, 3, 1 + 1e-12)
    torch.testing.assert_close(one, other, rtol=0, atol=1e-9)
    torch.testing.assert_close(one.sum((1, 2)), (affinity >= 0).sum(1).double())


def test_relaxed_ap_of_whole_counts_is_exact():
    counts, _, _ = binary_batch(1)
    relevant = torch.tensor(counts[:, :, 1:].sum((1, 2)))
    relaxed = functional.relaxed_ap(torch.tensor(counts, dtype=torch.float64), relevant)
    np.testing.assert_allclose(relaxed.numpy(), ranking.average_precision_of(counts), rtol=1e-12)


def test_relaxed_dcg_and_the_simplified_forms_are_near():
    counts, _, _ = binary_batch(2, items=400)
    soft = torch.tensor(counts, dtype=torch.float64)
    relevant = soft[:, :, 1:].sum((1, 2))
    dcg, ap = ranking.dcg_of(counts), ranking.average_precision_of(counts)
    np.testing.assert_allclose(functional.relaxed_dcg(soft).numpy(), dcg, rtol=5e-3)
    np.testing.assert_allclose(functional.simplified_dcg(soft).numpy(), dcg, rtol=5e-2)
    assert (functional.simplified_dcg(soft).numpy() <= dcg + 1e-9).all()  # Jensen
    np.testing.assert_allclose(functional.simplified_ap(soft, relevant).numpy(), ap, rtol=2e-2)
    ideal = functional.ideal_dcg(soft.sum(1).long()).numpy()
    np.testing.assert_allclose(dcg / ideal, ranking.ndcg_of(counts), rtol=1e-12)


def test_simplified_forms_are_exact_without_ties():
    rng = np.random.default_rng(4)
    counts = np.eye(4, dtype=int)[rng.integers(0, 4, (5, 30))]
    soft = torch.tensor(counts, dtype=torch.float64)
    np.testing.assert_allclose(
        functional.simplified_ap(soft, soft[:, :, 1:].sum((1, 2))).numpy(),
        ranking.average_precision_of(counts),
    )
    np.testing.assert_allclose(functional.simplified_dcg(soft).numpy(), ranking.dcg_of(counts))


@pytest.mark.parametrize("width", [1.0, 1.7])
@pytest.mark.parametrize("relaxation", ["simplified", "integral"])
@pytest.mark.parametrize("metric", ["ap", "ndcg"])
def test_gradients(metric, relaxation, width):
    generator = torch.Generator().manual_seed(5)
    codes = torch.tanh(torch.randn(9, 6, generator=generator, dtype=torch.float64)).requires_grad_()
    affinity = torch.randint(0, 3 if metric == "ndcg" else 2, (9, 9), generator=generator)

    loss = TALRLoss(metric=metric, relaxation=relaxation, width=width)
    assert torch.autograd.gradcheck(lambda c: loss(c, affinity), (codes,))


def test_integral_ap_stays_finite_near_single_items():
    """Eq. 11 is singular at c = 1, and its logarithm where nothing came before."""
    for near in (0.0, 1e-9, 0.5, 1 - 1e-9, 1.0, 1 + 1e-9, 1 + 1e-4):
        counts = torch.tensor([[[0.3, near], [0.0, 0.0], [1.0, near]]], dtype=torch.float64).requires_grad_()
        value = functional.relaxed_ap(counts, torch.tensor([2]))
        value.sum().backward()
        assert torch.isfinite(value).all()
        assert torch.isfinite(counts.grad).all()
        assert counts.grad.abs().max() < 1e3


def test_loss_tends_to_the_exact_measure_as_the_scale_grows():
    generator = torch.Generator().manual_seed(6)
    raw = torch.randn(20, 12, generator=generator)
    affinity = torch.randint(0, 2, (20, 20), generator=generator)
    words = hamming.pack(raw)
    itself = affinity.masked_fill(torch.eye(20, dtype=torch.bool), -1)
    exact = torch.tensor(ranking.average_precision_of(hamming.histogram(words, words, itself, 12)))
    loss = TALRLoss(relaxation="integral")
    errors = [
        (1 - loss(torch.tanh(alpha * raw), affinity).double() - exact).abs().max().item()
        for alpha in (1, 10, 1e3, 1e6)
    ]
    assert errors[0] > errors[2] > errors[3]
    assert errors[3] < 1e-4


def test_a_batch_gives_what_its_rows_give_alone():
    generator = torch.Generator().manual_seed(7)
    queries, corpus = (torch.rand(n, 8, generator=generator) * 2 - 1 for n in (6, 15))
    affinity = torch.randint(-1, 2, (6, 15), generator=generator)
    affinity[2] = 0
    loss = TALRLoss()
    together = loss(queries, affinity, corpus)
    for row in range(6):
        there = affinity[row] >= 0
        alone = loss(queries[[row]], affinity[[row]][:, there], corpus[there])
        torch.testing.assert_close(together[row], alone[0])
    assert together[2] == 0


# Hyperplanes


def test_collision_loss_is_the_sum_over_triplets():
    generator = torch.Generator().manual_seed(8)
    q = torch.randn(4, 3, generator=generator, dtype=torch.float64).requires_grad_()
    c = torch.randn(9, 3, generator=generator, dtype=torch.float64).requires_grad_()
    positive = torch.rand(4, 9, generator=generator) < 0.4
    positive[3] = False
    value, terms = functional.collision_loss(q, c, positive)
    score = q @ c.T
    direct = sum(
        torch.relu(1 + score[i, n] - score[i, p])
        for i in range(4)
        for p in range(9)
        for n in range(9)
        if positive[i, p] and not positive[i, n]
    )
    torch.testing.assert_close(value, direct)
    assert terms == sum(int(p.sum() * (~p).sum()) for p in positive)
    for got, expected in zip(torch.autograd.grad(value, (q, c)), torch.autograd.grad(direct, (q, c))):
        torch.testing.assert_close(got, expected)


def test_fence_and_balance():
    codes = torch.tensor([[1.0, -1.0], [-0.5, 1.0]])
    assert functional.fence_loss(codes).item() == 0.5
    first, pairs = functional.balance_loss(codes)
    assert first.item() == 0.5
    assert pairs.item() == 1.25 + 2.0 + 2 * 1.5


def test_hyperplane_loss_means_do_not_depend_on_sizes():
    codes = torch.rand(6, 4, generator=torch.Generator().manual_seed(0)) * 2 - 1
    positive = torch.eye(6, dtype=torch.bool)
    loss = HyperplaneLoss(collision=0)
    torch.testing.assert_close(
        loss(codes, codes, positive), loss(codes, codes.repeat(3, 1), positive.repeat(1, 3))
    )


def clusters(seed, items=400, size=16):
    """Vectors around centres, away from the origin: random hyperplanes put most on one side."""
    generator = torch.Generator().manual_seed(seed)
    centre = torch.randn(items // 8, size, generator=generator) + 2
    corpus = centre.repeat_interleave(8, 0) + 0.5 * torch.randn(items, size, generator=generator)
    chosen = torch.randint(0, items // 8, (80,), generator=generator)
    queries = centre[chosen] + 0.5 * torch.randn(80, size, generator=generator)
    pairs = torch.stack(
        [torch.arange(80).repeat_interleave(8), (chosen[:, None] * 8 + torch.arange(8)).ravel()], 1
    )
    return corpus, queries, pairs


def mean_ap(head, corpus, queries, pairs):
    affinity = np.zeros((len(queries), len(corpus)), np.int8)
    affinity[pairs[:, 0], pairs[:, 1]] = 1
    words = [hamming.pack(head.codes(x)) for x in (queries, corpus)]
    return ranking.average_precision_of(hamming.histogram(*words, affinity, head.bits)).mean()


def drawn(corpus, queries, pairs, seed=0):
    length = corpus.norm(dim=1).mean()
    return Pairs(corpus / length, queries / length, pairs, batch_queries=32, batch_items=200, seed=seed)


def test_learning_to_rank_raises_ap_on_other_queries():
    corpus, queries, pairs = clusters(0)
    training, test = pairs[pairs[:, 0] < 50], pairs[pairs[:, 0] >= 50] - torch.tensor([50, 0])
    head = HashHead(16, bits=16)
    before = mean_ap(head, corpus, queries[50:], test)
    seen = []
    losses = fit_talr(
        head,
        TALRLoss(),
        drawn(corpus, queries, training),
        steps=120,
        progress=lambda *step: seen.append(step),
    )
    assert [s[:2] for s in seen[:2]] == [(1, 120), (2, 120)]
    assert len(losses) == 120
    length = corpus.norm(dim=1).mean()
    assert mean_ap(head, corpus / length, queries[50:] / length, test) > before + 0.1
    assert head.alpha == 40


@pytest.mark.parametrize("gold", [True, False])
def test_trained_hyperplanes_balance_their_bits_and_find_more(gold):
    corpus, queries, pairs = clusters(1)
    length = corpus.norm(dim=1).mean()
    head = HashHead(16, bits=16, bias=False, scale=5.0, first_scale=None)
    share = np.abs(head.codes(corpus).mean(0) - 0.5).mean()
    before = mean_ap(head, corpus, queries, pairs)
    fit_hyperplanes(
        head, HyperplaneLoss(), drawn(corpus, queries, pairs if gold else None), tables=2, steps=100
    )
    assert np.abs(head.codes(corpus).mean(0) - 0.5).mean() < share / 2
    assert mean_ap(head, corpus / length, queries / length, pairs) > before + 0.05


def test_training_repeats_with_its_seed():
    corpus, queries, pairs = clusters(2)
    runs = []
    for seed in (0, 0, 1):
        head = HashHead(16, bits=8)
        fit_talr(head, TALRLoss(), drawn(corpus, queries, pairs, seed), steps=5)
        runs.append(head.weight.detach())
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])


def test_batches_hold_a_positive_of_every_query():
    corpus, queries, pairs = clusters(3)
    graded = torch.cat([pairs, torch.full((len(pairs), 1), 3)], 1)
    source = Pairs(corpus, queries, graded, batch_queries=20, batch_items=60, seed=0)
    for _ in range(5):
        batch = source.draw()
        assert batch.corpus.shape == (60, 16)
        assert set(batch.affinity.unique().tolist()) == {0, 3}
        assert (batch.affinity > 0).any(1).all()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: TALRLoss(metric="map"), "metric 'ap' or 'ndcg'"),
        (lambda: TALRLoss(width=0), "width above 0"),
        (lambda: TALRLoss()(torch.zeros(2, 4), torch.zeros(2, 3)), "affinities of shape"),
        (lambda: HashHead(4, bits=0), "one bit"),
        (lambda: HashHead(4, bits=4, scale=0), "scales above 0"),
        (lambda: HyperplaneLoss(silver=0), "silver"),
        (lambda: HyperplaneLoss(reduction="none"), "'mean' or 'sum'"),
        (lambda: functional.soft_histogram(torch.zeros(1, 1), torch.zeros(1, 1), 4, 2, -1), "above 0"),
        (
            lambda: Pairs(torch.zeros(2, 3), torch.zeros(2, 3), torch.tensor([[0, 2]]), batch_queries=1,
                          batch_items=1, seed=0),
            r"got \[0, 2, 1\]",
        ),
        (
            lambda: fit_talr(HashHead(3, bits=4), TALRLoss(), Pairs(torch.zeros(2, 3), torch.zeros(2, 3), None,
                             batch_queries=1, batch_items=1, seed=0)),
            "expects positives",
        ),
    ],
)  # fmt: skip
def test_wrong_options_are_named(call, message):
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
