"""Soft-DTW of vector sequences against that of their squared distances."""

from __future__ import annotations

import pytest
import torch

from isotone.kernels.softdtw import (
    dtw,
    soft_dtw,
    soft_dtw_sqeuclidean,
    squared_distances,
)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sizes", [(40, 33), (33, 40, 6), (70, 90, 1), (20, 21, 130)])
def test_of_sequences_is_of_their_squared_distances(dtype: torch.dtype, sizes: tuple[int, ...]) -> None:
    rng = torch.Generator().manual_seed(1)
    features = sizes[2] if sizes[2:] else 3
    sizes = sizes[:2]
    x, y = (
        torch.randn(9, size, features, generator=rng, dtype=torch.float64) / features**0.5 for size in sizes
    )
    n, m = (torch.randint(1, size + 1, (9,), generator=rng) for size in sizes)
    exact = [z.clone().requires_grad_() for z in (x, y)]
    given_ = [z.to(dtype).requires_grad_() for z in (x, y)]
    costs = (exact[0][:, :, None] - exact[1][:, None]).square().sum(3)
    expected = soft_dtw(costs, 0.5, n, m, band=20)
    value = soft_dtw_sqeuclidean(*given_, 0.5, n, m, band=20)
    tolerance = {"rtol": 1e-5, "atol": 1e-4} if dtype == torch.float32 else {"rtol": 1e-12, "atol": 1e-10}
    torch.testing.assert_close(value.double(), expected, **tolerance)
    weights = torch.rand(9, generator=rng, dtype=torch.float64)
    gradients = torch.autograd.grad((value * weights.to(dtype)).sum(), given_)
    for got, right in zip(gradients, torch.autograd.grad((expected * weights).sum(), exact)):
        torch.testing.assert_close(got.double(), right, **tolerance)


@pytest.mark.parametrize("sizes", [(4, 5), (5, 4)])
def test_second_derivatives_of_sequences(sizes: tuple[int, int]) -> None:
    rng = torch.Generator().manual_seed(1)
    x, y = (torch.randn(2, s, 2, generator=rng, dtype=torch.float64, requires_grad=True) for s in sizes)
    n, m = torch.tensor([sizes[0], 2]), torch.tensor([3, sizes[1]])
    assert torch.autograd.gradcheck(lambda a, b: soft_dtw_sqeuclidean(a, b, 0.6, n, m), (x, y))
    assert torch.autograd.gradgradcheck(lambda a, b: soft_dtw_sqeuclidean(a, b, 0.6, n, m), (x, y))
    (alone,) = torch.autograd.grad(soft_dtw_sqeuclidean(x, y.detach(), 0.6, n, m).sum(), x)
    (both, _) = torch.autograd.grad(soft_dtw_sqeuclidean(x, y, 0.6, n, m).sum(), (x, y))
    torch.testing.assert_close(alone, both)


def test_distances_of_sequences_far_from_the_origin_whatever_the_padding() -> None:
    rng = torch.Generator().manual_seed(0)
    x, y = (100 + torch.randn(2, size, 150, generator=rng) for size in (9, 12))
    n, m = torch.tensor([9, 3]), torch.tensor([12, 2])
    x[1, 3:] = y[1, 2:] = 0
    for of in (squared_distances(x, y, m), squared_distances(x[1:, :3], y[1:, :2])):
        part = of[-1, :3, :2]
        exact = (x[1, :3, None].double() - y[1, None, :2].double()).square().sum(-1)
        torch.testing.assert_close(part.double(), exact, rtol=1e-6, atol=0)
    exact = soft_dtw_sqeuclidean(x.double(), y.double(), 1.0, n, m)
    torch.testing.assert_close(soft_dtw_sqeuclidean(x, y, 1.0, n, m).double(), exact, rtol=1e-6, atol=0)
    gradients = []
    for dtype in (torch.float32, torch.float64):
        leaf = (900 + x[:1]).to(dtype).requires_grad_()
        costs = squared_distances(leaf, (900 + y[:1]).to(dtype))
        gradients.append(torch.autograd.grad(costs.sum(), leaf)[0].double())
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-6 * float(gradients[1].abs().max()))
    with pytest.raises(ValueError, match="lengths from 1 to 12"):
        squared_distances(x, y, torch.tensor([12, 13]))


def test_thousands_of_tiny_pairs() -> None:
    # several are one task of the compiled loops
    rng = torch.Generator().manual_seed(0)
    x, y = (torch.randn(3000, size, 3, generator=rng).requires_grad_() for size in (7, 9))
    n, m = (torch.randint(1, size + 1, (3000,), generator=rng) for size in (7, 9))
    values = soft_dtw_sqeuclidean(x, y, 0.5, n, m)
    of_x, of_y = torch.autograd.grad(values.sum(), (x, y))
    costs = squared_distances(x, y).detach().requires_grad_()
    direct = soft_dtw(costs, 0.5, n, m)
    visits = torch.autograd.grad(direct.sum(), costs)[0]
    paths = dtw(costs, n, m)
    torch.testing.assert_close(direct, values)
    for b in range(0, 3000, 331):
        a, c = x[b, : n[b]].detach(), y[b, : m[b]].detach()
        alone = squared_distances(a[None], c[None]).requires_grad_()
        value = soft_dtw(alone, 0.5)
        torch.testing.assert_close(values[b], value[0])
        share = torch.autograd.grad(value[0], alone)[0][0]
        torch.testing.assert_close(visits[b, : n[b], : m[b]], share)
        pull = 2 * (share.sum(1, keepdim=True) * a - share @ c)
        torch.testing.assert_close(of_x[b, : n[b]], pull, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(
            of_y[b, : m[b]], 2 * (share.sum(0)[:, None] * c - share.mT @ a), rtol=1e-4, atol=1e-5
        )
        assert not of_x[b, n[b] :].any()
        torch.testing.assert_close(paths.score[b], dtw(alone.detach()).score[0])
