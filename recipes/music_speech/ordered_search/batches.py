"""Batches of queries and items, and the loss of one."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self

import torch
from isotone_opas.functional import explore_negatives, margin_loss
from torch import Tensor, nn

from ordered_search.rankers import Ranker
from ordered_search.sets import SearchSet
from ordered_search.settings import Train


@dataclass(frozen=True)
class Batch:
    """Queries, and the items that they are scored with.

    Attributes:
        queries: ``(Q, m, size)`` elements.
        orders: ``(Q, m)`` int64, a random order of each query's windows.
        corpus: ``(C, n, size)`` elements.
        lengths: ``(C,)`` int64.
        relevant: ``(Q, C)`` bool.
        valid: ``(Q, C)`` bool, the pairs that are learned from.
        whole: Queries and relevant pairs of the whole batch, of which this may be a part.
    """

    queries: Tensor
    orders: Tensor
    corpus: Tensor
    lengths: Tensor
    relevant: Tensor
    valid: Tensor
    whole: tuple[int, int]

    def part(self, place: int, world: int) -> Self:
        """Return every ``world``-th query, from the ``place``-th on, with all items.

        Raises:
            ValueError: there are fewer queries than parts.
        """
        if len(self.queries) < world:
            raise ValueError(
                f"A batch has {len(self.queries)} queries for {world} processes: raise train.batch, or train on fewer."
            )
        names = ("queries", "orders", "relevant", "valid")
        return replace(self, **{name: getattr(self, name)[place::world] for name in names})

    def to(self, device: torch.device) -> Self:
        """Move all tensors to a device."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{k: v.to(device) for k, v in values.items() if isinstance(v, Tensor)})


class StepLoss(nn.Module):
    """The loss of a batch: a module with the ranker in it, so that accelerate can spread it over processes."""

    def __init__(self, ranker: Ranker, options: Train) -> None:
        super().__init__()
        self.ranker, self.options = ranker, options

    def forward(self, batch: Batch) -> Tensor:
        """Compute the loss, a scalar: the mean over the whole batch's queries, as far as this part has them."""
        ranker, options = self.ranker, self.options
        x = ranker.embed(batch.queries, query=True)
        y = ranker.embed(batch.corpus, batch.lengths, query=False)
        scores = ranker.scores(x, y, batch.lengths)
        queries, pairs = batch.whole
        loss = margin_loss(scores, batch.relevant, options.margin, batch.valid).sum() / queries
        if not options.order_weight:
            return loss
        shuffled = batch.queries.gather(1, batch.orders[..., None].expand_as(batch.queries))
        other = ranker.scores(ranker.embed(shuffled, query=True), y, batch.lengths)
        places = torch.arange(batch.orders.shape[1], device=batch.orders.device)
        moved = (batch.orders != places).any(1)[:, None]
        gap = (options.order_margin + other - scores).clamp(min=0) * (batch.relevant & moved)
        return loss + options.order_weight * gap.sum() / max(1, pairs)


def draw_batch(
    data: SearchSet, allowed: Tensor, options: Train, share: float, generator: torch.Generator
) -> Batch:
    """Draw a batch.

    Args:
        data: The training set.
        allowed: ``(Q, C)`` bool, the pairs that are learned from.
        options: The configuration's ``train``.
        share: Size of the batch in pairs, as a share of the configured one.
        generator: Of the draw.
    """
    batch = max(1, round(options.batch * share**0.5))
    count = max(2, round(options.batch_items * share**0.5))
    queries, items = draw(data, allowed, batch, options.positives, count, options.recordings, generator)
    given = data.queries[queries]
    orders = torch.zeros(given.shape[:2], dtype=torch.int64)
    if options.order_weight:
        orders = torch.rand(orders.shape, generator=generator).argsort(1)
    relevant = data.relevant[queries][:, items]
    return Batch(
        given, orders, data.corpus[items], data.lengths[items], relevant, allowed[queries][:, items],
        (len(queries), int(relevant.sum())),
    )  # fmt: skip


def draw(
    data: SearchSet,
    allowed: Tensor,
    batch: int,
    positives: int,
    items: int,
    recordings: int | None,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Draw the numbers of a batch's queries, and of the corpus items that they are scored with.

    Args:
        data: The training set.
        allowed: ``(Q, C)`` bool, the pairs that are learned from.
        batch: Queries.
        positives: Items of each.
        items: Items in all, at least; those beyond the positives are drawn from the corpus.
        recordings: Number of recordings that queries and items are from: items of one voice or tune are the hardest
            to distinguish. None for all.
        generator: Of the draw.

    Returns:
        Numbers of queries, ``batch`` at most, and of items, without repetition.
    """
    known = data.query_recording.unique()
    from_here = known[torch.randperm(len(known), generator=generator)[:recordings]]
    pool = torch.isin(data.query_recording, from_here).nonzero()[:, 0]
    queries = pool[torch.randperm(len(pool), generator=generator)[:batch]]
    own, _ = explore_negatives(data.relevant[queries], 0, positives, generator)
    near = torch.isin(data.item_recording, from_here)
    useful = (allowed[queries].any(0) & near).nonzero()[:, 0]
    more = useful[torch.randperm(len(useful), generator=generator)[: max(0, items - own.numel())]]
    return queries, torch.cat([own.flatten(), more]).unique()
