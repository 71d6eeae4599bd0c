"""Exact order-preserving choices of positions: the cheapest with repetition, the best without."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from benchmarks.harness import Bench, Peer, Size
from isotone.kernels.assignment import ordered_assignment, ordered_minimum

Result = tuple[Tensor, Tensor]


def costs(dims: Mapping[str, int]) -> Tensor:
    """Draw uniform noise ``(B, n, m)``, lower along the diagonal."""
    generator = torch.Generator().manual_seed(0)
    n, m = dims["n"], dims["m"]
    noise = torch.rand(dims["B"], n, m, generator=generator, dtype=torch.float64)
    away = torch.arange(n)[:, None] / n - torch.arange(m) / m
    return noise + away.abs()


def rewards(dims: Mapping[str, int]) -> Tensor:
    """Draw the same, ``(B, m, n)``, with the opposite sign."""
    return -costs(dims).mT.contiguous()


def ours_minimum(given: Tensor) -> Result:
    return ordered_minimum(given)


def ours_assignment(given: Tensor) -> Result:
    return ordered_assignment(given)


def numpy_minimum(given: Tensor) -> Tensor:
    """Compute running minima, one label at a time over all positions; return the values."""
    return torch.tensor([_least(table)[0] for table in given.numpy()], dtype=torch.float64)


def _least(table: np.ndarray) -> tuple[float, np.ndarray]:
    n, m = table.shape
    best = np.zeros(n)
    improves = np.ones((m, n), np.bool_)
    for j in range(m):
        best = np.minimum.accumulate(best + table[:, j])
        np.less(best[1:], best[:-1], out=improves[j, 1:])
    path = np.empty(m, np.int64)
    last = n - 1
    for j in range(m - 1, -1, -1):
        last -= int(np.argmax(improves[j, last::-1]))
        path[j] = last
    return float(table[path, np.arange(m)].sum()), path


def numpy_assignment(given: Tensor) -> Tensor:
    """Compute the same on a slanted table: with k_j = i_j - j different positions become ones that may repeat."""
    values = []
    for table in -given.numpy():
        m, n = table.shape
        slanted = np.stack([table[j, j : n - m + 1 + j] for j in range(m)], 1)
        values.append(-_least(slanted)[0])
    return torch.tensor(values, dtype=torch.float64)


def hungarian(given: Tensor) -> Tensor:
    """Choose different positions in any order; return the values of the best choice."""
    from scipy.optimize import linear_sum_assignment

    chosen = [(table, *linear_sum_assignment(table, maximize=True)) for table in given.numpy()]
    return torch.tensor([table[rows, columns].sum() for table, rows, columns in chosen], dtype=torch.float64)


def check_minimum(given: Tensor, result: Result) -> None:
    _check(given, result, least_step=0)


def check_assignment(given: Tensor, result: Result) -> None:
    _check(given.mT, result, least_step=1)


def _check(given: Tensor, result: Result, least_step: int) -> None:
    """Check that the values are those of the indices, which are in order."""
    indices, values = result
    assert (torch.diff(indices, dim=1) >= least_step).all(), "the positions are out of order"
    sums = given.gather(1, indices[:, None])[:, 0].sum(1)
    torch.testing.assert_close(values, sums, rtol=1e-12, atol=1e-9)


def same_values(given: Tensor, result: Result, theirs: Tensor) -> None:
    torch.testing.assert_close(result[1], theirs, rtol=1e-12, atol=1e-9)


def no_better(given: Tensor, result: Result, theirs: Tensor) -> None:
    """Check that ours is no better than the peer, which has more choices."""
    assert (result[1] <= theirs + 1e-9).all(), "it beats the best of more choices"


def _sizes() -> list[Size]:
    numbers = [(1, 60, 20), (1, 250, 50), (1, 500, 100), (1, 1000, 200), (1, 2000, 400), (1, 4000, 800)]
    sizes = [Size({"B": b, "n": n, "m": m}, swept=n > 60, quick=n == 60) for b, n, m in numbers]
    return [*sizes, Size({"B": 32, "n": 500, "m": 100})]


BENCHES = [
    Bench(
        name="ordered-minimum",
        about="positions i_1 <= .. <= i_m of n that cost least, float64",
        inputs=costs,
        ours=ours_minimum,
        check=check_minimum,
        peers=[Peer("numpy", numpy_minimum, same_values)],
        sizes=_sizes(),
        axis="n",
    ),
    Bench(
        name="ordered-assignment",
        about="positions i_1 < .. < i_m of n with the best sum, float64",
        inputs=rewards,
        ours=ours_assignment,
        check=check_assignment,
        peers=[
            Peer("numpy", numpy_assignment, same_values),
            Peer("scipy linear_sum_assignment", hungarian, no_better, yardstick=True),
        ],
        sizes=_sizes(),
        axis="n",
    ),
]
