"""Training of hyperplanes on vectors: by the losses of OPAS, and by tie-aware ranking."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from isotone.interfaces import Scheduled
from isotone_hashing.head import HashHead
from isotone_hashing.loss import HyperplaneLoss, TALRLoss

#: Called after every step with its number from 1, the number of steps, and the loss.
Progress = Callable[[int, int, float], None]


class Batch(NamedTuple):
    """Queries ``(M, D)``, items ``(N, D)`` and the items' affinities to the queries ``(M, N)`` int64."""

    queries: Tensor
    corpus: Tensor
    affinity: Tensor


class Pairs:
    """Batches of queries and items: some queries, one positive of each, and other items.

    Args:
        corpus: ``(N, D)`` vectors.
        queries: ``(Q, D)`` vectors.
        positives: ``(P, 2)`` int64, numbers of a query and of an item; ``(P, 3)`` with the affinity, which otherwise
            is 1. None: no positives are known, and all affinities are 0.
        batch_queries: Queries per batch, drawn from those with positives where there are any.
        batch_items: Items per batch.
        seed: Of the draws.

    Raises:
        ValueError: shapes or numbers that do not fit together.
    """

    def __init__(
        self,
        corpus: Tensor,
        queries: Tensor,
        positives: Tensor | None,
        *,
        batch_queries: int,
        batch_items: int,
        seed: int,
    ) -> None:
        if corpus.ndim != 2 or queries.ndim != 2 or corpus.shape[1] != queries.shape[1] or not len(corpus):
            raise ValueError(
                "Expected corpus (N, D) with N >= 1 and queries (Q, D); "
                f"got {tuple(corpus.shape)} and {tuple(queries.shape)}."
            )
        self.corpus, self.queries = corpus.float(), queries.float()
        self.positives = None if positives is None else _checked_pairs(positives, len(queries), len(corpus))
        if self.positives is None:
            self.with_positives = torch.arange(len(queries))
        else:
            self.with_positives = self.positives[:, 0].unique()
        if not len(self.with_positives):
            raise ValueError("Training expects at least one query that has a positive; got none.")
        self.batch_queries = min(batch_queries, len(self.with_positives))
        self.batch_items = min(batch_items, len(corpus))
        self.generator = torch.Generator().manual_seed(seed)

    def draw(self) -> Batch:
        """Draw a batch."""
        some = torch.randperm(len(self.with_positives), generator=self.generator)[: self.batch_queries]
        chosen = self.with_positives[some]
        order = torch.randperm(len(self.corpus), generator=self.generator)
        affinity = torch.zeros(len(chosen), self.batch_items, dtype=torch.long)
        if self.positives is None:
            items = order[: self.batch_items]
        else:
            row_of = torch.full((len(self.queries),), -1)
            row_of[chosen] = torch.arange(len(chosen))
            pairs = self.positives[row_of[self.positives[:, 0]] >= 0]
            items = self._with_partners(pairs, order)
            column_of = torch.full((len(self.corpus),), -1)
            column_of[items] = torch.arange(len(items))
            row, column = row_of[pairs[:, 0]], column_of[pairs[:, 1]]
            there = column >= 0
            affinity[row[there], column[there]] = pairs[there, 2]
        return Batch(self.queries[chosen], self.corpus[items], affinity.to(self.corpus.device))

    def _with_partners(self, pairs: Tensor, order: Tensor) -> Tensor:
        """Choose items: a positive of each drawn query, then others, in the drawn order."""
        mixed = pairs[torch.randperm(len(pairs), generator=self.generator)]
        partner = torch.full((len(self.queries),), -1)
        partner[mixed[:, 0]] = mixed[:, 1]
        first = torch.zeros(len(self.corpus), dtype=torch.bool)
        first[partner[partner >= 0]] = True
        return torch.cat([order[first[order]], order[~first[order]]])[: self.batch_items]


def train(
    head: Scheduled,
    loss: Callable[[Batch], Tensor],
    pairs: Pairs,
    *,
    steps: int,
    lr: float,
    progress: Progress | None = None,
) -> list[float]:
    """Minimise a loss over the head's parameters with Adam.

    Args:
        head: Its ``progress`` is set before every step.
        loss: From a batch to a scalar.
        pairs: Source of the batches.
        steps: Their number.
        lr: Adam's step size.
        progress: Called after every step.

    Returns:
        The loss of every step.

    Raises:
        FloatingPointError: the loss is not finite.
    """
    optimizer = torch.optim.Adam(head.parameters(), lr=lr)
    losses = []
    head.train()
    for step in range(steps):
        head.progress = step / max(1, steps)
        value = loss(pairs.draw())
        if not torch.isfinite(value):
            raise FloatingPointError(
                f"The loss of step {step + 1} is {value.item()}: lower the step size {lr}."
            )
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        losses.append(value.item())
        if progress is not None:
            progress(step + 1, steps, losses[-1])
    head.progress = 1.0
    head.eval()
    return losses


def fit_talr(
    head: HashHead,
    loss: TALRLoss,
    pairs: Pairs,
    *,
    steps: int = 500,
    lr: float = 0.01,
    progress: Progress | None = None,
) -> list[float]:
    """Train a head to rank: the mean of a TALR loss over the queries of a batch.

    Args:
        head: Changed in place.
        loss: The metric and its relaxation.
        pairs: Batches, with positives.
        steps, lr, progress: As in :func:`train`.

    Returns:
        The loss of every step.

    Raises:
        ValueError: no positives are known.
    """
    if pairs.positives is None:
        raise ValueError("Learning to rank expects positives, pairs of a query and an item; got None.")

    def of_batch(batch: Batch) -> Tensor:
        return loss(head(batch.queries), batch.affinity, head(batch.corpus)).mean()

    return train(head, of_batch, pairs, steps=steps, lr=lr, progress=progress)


def fit_hyperplanes(
    head: HashHead,
    loss: HyperplaneLoss,
    pairs: Pairs,
    *,
    tables: int = 1,
    steps: int = 500,
    lr: float = 0.01,
    progress: Progress | None = None,
) -> list[float]:
    """Train hyperplanes for hash tables: the mean over tables of a :class:`HyperplaneLoss`.

    Args:
        head: Changed in place; its bits are those of the tables one after another.
        loss: Minimised in every table.
        pairs: Batches; without positives the labels are silver.
        tables: L.
        steps, lr, progress: As in :func:`train`.

    Returns:
        The loss of every step.

    Raises:
        ValueError: the bits cannot be divided evenly among the tables.
    """
    if tables < 1 or head.bits % tables:
        raise ValueError(f"Expected tables that share {head.bits} bits evenly; got {tables}.")

    def of_batch(batch: Batch) -> Tensor:
        positive = None if pairs.positives is None else batch.affinity > 0
        queries, corpus = (head(x).chunk(tables, 1) for x in (batch.queries, batch.corpus))
        return torch.stack([loss(q, c, positive) for q, c in zip(queries, corpus)]).mean()

    return train(head, of_batch, pairs, steps=steps, lr=lr, progress=progress)


def _checked_pairs(positives: Tensor, queries: int, items: int) -> Tensor:
    if positives.ndim != 2 or positives.shape[1] not in (2, 3) or positives.is_floating_point():
        raise ValueError(
            "Expected positives of shape (P, 2) or (P, 3), whole numbers; "
            f"got {tuple(positives.shape)} {positives.dtype}."
        )
    pairs = positives.long().cpu()
    if pairs.shape[1] == 2:
        pairs = torch.cat([pairs, torch.ones(len(pairs), 1, dtype=torch.long)], 1)
    outside = ((pairs[:, :2] < 0) | (pairs[:, :2] >= torch.tensor([queries, items]))).any(1) | (
        pairs[:, 2] < 1
    )
    if outside.any():
        raise ValueError(
            f"Expected positives with queries below {queries}, items below {items} and affinities from 1; "
            f"got {pairs[outside][0].tolist()}."
        )
    return pairs
