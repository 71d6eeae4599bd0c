"""Emissions, targets and gradients that the tests of the CTC plugin share."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from isotone.types import Emissions, FramePath, Grid, Targets, length_mask

GRID = Grid(0.02)

FLOAT32 = {"rtol": 1e-5, "atol": 1e-5}

# torch's CTC sums in float32 over all frames: its gradient against an exact sum over the paths
FLOAT32_SUM = {"rtol": 1e-4, "atol": 1e-5}


def emissions_of(logits: Tensor, lengths: list[int], blank: int = 0) -> Emissions:
    return Emissions(logits, torch.tensor(lengths), GRID, blank)


def batch(rng: torch.Generator, blank: int = 0) -> tuple[Emissions, Targets]:
    """Three utterances of different lengths, the last too short for its three tokens."""
    logits = 2 * torch.randn(3, 30, 6, generator=rng)
    labels = [v for v in range(6) if v != blank]
    rows = [
        [labels[0], labels[0], labels[1], labels[3]],
        [labels[4], labels[2]],
        [labels[1], labels[1], labels[2]],
    ]
    return emissions_of(logits, [30, 17, 3], blank), Targets.from_lists(rows)


def value_and_gradient(
    loss: torch.nn.Module, emissions: Emissions, targets: Targets
) -> tuple[Tensor, Tensor]:
    logits = emissions.logits.clone().requires_grad_()
    value = loss(replace(emissions, logits=logits), targets)
    # unequal weights, so that rows cannot be exchanged unseen
    (value * torch.arange(1, len(value) + 1)).sum().backward()
    assert logits.grad is not None
    return value.detach(), logits.grad


def with_paths(emissions: Emissions, targets: Targets, rng: torch.Generator) -> Targets:
    size = emissions.logits.shape[1]
    paths = torch.stack([torch.randint(-1, int(m), (size,), generator=rng) for m in targets.lengths])
    return replace(targets, paths=FramePath(paths.masked_fill(~length_mask(emissions.lengths, size), -2)))


def long_batch(rng: torch.Generator, frames: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    tokens = frames // 10
    labels = torch.randint(1, 8, (2, tokens), generator=rng)
    return (
        torch.randn(2, frames, 8, generator=rng),
        labels,
        torch.tensor([frames] * 2),
        torch.tensor([tokens, 5]),
    )
