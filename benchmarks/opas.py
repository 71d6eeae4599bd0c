"""Comparisons of queries with corpus items: OPAS, DTW and its variants, and ColBERT's score, on the same embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from isotone_opas.baselines import scorers
from isotone_opas.model import OPAS
from torch import Tensor

from benchmarks.harness import Bench, Peer, Size


class Sinkhorn:
    """The computation of the compiled loops in tensor operations: 20 iterations on the n x n matrix, in logarithms."""

    temperature, iterations = 1.0, 20

    def __call__(
        self, reward: Tensor, row_lengths: Tensor | None = None, column_lengths: Tensor | None = None
    ) -> Tensor:
        batch, m, n = reward.shape
        logs = torch.cat([reward, reward.new_zeros(batch, n - m, n)], 1)
        for _ in range(self.iterations):
            logs = logs - torch.logsumexp(logs, 1, keepdim=True)
            logs = logs - torch.logsumexp(logs, 2, keepdim=True)
        return logs[:, :m].exp()


@dataclass(frozen=True)
class Search:
    """A model, one that takes exact selections, queries ``(Q, m, d)`` and items ``(C, n, d)`` of unit rows."""

    model: OPAS
    exact: OPAS
    queries: Tensor
    corpus: Tensor


def search(dims: Mapping[str, int]) -> Search:
    generator = torch.Generator().manual_seed(0)

    def unit(items: str, length: str) -> Tensor:
        drawn = torch.randn(dims[items], dims[length], dims["d"], generator=generator)
        return torch.nn.functional.normalize(drawn, dim=-1)

    torch.manual_seed(0)
    growth = 1.2 if dims["n"] <= 40 else None
    embed = {"name": "lrl", "input_size": 16, "size": dims["d"]}
    penalty = {"name": "convolutional", "rows": dims["m"], "columns": dims["n"]}
    model = OPAS(embed, penalty, Sinkhorn(), columns=dims["n"], growth=growth)
    none = {"name": "constant", "value": 0.0}
    exact = OPAS(embed, none, {"name": "ordered"}, columns=dims["n"], growth=growth)
    return Search(model.eval(), exact.eval(), unit("Q", "m"), unit("C", "n"))


@torch.no_grad()
def ours(inputs: Search) -> Tensor:
    return inputs.model.score_all(inputs.queries, inputs.corpus)


@torch.no_grad()
def exact(inputs: Search) -> Tensor:
    return inputs.exact.score_all(inputs.queries, inputs.corpus)


def tensors(inputs: Search) -> Tensor:
    """Compute the same scores as in training, without the compiled loops and the gradient's second half."""
    with torch.enable_grad():
        return inputs.model.score_all(inputs.queries, inputs.corpus).detach()


def exact_tensors(inputs: Search) -> Tensor:
    with torch.enable_grad():
        return inputs.exact.score_all(inputs.queries, inputs.corpus).detach()


def _named(name: str, inputs: Search) -> Tensor:
    with torch.no_grad():
        return scorers.build(name)(inputs.queries, inputs.corpus)


def soft_dtw(inputs: Search) -> Tensor:
    return _named("soft-dtw", inputs)


def sharp(inputs: Search) -> Tensor:
    return _named("sharp", inputs)


def subsequence_dtw(inputs: Search) -> Tensor:
    return _named("subsequence-dtw", inputs)


def max_sim(inputs: Search) -> Tensor:
    return _named("max-sim", inputs)


def fastdtw(inputs: Search) -> Tensor:
    return _named("fastdtw", inputs)


def mass(inputs: Search) -> Tensor:
    return _named("mass", inputs)


def pysdtw(inputs: Search) -> Tensor:
    import pysdtw as package

    every = inputs.queries.repeat_interleave(len(inputs.corpus), 0)
    items = inputs.corpus.repeat(len(inputs.queries), 1, 1)
    with torch.no_grad():
        return -package.SoftDTW(gamma=1.0, use_cuda=False)(every, items).view(len(inputs.queries), -1)


def tslearn(inputs: Search) -> Tensor:
    from tslearn.metrics import cdist_soft_dtw

    return -torch.from_numpy(cdist_soft_dtw(inputs.queries.numpy(), inputs.corpus.numpy(), gamma=1.0))


def dtaidistance(inputs: Search) -> Tensor:
    from dtaidistance import dtw_ndim

    items = inputs.corpus.double().numpy()
    rows = [[dtw_ndim.distance_fast(q, c) for c in items] for q in inputs.queries.double().numpy()]
    return -torch.tensor(rows).square()


def same_scores(inputs: Search, result: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(result, theirs, rtol=0, atol=1e-5)


def in_range(inputs: Search, result: Tensor) -> None:
    assert result.shape == (len(inputs.queries), len(inputs.corpus))
    assert ((result >= 0) & (result <= 1)).all()


def _size(q: int, c: int, n: int, **options: object) -> Size:
    return Size({"Q": q, "C": c, "m": 6, "n": n, "d": 128}, **options)  # type: ignore[arg-type]


_BATCHED = ("tensor operations", "soft-DTW", "sharp", "subsequence DTW", "pysdtw", "MaxSim")

_YARDSTICKS = [
    Peer("soft-DTW", soft_dtw, yardstick=True),
    Peer("sharp", sharp, yardstick=True),
    Peer("subsequence DTW", subsequence_dtw, yardstick=True),
    Peer("pysdtw", pysdtw, yardstick=True, package="pysdtw"),
    Peer("tslearn", tslearn, yardstick=True, package="tslearn"),
    Peer("dtaidistance", dtaidistance, yardstick=True, package="dtaidistance"),
    Peer("FastDTW", fastdtw, yardstick=True, package="fastdtw"),
    Peer("MASS", mass, yardstick=True, package="stumpy"),
    Peer("MaxSim", max_sim, yardstick=True),
]

_SIZES = [
    _size(4, 16, 20, quick=True),
    _size(
        32, 128, 20,
        peers=(*_BATCHED, "dtaidistance", "FastDTW"),
        targets={"pysdtw": 0.1, "dtaidistance": 0.1, "FastDTW": 0.01},
    ),
    _size(32, 1024, 20, peers=("soft-DTW", "dtaidistance", "MaxSim"), targets={"dtaidistance": 0.1}),
    *(_size(8, 64, n, swept=True, peers=_BATCHED) for n in (10, 20, 40, 100)),
    # autograd keeps every iteration of the tensor operations: 40 GB of matrices of 500 x 500
    _size(8, 64, 500, swept=True, peers=_BATCHED[1:]),
]  # fmt: skip

BENCHES = [
    Bench(
        name="opas",
        about="Q x C comparisons of queries of m with items of n vectors, from embeddings to scores, float32",
        inputs=search,
        ours=ours,
        check=in_range,
        peers=[Peer("tensor operations", tensors, same_scores), *_YARDSTICKS],
        sizes=_SIZES,
        axis="n",
    ),
    Bench(
        name="opas-exact",
        about="the same with the exact best ordered selection in place of Sinkhorn's",
        inputs=search,
        ours=exact,
        check=in_range,
        peers=[Peer("tensor operations", exact_tensors, same_scores), *_YARDSTICKS],
        sizes=_SIZES,
        axis="n",
    ),
]
