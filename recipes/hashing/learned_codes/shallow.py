"""Codes of fixed features without labels: random hyperplanes (LSH) and iterative quantisation (ITQ)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

#: From features ``(N, D)`` to bits ``(N, b)`` bool.
Coder = Callable[[Tensor], Tensor]


def standardised(features: Tensor) -> Callable[[Tensor], Tensor]:
    """Return the map that gives features mean 0 and deviation 1; constant ones become 0."""
    mean, deviation = features.mean(0), features.std(0)
    scale = torch.where(deviation > 1e-6, 1 / deviation.clamp(min=1e-6), 0.0)
    return lambda x: (x - mean) * scale


def lsh(features: Tensor, bits: int, generator: torch.Generator) -> Coder:
    """Build random hyperplanes through the mean of standardised features."""
    normalise = standardised(features)
    planes = torch.randn(features.shape[1], bits, generator=generator)
    return lambda x: normalise(x) @ planes > 0


def itq(features: Tensor, bits: int, generator: torch.Generator, rounds: int = 50) -> Coder:
    """Build ITQ (Gong & Lazebnik 2011): principal components, turned so that their signs lose little.

    Where there are fewer features than bits, random projections of the components make up the number.
    """
    normalise = standardised(features)
    centred = normalise(features)
    _, _, axes = torch.linalg.svd(centred, full_matrices=False)
    axes = axes[:bits].T
    if axes.shape[1] < bits:
        axes = axes @ torch.randn(axes.shape[1], bits, generator=generator)
    projected = centred @ axes
    turn, _ = torch.linalg.qr(torch.randn(bits, bits, generator=generator))
    for _ in range(rounds):
        signs = torch.sign(projected @ turn)
        left, _, right = torch.linalg.svd(projected.T @ signs)
        turn = left @ right
    return lambda x: normalise(x) @ axes @ turn > 0


#: Coders by the kind that a configuration gives.
CODERS: dict[str, Callable[[Tensor, int, torch.Generator], Coder]] = {"lsh": lsh, "itq": itq}
