from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from isotone.kernels import assignment
from isotone.kernels.assignment import ordered_assignment, ordered_minimum

sizes = st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 5), st.booleans()


def scores(seed: int, shape: tuple[int, ...], ties: bool) -> Tensor:
    values = torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (3 * values).round() if ties else values


def ragged(seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Costs with NaN wherever nothing may be read, weights, and lengths of sources and targets."""
    rng = torch.Generator().manual_seed(seed)
    n, m = torch.randint(3, 9, (5,), generator=rng), torch.randint(0, 4, (5,), generator=rng)
    n[0], m[-1] = 8, 3
    costs = scores(seed, (5, 8, 3), ties=bool(seed % 2))
    weights = torch.rand(5, 3, generator=rng, dtype=torch.float64)
    for b in range(5):
        costs[b, n[b] :], costs[b, :, m[b] :], weights[b, m[b] :] = torch.nan, torch.nan, torch.nan
    return costs, weights, n, m


def on_tensors(
    monkeypatch: pytest.MonkeyPatch, solve: Callable[[], tuple[Tensor, ...]]
) -> tuple[Tensor, ...]:
    """Solve by the tensor operations for other devices, put in place of the compiled loops."""

    def instead(_: Any, rows: int, cells: int, *arrays: Any) -> None:
        *inputs, path, value = map(torch.from_numpy, arrays)
        method = assignment.minimum_by_tensors if len(inputs) == 4 else assignment.assignment_by_tensors
        for out, result in zip((path, value), method(*inputs)):
            out.copy_(result)

    with monkeypatch.context() as patch:
        patch.setattr(assignment, "each_task", instead)
        return solve()


@settings(max_examples=60, deadline=None)
@given(*sizes)
def test_ordered_minimum_is_the_smallest_of_all(seed: int, n: int, m: int, ties: bool) -> None:
    costs = scores(seed, (1, n, m), ties)
    share = scores(seed + 1, (1, m), False)
    path, value = ordered_minimum(costs, share)
    assert (path.diff() >= 0).all()
    every = itertools.combinations_with_replacement(range(n), m)
    best = min(sum(float(share[0, j] * costs[0, i, j]) for j, i in enumerate(p)) for p in every)
    assert value.item() == pytest.approx(best, abs=1e-12)
    reached = (share[0] * costs[0, path[0], torch.arange(m)]).sum()
    assert reached.item() == pytest.approx(best, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(*sizes)
def test_ordered_assignment_is_the_best_of_all(seed: int, extra: int, m: int, ties: bool) -> None:
    n = m + extra - 1
    rewards = scores(seed, (1, m, n), ties) - 0.5
    path, value = ordered_assignment(rewards)
    assert (path.diff() > 0).all()
    every = itertools.combinations(range(n), m)
    best = max(sum(float(rewards[0, j, i]) for j, i in enumerate(p)) for p in every)
    assert value.item() == pytest.approx(best, abs=1e-12)
    assert rewards[0, torch.arange(m), path[0]].sum().item() == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_where_order_costs_nothing_it_is_the_linear_assignment(seed: int) -> None:
    # a Monge array: crossing never pays, so that the best of all assignments is ordered
    rng = torch.Generator().manual_seed(seed)
    queries = torch.rand(12, generator=rng, dtype=torch.float64).sort().values
    positions = torch.rand(40, generator=rng, dtype=torch.float64).sort().values
    rewards = -((queries[:, None] - positions) ** 2)
    path, value = ordered_assignment(rewards[None])
    rows, columns = linear_sum_assignment(rewards.numpy(), maximize=True)
    assert value.item() == pytest.approx(rewards.numpy()[rows, columns].sum(), abs=1e-12)
    assert path[0].tolist() == columns.tolist()
    # and with order reversed it must do worse than the assignment that may cross
    crossed, _ = ordered_assignment(rewards.flip(0)[None])
    assert rewards.flip(0)[torch.arange(12), crossed[0]].sum() < value.item() - 1e-3


@pytest.mark.parametrize("seed", range(6))
def test_rows_are_what_they_are_alone(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    costs, weights, n, m = ragged(seed)
    path, value = ordered_minimum(costs, weights, n, m)
    chosen, reward = ordered_assignment(-costs.mT, m, n)
    for b in range(5):
        part = costs[b : b + 1, : n[b], : m[b]]
        for (row, best), alone in (
            ((path[b], value[b]), ordered_minimum(part, weights[b : b + 1, : m[b]])),
            ((chosen[b], reward[b]), ordered_assignment(-part.mT)),
        ):
            assert row[: m[b]].tolist() == alone[0][0].tolist()
            assert (row[m[b] :] == -1).all()
            assert best == alone[1][0]
    # the tensor operations of other devices: the same to the bit
    for (a, b), solve in (
        ((path, value), lambda: ordered_minimum(costs, weights, n, m)),
        ((chosen, reward), lambda: ordered_assignment(-costs.mT, m, n)),
    ):
        again = on_tensors(monkeypatch, solve)
        assert torch.equal(again[0], a)
        assert torch.equal(again[1], b)


def test_many_rows_on_threads_are_the_same() -> None:
    costs = scores(0, (7, 400, 120), ties=True)
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            results.append((*ordered_minimum(costs), *ordered_assignment(costs.mT)))
    finally:
        torch.set_num_threads(before)
    for one, three in zip(*results):
        assert torch.equal(one, three)


def test_forbidden_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    inf = torch.inf
    costs = torch.tensor([[[inf, 1.0], [0.0, inf], [5.0, 2.0]], [[inf, inf]] * 3])

    def solve() -> tuple[Tensor, ...]:
        some, value = ordered_minimum(costs)
        light, _ = ordered_minimum(costs[:1], torch.tensor([[0.0, 1.0]]))
        chosen, reward = ordered_assignment(-costs.mT)
        return some, value, light, chosen, reward

    for some, value, light, chosen, reward in (solve(), on_tensors(monkeypatch, solve)):
        assert some[0].tolist() == [1, 2]
        assert light[0].tolist() == [0, 0]
        assert value.tolist() == [2.0, inf]
        assert chosen[0].tolist() == [1, 2]
        assert reward.tolist() == [-2.0, -inf]
        assert ((some >= 0) & (some < 3)).all()
        assert (chosen.diff() > 0).all()


@pytest.mark.parametrize("rewards", [torch.zeros(2, 0, 3), torch.zeros(0, 2, 3), torch.zeros(1, 0, 0)])
def test_nothing_to_place(rewards: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    for solve in (lambda: ordered_assignment(rewards), lambda: ordered_minimum(rewards.mT)):
        for path, value in (solve(), on_tensors(monkeypatch, solve)):
            assert path.shape == rewards.shape[:2]
            assert value.tolist() == [0.0] * len(rewards)


@pytest.mark.parametrize("tensors", [False, True])
def test_nan_is_refused_and_its_row_named(tensors: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    costs = torch.ones(2, 4, 2)
    costs[1, 2, 1] = torch.nan
    for solve in (lambda: ordered_minimum(costs), lambda: ordered_assignment(costs.mT)):
        with pytest.raises(ValueError, match=r"Row 1: .* without NaN"):
            on_tensors(monkeypatch, solve) if tensors else solve()


def test_what_cannot_be_is_named() -> None:
    with pytest.raises(ValueError, match=r"Row 0: .*at most as many queries as positions; got 3 and 2"):
        ordered_assignment(torch.zeros(1, 3, 2))
    with pytest.raises(ValueError, match=r"Row 1: .*; got 2 and 1"):
        ordered_assignment(torch.zeros(2, 2, 4), torch.tensor([2, 2]), torch.tensor([4, 1]))
    with pytest.raises(ValueError, match=r"Row 1: .*a source for the targets; got 2 and 0"):
        ordered_minimum(torch.zeros(2, 3, 2), None, torch.tensor([1, 0]))
    with pytest.raises(ValueError, match=r"length from 0 to 2; got 5"):
        ordered_minimum(torch.zeros(1, 3, 2), None, None, torch.tensor([5]))
    with pytest.raises(ValueError, match=r"lengths of shape \(1,\).*got \(2,\)"):
        ordered_assignment(torch.zeros(1, 2, 3), torch.tensor([2, 2]))
    with pytest.raises(ValueError, match=r"got \(3, 2\) and None"):
        ordered_minimum(torch.zeros(3, 2))
    with pytest.raises(ValueError, match=r"rewards \(B, m, n\); got \(3, 2\)"):
        ordered_assignment(torch.zeros(3, 2))
