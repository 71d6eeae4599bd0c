from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isotone.kernels.coupling import TensorMerge, couple, frame_weights, merge_operation
from isotone.types import Coupling

ot = pytest.importorskip("ot", reason="POT is the oracle")

EXACT = {"rtol": 0.0, "atol": 1e-12}
MERGES = (merge_operation, TensorMerge.apply)

#: Few distinct whole numbers: ties and zeros are common.
weights = st.lists(st.integers(0, 4), min_size=1, max_size=12).filter(any)


def merged(
    merge: Any, alpha: Tensor, beta: Tensor, n: Tensor | None = None, m: Tensor | None = None
) -> Coupling:
    n = torch.full((len(alpha),), alpha.shape[1]) if n is None else n
    m = torch.full((len(beta),), beta.shape[1]) if m is None else m
    mass, source, target = merge(alpha, beta, n, m)
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
@settings(max_examples=60, deadline=None)
@given(first=st.integers(0, 3), moves=st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=12))
def test_proposition_1_every_alignment_has_weights(
    merge: Any, first: int, moves: list[tuple[bool, int]]
) -> None:
    """For any beta and any set of pairs in order that leaves no label out, some alpha's coupling is on these pairs."""
    pairs = [(first, 0)]
    for label, frames in moves:  # to the next label, by so many frames, or both
        pairs.append((pairs[-1][0] + max(frames, not label), pairs[-1][1] + label))
    frame, label = np.array(pairs).T
    beta = np.random.default_rng(len(moves)).uniform(0.1, 1.0, label[-1] + 1)
    alpha = np.zeros(frame[-1] + 2)  # one frame more, which is dropped
    np.add.at(alpha, frame, (beta / np.bincount(label))[label])
    plan = merged(merge, torch.from_numpy(alpha)[None], torch.from_numpy(beta)[None]).dense()[0]
    assert set(map(tuple, (plan > 1e-9).nonzero().tolist())) == {*pairs}


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


@pytest.mark.parametrize("merge", MERGES)
def test_an_hour_of_frames_loses_no_mass(merge: Any) -> None:
    rng = torch.Generator().manual_seed(0)
    alpha = torch.randn(1, 100_000, generator=rng).mul(2).softmax(-1)
    beta = torch.rand(1, 10_000, generator=rng) + 0.1
    c = merged(merge, alpha, beta)
    assert c.mass.dtype == torch.float32
    mass = c.mass.double()
    # each float32 mass is rounded once, to 24 bits
    assert abs(mass.sum().item() - 1) < 1e-8
    for weights, index in ((alpha, c.source), (beta, c.target)):
        carried = torch.zeros(1, weights.shape[1], dtype=torch.float64).scatter_add(1, index, mass)
        expected = weights.double() / weights.double().sum()
        torch.testing.assert_close(carried, expected, rtol=2**-24, atol=1e-14)


def test_threads_change_nothing() -> None:
    rng = torch.Generator().manual_seed(0)
    alpha, beta = torch.rand(6, 30_000, generator=rng), torch.rand(6, 2_000, generator=rng)
    n, m = torch.randint(1, 30_001, (6,), generator=rng), torch.randint(1, 2_001, (6,), generator=rng)
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            a, b = alpha.clone().requires_grad_(), beta.clone().requires_grad_()
            c = couple(a, b, n, m)
            c.mass.square().sum().backward()
            results.append((c.source, c.target, c.mass.detach(), a.grad, b.grad))
    finally:
        torch.set_num_threads(before)
    for one, three in zip(*results):
        assert torch.equal(one, three)


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


def test_frame_weights_are_the_softmax_of_the_valid_frames() -> None:
    rng = torch.Generator().manual_seed(0)
    lengths, upstream = torch.tensor([9, 4, 0]), torch.randn(3, 9, generator=rng)
    logits = 40 * torch.randn(3, 9, generator=rng)
    logits[1, 4:] = torch.nan
    logits[0, 2] = -torch.inf
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        x = logits.clone().to(dtype).requires_grad_()
        weights = frame_weights(x, lengths)
        (weights * upstream).sum().backward()
        assert x.grad is not None
        assert weights.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
        for b, n in enumerate(lengths.tolist()):
            part = x.detach()[b, :n].double().requires_grad_()
            expected = part.softmax(0)
            (expected * upstream[b, :n]).sum().backward()
            torch.testing.assert_close(
                weights[b, :n].detach().double(), expected.detach(), rtol=1e-6, atol=1e-9
            )
            assert part.grad is not None
            tolerance = 1e-2 if dtype == torch.bfloat16 else 1e-5
            torch.testing.assert_close(x.grad[b, :n].double(), part.grad, rtol=tolerance, atol=1e-7)
            assert not weights[b, n:].any()
            assert not x.grad[b, n:].any()
    exact = logits[:1].double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: frame_weights(x, lengths[:1]), exact)


def test_frame_weights_of_nan_are_nan() -> None:
    weights = frame_weights(torch.tensor([[0.0, torch.nan, 1.0], [0.0, 1.0, 2.0]]), torch.tensor([3, 3]))
    assert torch.isnan(weights[0]).all()
    assert torch.isfinite(weights[1]).all()


@pytest.mark.parametrize("length", [-1, 4])
def test_lengths_that_are_none_are_refused(length: int) -> None:
    # compiled loops would read beyond the weights
    n = torch.tensor([length])
    for solve in (
        lambda: couple(torch.ones(1, 3), torch.ones(1, 3), n),
        lambda: couple(torch.ones(1, 3), torch.ones(1, 3), None, n),
        lambda: frame_weights(torch.ones(1, 3), n),
    ):
        with pytest.raises(IndexError, match="lengths from 0"):
            solve()
