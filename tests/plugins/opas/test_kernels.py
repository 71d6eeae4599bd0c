from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from isotone_opas.kernels import (
    Items,
    PenaltyNetwork,
    Sinkhorn,
    fit_all,
    fit_pairs,
    score_all,
    score_pairs,
)
from torch import Tensor

CLOSE = {"rtol": 1e-5, "atol": 1e-5}
SLOW_GROWTH = 1.2 ** torch.arange(24.0)


def square_sinkhorn(reward: Tensor, iterations: int) -> Tensor:
    """The paper's: n x n, the rows beyond the m of the query zero, on logarithms, columns then rows."""
    m, n = reward.shape
    logs = torch.cat([reward, reward.new_zeros(n - m, n)])
    for _ in range(iterations):
        logs = logs - logs.logsumexp(0, keepdim=True)
        logs = logs - logs.logsumexp(1, keepdim=True)
    return logs.exp()[:m]


def reference(q: Tensor, c: Tensor, lam: Tensor, options: Sinkhorn) -> tuple[Tensor, Tensor]:
    """s_F and s_lambda of one pair as the paper writes them, with its matrices A and S, in float64."""
    q, c, lam = q.double(), c.double(), lam.double()
    m, n = len(q), len(c)
    a = options.positions[:n].double()
    matrix = torch.eye(m).double() - torch.diag(torch.ones(m - 1), -1)
    matrix[0] = 0
    reward = 2 * q @ c.T + (1 - c.square().sum(1)) + (matrix.T @ lam)[:, None] * a
    plan = square_sinkhorn(reward / options.tau, options.iterations)
    bracket = options.margin - matrix @ plan @ a
    if options.hinge:
        bracket = bracket.clamp(min=0)
    return -(q - plan @ c).square().sum(), -(lam * bracket).sum()


def unit(rng: torch.Generator, *shape: int) -> Tensor:
    return torch.nn.functional.normalize(torch.randn(*shape, generator=rng), dim=-1)


def problem(seed: int, m: int, n: int, d: int, queries: int, items: int) -> tuple[Tensor, ...]:
    """Embeddings, lengths, and penalties ``(Q, m, C)``; one item has a silent window."""
    rng = torch.Generator().manual_seed(seed)
    q, c = unit(rng, queries, m, d), unit(rng, items, n, d)
    c[0, n // 2] = 0
    q_lengths = torch.randint(1, m + 1, (queries,), generator=rng)
    c_lengths = torch.randint(m, n + 1, (items,), generator=rng)
    lam = torch.rand(queries, m, items, generator=rng)
    lam[:, 0] = 0
    for row, size in enumerate(q_lengths):
        lam[row, size:] = 0
    return q, c, q_lengths, c_lengths, lam


def references(
    q: Tensor, c: Tensor, m: Tensor, n: Tensor, lam: Tensor, options: Sinkhorn
) -> tuple[Tensor, Tensor]:
    out = torch.empty(2, len(q), len(c))
    for i, j in itertools.product(range(len(q)), range(len(c))):
        pair = reference(q[i, : m[i]], c[j, : n[j]], lam[i, : m[i], j], options)
        out[:, i, j] = torch.stack(pair).float()
    return out[0], out[1]


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    m=st.integers(1, 7),
    spare=st.integers(0, 16),
    d=st.integers(1, 30),
    items=st.integers(1, 20),
    # single precision, double precision, logarithms
    tau=st.sampled_from([4.0, 1.0, 0.1, 0.02]),
    iterations=st.sampled_from([1, 5, 20]),
    hinge=st.booleans(),
)
# beyond 88, the slack's potential has no exponential in single precision where an item has no more columns
@example(seed=0, m=3, spare=4, d=1, items=4, tau=0.02, iterations=20, hinge=False)
# nor where the item is as long as the query: there is no slack, and nothing keeps its potential in bounds
@example(seed=2087, m=2, spare=0, d=1, items=3, tau=0.02, iterations=1, hinge=False)
def test_is_what_the_paper_writes(
    seed: int, m: int, spare: int, d: int, items: int, tau: float, iterations: int, hinge: bool
) -> None:
    q, c, m_lengths, n_lengths, lam = problem(seed, m, m + spare, d, 2, items)
    options = Sinkhorn(SLOW_GROWTH, tau, iterations, hinge=hinge)
    fit, order = score_all(q, Items.prepare(c, n_lengths), lam, options, m_lengths)
    expected = references(q, c, m_lengths, n_lengths, lam, options)
    torch.testing.assert_close(fit, expected[0], **CLOSE)
    # the brackets are differences of positions up to 80
    torch.testing.assert_close(order, expected[1], rtol=1e-5, atol=5e-5)


@pytest.mark.parametrize("tau", [1.0, 1e-3])
def test_long_items_of_linear_positions(tau: float) -> None:
    q, c, m, n, lam = problem(0, 6, 300, 16, 1, 3)
    options = Sinkhorn(torch.arange(300.0), tau)
    found = score_all(q, Items.prepare(c, n), lam, options, m)
    for value, expected in zip(found, references(q, c, m, n, lam, options)):
        torch.testing.assert_close(value, expected, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize(("growth", "tau"), [(1.2, 1.0), (1.2, 0.2), (1.1, 0.05)])
def test_rewards_far_beyond_single_precision(growth: float, tau: float) -> None:
    q, c, m, n, lam = problem(1, 6, 40, 16, 3, 20)
    options = Sinkhorn(growth ** torch.arange(40.0), tau)
    fit, order = score_all(q, Items.prepare(c, n), lam, options, m)
    expected = references(q, c, m, n, lam, options)
    torch.testing.assert_close(fit, expected[0], rtol=1e-5, atol=2e-5)
    # the brackets are differences of positions up to 1225
    torch.testing.assert_close(order, expected[1], rtol=1e-5, atol=5e-4)


@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    m=st.integers(1, 4),
    n=st.integers(4, 30),
    d=st.sampled_from([31, 64, 150]),
    tau=st.sampled_from([1.0, 0.02]),
)
def test_inner_products_and_vectors_give_the_same(seed: int, m: int, n: int, d: int, tau: float) -> None:
    q, c, m_lengths, lengths, lam = problem(seed, m, n, d, 5, 18)
    options = Sinkhorn(1.1 ** torch.arange(30.0), tau)
    items = [Items.prepare(c, lengths, rows) for rows in (1, 100_000)]
    assert [len(x.products) for x in items] == [0, 2]
    found = [score_all(q, x, lam, options, m_lengths) for x in items]
    for few, many in zip(*found):
        torch.testing.assert_close(few, many, **CLOSE)


@pytest.mark.parametrize("items", [1, 15, 16, 17, 530])
def test_any_number_of_items_and_pairs(items: int) -> None:
    q, c, m, n, lam = problem(3, 3, 8, 4, 2, items)
    options = Sinkhorn(SLOW_GROWTH)
    every = score_all(q, Items.prepare(c, n), lam, options, m)
    pairs = score_pairs(
        q[:1].expand(items, -1, -1), c, lam[0].T, options, m[:1].expand(items), n
    )  # fmt: skip
    for all_pairs, of_pair in zip(every, pairs):
        assert all_pairs.shape == (2, items)
        assert torch.isfinite(all_pairs).all()
        torch.testing.assert_close(all_pairs[0], of_pair, **CLOSE)


def test_threads_change_nothing() -> None:
    q, c, m, n, lam = problem(5, 6, 20, 8, 12, 700)
    threads = torch.get_num_threads()
    results = []
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            results.append(score_all(q, Items.prepare(c, n), lam, Sinkhorn(SLOW_GROWTH, 0.3), m))
    finally:
        torch.set_num_threads(threads)
    for one, three in zip(*results):
        torch.testing.assert_close(one, three, rtol=0, atol=1e-6)


def test_padding_is_never_read() -> None:
    q, c, m, n, lam = problem(6, 4, 9, 5, 3, 4)
    options = Sinkhorn(SLOW_GROWTH)
    clean = score_all(q, Items.prepare(c, n), lam, options, m)
    for rows, lengths in ((q, m), (c, n)):
        for row, size in zip(rows, lengths):
            row[size:] = torch.nan
    for before, after in zip(clean, score_all(q, Items.prepare(c, n), lam, options, m)):
        torch.testing.assert_close(before, after, rtol=0, atol=0)


def test_a_query_longer_than_its_item_scores_nan() -> None:
    q, c, _, _, lam = problem(7, 4, 6, 5, 1, 3)
    n = torch.tensor([6, 3, 4])
    fit, order = score_all(q, Items.prepare(c, n), lam, Sinkhorn(SLOW_GROWTH))
    assert torch.isnan(fit[0]).tolist() == torch.isnan(order[0]).tolist() == [False, True, False]


def test_options_and_sizes_are_checked() -> None:
    q, c, m, n, lam = problem(8, 4, 6, 5, 2, 3)
    for options in ({"tau": 0.0}, {"iterations": 0}, {"margin": float("nan")}):
        with pytest.raises(ValueError, match="tau > 0"):
            Sinkhorn(SLOW_GROWTH, **options)
    with pytest.raises(ValueError, match="positions for 6 corpus elements; got 5"):
        score_all(q, Items.prepare(c, n), lam, Sinkhorn(SLOW_GROWTH[:5]), m)
    layers = np.array([(1, 1, 1, 0), (3, 1, 1, 0), (2, 2, 0, 0)])
    small = PenaltyNetwork(layers, np.zeros(13, np.float32), 6)
    with pytest.raises(ValueError, match="queries of 3 elements"):
        score_all(q, Items.prepare(c, n), small, Sinkhorn(SLOW_GROWTH), m)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    m=st.integers(1, 5),
    spare=st.integers(0, 5),
    d=st.integers(1, 20),
    queries=st.integers(1, 4),
    items=st.integers(1, 40),
)
def test_exact_selections_are_the_best_of_all(
    seed: int, m: int, spare: int, d: int, queries: int, items: int
) -> None:
    q, c, m_lengths, n_lengths, _ = problem(seed, m, m + spare, d, queries, items)
    found = fit_all(q, Items.prepare(c, n_lengths), m_lengths)
    assert found.shape == (queries, items)
    for i, j in itertools.product(range(queries), range(items)):
        x, y = q[i, : m_lengths[i]].double(), c[j, : n_lengths[j]].double()
        costs = (x[:, None] - y).square().sum(-1)
        choices = itertools.combinations(range(len(y)), len(x))
        best = min(float(costs[range(len(x)), list(choice)].sum()) for choice in choices)
        assert float(found[i, j]) == pytest.approx(-best, abs=1e-5)
    pairs = min(queries, items)
    own = fit_pairs(q[:pairs], c[:pairs], m_lengths[:pairs], n_lengths[:pairs])
    torch.testing.assert_close(own, found[:pairs, :pairs].diagonal(), **CLOSE)


@pytest.mark.parametrize("size", [1e-4, 1.0, 1e3])
def test_exact_selections_of_vectors_of_any_length(size: float) -> None:
    q, c, m, n, _ = problem(3, 4, 9, 5, 3, 20)
    found = fit_all(size * q, Items.prepare(size * c, n), m)
    torch.testing.assert_close(found / size**2, fit_all(q, Items.prepare(c, n), m), rtol=1e-5, atol=1e-6)


def test_exact_selections_of_items_that_are_too_short() -> None:
    q, c = unit(torch.Generator().manual_seed(0), 2, 4, 8), unit(torch.Generator().manual_seed(1), 3, 6, 8)
    found = fit_all(q, Items.prepare(c, torch.tensor([6, 3, 4])), torch.tensor([4, 3]))
    assert found.isnan().tolist() == [[False, True, False], [False, False, False]]
    assert fit_pairs(q, c[:2], torch.tensor([4, 3]), torch.tensor([3, 3])).isnan().tolist() == [True, False]
