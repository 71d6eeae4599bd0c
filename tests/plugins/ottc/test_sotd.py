"""The Sequence Optimal Transport Distance against enumeration, random weights and the theorems of the paper."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from isotone_ottc.sotd import sotd
from torch import Tensor


def random_sequences(seed: int, *sizes: int) -> list[Tensor]:
    rng = torch.Generator().manual_seed(seed)
    return [torch.randn(n, 2, generator=rng, dtype=torch.float64) for n in sizes]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), r=st.sampled_from([1.0, 2.0]))
def test_no_alpha_beats_the_exact_distance(seed: int, r: float) -> None:
    x, y = random_sequences(seed, 7, 4)
    beta = torch.rand(4, generator=torch.Generator().manual_seed(seed)).double() + 0.05
    best = sotd(x, y, r=r, beta=beta, exact=True)
    alphas = torch.distributions.Dirichlet(torch.full((7,), 0.3).double())
    torch.manual_seed(seed)
    for alpha in alphas.sample((20,)):
        assert sotd(x, y, r=r, beta=beta, alpha=alpha).value >= best.value - 1e-9
    # and its own alpha reaches it, by a coupling that is its path (proposition 1)
    torch.testing.assert_close(
        sotd(x, y, r=r, beta=beta, alpha=best.alpha).value, best.value, rtol=0, atol=1e-9
    )
    assert best.path is not None
    moved = best.coupling.dense()[0]
    torch.testing.assert_close(moved[best.path, torch.arange(4)], beta / beta.sum(), rtol=0, atol=1e-9)


def test_gradient_descent_on_alpha_stays_above_the_exact_distance() -> None:
    x, y = random_sequences(0, 12, 4)
    best = sotd(x, y, exact=True).value
    free = torch.zeros(12, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([free], lr=0.1)
    values = []
    for _ in range(150):
        optimizer.zero_grad()
        value = sotd(x, y, alpha=free.softmax(0)).value
        value.backward()
        optimizer.step()
        values.append(value.item())
    assert min(values) >= best.item() - 1e-9
    assert values[-1] < 0.5 * (values[0] + best.item()), "it gets at least half the way"


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), r=st.sampled_from([1.0, 2.0, 3.0]))
def test_for_given_weights_it_is_a_pseudo_metric(seed: int, r: float) -> None:
    x, y, z = random_sequences(seed, 6, 5, 3)
    rng = torch.Generator().manual_seed(seed)
    a, b, c = (torch.rand(n, generator=rng, dtype=torch.float64) + 0.01 for n in (6, 5, 3))
    xy = sotd(x, y, r=r, alpha=a, beta=b).value
    yz = sotd(y, z, r=r, alpha=b, beta=c).value
    xz = sotd(x, z, r=r, alpha=a, beta=c).value
    assert xz <= xy + yz + 1e-9
    torch.testing.assert_close(sotd(y, x, r=r, alpha=a, beta=b).value, xy, rtol=0, atol=1e-9)
    assert sotd(x, x, r=r, alpha=a, beta=a).value == 0
    torch.testing.assert_close(
        sotd(x, y, r=r, exact=True).value, sotd(y, x, r=r, exact=True).value, rtol=0, atol=1e-9
    )


def test_the_minimum_over_alpha_breaks_the_triangle_inequality() -> None:
    a, b = torch.tensor([[0.0]]), torch.tensor([[1.0]])
    both = torch.cat([a, b])
    via = sotd(a, both, exact=True).value + sotd(both, b, exact=True).value
    assert via == 0
    assert sotd(a, b, exact=True).value == 1


@settings(max_examples=60, deadline=None)
@given(
    x=st.lists(st.integers(0, 2), min_size=1, max_size=7),
    y=st.lists(st.integers(0, 2), min_size=1, max_size=5),
)
def test_zero_iff_pruned_and_collapsed_it_is_the_collapsed_other(x: list[int], y: list[int]) -> None:
    if len(x) < len(y):
        x, y = y, x
    value = sotd(torch.tensor(x)[:, None].double(), torch.tensor(y)[:, None].double(), exact=True).value
    collapsed = [k for k, _ in itertools.groupby(y)]
    subsets = itertools.chain.from_iterable(itertools.combinations(x, k) for k in range(1, len(x) + 1))
    reachable = any([k for k, _ in itertools.groupby(s)] == collapsed for s in subsets)
    assert (value == 0) == reachable


def test_asymmetric_costs_keep_their_sides() -> None:
    def cost(a: Tensor, b: Tensor) -> Tensor:
        return (a - 2 * b)[..., 0].abs()

    x, y = random_sequences(3, 2, 5)
    exact = sotd(x, y, cost, exact=True)
    direct = min(
        sum(float(cost(x[j], y[i])) for j, i in enumerate(path)) / 2
        for path in itertools.combinations_with_replacement(range(5), 2)
    )
    assert exact.value.item() == pytest.approx(direct)
    assert sotd(x, y, cost, alpha=exact.alpha).value.item() == pytest.approx(direct)


def test_sotd_refuses_what_it_cannot_use() -> None:
    x, y = random_sequences(0, 3, 2)
    with pytest.raises(ValueError, match="either alpha"):
        sotd(x, y)
    with pytest.raises(ValueError, match="3 weights alpha and 2 weights beta"):
        sotd(x, y, alpha=torch.ones(2))
    with pytest.raises(ValueError, match="at least one element"):
        sotd(x, y[:0], exact=True)
    with pytest.raises(ValueError, match=r"r >= 1; got 2 elements, r = 0\.5"):
        sotd(x, y, r=0.5, exact=True)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000), n=st.integers(1, 6), m=st.integers(1, 4),
    r=st.sampled_from([1.0, 2.0, 3.0]), weighted=st.booleans(),
)  # fmt: skip
def test_the_exact_distance_is_the_least_of_all_ordered_paths(
    seed: int, n: int, m: int, r: float, weighted: bool
) -> None:
    """Every element of the shorter sequence is carried by one of the longer, in order: the cheapest way to do so."""
    x, y = random_sequences(seed, n, m)
    costs = np.linalg.norm(x.numpy()[:, None] - y.numpy()[None], axis=-1) ** r
    costs = costs if n >= m else costs.T
    size = min(n, m)
    beta = np.random.default_rng(seed).random(size) + 0.05 if weighted else np.ones(size)
    paths = itertools.combinations_with_replacement(range(max(n, m)), size)
    values = {path: float((beta / beta.sum()) @ costs[path, range(size)]) for path in paths}
    best = min(values, key=values.__getitem__)
    found = sotd(x, y, r=r, beta=torch.from_numpy(beta) if weighted else None, exact=True)
    assert found.path is not None
    assert found.value.item() == pytest.approx(values[best] ** (1 / r), rel=1e-9)
    assert tuple(found.path.tolist()) == best
    carried = np.bincount(best, beta / beta.sum(), minlength=max(n, m))
    np.testing.assert_allclose(found.alpha.numpy(), carried, rtol=0, atol=1e-12)
