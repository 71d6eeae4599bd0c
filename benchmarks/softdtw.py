"""Soft-DTW and its gradient, and DTW's distance, on batches of vector sequences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from isotone_softdtw.functional import soft_dtw
from torch import Tensor

from benchmarks.harness import Bench, Peer, Size

Pair = tuple[Tensor, Tensor]
Result = tuple[Tensor, tuple[Tensor, ...]]

GAMMA = 1.0
_FAR = 1e12


def walks(dims: Mapping[str, int]) -> Pair:
    """Draw two batches of smooth random walks, ``(B, n, d)`` and ``(B, m, d)``, float32."""
    generator = torch.Generator().manual_seed(0)
    pair = []
    for size in (dims["n"], dims["m"]):
        steps = torch.randn(dims["B"], size, dims["d"], generator=generator)
        pair.append((torch.cumsum(steps, 1) / size**0.5).requires_grad_())
    return pair[0], pair[1]


def _with_gradient(values: Tensor, pair: Pair) -> Result:
    return values.detach(), torch.autograd.grad(values.sum(), pair)


def ours(pair: Pair) -> Result:
    return _with_gradient(soft_dtw(*pair, gamma=GAMMA), pair)


def pysdtw(pair: Pair) -> Result:
    import pysdtw as package

    return _with_gradient(package.SoftDTW(gamma=GAMMA, use_cuda=False)(*pair), pair)


def blocks(pair: Pair) -> Result:
    from benchmarks.softdtw_blocks import soft_dtw as one_block_per_row

    return _with_gradient(one_block_per_row(*pair, GAMMA), pair)


def tslearn(pair: Pair) -> Result:
    from tslearn.metrics import SoftDTWLossPyTorch

    return _with_gradient(SoftDTWLossPyTorch(gamma=GAMMA)(*pair), pair)


def reference(pair: Pair) -> Result:
    """Run the recursion of Cuturi & Blondel 2017, one anti-diagonal at a time, by autograd in float64."""
    x, y = (sequences.detach().double().requires_grad_() for sequences in pair)
    n, m = x.shape[1], y.shape[1]
    costs = (x.square().sum(-1)[:, :, None] + y.square().sum(-1)[:, None]) - 2 * x @ y.mT
    i = torch.arange(n)
    before = last = x.new_full((len(x), n + 1), _FAR)  # entry i + 1 is row i
    for k in range(n + m - 1):
        j = k - i
        inside = (j >= 0) & (j < m)
        came = torch.stack([last[:, :-1], last[:, 1:], before[:, :-1]])
        soft = -GAMMA * torch.logsumexp(-came / GAMMA, 0)
        if k == 0:
            soft = torch.where(i == 0, 0.0, soft)
        values = torch.where(inside, soft + costs[:, i, j.clamp(0, m - 1)], _FAR)
        before, last = last, torch.cat([values.new_full((len(x), 1), _FAR), values], 1)
    return _with_gradient(last[:, -1], (x, y))


def check(pair: Pair, result: Result) -> None:
    value, gradients = reference(pair)
    torch.testing.assert_close(result[0].double(), value, rtol=1e-5, atol=1e-4)
    for mine, right in zip(result[1], gradients):
        torch.testing.assert_close(mine.double(), right, rtol=0, atol=1e-3 * float(right.abs().max()))


def same(pair: Pair, result: Result, theirs: Result) -> None:
    """Compare values, and gradients to a fiftieth of the largest: theirs go through float32 sums."""
    torch.testing.assert_close(result[0].double(), theirs[0].double(), rtol=1e-5, atol=1e-4)
    for mine, other in zip(result[1], theirs[1]):
        torch.testing.assert_close(mine, other, rtol=0, atol=0.02 * float(mine.abs().max()))


def ours_hard(pair: Pair) -> Tensor:
    with torch.no_grad():
        return soft_dtw(*pair, gamma=0.0)


def dtaidistance(pair: Pair) -> Tensor:
    """Compute its compiled distance, pair by pair; it needs float64, and returns the root of the sum of squares."""
    from dtaidistance import dtw_ndim

    x, y = (sequences.detach().double().numpy() for sequences in pair)
    return torch.tensor([dtw_ndim.distance_fast(a, b) ** 2 for a, b in zip(x, y)])


def fastdtw(pair: Pair) -> Tensor:
    """Compute the approximation of radius 1, pair by pair."""
    from fastdtw import fastdtw as approximate

    x, y = (sequences.detach().numpy() for sequences in pair)
    return torch.tensor([approximate(a, b, dist=_squared)[0] for a, b in zip(x, y)])


def _squared(a: np.ndarray, b: np.ndarray) -> float:
    difference = a - b
    return float(difference @ difference)


def same_distances(pair: Pair, result: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(result.double(), theirs.double(), rtol=1e-4, atol=1e-4)


def no_shorter(pair: Pair, result: Tensor, theirs: Tensor) -> None:
    assert (result <= theirs * (1 + 1e-4)).all(), "an approximation is shorter"


def check_hard(pair: Pair, result: Tensor) -> None:
    """Check that the cost is at most that of the straight path."""
    x, y = (sequences.detach() for sequences in pair)
    n, m = x.shape[1], y.shape[1]
    steps = max(n, m)
    i, j = (torch.arange(steps) * size // steps for size in (n, m))
    straight = (x[:, i] - y[:, j]).square().sum((1, 2))
    assert (result <= straight * (1 + 1e-4)).all(), "the straight path is cheaper"


def _size(b: int, n: int, d: int = 16, **options: Any) -> Size:
    return Size({"B": b, "n": n, "m": n, "d": d}, **options)


_SOFT = {"pysdtw": 0.25, "tslearn": 0.1}

BENCHES = [
    Bench(
        name="softdtw",
        about="soft-DTW values and gradients from vectors, float32",
        inputs=walks,
        ours=ours,
        check=check,
        peers=[
            Peer("pysdtw", pysdtw, same, package="pysdtw"),
            Peer("tslearn", tslearn, same, package="tslearn"),
            Peer("pytorch-softdtw-cuda's algorithm", blocks, same, devices=("cuda",)),
        ],
        sizes=[
            _size(2, 20, d=3, quick=True),
            _size(1, 100, swept=True),
            _size(1, 200, swept=True, targets={"pysdtw": 1.0, "tslearn": 1.0}),
            _size(1, 400, swept=True),
            _size(1, 800, swept=True, targets={"pysdtw": 1.0, "tslearn": 1.0}),
            _size(1, 1600, swept=True),
            _size(32, 200, targets=_SOFT),
            _size(8, 800, targets=_SOFT),
            _size(4096, 20),
        ],
        gpu_sizes=[
            _size(2, 20, d=3, quick=True),
            _size(32, 200),
            _size(8, 800),
            _size(128, 200),
            _size(4096, 20),
        ],
        axis="n",
    ),
    Bench(
        name="dtw",
        about="DTW distances of vectors, squared Euclidean cost",
        inputs=walks,
        ours=ours_hard,
        check=check_hard,
        peers=[
            Peer("dtaidistance", dtaidistance, same_distances, package="dtaidistance"),
            Peer("fastdtw", fastdtw, no_shorter, yardstick=True, package="fastdtw"),
        ],
        sizes=[
            _size(2, 20, d=3, quick=True),
            _size(1, 100, swept=True),
            _size(1, 200, swept=True),
            _size(1, 400, swept=True),
            _size(1, 800, swept=True),
            _size(32, 200, peers=("dtaidistance",)),
            _size(8, 800, peers=("dtaidistance",)),
            _size(4096, 20, peers=("dtaidistance",)),
        ],
        axis="n",
    ),
]
