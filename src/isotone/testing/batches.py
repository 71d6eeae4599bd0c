"""Batches that the checks give to plugins: random, of several lengths, padded, and with invalid padding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from isotone.types import Emissions, FramePath, Frames, Grid, Targets, length_mask

Batch = TypeVar("Batch", Frames, Emissions, Targets)


def sample_batch(
    *, vocab_size: int = 6, dtype: torch.dtype = torch.float32, seed: int = 0
) -> tuple[Emissions, Targets]:
    """Return random emissions of 5 utterances and targets that fit them, of several lengths, padded.

    The targets include repeats, a single token, and as many tokens as frames; they have durations and paths.
    Label 0 is the blank and never a target.

    Args:
        vocab_size: V, at least 3.
        dtype: Data type of the logits.
        seed: Seed of the random numbers.

    Returns:
        Emissions with OT weights, ``(5, 12, V)``, and targets ``(5, 4)``.
    """
    rng = torch.Generator().manual_seed(seed)
    lengths, counts = torch.tensor([12, 9, 7, 4, 10]), torch.tensor([4, 3, 1, 4, 2])
    logits = torch.randn(5, 12, vocab_size, generator=rng, dtype=torch.float64).to(dtype)
    weights = torch.randn(5, 12, generator=rng, dtype=torch.float64).to(dtype)
    # Each label is the first one plus a step, modulo V - 1; equal steps in a row make repeats.
    first = torch.randint(1, vocab_size, (5, 1), generator=rng)
    steps = torch.tensor([[0, 0, 1, 2], [0, 1, 1, 1], [0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]])
    labels = 1 + (first + steps) % (vocab_size - 1)
    durations = torch.rand(5, 4, generator=rng) + 0.1
    paths = torch.full((5, 12), -2)
    for row, (n, m) in enumerate(zip(lengths.tolist(), counts.tolist())):
        if n == m:
            paths[row, :n] = torch.arange(n)
        else:  # a blank frame before every token; the last token lasts to the end
            frame = torch.arange(n)
            paths[row, :n] = torch.where(frame % 2 == 1, frame // 2, -1).clamp(max=m - 1)
            paths[row, 2 * m - 1 : n] = m - 1
    emissions = Emissions(logits, lengths, Grid(0.02), 0, weights)
    return emissions, Targets(labels, counts, durations, FramePath(paths))


def map_logits(emissions: Emissions, change: Callable[[Tensor], Tensor]) -> Emissions:
    """Apply a function to the logits and to the weight logits."""
    weights = emissions.weight_logits
    return replace(
        emissions, logits=change(emissions.logits), weight_logits=None if weights is None else change(weights)
    )


def alone(batch: Batch, row: int) -> Batch:
    """Select one row and cut its padding off."""
    one = batch.rows([row])
    size = int(one.lengths[0])
    along_time = {"values", "logits", "weight_logits", "labels", "durations", "optional"}
    cut: dict[str, Any] = {
        n: v[:, :size] for n in along_time if isinstance(v := getattr(one, n, None), Tensor)
    }
    # Paths run over frames, whose number the targets do not know: their own padding is -2.
    if isinstance(paths := getattr(one, "paths", None), FramePath):
        cut["paths"] = FramePath(paths.tokens[:, : int(paths.valid.sum())])
    return replace(one, **cut)


def poisoned(batch: Batch) -> Batch:
    """Fill the padding with NaN, or with labels that no vocabulary has."""
    changed: dict[str, Any] = {}
    for name in ("values", "logits", "weight_logits", "labels", "durations"):
        value = getattr(batch, name, None)
        if isinstance(value, Tensor):
            padding = ~length_mask(batch.lengths, value.shape[1])
            changed[name] = value.clone()
            changed[name][padding] = torch.nan if value.is_floating_point() else -(2**40)
    return replace(batch, **changed)
