"""The two tasks, matching and probing: data, training and scores of one system and seed."""

from __future__ import annotations

import numpy as np
import torch
from isotone_contrastive.embedder import Embedder
from torch import nn

from isotone.training.augment import Chain
from two_views.data import SOURCES, Pool, Recordings
from two_views.probe import matching_accuracy, probe_all
from two_views.settings import Experiment
from two_views.training import Schedule, train

# Of the classifier over unit vectors: the loss's own, as SimCLR has it.
TEMPERATURE = 0.05

# Scores by name, and two views ``(N, D)`` of training items.
Outcome = tuple[dict[str, float], torch.Tensor, torch.Tensor]


def two_voices(part: Recordings, embedder: Embedder) -> Pool:
    """Pair recordings into views: every item by the voices of view 0 and by those of view 1."""
    items = sorted(set(part.item))
    inputs = embedder.body.inputs(part.samples)
    return Pool(inputs, [part.of(i, 0) for i in items], [part.of(i, 1) for i in items])


class Matching:
    """Instance matching: assigning two views of unseen items to each other.

    Args:
        experiment: Its ``data`` are read.
        embedder: Any with the experiment's body: computes the inputs.
    """

    def __init__(self, experiment: Experiment, embedder: Embedder) -> None:
        options = {**experiment.data}
        splits = SOURCES[options.pop("name")](**options)
        self.pools = {split: two_voices(part, embedder) for split, part in splits.items()}

    def scores(self, embedder: Embedder, split: str) -> Outcome:
        """Compute the matching accuracy of a split's first recordings, and their vectors in both views."""
        pool = self.pools[split]
        a, b = (embedder.embed([pool.inputs[i[0]] for i in side]) for side in (pool.first, pool.second))
        return {"accuracy": matching_accuracy(a, b)}, a, b

    def run(self, embedder: Embedder, loss: nn.Module, schedule: Schedule, seed: int) -> Outcome:
        """Train, keep the best weights on dev, and score on test; also return vectors of training items."""
        train(
            embedder, loss, self.pools["train"], schedule, seed=seed,
            evaluate=lambda: self.scores(embedder, "dev")[0]["accuracy"],
        )  # fmt: skip
        _, a, b = self.scores(embedder, "train")
        return self.scores(embedder, "test")[0], a[: schedule.batch_size], b[: schedule.batch_size]


class Classifier(nn.Module):
    """Cross-entropy of a linear classifier over both views, for the row that is trained with labels.

    Args:
        size: Dimensions D of the views.
        classes: Their number.
    """

    def __init__(self, size: int, classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(size, classes)

    def forward(self, a: torch.Tensor, b: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Compute the mean cross-entropy of views ``(N, D)`` with their labels ``(N,)``."""
        # unit vectors would give nearly even probabilities
        return nn.functional.cross_entropy(self.linear(torch.cat([a, b]) / TEMPERATURE), labels.repeat(2))


class Probing:
    """Self-supervision on unlabelled recordings, then linear classifiers on frozen features.

    Args:
        experiment: Its ``data``, ``augment`` and ``views`` are read.
        embedder: Any with the experiment's body: computes the inputs.
    """

    def __init__(self, experiment: Experiment, embedder: Embedder) -> None:
        options = {**experiment.data}
        splits = SOURCES[options.pop("name")](**options)
        self.labels = {split: part.labels for split, part in splits.items()}
        self.inputs = {split: embedder.body.inputs(part.samples) for split, part in splits.items()}
        chain, count = Chain(experiment.augment), experiment.views
        rng = np.random.default_rng(17)
        views: list[torch.Tensor] = []
        for samples in splits["train"].samples:
            views += embedder.body.inputs(chain.views(samples, rng, count))
        of_item = [list(range(i * count, (i + 1) * count)) for i in range(len(splits["train"].samples))]
        self.pool = Pool(views, of_item, of_item)

    def run(
        self, embedder: Embedder, loss: nn.Module, schedule: Schedule, seed: int, supervised: str = ""
    ) -> Outcome:
        """Train, then probe: accuracies by label, and vectors of two views of some training recordings.

        With a kind of label in ``supervised``, its classes are learned in place of the loss.
        """
        labels = self.labels["train"][supervised] if supervised else None
        if labels is not None:  # a linear classifier of what is probed later, without a projection between
            embedder.projection = nn.Identity()
            loss = Classifier((embedder.parts + 1) * embedder.body.size, max(labels) + 1)
        train(embedder, loss, self.pool, schedule, seed=seed, labels=labels)
        scores = probe_all(embedder, self.inputs, self.labels)
        items = range(min(schedule.batch_size, len(self.pool)))
        a, b = self.pool.draw(items, np.random.default_rng(0))
        return scores, embedder.embed(a), embedder.embed(b)
