"""QARe against exhaustive quadratic assignment, scipy's eigenvalues and the public implementation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.linalg
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from isotone_contrastive.functional import assignment_loss, costs
from isotone_contrastive.losses import contrastive_losses
from isotone_contrastive.qare import QARe, qare_term
from isotone_contrastive.spectral import eigenvalue_product, level, matched
from torch import Tensor


def views(size: int, dims: int = 3, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    a, b = torch.randn(2, size, dims, dtype=torch.float64, generator=generator)
    return a, a + 0.5 * b


def symmetric(size: int, seed: int) -> Tensor:
    values = torch.randn(size, size, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return values + values.mT


def every_permutation(size: int) -> Tensor:
    return torch.tensor(list(itertools.permutations(range(size))))


def quadratic(a: Tensor, b: Tensor, orders: Tensor) -> Tensor:
    """tr(A Y B Y^T) of every permutation."""
    return (a * b[orders[:, :, None], orders[:, None, :]]).sum((1, 2))


@pytest.mark.parametrize("size", [2, 4, 6, 7])
def test_eigenvalues_bound_every_assignment(size: int) -> None:
    orders = every_permutation(size)
    for seed in range(3):
        a, b = symmetric(size, seed), symmetric(size, seed + 100)
        values = quadratic(a, b, orders)
        assert values.min() >= eigenvalue_product(a, b, alike=False) - 1e-9
        assert values.max() <= eigenvalue_product(a, b, alike=True) + 1e-9


@pytest.mark.parametrize("size", [3, 5, 7])
def test_the_loss_of_the_quadratic_assignment_is_bounded(size: int) -> None:
    orders = every_permutation(size)
    index = torch.arange(size)
    for seed in range(4):
        a, b = views(size, seed=seed)
        between, of_a, of_b = costs(a, b, "euclidean"), costs(a, a, "euclidean"), costs(b, b, "euclidean")
        linear = between[index, orders].sum(1)
        # equations 6 and 7
        exact = between.trace() - (linear + quadratic(of_a, of_b, orders)).min()
        bound = assignment_loss(between).sum() + size**2 * qare_term(a, b, "euclidean")
        assert exact <= bound + 1e-9
        # equation 17, similarities shifted to be non-negative
        between, of_a, of_b = (1 - costs(x, y, "cosine") for x, y in ((a, b), (a, a), (b, b)))
        linear = between[index, orders].sum(1)
        exact = (linear + quadratic(of_a, of_b, orders)).max() - between.trace()
        bound = assignment_loss(-between).sum() + size**2 * qare_term(a, b, "cosine")
        assert exact <= bound + 1e-9


def test_the_public_implementation_agrees() -> None:
    numbers = torch.arange(24, dtype=torch.float64).reshape(6, 4)
    a, b = torch.cos(numbers * numbers), torch.sin(3 * numbers + 1)
    # github.com/amoskalev/contrasting_quadratic, methods/objectives.py, of the cosines; it divides by N (N - 1)
    torch.testing.assert_close(
        qare_term(a, b, "cosine") * 36 / 30, torch.tensor(2.3997588306849917, dtype=torch.float64)
    )


@pytest.mark.parametrize("size, dims", [(5, 8), (12, 4), (90, 6)])
def test_against_scipy(size: int, dims: int) -> None:
    a, b = views(size, dims)
    x, y = (scipy.linalg.eigvalsh(costs(v, v, "euclidean").numpy()) for v in (a, b))
    assert qare_term(a, b, "euclidean").item() == pytest.approx(-float(x[::-1] @ y) / size**2)
    x, y = (scipy.linalg.eigvalsh(1 - costs(v, v, "cosine").numpy()) for v in (a, b))
    assert qare_term(a, b, "cosine").item() == pytest.approx(float(x @ y) / size**2)


@pytest.mark.parametrize("size, top", [(20, 3), (20, 20), (80, 2), (80, 7), (80, 70)])
def test_top_eigenvalues_are_those_of_the_best_approximation(size: int, top: int) -> None:
    a, b = views(size, 5)
    parts = []
    for v in (a, b):
        values, vectors = np.linalg.eigh(costs(v, v, "euclidean").numpy())
        kept = np.argsort(-np.abs(values))[:top]
        parts.append(torch.from_numpy((vectors[:, kept] * values[kept]) @ vectors[:, kept].T))
    expected = eigenvalue_product(*parts, alike=False)
    of_a, of_b = costs(a, a, "euclidean"), costs(b, b, "euclidean")
    torch.testing.assert_close(eigenvalue_product(of_a, of_b, alike=False, top=top), expected)


def test_few_eigenvalues_are_most_of_the_sum() -> None:
    a, b = (torch.nn.functional.normalize(x, dim=1) for x in views(200, 16))
    for metric in ("euclidean", "cosine"):
        full, few = qare_term(a, b, metric), qare_term(a, b, metric, top=8)
        assert few.item() == pytest.approx(full.item(), rel=0.05)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("size, dims, top", [(6, 3, None), (3, 6, None), (9, 3, 2), (70, 3, 4)])
def test_gradients(metric: str, size: int, dims: int, top: int | None) -> None:
    a, b = (x.requires_grad_() for x in views(size, dims))
    fast = size > 20
    assert torch.autograd.gradcheck(
        lambda x, y: qare_term(x, y, metric, top), (a, b), fast_mode=fast, atol=1e-5, rtol=1e-3 if fast else 1e-5
    )  # fmt: skip
    only = views(size, dims)[0].requires_grad_()
    qare_term(only, b.detach(), metric, top).backward()
    both = torch.autograd.grad(qare_term(a, b, metric, top), a)[0]
    torch.testing.assert_close(only.grad, both)


def test_gradients_at_repeated_eigenvalues() -> None:
    # equidistant points: N - 1 equal eigenvalues; the gradient is finite and treats all points alike
    points = torch.eye(6, dtype=torch.float64)
    other = views(6, 6)[1]
    a = points.clone().requires_grad_()
    qare_term(a, points, "euclidean").backward()
    assert torch.isfinite(a.grad).all()
    order = torch.randperm(6, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(a.grad[order][:, order], a.grad)
    # within the subdifferential: between the one-sided derivatives along any direction
    within = costs(points, points, "euclidean").requires_grad_()
    of_other = costs(other, other, "euclidean")
    value = eigenvalue_product(within, of_other, alike=False)
    (gradient,) = torch.autograd.grad(value, within)
    for seed in range(20):
        direction, step = symmetric(6, seed), 1e-6
        sides = [
            (eigenvalue_product(within.detach() + s * step * direction, of_other, alike=False) - value)
            / (s * step)
            for s in (-1, 1)
        ]
        along = (gradient * direction).sum()
        assert min(sides) - 1e-4 <= along <= max(sides) + 1e-4
    # identical rows: a matrix of zeros
    same = torch.ones(4, 3, requires_grad=True)
    for metric in ("euclidean", "cosine"):
        (slope,) = torch.autograd.grad(qare_term(same, same.detach(), metric), same)
        assert torch.isfinite(slope).all()


@pytest.mark.parametrize("size", [64, 512])
def test_gradients_in_single_precision(size: int) -> None:
    """Many eigenvalues lie close to each other; none of them is taken for a repeat of one far away."""
    a, b = (torch.nn.functional.normalize(x, dim=1) for x in views(size, 64))
    exact, single = (
        torch.autograd.grad(qare_term(x, b.to(x.dtype), "euclidean"), x)[0].double()
        for x in (a.double().requires_grad_(), a.float().requires_grad_())
    )
    torch.testing.assert_close(single, exact, rtol=0, atol=1e-5 * float(exact.abs().max()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_at_many_repeats(dtype: torch.dtype) -> None:
    """Equidistant points: rounding spreads their one repeated eigenvalue by more, the more there are."""
    size = 600
    equal = 2**0.5 * (torch.ones(size, size, dtype=dtype) - torch.eye(size, dtype=dtype))
    other = costs(*[views(size, 16)[0]] * 2, "euclidean").to(dtype)
    equal.requires_grad_()
    (gradient,) = torch.autograd.grad(eigenvalue_product(equal, other, alike=False), equal)
    # the row of ones goes with the other's least eigenvalue, all others with the mean of the rest
    least = torch.linalg.eigvalsh(other.double())[0]
    rest = (other.double().trace() - least) / (size - 1)
    expected = torch.full((size, size), float(least - rest) / size, dtype=torch.float64)
    expected.diagonal().add_(rest)
    torch.testing.assert_close(gradient.double(), expected, rtol=0, atol=1e-5 * float(least.abs()))


@given(seed=st.integers(0, 10**6), size=st.integers(2, 9), metric=st.sampled_from(["euclidean", "cosine"]))
@settings(max_examples=40, deadline=None)
def test_laws(seed: int, size: int, metric: str) -> None:
    a, b = views(size, 4, seed)
    value = qare_term(a, b, metric)
    torch.testing.assert_close(qare_term(b, a, metric), value)
    # a view is a set: neither its order nor a rotation changes the term
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(size, generator=generator)
    turn = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64, generator=generator)).Q
    torch.testing.assert_close(qare_term(a[order] @ turn, b, metric), value)
    scaled = qare_term(3 * a, b, metric)
    torch.testing.assert_close(scaled, value if metric == "cosine" else 3 * value)


def test_matched_and_level() -> None:
    a, b = torch.tensor([-3.0, 1.0, 5.0]), torch.tensor([-2.0, 4.0])
    alike_a, alike_b = matched(a, b, True, 3)
    assert (alike_a.tolist(), alike_b.tolist()) == ([-2, 0, 4], [-3, 5])
    against_a, against_b = matched(a, b, False, 3)
    assert (against_a.tolist(), against_b.tolist()) == ([4, 0, -2], [5, -3])
    factors, values = torch.tensor([1.0, 3.0, 7.0]), torch.tensor([2.0, 2.0, 9.0])
    assert level(factors, values, 3).tolist() == [2.0, 2.0, 7.0]


@pytest.mark.parametrize("name", contrastive_losses.names())
def test_the_wrapper(name: str) -> None:
    a, b = (x.requires_grad_() for x in views(8))
    pairwise = contrastive_losses.build(name)
    loss = QARe(pairwise, alpha=0.6, beta=0.4)
    torch.testing.assert_close(loss(a, b), 0.6 * pairwise(a, b) + 0.4 * qare_term(a, b, pairwise.metric))
    assert QARe(pairwise, beta=0.0)(a, b) == pairwise(a, b)
    other = "cosine" if pairwise.metric == "euclidean" else "euclidean"
    torch.testing.assert_close(
        QARe(pairwise, metric=other, top=2)(a, b), pairwise(a, b) + qare_term(a, b, other, 2)
    )
    assert torch.autograd.gradcheck(loss, (a, b))


def test_half_precision_is_widened() -> None:
    a, b = (x.bfloat16() for x in views(8))
    for metric in ("euclidean", "cosine"):
        value = qare_term(a, b, metric)
        assert value.dtype == torch.float32
        torch.testing.assert_close(value, qare_term(a.float(), b.float(), metric))


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_autocast_does_not_reach_the_eigenvalues(metric: str) -> None:
    a, b = (x.float().requires_grad_() for x in views(12))
    loss = QARe(contrastive_losses.build("info-nce", metric=metric))
    expected = loss(a, b)
    slope = torch.autograd.grad(expected, a)[0]
    with torch.autocast("cpu", torch.bfloat16):
        value = loss(a, b)
        found = torch.autograd.grad(value, a)[0]
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(found, slope, rtol=0.02, atol=0.02 * float(slope.abs().max()))


def test_what_it_refuses() -> None:
    a, b = views(5)
    pairwise = contrastive_losses.build("triplet")
    for options in ({"beta": -1.0}, {"alpha": -0.1}, {"top": 0}, {"metric": "dot"}):
        with pytest.raises(ValueError, match="QARe expects"):
            QARe(pairwise, **options)
    with pytest.raises(ValueError, match="two views"):
        qare_term(a, b[:3], "cosine")
    with pytest.raises(ValueError, match="top >= 1"):
        qare_term(a, b, "cosine", top=0)
    with pytest.raises(ValueError, match="NaN"):
        qare_term(a * torch.nan, b, "euclidean")
    with pytest.raises(ValueError, match="square"):
        eigenvalue_product(torch.zeros(2, 3), torch.zeros(2, 2), alike=True)
