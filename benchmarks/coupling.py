"""The coupling of two weight vectors on a line: a merge of two cumulative sums."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from scipy.sparse import coo_array
from torch import Tensor

from benchmarks.harness import Bench, Peer, Size
from isotone.kernels.coupling import couple
from isotone.types import Coupling

Triplets = tuple[np.ndarray, np.ndarray, np.ndarray]


def weights(dims: Mapping[str, int]) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    draw = [torch.rand(dims[name], generator=generator, dtype=torch.float64) + 0.01 for name in "nm"]
    return draw[0] / draw[0].sum(), draw[1] / draw[1].sum()


def ours(pair: tuple[Tensor, Tensor]) -> Coupling:
    return couple(pair[0][None], pair[1][None])


def pot(pair: tuple[Tensor, Tensor]) -> Triplets:
    import ot

    a, b = (x.numpy() for x in pair)
    plan = ot.emd_1d(np.arange(len(a), dtype=float), np.arange(len(b), dtype=float), a, b, dense=False)
    return plan.row, plan.col, plan.data


def torch_sort(pair: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Sort all ends of both sums together; count how many of each side lie before an end."""
    alpha, beta = pair
    ends = torch.cat([alpha.cumsum(0), beta.cumsum(0)])
    ends, order = torch.sort(ends, stable=True)
    is_source = order < len(alpha)
    ended = torch.cumsum(is_source, 0)
    source = (ended - is_source.long()).clamp(max=len(alpha) - 1)
    target = (torch.arange(len(order), device=order.device) - ended + is_source.long()).clamp(
        max=len(beta) - 1
    )
    mass = torch.diff(ends, prepend=ends.new_zeros(1))
    return source, target, mass


def check(pair: tuple[Tensor, Tensor], result: Coupling) -> None:
    """Check both marginals."""
    for weight, index in zip(pair, (result.source[0], result.target[0])):
        marginal = torch.zeros_like(weight).index_add_(0, index, result.mass[0])
        torch.testing.assert_close(marginal, weight, rtol=0, atol=1e-12)


def same_plan(pair: tuple[Tensor, Tensor], result: Coupling, theirs: Triplets | tuple[Tensor, ...]) -> None:
    """Compare plans: sums round in another order, so that a mass near a tie may be one position off."""
    shape = len(pair[0]), len(pair[1])
    plan = coo_array((result.mass[0].numpy(), (result.source[0].numpy(), result.target[0].numpy())), shape)
    source, target, mass = (np.asarray(x) for x in theirs)
    other = coo_array((mass, (source, target)), shape)
    difference: Any = abs(plan.tocsr() - other.tocsr())
    assert difference.sum() < 1e-7, f"the plans differ by a mass of {difference.sum():.1e}"


def _size(n: int, **options: Any) -> Size:
    return Size({"n": n, "m": n // 10}, **options)


BENCHES = [
    Bench(
        name="coupling",
        about="the optimal coupling of n weights with m on a line, float64",
        inputs=weights,
        ours=ours,
        check=check,
        peers=[
            Peer("POT emd_1d", pot, same_plan, package="POT", module="ot"),
            Peer("torch sort", torch_sort, same_plan, devices=("cpu", "cuda")),
        ],
        sizes=[
            _size(10_000, swept=True, quick=True),
            _size(30_000, swept=True),
            _size(100_000, swept=True),
            _size(300_000, swept=True),
            _size(1_000_000, swept=True, targets={"POT emd_1d": 0.5}),
        ],
        gpu_sizes=[_size(10_000, quick=True), _size(100_000), _size(1_000_000)],
        axis="n",
    )
]
