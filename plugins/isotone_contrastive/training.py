"""Training of an embedder on two views, and what it is judged by: matching accuracy and linear probes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn
from torch.nn import functional as F

from isotone_contrastive.data import Pool
from isotone_contrastive.embedder import Embedder, pad
from isotone_contrastive.functional import check_views


@dataclass
class Schedule:
    """How an embedder is trained: Adam, the learning rate annealed to 0 along a cosine.

    Attributes:
        steps: Optimiser steps; 0 leaves the embedder as it is.
        batch_size: Items of a batch, in two views each.
        lr: Learning rate at the beginning.
        weight_decay: Of Adam.
        evaluate_every: Steps between looks at dev, whose best weights are kept at the end. 0: keep the last.
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
    evaluate: Callable[[], float] | None = None,
) -> list[float]:
    """Train an embedder in place.

    Args:
        embedder: Reads the pool's inputs.
        loss: Of two views ``(N, D)``.
        pool: Where batches come from; an epoch is every item once.
        schedule: See :class:`Schedule`.
        seed: Of the batches.
        evaluate: A score on dev, higher is better; the weights of the best are kept.

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
    optimizer = torch.optim.Adam(embedder.parameters(), schedule.lr, weight_decay=schedule.weight_decay)
    annealing = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, schedule.steps)
    batches = _batches(len(pool), schedule.batch_size, rng)
    best, kept = -np.inf, None
    losses = []
    embedder.train()
    for step in range(1, schedule.steps + 1):
        a, b = pool.draw(next(batches), rng)
        vectors = embedder(*pad([*a, *b]))
        value = loss(*vectors.split(len(a)))
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
    """Batches of different items, epoch after epoch; what does not fill a batch is left out of its epoch."""
    while True:
        order = rng.permutation(items)
        for start in range(0, items - size + 1, size):
            yield order[start : start + size].tolist()


def matching_accuracy(a: Tensor, b: Tensor) -> float:
    """Share of items, 0 to 1, that the optimal assignment by Euclidean distances gives to their own other view.

    Args:
        a: ``(N, D)`` one view.
        b: ``(N, D)`` the other, in the same order.
    """
    check_views(a, b)
    rows, columns = linear_sum_assignment(torch.cdist(a.double(), b.double()).cpu().numpy())
    return float((rows == columns).mean())


def linear_probe(
    train_features: Tensor,
    train_labels: Sequence[int],
    test_features: Tensor,
    test_labels: Sequence[int],
    *,
    decay: float = 1e-3,
    iterations: int = 100,
) -> float:
    """Accuracy, 0 to 1, of logistic regression on frozen features; test classes that train lacks count as errors.

    Args:
        train_features: ``(N, D)``; they are standardised, and those of test by the same numbers.
        train_labels: N classes.
        test_features: ``(M, D)``.
        test_labels: M classes.
        decay: Weight of half of the squared weights beside the mean loss; the bias is free.
        iterations: Of L-BFGS, at most.
    """
    mean, deviation = train_features.mean(0), train_features.std(0).clamp(min=1e-6)
    x, y = (((f - mean) / deviation).double() for f in (train_features, test_features))
    target = torch.tensor(train_labels)
    classes = 1 + int(target.max())
    weight = x.new_zeros(classes, x.shape[1], requires_grad=True)
    bias = x.new_zeros(classes, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=iterations, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = F.cross_entropy(x @ weight.mT + bias, target) + decay / 2 * weight.square().sum()
        value.backward()
        return value

    with torch.enable_grad():
        optimizer.step(closure)
    said = (y @ weight.detach().mT + bias.detach()).argmax(1)
    return float((said == torch.tensor(test_labels)).double().mean())


def probe_all(
    embedder: Embedder,
    inputs: Mapping[str, Sequence[Tensor]],
    labels: Mapping[str, Mapping[str, Sequence[int]]],
) -> dict[str, float]:
    """:func:`linear_probe` of every kind of label, by its name.

    Args:
        embedder: Its features are read.
        inputs: Of ``train`` and ``test``.
        labels: Of ``train`` and ``test``: classes by kind.
    """
    train_features, test_features = (embedder.embed(inputs[s], features=True) for s in ("train", "test"))
    return {
        kind: linear_probe(train_features, classes, test_features, labels["test"][kind])
        for kind, classes in labels["train"].items()
    }
