"""One query against an index: codes, then OPAS on their candidates, beside OPAS on everything.

``python -m benchmarks.search`` builds an index of a million synthetic sequences (5 GB of disk). It prints how fast the
index is built and searched, and its recall; ``--quick`` takes four thousand.
"""

from __future__ import annotations

import atexit
import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from isotone_opas.model import OPAS
from isotone_opas.searcher import OPASSearcher
from torch import Tensor
from torch.nn.functional import normalize

from benchmarks.harness import Bench, Peer, Size
from benchmarks.memory import use_threads
from isotone.search import SearchIndex, saving, store
from isotone.search.candidates import DEFAULT, Spec
from isotone.search.query import rank
from isotone.search.searcher import best_selection

_QUERIES, _M, _N, _D = 20, 6, 20, 128
_SOUNDS = 2000
_BLOCK = 10_000


@dataclass(frozen=True)
class Search:
    """An open index, the model, queries ``(Q, m, d)``, and the seconds that the codes took."""

    index: SearchIndex
    searcher: OPASSearcher
    queries: Tensor
    build_s: float


def make(folder: Path, items: int, positives: int, stage: Spec = DEFAULT) -> Search:
    """Make sequences of 20 of 2000 sounds in noise.

    Each query has ``positives`` copies, all but one with silent windows.

    A query is 6 windows of an item, in order. Windows of items and of queries have noise of their own: a window of the
    query and its original have a cosine of 0.8 on average.
    """
    generator = torch.Generator().manual_seed(0)
    sounds = normalize(torch.randn(_SOUNDS, _D, generator=generator), dim=-1)

    def noisy(vectors: Tensor, level: float) -> Tensor:
        noise = torch.randn(vectors.shape, generator=generator) * _D**-0.5
        return normalize(vectors + level * noise, dim=-1)

    queries = []
    with (folder / store.VECTORS).open("wb") as file:
        for first in range(0, items, _BLOCK):
            count = min(_BLOCK, items - first)
            chosen = torch.randint(_SOUNDS, (count, _N), generator=generator)
            block = noisy(sounds[chosen], 0.8)
            for q in range(_QUERIES if first == 0 else 0):
                own = block[q * positives].clone()
                chosen = torch.randperm(_N, generator=generator)[:_M].sort().values
                for copy in range(1, positives):
                    block[q * positives + copy] = noisy(own, 0.3)
                    block[q * positives + copy, torch.rand(_N, generator=generator) < 0.2] = 0
                queries.append(noisy(own[chosen], 0.75))
            file.write(block.half().numpy().tobytes())
    table = np.stack([np.arange(items), np.zeros(items), np.full(items, _N)], 1).astype(np.int32)
    recordings = [store.Recording(f"{i}.wav", str(i), float(_N), 1) for i in range(items)]
    torch.manual_seed(0)
    model = OPAS(
        {"name": "lrl", "input_size": 16_000, "size": _D, "hidden": 8},
        {"name": "constant", "value": 0.02},
        {"name": "sinkhorn", "temperature": 0.1, "iterations": 20, "tolerance": 0.0},
        columns=_N,
        growth=None,
    )
    searcher = OPASSearcher(model.eval(), fingerprint="synthetic")
    about = {"name": "opas", "source": "", "fingerprint": "synthetic", "sample_rate": 16_000,
             "window_s": 1.0, "hop_s": 1.0}  # fmt: skip
    began = time.perf_counter()
    for _ in saving.finish(folder, about, recordings, table, _N, _D, stage):
        pass
    return Search(SearchIndex.open(folder), searcher, torch.stack(queries), time.perf_counter() - began)


@torch.no_grad()
def exhaustive(inputs: Search, query: Tensor, top: int = 10) -> list[int]:
    """Find OPAS's best items among all."""
    scores = [
        inputs.searcher.score(
            query, *inputs.index.take(np.arange(first, min(first + _BLOCK, len(inputs.index))))
        )
        for first in range(0, len(inputs.index), _BLOCK)
    ]
    return torch.cat(scores).topk(top).indices.tolist()


def two_stages(inputs: Search, query: Tensor, top: int = 10) -> list[int]:
    """Search in two stages: codes, then OPAS, and the windows of the best."""
    items, _ = rank(inputs.index, inputs.searcher, query)
    best_selection(query, *inputs.index.take(items[:top]))
    return items[:top].tolist()


def recall(found: list[int], best: list[int]) -> float:
    return len(set(found) & set(best)) / len(best)


# What `python -m benchmarks` runs


@cache
def _folder() -> Path:
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    return Path(folder.name)


def inputs(dims: Mapping[str, int]) -> Search:
    folder = _folder() / str(dims["C"])
    folder.mkdir(exist_ok=True)
    return make(folder, dims["C"], 16)


def ours(inputs: Search) -> list[int]:
    return two_stages(inputs, inputs.queries[0])


def everything(inputs: Search) -> list[int]:
    return exhaustive(inputs, inputs.queries[0])


def finds_the_same(inputs: Search, result: list[int], theirs: list[int]) -> None:
    assert recall(result, theirs) >= 0.9


BENCHES = [
    Bench(
        name="search",
        about=f"one query of {_M} against C items of {_N} vectors on disk: codes, then OPAS on 500 items",
        inputs=inputs,
        ours=ours,
        peers=[Peer("OPAS on all", everything, finds_the_same)],
        sizes=[
            Size({"C": 1000}, quick=True),
            *(Size({"C": items}, swept=True) for items in (2_000, 8_000, 32_000)),
        ],
        axis="C",
    )
]


def main(
    items: Annotated[int, typer.Option(min=1000, help="Indexed sequences.")] = 1_000_000,
    quick: Annotated[bool, typer.Option("--quick", help="4,000 sequences.")] = False,
    positives: Annotated[
        int, typer.Option(min=1, max=50, help="Relevant items of each query; with 1 the other 9 of 10 are chance.")
    ] = 16,
    threads: Annotated[int, typer.Option(min=1)] = 2,
    index: Annotated[str, typer.Option(help="Index of the first stage.")] = DEFAULT,
    folder: Annotated[
        Path | None, typer.Option(help="An empty folder on the disk to use. Default: a temporary one.")
    ] = None,
) -> None:  # fmt: skip
    """Build an index of synthetic sequences, search it, and compare with OPAS on everything."""
    use_threads(threads)
    items = 4_000 if quick else items
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        made = make(Path(temporary), items, positives, index)
        place = Path(temporary)
        sizes = {file.relative_to(place): file.stat().st_size for file in place.rglob("*") if file.is_file()}
        typer.echo(f"{items} items, {positives} relevant to a query, {threads} threads")
        typer.echo(f"build: {made.build_s:.1f} s, {items / made.build_s:.0f} items/s ({index})")
        parts = (size for path, size in sizes.items() if path.parts[0] in (store.STAGE, store.ITEMS))
        memory = sum(parts) / items
        typer.echo(
            f"size: {sizes[Path(store.VECTORS)] / items:.0f} bytes per item of vectors, on disk; "
            f"{memory:.0f} of the first stage"
        )
        began = time.perf_counter()
        best = [exhaustive(made, query) for query in made.queries]
        all_ms = (time.perf_counter() - began) * 1e3 / len(best)
        found = [two_stages(made, query) for query in made.queries]
        times = []
        for _ in range(3):
            for query in made.queries:
                began = time.perf_counter()
                two_stages(made, query)
                times.append((time.perf_counter() - began) * 1e3)
        mean = statistics.mean(map(recall, found, best))
        typer.echo(
            f"recall@10 of OPAS on everything: {mean:.3f} (worst query {min(map(recall, found, best)):.2f})"
        )
        deciles = statistics.quantiles(times, n=10)
        typer.echo(
            f"a query: median {statistics.median(times):.1f} ms, 90% within {deciles[-1]:.1f}, best {min(times):.1f}; "
            f"OPAS on everything: {all_ms:.0f} ms"
        )


if __name__ == "__main__":
    typer.run(main)
