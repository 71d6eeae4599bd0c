"""The first stage of a search: vectors of sequences, trained hyperplanes, and FAISS at equal retrieved counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from isotone_opas.aggregate import DeepSets, SetTransformer, aggregation_loss
from isotone_opas.model import OPAS
from torch import Tensor, nn

from isotone import indexes
from ordered_search.evaluation import quality
from ordered_search.sets import SearchSet
from ordered_search.settings import Hashing


def retrieved_precision(scores: np.ndarray, relevant: np.ndarray, found: np.ndarray) -> float:
    """Compute mean average precision of the items found, ranked by scores; missing items add nothing.

    Args:
        scores, relevant, found: ``(Q, C)``; the last two bool.
    """
    values = []
    for score, good, retrieved in zip(scores, relevant, found):
        hits = good[retrieved][np.argsort(-score[retrieved], kind="stable")]
        precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
        values.append((precision * hits).sum() / good.sum())
    return float(np.mean(values))


def train_aggregate(model: OPAS, data: SearchSet, options: Hashing, seed: int, kind: str) -> nn.Module:
    """Train set vectors whose distances approximate s_F, on pairs of which half are positive.

    Raises:
        ValueError: no such kind.
    """
    kinds = {"set-transformer": SetTransformer, "deep-sets": DeepSets}
    if kind not in kinds:
        raise ValueError(f"Expected hashing.aggregates of {', '.join(kinds)}; got {kind!r}.")
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    aggregate = kinds[kind](size=model.embed.size)
    optimiser = torch.optim.Adam(aggregate.parameters(), options.lr)
    with torch.no_grad():
        queries, corpus = model.embed(data.queries), _embed(model, data)
    for _ in range(options.aggregate_steps):
        q = torch.randint(len(queries), (options.batch,), generator=generator)
        noise = torch.rand(len(q), len(corpus), generator=generator)
        own = torch.where(data.relevant[q], noise, -1.0).argmax(1)
        c = torch.where(torch.arange(len(q)) % 2 == 0, own, noise.argmax(1))
        with torch.no_grad():
            fit = model.select(queries[q], corpus[c], None, data.lengths[c]).fit
        loss = aggregation_loss(aggregate(queries[q]), aggregate(corpus[c], data.lengths[c]), fit).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return aggregate.eval()


@torch.no_grad()
def _embed(model: OPAS, data: SearchSet) -> Tensor:
    return torch.cat([model.embed(x, n) for x, n in zip(data.corpus.split(256), data.lengths.split(256))])


def compare(
    model: OPAS, sets: dict[str, SearchSet], scores: Tensor, options: Hashing, seed: int
) -> tuple[dict[str, list[dict[str, float]]], dict[str, dict[str, float]]]:
    """Compare indexes: retrieved items and MAP; and set vectors alone (table 20).

    Hyperplanes are learned on the training set. Items of the test set are found by the bits that they share with the
    query in some table (k bits, for every k), or as the nearest vectors, as many; then OPAS ranks them.

    Args:
        model: Trained, in evaluation mode.
        sets: ``train`` and ``test``.
        scores: Of the test set, ``(Q, C)``.
        options: The configuration's ``hashing``.
        seed: Of everything random.

    Returns:
        By index, rows of ``retrieved`` (mean items per query), ``share`` of the corpus, ``MAP``; and MAP and MRR of
        the set vectors by their inner products, cosines and distances.
    """
    curves: dict[str, list[dict[str, float]]] = {}
    alone: dict[str, dict[str, float]] = {}
    for number, kind in enumerate(options.aggregates):
        suffix = "" if number == 0 else f", {kind}"
        vectors = set_vectors(model, sets, options, seed, kind)
        alone |= {f"{name}{suffix}": row for name, row in by_vectors(*vectors["test"], sets["test"]).items()}
        names = ("lsh-random", "lsh-trained") if number == 0 else ("lsh-trained",)
        found = hyperplanes(names, vectors, sets, scores, options, seed)
        curves |= {f"{name}{suffix}": rows for name, rows in found.items()}
        if number == 0:
            counts = sorted({max(1, round(row["retrieved"])) for rows in found.values() for row in rows})
            curves |= neighbours(vectors, counts, sets["test"], scores, options)
    return curves, alone


Vectors = dict[str, tuple[Tensor, Tensor]]


def set_vectors(model: OPAS, sets: dict[str, SearchSet], options: Hashing, seed: int, kind: str) -> Vectors:
    """Train set vectors; return those of queries ``(Q, h)`` and items ``(C, h)`` of both sets, centred."""
    aggregate = train_aggregate(model, sets["train"], options, seed, kind)
    with torch.no_grad():
        vectors = {
            name: (aggregate(model.embed(data.queries)), aggregate(_embed(model, data), data.lengths))
            for name, data in sets.items() if name in ("train", "test")
        }  # fmt: skip
    # hyperplanes go through the origin
    centre = vectors["train"][1].mean(0)
    return {name: (queries - centre, corpus - centre) for name, (queries, corpus) in vectors.items()}


def by_vectors(queries: Tensor, corpus: Tensor, data: SearchSet) -> dict[str, dict[str, float]]:
    """Rank items by set vectors alone: MAP and MRR of inner products, cosines and distances (table 20)."""
    product = queries @ corpus.T
    cosine = product / queries.norm(dim=1, keepdim=True) / corpus.norm(dim=1)
    ways = {"inner product": product, "cosine": cosine, "distance": -torch.cdist(queries, corpus)}
    return {name: quality(scores, data) for name, scores in ways.items()}


def hyperplanes(
    names: Sequence[str],
    vectors: Vectors,
    sets: dict[str, SearchSet],
    scores: Tensor,
    options: Hashing,
    seed: int,
) -> dict[str, list[dict[str, float]]]:
    """Retrieve by bits in common, for indexes of hyperplanes of these names."""
    (train_queries, train_corpus), (queries, corpus) = vectors["train"], vectors["test"]
    score, relevant = scores.numpy(), sets["test"].relevant.numpy()
    known = None if options.silver else sets["train"].relevant.nonzero()
    out = {}
    for name in names:
        shape = {"size": corpus.shape[1], "bits": options.bits * options.tables, "tables": options.tables}
        more = options.training | {"seed": seed} if name == "lsh-trained" else {"seed": seed}
        index: Any = indexes.build(name, **shape, **more)
        index.fit(train_corpus, train_queries, known)
        shared = _shared(index.codes(queries), index.codes(corpus), options.tables)
        out[name] = [_row(score, relevant, shared >= k) for k in range(options.bits, 0, -1)]
    return out


def neighbours(
    vectors: Vectors, counts: Sequence[int], data: SearchSet, scores: Tensor, options: Hashing
) -> dict[str, list[dict[str, float]]]:
    """Retrieve numbers of nearest set vectors by the configured indexes."""
    (_, train_corpus), (queries, corpus) = vectors["train"], vectors["test"]
    out = {}
    for name in options.indexes:
        index = indexes.build(name, size=corpus.shape[1], **options.options.get(name, {}))
        index.fit(train_corpus)
        index.add([str(i) for i in range(len(corpus))], corpus)
        ids, _ = index.search(queries, counts[-1])
        out[name] = [
            _row(scores.numpy(), data.relevant.numpy(), _mask(ids, count, len(corpus))) for count in counts
        ]
    return out


def _shared(a: np.ndarray, b: np.ndarray, tables: int) -> np.ndarray:
    """Count the most bits that two codes share in one table: ``(Q, K)`` and ``(C, K)`` bool to ``(Q, C)``."""
    signs = [np.split(2.0 * x - 1.0, tables, axis=1) for x in (a, b)]
    return np.max([(x.shape[1] + x @ y.T) / 2 for x, y in zip(*signs)], axis=0)


def _row(scores: np.ndarray, relevant: np.ndarray, found: np.ndarray) -> dict[str, float]:
    return {
        "retrieved": float(found.sum(1).mean()), "share": float(found.mean()),
        "MAP": retrieved_precision(scores, relevant, found),
    }  # fmt: skip


def _mask(ids: list[list[str]], count: int, items: int) -> np.ndarray:
    found = np.zeros((len(ids), items), bool)
    for row, of_query in zip(found, ids):
        row[[int(i) for i in of_query[:count]]] = True
    return found
