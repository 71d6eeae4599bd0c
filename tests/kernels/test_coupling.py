from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isotone.kernels.coupling import _CompiledMerge, _TensorMerge, couple, ordered_minimum
from isotone.types import Coupling

ot = pytest.importorskip("ot", reason="POT is the oracle")

EXACT = {"rtol": 0.0, "atol": 1e-12}
MERGES = (_CompiledMerge, _TensorMerge)

#: Few distinct whole numbers: ties and zeros are common.
weights = st.lists(st.integers(0, 4), min_size=1, max_size=12).filter(any)


def merged(
    merge: Any, alpha: Tensor, beta: Tensor, n: Tensor | None = None, m: Tensor | None = None
) -> Coupling:
    n = torch.full((len(alpha),), alpha.shape[1]) if n is None else n
    m = torch.full((len(beta),), beta.shape[1]) if m is None else m
    mass, source, target = merge.apply(alpha, beta, n, m)
    return Coupling(source, target, mass, n, m)


def transport_plan(a: np.ndarray, b: np.ndarray) -> Tensor:
    places = [np.arange(len(x), dtype=float) for x in (a, b)]
    return torch.from_numpy(ot.emd_1d(*places, a / a.sum(), b / b.sum(), metric="sqeuclidean"))


def ragged(seed: int, size: int = 4) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    rng = torch.Generator().manual_seed(seed)
    n = torch.randint(1, 10, (size,), generator=rng)
    m = torch.randint(1, 7, (size,), generator=rng)
    n[0], m[-1] = 9, 6
    alpha = torch.rand(size, 9, generator=rng, dtype=torch.float64) + 0.01
    beta = torch.rand(size, 6, generator=rng, dtype=torch.float64) + 0.01
    return alpha, beta, n, m


@pytest.mark.parametrize("merge", MERGES)
@settings(max_examples=60, deadline=None)
@given(a=weights, b=weights)
def test_is_the_optimal_transport_plan(merge: Any, a: list[int], b: list[int]) -> None:
    alpha, beta = torch.tensor([a], dtype=torch.float64), torch.tensor([b], dtype=torch.float64)
    coupling = merged(merge, alpha, beta)
    plan = transport_plan(alpha[0].numpy(), beta[0].numpy())
    torch.testing.assert_close(coupling.dense()[0], plan, **EXACT)
    # Lemma 1: alpha and beta are read off the plan
    torch.testing.assert_close(coupling.dense().sum(2), alpha / alpha.sum(), **EXACT)
    torch.testing.assert_close(coupling.dense().sum(1), beta / beta.sum(), **EXACT)
    assert coupling.mass.shape[1] == len(a) + len(b) - 1
    assert (coupling.mass >= 0).all()
    assert (coupling.source.diff(dim=1) >= 0).all()
    assert (coupling.target.diff(dim=1) >= 0).all()


@pytest.mark.parametrize("merge", MERGES)
@pytest.mark.parametrize("seed", range(3))
def test_rows_of_several_lengths(merge: Any, seed: int) -> None:
    alpha, beta, n, m = ragged(seed)
    dense = merged(merge, alpha, beta, n, m).dense()
    for row in range(len(n)):
        a, b = alpha[row, : n[row]].numpy(), beta[row, : m[row]].numpy()
        expected = torch.zeros(9, 6, dtype=torch.float64)
        expected[: n[row], : m[row]] = transport_plan(a, b)
        torch.testing.assert_close(dense[row], expected, **EXACT)


@pytest.mark.parametrize("merge", MERGES)
def test_gradient(merge: Any) -> None:
    alpha, beta, n, m = ragged(5)
    leaves = (alpha.requires_grad_(), beta.requires_grad_())
    assert torch.autograd.gradcheck(lambda a, b: merged(merge, a, b, n, m).mass, leaves)


@settings(max_examples=40, deadline=None)
@given(a=weights, b=weights, seed=st.integers(0, 1000))
def test_both_implementations_agree(a: list[int], b: list[int], seed: int) -> None:
    upstream = torch.randn(1, len(a) + len(b) - 1, generator=torch.Generator().manual_seed(seed)).double()
    results = []
    for merge in MERGES:
        alpha = torch.tensor([a], dtype=torch.float64, requires_grad=True)
        beta = torch.tensor([b], dtype=torch.float64, requires_grad=True)
        c = merged(merge, alpha, beta)
        c.mass.backward(upstream)
        results.append((c.source, c.target, c.mass.detach(), alpha.grad, beta.grad))
    for compiled, tensors in zip(*results):
        torch.testing.assert_close(compiled, tensors, **EXACT)


@pytest.mark.parametrize("merge", MERGES)
def test_padding_is_never_read(merge: Any) -> None:
    alpha, beta, n, m = ragged(1)
    poisoned = [alpha.clone(), beta.clone()]
    for values, lengths in zip(poisoned, (n, m)):
        values[torch.arange(values.shape[1]) >= lengths[:, None]] = torch.nan
        values.requires_grad_()
    clean = merged(merge, alpha, beta, n, m)
    dirty = merged(merge, *poisoned, n, m)
    assert torch.equal(clean.mass, dirty.mass.detach())
    assert torch.equal(clean.source, dirty.source)
    (dirty.mass**2).sum().backward()
    for values, lengths in zip(poisoned, (n, m)):
        assert values.grad is not None
        assert torch.isfinite(values.grad).all()
        assert not values.grad[torch.arange(values.shape[1]) >= lengths[:, None]].any()


@pytest.mark.parametrize("merge", MERGES)
def test_rows_without_weights_carry_nothing(merge: Any) -> None:
    alpha = torch.tensor(
        [[1.0, 2.0, 1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [1.0, 1.0, 2.0]], requires_grad=True
    )
    beta = torch.ones(4, 2, requires_grad=True)
    c = merged(merge, alpha, beta, torch.tensor([0, 3, 3, 3]), torch.tensor([2, 2, 0, 2]))
    torch.testing.assert_close(c.mass.sum(1), torch.tensor([0.0, 0.0, 0.0, 1.0]))
    assert (c.source >= 0).all()
    assert (c.target >= 0).all()
    (c.mass * torch.arange(4.0)).sum().backward()
    assert alpha.grad is not None
    assert not alpha.grad[:3].any()
    assert alpha.grad[3].any()


def test_ties_and_dropped_sources() -> None:
    alpha = torch.tensor([[0.25, 0.25, 0.0, 0.25, 0.25]])
    c = couple(alpha, torch.tensor([[0.5, 0.5]]))
    expected = torch.tensor([[0.25, 0.0], [0.25, 0.0], [0.0, 0.0], [0.0, 0.25], [0.0, 0.25]])
    assert torch.equal(c.dense()[0], expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_narrow_weights_give_float32(dtype: torch.dtype) -> None:
    alpha = torch.rand(2, 300, generator=torch.Generator().manual_seed(0)).to(dtype).requires_grad_()
    beta = torch.ones(2, 40, dtype=dtype)
    c = couple(alpha, beta)
    assert c.mass.dtype == torch.float32
    exact = couple(alpha.detach().double(), beta.double())
    torch.testing.assert_close(c.mass.double(), exact.mass, rtol=1e-6, atol=1e-12)
    c.mass.square().sum().backward()
    assert alpha.grad is not None
    assert alpha.grad.dtype == dtype


def test_long_sequences_keep_their_digits() -> None:
    alpha = torch.rand(1, 200_000, generator=torch.Generator().manual_seed(0)) + 0.5
    c = couple(alpha, torch.ones(1, 30_000))
    carried = torch.zeros(1, 200_000, dtype=torch.float64).scatter_add(1, c.source, c.mass.double())
    expected = alpha.double() / alpha.double().sum()
    torch.testing.assert_close(carried, expected, rtol=1e-6, atol=0.0)


def test_scale_of_the_weights_is_nothing() -> None:
    alpha, beta, n, m = ragged(2)
    torch.testing.assert_close(
        couple(7.0 * alpha, 0.1 * beta, n, m).mass, couple(alpha, beta, n, m).mass, **EXACT
    )


def test_nan_weights_are_seen() -> None:
    alpha = torch.tensor([[0.5, torch.nan, 0.5], [0.2, 0.3, 0.5]])
    for merge in MERGES:
        c = merged(merge, alpha, torch.ones(2, 2))
        assert torch.isnan(c.mass[0]).any()
        assert torch.isfinite(c.mass[1]).all()
        assert ((c.source >= 0) & (c.source < 3) & (c.target >= 0) & (c.target < 2)).all()


def test_wrong_shapes_are_named() -> None:
    with pytest.raises(ValueError, match=r"\(B, n\) and \(B, m\); got \(3,\) and \(2,\)"):
        couple(torch.ones(3), torch.ones(2))
    with pytest.raises(ValueError, match=r"got \(1, 3\) and \(2, 2\)"):
        couple(torch.ones(1, 3), torch.ones(2, 2))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 6), m=st.integers(1, 5), whole=st.booleans())
def test_ordered_minimum_is_the_smallest_of_all(seed: int, n: int, m: int, whole: bool) -> None:
    rng = torch.Generator().manual_seed(seed)
    costs = torch.rand(n, m, generator=rng, dtype=torch.float64)
    if whole:  # ties
        costs = (3 * costs).round()
    share = torch.rand(m, generator=rng, dtype=torch.float64)
    path = ordered_minimum(costs, share)
    assert (path.diff() >= 0).all()
    every = itertools.combinations_with_replacement(range(n), m)
    best = min(sum(float(share[j] * costs[i, j]) for j, i in enumerate(p)) for p in every)
    assert float((share * costs[path, torch.arange(m)]).sum()) == pytest.approx(best, abs=1e-12)


def test_ordered_minimum_of_forbidden_pairs() -> None:
    costs = torch.tensor([[torch.inf, 1.0], [0.0, torch.inf], [5.0, 2.0]])
    assert ordered_minimum(costs).tolist() == [1, 2]
    assert ordered_minimum(costs, torch.tensor([0.0, 1.0])).tolist() == [0, 0]
    with pytest.raises(ValueError, match="without NaN"):
        ordered_minimum(torch.tensor([[torch.nan]]))
    with pytest.raises(ValueError, match=r"got \(3, 2\) and \(3,\)"):
        ordered_minimum(costs, torch.ones(3))
