"""Scores of pairs: by the compiled loops for the models that these can score, else by tensor operations."""

from __future__ import annotations

from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from isotone.interfaces import Relaxation
from isotone.types import mask_rows
from isotone_opas import functional as F
from isotone_opas import kernels as kernel

# Queries scored together, and similarities of these with a block of items: they fit the second-level cache.
_QUERIES, _BLOCK_SIMILARITIES = 32, 1 << 19
# The compiled loops never stop early: relaxations with a larger tolerance do not run on them.
_TOLERANCE = 1e-5


class Scorer(Protocol):
    """The parts of :class:`isotone_opas.model.OPAS` that scoring needs."""

    penalty: Any
    relaxation: Relaxation
    reward: Literal["theorem1", "hinge"]
    margin: float
    hinge: bool

    def select(
        self, queries: Tensor, corpus: Tensor, query_lengths: Tensor | None, corpus_lengths: Tensor | None
    ) -> Any:
        """Select ordered windows of every pair."""

    def combine(self, fit: Tensor, order: Tensor | float = 0.0) -> Tensor:
        """Combine s_F and s_lambda into scores."""

    def positions_of(self, n: int) -> Tensor:
        """Return the positions a of items of n elements."""


def compilable(model: Scorer, queries: Tensor) -> bool:
    """Return whether the compiled loops do what the model does with such queries."""
    return (
        not torch.is_grad_enabled()
        and queries.device.type == "cpu"
        and queries.dtype == torch.float32
        and (exact(model) or _sinkhorn(model.relaxation) is not None)
    )


def exact(model: Scorer) -> bool:
    """Return whether the plan is the best ordered selection itself, which needs no penalties."""
    penalty = model.penalty.compiled()
    free = isinstance(penalty, Tensor) and not penalty.any()
    return type(model.relaxation).__name__ == "Ordered" and free and model.reward == "theorem1"


def pairs_compiled(
    model: Scorer,
    queries: Tensor,
    corpus: Tensor,
    query_lengths: Tensor | None,
    corpus_lengths: Tensor | None,
) -> Tensor:
    """Score pairs by the compiled loops: ``(B,)``."""
    if exact(model):
        return model.combine(kernel.fit_pairs(queries, corpus, query_lengths, corpus_lengths))
    lam = model.penalty.compiled()
    if lam is None:
        clean = mask_rows(queries, query_lengths), mask_rows(corpus, corpus_lengths)
        lam = model.penalty(F.similarities(*clean), *clean, query_lengths, corpus_lengths)
    elif isinstance(lam, Tensor):
        lam = _constant(lam, queries, query_lengths)
    parts = kernel.score_pairs(
        queries, corpus, lam, _options(model, corpus.shape[1]), query_lengths, corpus_lengths
    )
    return model.combine(*parts)


def all_compiled(
    model: Scorer,
    queries: Tensor,
    corpus: Tensor,
    query_lengths: Tensor | None,
    corpus_lengths: Tensor | None,
    memory_mib: float,
) -> tuple[Tensor, Tensor]:
    """Find s_F and s_lambda of all queries with all items by the compiled loops, block by block: ``(Q, C)`` each."""
    (count, m, _), (items, n, d) = queries.shape, corpus.shape
    without_plan, network, options = exact(model), model.penalty.compiled(), _options(model, n)
    group = min(count, _QUERIES)
    block = _block_items(group * m, n, d, memory_mib)
    fit, order = queries.new_empty(count, items), queries.new_zeros(count, items)
    for c in range(0, items, block):
        # only soft plans use inner products of an item's own vectors
        shared = 0 if without_plan else count * m
        some, of_some = corpus[c : c + block], _cut(corpus_lengths, c, block)
        part = kernel.Items.prepare(some, of_some, shared)
        for q in range(0, count, group):
            rows, lengths = queries[q : q + group], _cut(query_lengths, q, group)
            place = slice(q, q + group), slice(c, c + block)
            if without_plan:
                fit[place] = kernel.fit_all(rows, part, lengths)
            else:
                lam: kernel.PenaltyNetwork | Tensor
                if isinstance(network, Tensor):
                    lam = _constant(network, rows, lengths)[..., None].expand(-1, -1, part.count)
                elif network is None:
                    lam = _all_penalties(model, rows, some, lengths, of_some)
                else:
                    lam = network
                fit[place], order[place] = kernel.score_all(rows, part, lam, options, lengths)
    return fit, order


def _block_items(rows: int, n: int, d: int, memory_mib: float) -> int:
    """Return the items per block for so many query elements: bounded by memory and by the second-level cache."""
    # numbers per item: its similarities, its vectors twice, and its inner products
    each = rows * (n + 2) + n * (2 * d + 2 * min(n, d))
    # a thread takes at least sixteen items
    cached = max(torch.get_num_threads(), _BLOCK_SIMILARITIES // max(1, rows * n) // 16) * 16
    return int(max(1, min(memory_mib * 2**18 // each, cached)))


def all_by_tensors(
    model: Scorer,
    queries: Tensor,
    corpus: Tensor,
    query_lengths: Tensor | None,
    corpus_lengths: Tensor | None,
    memory_mib: float,
) -> tuple[Tensor, Tensor]:
    """Find the same by tensor operations, so many pairs at a time."""
    (count, m, d), (items, n, _) = queries.shape, corpus.shape
    # numbers per pair: both sequences, and the tensors of its m x n matrix
    each = d * (n + 3 * m) + 12 * m * n + 4 * n * n
    pairs = int(max(1, memory_mib * 2**18 // each))
    fits, orders = [queries.new_zeros(0)], [queries.new_zeros(0)]
    for first in range(0, count * items, pairs):
        pair = torch.arange(first, min(first + pairs, count * items), device=queries.device)
        q, c = pair // items, pair % items
        lengths = [None if x is None else x[i] for x, i in ((query_lengths, q), (corpus_lengths, c))]
        found = model.select(queries[q], corpus[c], *lengths)
        fits.append(found.fit)
        orders.append(found.order)
    return torch.cat(fits).view(count, items), torch.cat(orders).view(count, items)


def _options(model: Scorer, n: int) -> kernel.Sinkhorn:
    tau, iterations = _sinkhorn(model.relaxation) or (1.0, 1)
    return kernel.Sinkhorn(model.positions_of(n), tau, iterations, model.margin, model.hinge, model.reward)


def _sinkhorn(relaxation: Any) -> tuple[float, int] | None:
    """Return temperature and iterations of a relaxation that is Sinkhorn's with slack; None for others.

    Relaxations come from other plugins, which this one does not import: they are known by their class's name.
    """
    if type(relaxation).__name__ != "Sinkhorn" or getattr(relaxation, "tolerance", 0) > _TOLERANCE:
        return None
    return float(relaxation.temperature), int(relaxation.iterations)


def _all_penalties(
    model: Scorer,
    queries: Tensor,
    corpus: Tensor,
    query_lengths: Tensor | None,
    corpus_lengths: Tensor | None,
) -> Tensor:
    """Return the penalties ``(Q, m, C)`` of all pairs, one query at a time."""
    rows = []
    corpus = mask_rows(corpus, corpus_lengths)
    for q in range(len(queries)):
        lengths = None if query_lengths is None else query_lengths[q].expand(len(corpus))
        query = mask_rows(queries[q].expand(len(corpus), -1, -1), lengths)
        rows.append(model.penalty(F.similarities(query, corpus), query, corpus, lengths, corpus_lengths).mT)
    return torch.stack(rows)


def _constant(value: Tensor, queries: Tensor, lengths: Tensor | None) -> Tensor:
    lam = value.expand(queries.shape[:2]).clone()
    lam[:, :1] = 0
    return mask_rows(lam, lengths)


def _cut(lengths: Tensor | None, first: int, size: int) -> Tensor | None:
    return None if lengths is None else lengths[first : first + size]
