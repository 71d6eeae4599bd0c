"""Training of an encoder and its codes, end to end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from isotone_contrastive.embedder import Embedder, pad
from isotone_hashing.head import HashHead
from torch import Tensor, nn
from torch.nn import functional as F

from isotone.training.grid import Schedule
from learned_codes.data import Task
from learned_codes.objectives import build

# Scales of the tanh, first and last, where a system does not say: TALR's and MIHash's continuation, HashNet's, and
# none for methods of unbounded codes, whose loss does the rounding.
_SCALES = {"talr": (1.0, 40.0), "mihash": (1.0, 40.0), "hashnet": (1.0, 10.0)}
_OTHER_SCALE = 5.0
_BLOCK = 256


class Coder(nn.Module):
    """An encoder, or none, and hyperplanes over its unit vectors.

    Args:
        embedder: None: vectors of the items themselves, at length 1 after their mean is taken off.
        size: Features of a vector.
        bits: b.
        options: ``scale`` and ``first_scale`` of the tanh.
        seed: Of the hyperplanes.
    """

    def __init__(
        self, embedder: Embedder | None, size: int, bits: int, options: Mapping[str, Any], seed: int
    ) -> None:
        super().__init__()
        self.embedder = embedder
        first, last = _SCALES.get(options["kind"], (_OTHER_SCALE, _OTHER_SCALE))
        first, last = options.get("first_scale", first), options.get("scale", last)
        # an untrained encoder gives all items nearly the same direction, and so the same bits
        self.centre = nn.BatchNorm1d(size, affine=False) if embedder is not None else None
        self.head = HashHead(size, bits=bits, scale=last, first_scale=first, seed=seed)
        self.register_buffer("mean", torch.zeros(size))
        #: Codes without tanh: for losses that keep them near the signs themselves.
        self.real = options["kind"] in ("dpsh", "dtsh")

    def vectors(self, rows: Sequence[Tensor]) -> Tensor:
        """Embed inputs as unit vectors ``(N, D)``."""
        if self.embedder is not None and self.centre is not None:
            return F.normalize(self.centre(self.embedder(*pad(rows))), dim=1)
        return F.normalize(torch.cat(list(rows)) - self.mean, dim=1)

    def forward(self, rows: Sequence[Tensor]) -> Tensor:
        """Return relaxed codes ``(N, b)``."""
        vectors = self.vectors(rows)
        return self.head.alpha * self.head.project(vectors) if self.real else self.head(vectors)

    @torch.no_grad()
    def codes(self, rows: Sequence[Tensor]) -> Tensor:
        """Return bits ``(N, b)`` bool."""
        was = self.training
        self.eval()
        blocks = [rows[i : i + _BLOCK] for i in range(0, len(rows), _BLOCK)]
        bits = torch.cat([self.head.project(self.vectors(block)) > 0 for block in blocks])
        self.train(was)
        return bits


def train(
    coder: Coder,
    options: Mapping[str, Any],
    rows: Sequence[Tensor],
    task: Task,
    relevant: int,
    schedule: Schedule,
    *,
    seed: int,
) -> list[float]:
    """Train in place; in a batch every item queries the others.

    Args:
        coder: The encoder and its codes.
        options: ``kind`` and options of the loss.
        rows: Inputs of the task's training items.
        task: Gives the affinities. TALR with ``metric: ndcg`` sees their levels, other losses what is relevant.
        relevant: Least affinity of a relevant item.
        schedule: Steps, batch size and learning rate.
        seed: Of the batches.

    Returns:
        Losses of the steps.

    Raises:
        ValueError: fewer training items than a batch needs.
        FloatingPointError: a loss is not finite.
    """
    if len(rows) < schedule.batch_size:
        raise ValueError(f"Expected at least {schedule.batch_size} items, one batch; got {len(rows)}.")
    loss, levels = build(options), options.get("metric") == "ndcg"
    optimiser = torch.optim.Adam(coder.parameters(), lr=schedule.lr)
    annealing = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(1, schedule.steps))
    generator = torch.Generator().manual_seed(seed)
    if coder.embedder is None:
        coder.mean = torch.cat(list(rows)).mean(0)
    losses: list[float] = []
    coder.train()
    for step in range(schedule.steps):
        coder.head.progress = step / schedule.steps
        some = torch.randperm(len(rows), generator=generator)[: schedule.batch_size]
        traits = task.train.traits[some]
        affinity = task.affinity(traits, traits)
        affinity = affinity if levels else (affinity >= relevant).long()
        value = loss(coder([rows[i] for i in some.tolist()]), affinity)
        if not torch.isfinite(value):
            raise FloatingPointError(f"The loss is {value.item()} at step {step + 1}: lower train.lr.")
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        annealing.step()
        losses.append(value.item())
    coder.head.progress = 1.0
    coder.eval()
    return losses
