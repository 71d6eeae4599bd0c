"""Assignments of a separator's outputs to the sources of a mixture: weights ``(B, K, K)`` of the costs."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
from isotone_permutation.ot4p import OT4P
from isotone_permutation.relax import Hungarian, Sinkhorn
from torch import Tensor


class Assignment(ABC):
    """Weights of the costs in the loss.

    Args:
        mixtures: M, training mixtures.
        voices: K.
        seed: Of what is random.
    """

    def __init__(self, mixtures: int, voices: int, seed: int) -> None:
        self.voices = voices
        self.eye = torch.eye(voices)

    @abstractmethod
    def weights(self, numbers: Tensor, costs: Tensor) -> Tensor:
        """Return doubly stochastic weights ``(B, K, K)`` of the mixtures ``numbers``, from their costs."""

    @staticmethod
    def rounded(weights: Tensor) -> Tensor:
        """Return the assignments ``(B, K)`` that weights amount to: the source of every output."""
        return Hungarian()(weights.detach()).argmax(2)


class Fixed(Assignment):
    """Output k is source k: what permutation invariance is there to avoid."""

    def weights(self, numbers: Tensor, costs: Tensor) -> Tensor:
        return self.eye.expand_as(costs)


class HungarianPIT(Assignment):
    """The assignment of least cost, in every step anew (Yu et al. 2017)."""

    def weights(self, numbers: Tensor, costs: Tensor) -> Tensor:
        return Hungarian()(-costs.detach())


class SinkhornPIT(Assignment):
    """Sinkhorn's soft assignment of the costs (Tachibana 2021); the weights are held in the gradient.

    Args:
        mixtures, voices, seed: As in :class:`Assignment`.
        temperature: In units of a mixture's mean cost.
    """

    def __init__(self, mixtures: int, voices: int, seed: int, *, temperature: float = 0.1) -> None:
        super().__init__(mixtures, voices, seed)
        self.sinkhorn = Sinkhorn(temperature=temperature, iterations=50)

    def weights(self, numbers: Tensor, costs: Tensor) -> Tensor:
        reward = -costs.detach()
        return self.sinkhorn(reward / costs.detach().mean((1, 2), keepdim=True).clamp(min=1e-12))


class RotationPIT(Assignment):
    """OT4P: coordinates of rotations near permutations take some steps down the costs in every step of the network.

    Weights are the squared entries of the orthogonal matrix, which are doubly stochastic; the loss holds them. With
    ``memory`` every training mixture keeps its coordinates from one epoch to the next, so that its assignment has to be
    moved across the path between two permutations to change. PIT decides anew each time.

    Args:
        mixtures, voices, seed: As in :class:`Assignment`.
        temperature: tau.
        inner: Steps of the coordinates per step of the network.
        size: Length of such a step, radians.
        memory: Keep the coordinates of every mixture.
    """

    def __init__(
        self,
        mixtures: int,
        voices: int,
        seed: int,
        *,
        temperature: float = 0.5,
        inner: int = 5,
        size: float = 0.3,
        memory: bool = False,
    ) -> None:
        super().__init__(mixtures, voices, seed)
        self.map = OT4P(temperature=temperature, seed=seed)
        self.inner, self.size, self.memory = inner, size, memory
        generator = torch.Generator().manual_seed(seed)
        self.coordinates = 0.1 * torch.randn(mixtures, voices, voices, generator=generator)

    def weights(self, numbers: Tensor, costs: Tensor) -> Tensor:
        at = self.coordinates[numbers].clone()
        best, kept = torch.full((len(at),), torch.inf), at.clone()
        for _ in range(self.inner + 1):
            at.requires_grad_()
            totals = (self.map(at).square() * costs.detach()).sum((1, 2))
            (slope,) = torch.autograd.grad(totals.sum(), at)
            # an odd permutation of two lies where the map jumps: the last point need not be the best one
            better = totals.detach() < best
            best = torch.where(better, totals.detach(), best)
            kept[better] = at.detach()[better]
            length = slope.flatten(1).norm(dim=1).clamp(min=1e-12)[:, None, None]
            at = (at - self.size * slope / length).detach()
        if self.memory:
            self.coordinates[numbers] = kept
        return self.map(kept).square()


KINDS: dict[str, type[Assignment]] = {
    "fixed": Fixed,
    "hungarian": HungarianPIT,
    "sinkhorn": SinkhornPIT,
    "ot4p": RotationPIT,
}


def build(options: Mapping[str, Any], mixtures: int, voices: int, seed: int) -> Assignment:
    """Build an assignment from its configuration: ``kind`` and the options of its class.

    Raises:
        ValueError: no such option.
    """
    kind = KINDS[options["kind"]]
    settings = {key: value for key, value in options.items() if key != "kind"}
    known = list(inspect.signature(kind).parameters)[3:]
    if unknown := [name for name in settings if name not in known]:
        raise ValueError(f"The assignment {options['kind']} takes {', '.join(known)}; got {unknown[0]!r}.")
    return kind(mixtures, voices, seed, **settings)
