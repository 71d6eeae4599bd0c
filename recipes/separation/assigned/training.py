"""Training of a separator under an assignment of its outputs, and its test."""

from __future__ import annotations

from typing import NamedTuple

import torch
from isotone_permutation.relax import Hungarian
from torch import Tensor

from assigned.assignments import Assignment
from assigned.network import Separator, costs, si_sdr, spectrum, waveform
from isotone.training.grid import Schedule

_BLOCK = 50


class Mixtures(NamedTuple):
    """Voices ``(M, K, N)`` and the spectra of the mixtures ``(M, F, T)`` and of the voices ``(M, K, F, T)``."""

    voices: Tensor
    mixed: Tensor
    sources: Tensor

    @classmethod
    def of(cls, voices: Tensor) -> Mixtures:
        """Compute the spectra of voices and of their sums."""
        return cls(voices, spectrum(voices.sum(1)), spectrum(voices))


class History(NamedTuple):
    """The loss of every step, and per epoch the share of mixtures whose assignment is another than an epoch before."""

    losses: list[float]
    switched: list[float]


def train(
    model: Separator, assignment: Assignment, data: Mixtures, schedule: Schedule, *, seed: int
) -> History:
    """Train in place: the loss of a mixture is the weighted sum of the costs of its outputs.

    Raises:
        ValueError: fewer mixtures than a batch takes.
        FloatingPointError: the loss is not finite.
    """
    count = len(data.voices)
    if schedule.batch_size > count:
        raise ValueError(f"Expected at least {schedule.batch_size} mixtures, one batch; got {count}.")
    optimiser = torch.optim.Adam(model.parameters(), lr=schedule.lr)
    annealing = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(1, schedule.steps))
    generator = torch.Generator().manual_seed(seed)
    last = torch.full((count, model.voices), -1)
    losses: list[float] = []
    changes: list[float] = []
    epochs = [torch.zeros(0, dtype=torch.long)]
    while len(losses) < schedule.steps:
        if len(epochs[-1]) < schedule.batch_size:
            epochs.append(torch.randperm(count, generator=generator))
            changes.append(0.0)
        numbers, epochs[-1] = epochs[-1].split((schedule.batch_size, len(epochs[-1]) - schedule.batch_size))
        mixed = data.mixed[numbers]
        each = costs(model(mixed), mixed, data.sources[numbers])
        weights = assignment.weights(numbers, each)
        loss = (weights * each).sum((1, 2)).mean() / model.voices
        if not torch.isfinite(loss):
            raise FloatingPointError(f"The loss is {loss.item()} at step {len(losses) + 1}: lower train.lr.")
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        annealing.step()
        losses.append(loss.item())
        chosen = assignment.rounded(weights)
        moved = (chosen != last[numbers]).any(1) & (last[numbers] >= 0).all(1)
        changes[-1] += float(moved.sum()) / count
        last[numbers] = chosen
    return History(losses, changes)


@torch.no_grad()
def improvement(model: Separator, data: Mixtures) -> float:
    """Compute the mean gain in SI-SDR over the mixture in dB, with the best assignment of outputs to voices."""
    gains = []
    for block in range(0, len(data.voices), _BLOCK):
        voices, mixed, _ = (part[block : block + _BLOCK] for part in data)
        found = waveform(model(mixed) * mixed[:, None], voices.shape[-1])
        each = si_sdr(found[:, :, None], voices[:, None])
        before = si_sdr(voices.sum(1)[:, None], voices)
        gains.append((Hungarian()(each) * each).sum(2).mean(1) - before.mean(1))
    return float(torch.cat(gains).mean())


def agreement(model: Separator, assignment: Assignment, data: Mixtures) -> float:
    """Compute the share of training mixtures whose assignment is the one of least cost, 0 to 1."""
    same = []
    for numbers in torch.arange(len(data.voices)).split(_BLOCK):
        mixed = data.mixed[numbers]
        with torch.no_grad():
            each = costs(model(mixed), mixed, data.sources[numbers])
        best = Hungarian()(-each).argmax(2)
        weights = assignment.weights(numbers, each)
        same.append((assignment.rounded(weights) == best).all(1))
    return float(torch.cat(same).double().mean())
