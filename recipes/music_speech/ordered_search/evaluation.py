"""Scores of a ranker and of the baselines: MAP, MRR, order-discriminative capacity, time, memory."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from isotone_opas.baselines import scorers
from isotone_opas.metrics import ordering_consistency
from isotone_opas.model import OPAS
from torch import Tensor

from isotone.evaluation.ranking import average_precision, reciprocal_rank
from ordered_search.memory import peak_mib
from ordered_search.rankers import OPASRanker, Ranker
from ordered_search.sets import SearchSet

# Sequences that are embedded at a time.
_BLOCK = 256


@torch.no_grad()
def embedded(ranker: Ranker, elements: Tensor, lengths: Tensor | None, *, query: bool) -> Tensor:
    """Compute :meth:`Ranker.embed` in blocks of sequences, on the ranker's device."""
    device = ranker.device
    parts = [
        ranker.embed(
            elements[i : i + _BLOCK].to(device),
            None if lengths is None else lengths[i : i + _BLOCK].to(device),
            query=query,
        )
        for i in range(0, len(elements), _BLOCK)
    ]
    return torch.cat(parts)


def quality(scores: Tensor, data: SearchSet, rows: Tensor | None = None) -> dict[str, float]:
    """Compute MAP and MRR of scores ``(Q, C)``; ties count as the mean over their orders.

    Other items that overlap the query's sequence in time are not ranked.

    Args:
        scores: Of the queries in ``rows``.
        data: Their set.
        rows: Numbers of queries. Default: all.
    """
    rows = torch.arange(len(data.queries)) if rows is None else rows
    counted, relevant = data.counted[rows], data.relevant[rows]
    order = (~counted).long().argsort(dim=1, stable=True)
    lengths = counted.sum(1)
    given = scores.gather(1, order), relevant.gather(1, order), lengths
    return {
        "MAP": float(np.mean(average_precision(*given))),
        "MRR": float(np.mean(reciprocal_rank(*given))),
    }


@torch.no_grad()
def score_matrix(ranker: Ranker, data: SearchSet) -> tuple[Tensor, dict[str, float]]:
    """Compute scores ``(Q, C)``, milliseconds per pair, and seconds for embedding the corpus."""
    ranker.eval()
    began = time.perf_counter()
    corpus = embedded(ranker, data.corpus, data.lengths, query=False)
    middle = time.perf_counter()
    queries = embedded(ranker, data.queries, None, query=True)
    lengths = data.lengths.to(ranker.device)
    ranker.scores(queries[:1], corpus, lengths)[0, 0].item()  # the first call compiles, and is not timed
    start = time.perf_counter()
    scores = ranker.scores(queries, corpus, lengths).cpu()
    took = time.perf_counter() - start
    return scores, {"ms_per_pair": 1e3 * took / scores.numel(), "corpus_embedding_s": middle - began}


def ranking(ranker: Ranker, data: SearchSet) -> dict[str, float]:
    """Compute MAP, MRR and time of a ranker."""
    scores, times = score_matrix(ranker, data)
    return {**quality(scores, data), **times}


@torch.no_grad()
def order_capacity(ranker: Ranker, data: SearchSet, queries: int, shuffles: int | None, seed: int) -> float:
    """Compute ODC in percent (equation 30) over random queries, whose windows are shuffled.

    Args:
        ranker: In evaluation mode.
        data: Queries and corpus.
        queries: Number of queries.
        shuffles: Random orders per query; None for all m! - 1.
        seed: Of the draws.
    """
    generator = torch.Generator().manual_seed(seed)
    corpus = embedded(ranker, data.corpus, data.lengths, query=False)
    shares = []
    for q in torch.randperm(len(data.queries), generator=generator)[:queries].tolist():
        own = data.relevant[q].nonzero()[:, 0]
        lengths = data.lengths[own].to(ranker.device)

        def score(orders: Tensor, items: Tensor, lengths: Tensor = lengths) -> Tensor:
            return ranker.scores(embedded(ranker, orders, None, query=True), items, lengths)

        shares.append(ordering_consistency(score, data.queries[q], corpus[own], shuffles, generator))
    return 100 * float(np.mean(shares))


@torch.no_grad()
def score_peak(ranker: Ranker, data: SearchSet, queries: int) -> dict[str, float]:
    """Measure the memory that scoring some queries with all items takes (figure 12); empty where it cannot be."""
    few = data.of(torch.arange(min(queries, len(data.queries))))
    corpus = embedded(ranker, few.corpus, few.lengths, query=False)
    found = embedded(ranker, few.queries, None, query=True)
    return peak_mib(lambda: ranker.scores(found, corpus, few.lengths.to(ranker.device)))


@torch.no_grad()
def baselines(
    specs: dict[str, Any], data: SearchSet, seed: int, memory_queries: int = 0
) -> dict[str, dict[str, float]]:
    """Compute MAP, MRR, time and memory of untrained scores, on elements scaled to norm 1.

    Args:
        specs: By name: ``scorer`` (name and options) and ``queries``, the number of queries scored: the first of
            one random order, so that slower baselines score a part of the same queries.
        data: Queries and corpus.
        seed: Of the order.
        memory_queries: Queries that the memory is measured with; 0 where it is not.
    """
    order = torch.randperm(len(data.queries), generator=torch.Generator().manual_seed(seed))
    queries, corpus = (torch.nn.functional.normalize(x, dim=-1) for x in (data.queries, data.corpus))
    out = {}
    for name, spec in specs.items():
        scorer = scorers.create(spec["scorer"])
        rows = order[: spec["queries"]]
        scorer(queries[:1], corpus[:2], None, data.lengths[:2])
        start = time.perf_counter()
        scores = scorer(queries[rows], corpus, None, data.lengths)
        took = time.perf_counter() - start
        few = queries[rows[: min(memory_queries, spec["queries"])]]
        peak = peak_mib(lambda s=scorer, q=few: s(q, corpus, None, data.lengths)) if len(few) else {}
        out[name] = {
            **peak,
            **quality(scores, data, rows), "queries": len(rows), "ms_per_pair": 1e3 * took / scores.numel(),
        }  # fmt: skip
    return out


def opas_of(ranker: Ranker) -> OPAS | None:
    """Return the OPAS model of a ranker; None where it is another kind."""
    return ranker.model if isinstance(ranker, OPASRanker) else None
