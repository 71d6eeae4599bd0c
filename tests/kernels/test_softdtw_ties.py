"""DTW (soft-DTW at gamma = 0) where several alignments cost the same: whole numbers, so that all sums are exact."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

from isotone.kernels.softdtw import backends, dtw, expected_alignment, soft_dtw, soft_dtw_sqeuclidean

SHAPES = [(5, 5), (4, 6), (6, 4), (1, 5), (9, 9)]


def whole_costs(n: int, m: int) -> Tensor:
    """Two hundred matrices of 0, 1 and 2."""
    return torch.randint(0, 3, (200, n, m), generator=torch.Generator().manual_seed(n)).double()


def best_costs(cost: np.ndarray) -> np.ndarray:
    """The cost of the best alignment up to every pair, cell by cell, in a frame of infinities."""
    table = np.full((cost.shape[0] + 1, cost.shape[1] + 1), np.inf)
    for i, j in np.ndindex(cost.shape):
        before = 0.0 if i == j == 0 else min(table[i, j], table[i, j + 1], table[i + 1, j])
        table[i + 1, j + 1] = cost[i, j] + before
    return table


@pytest.mark.parametrize("backend", ["loops", "tensors"])
@pytest.mark.parametrize(("n", "m"), SHAPES)
def test_the_gradient_is_one_best_alignment(
    n: int, m: int, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pairs cost the value, and none is visited twice or in part."""
    if backend == "tensors":
        monkeypatch.setattr(backends, "backend_of", lambda _: None)
    cost = whole_costs(n, m).requires_grad_()
    value = soft_dtw(cost, 0.0)
    (visits,) = torch.autograd.grad(value.sum(), cost)
    cost = cost.detach()
    assert value.tolist() == [best_costs(one)[n, m] for one in cost.numpy()]
    assert torch.equal((visits * cost).sum((1, 2)), value.detach())
    assert set(visits.unique().tolist()) <= {0.0, 1.0}
    assert torch.equal(expected_alignment(cost, 0.0), visits)
    assert torch.equal(dtw(cost).dense(), visits)


@pytest.mark.parametrize(("n", "m"), SHAPES)
def test_the_diagonal_step_goes_first(n: int, m: int) -> None:
    path = dtw(whole_costs(n, m))
    ties = 0
    for row, cost in enumerate(whole_costs(n, m).numpy()):
        table, size = best_costs(cost), int(path.mass[row].sum())
        pairs = list(zip(path.source[row, :size].tolist(), path.target[row, :size].tolist()))
        for (k, h), (i, j) in itertools.pairwise(pairs):
            both, best = table[i, j], min(table[i, j], table[i, j + 1], table[i + 1, j])
            assert table[k + 1, h + 1] == best
            assert ((k, h) == (i - 1, j - 1)) == (both == best)
            ties += both == min(table[i, j + 1], table[i + 1, j]) and both < np.inf
    assert ties > 100 or n == 1


@pytest.mark.parametrize(("n", "m"), SHAPES)
def test_the_gradient_in_sequences_is_that_of_one_best_alignment(n: int, m: int) -> None:
    """The value is a quadratic form along it: twice the value is the sequences times their gradients."""
    rng = torch.Generator().manual_seed(0)
    x, y = (torch.randint(0, 3, (200, size, 1), generator=rng).double().requires_grad_() for size in (n, m))
    value = soft_dtw_sqeuclidean(x, y, 0.0)
    of_x, of_y = torch.autograd.grad(value.sum(), (x, y))
    for k in range(200):
        assert value[k] == best_costs((x[k, :, None, 0] - y[k, None, :, 0]).detach().numpy() ** 2)[n, m]
    product = (of_x * x).sum((1, 2)) + (of_y * y).sum((1, 2))
    torch.testing.assert_close(product, 2 * value, rtol=0, atol=1e-9)
