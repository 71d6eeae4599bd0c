"""Training of an embedder on two views."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from isotone_contrastive.embedder import Embedder, pad
from torch import nn

from two_views.data import Pool


@dataclass
class Schedule:
    """Settings of the training: Adam, with the learning rate annealed to 0 along a cosine.

    Attributes:
        steps: Optimiser steps; 0 leaves the embedder as it is.
        batch_size: Items of a batch, in two views each.
        lr: Learning rate at the beginning.
        weight_decay: Of Adam.
        evaluate_every: Steps between evaluations on dev; the best weights are kept. 0: keep the last.
    """

    steps: int = 300
    batch_size: int = 128
    lr: float = 2e-3
    weight_decay: float = 0.0
    evaluate_every: int = 50


def train(
    embedder: Embedder,
    loss: nn.Module,
    pool: Pool,
    schedule: Schedule,
    *,
    seed: int = 0,
    labels: Sequence[int] | None = None,
    evaluate: Callable[[], float] | None = None,
) -> list[float]:
    """Train an embedder in place.

    Args:
        embedder: Reads the pool's inputs.
        loss: Of two views ``(N, D)``, and of labels ``(N,)`` where there are some; its weights are trained too.
        pool: Source of the batches; an epoch has every item once.
        schedule: See :class:`Schedule`.
        seed: Of the batches.
        labels: Classes of the pool's items, for the loss. None: it takes views alone.
        evaluate: Computes a score on dev, higher is better; the weights with the best score are kept.

    Returns:
        The loss of every step.

    Raises:
        ValueError: fewer items than a batch takes.
        FloatingPointError: the loss is not finite.
    """
    if schedule.batch_size > len(pool):
        raise ValueError(f"Expected at least {schedule.batch_size} items, one batch; got {len(pool)}.")
    if not schedule.steps:
        return []
    rng = np.random.default_rng([seed, 11])
    weights = [*embedder.parameters(), *loss.parameters()]
    optimizer = torch.optim.Adam(weights, schedule.lr, weight_decay=schedule.weight_decay)
    classes = None if labels is None else torch.as_tensor(labels)
    annealing = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, schedule.steps)
    batches = _batches(len(pool), schedule.batch_size, rng)
    best, kept = -np.inf, None
    losses = []
    embedder.train()
    for step in range(1, schedule.steps + 1):
        items = next(batches)
        a, b = pool.draw(items, rng)
        vectors = embedder(*pad([*a, *b]))
        value = loss(*vectors.split(len(a)), *([] if classes is None else [classes[items]]))
        if not torch.isfinite(value):
            raise FloatingPointError(f"The loss is {value.item()} at step {step}: lower train.lr.")
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        annealing.step()
        losses.append(value.item())
        last = step == schedule.steps
        if evaluate is not None and schedule.evaluate_every and (step % schedule.evaluate_every == 0 or last):
            score = evaluate()
            if score > best:
                best, kept = score, {k: v.detach().clone() for k, v in embedder.state_dict().items()}
    if kept is not None:
        embedder.load_state_dict(kept)
    return losses


def _batches(items: int, size: int, rng: np.random.Generator) -> Iterator[list[int]]:
    """Yield batches of different items, epoch after epoch; items that do not fill a batch are left out."""
    while True:
        order = rng.permutation(items)
        for start in range(0, items - size + 1, size):
            yield order[start : start + size].tolist()
