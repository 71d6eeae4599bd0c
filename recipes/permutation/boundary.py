"""Permutations with the eigenvalue -1, where coordinates of rotations are not unique, and OT4P's path by tau."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from figures import tau_figure
from isotone_permutation.orthogonal import permutation_sign, random_rotation
from isotone_permutation.ot4p import nearest_permutation, toward_permutation
from matplotlib.figure import Figure
from settings import Boundary
from torch import Tensor

# An eigenvalue nearer to -1 counts as -1: those of permutations are exact to about 1e-15, and their roots to 1e-8.
_NEAR = 1e-6


def proper(size: int, draws: int, generator: torch.Generator) -> Tensor:
    """Draw permutations ``(draws, n, n)`` float64; odd ones become rotations by a negated last column."""
    columns = torch.stack([torch.randperm(size, generator=generator) for _ in range(draws)])
    matrices = torch.eye(size, dtype=torch.float64)[columns]
    matrices[:, :, -1] *= permutation_sign(columns)[:, None]
    return matrices


def share_at_boundary(matrices: Tensor) -> float:
    """Compute the share of rotations ``(B, n, n)`` with an eigenvalue of -1, in %."""
    values = torch.linalg.eigvals(matrices)
    return 100 * float(((values + 1).abs() < _NEAR).any(1).double().mean())


def total(config: Boundary) -> int:
    """Return the number of rows."""
    return 2 * len(config.seeds) * len(config.sizes)


def run(config: Boundary) -> Iterator[dict[str, Any]]:
    """Yield one row per size, seed and kind of matrix; ``precision`` is the probability in %."""
    for seed in config.seeds:
        for size in config.sizes:
            matrices = proper(size, config.draws, torch.Generator().manual_seed(seed))
            base = random_rotation(size, np.random.default_rng(seed))
            for name, given in (("P", matrices), ("B^T P", base.mT @ matrices)):
                begin = time.perf_counter()
                share = share_at_boundary(given)
                yield {
                    "setting": f"n = {size}", "method": name, "seed": seed, "precision": share,
                    "seconds": time.perf_counter() - begin,
                }  # fmt: skip


def drawings(config: Boundary, rows: Sequence[dict[str, Any]]) -> dict[str, Figure]:
    """Draw figure 5: an even and an odd permutation of five items, approached as tau falls."""
    generator = torch.Generator().manual_seed(config.seeds[0])
    kept: dict[str, list[np.ndarray]] = {}
    while len(kept) < 2:
        noise = torch.randn(1, 5, 5, generator=generator, dtype=torch.float64)
        rotation = torch.linalg.matrix_exp(noise - noise.mT)
        columns = nearest_permutation(rotation, torch.tensor([5]))
        name = "even" if int(permutation_sign(columns)) > 0 else "odd"
        kept[name] = [
            toward_permutation(rotation, tau, columns)[0].numpy() for tau in (1.0, 0.7, 0.5, 0.3, 0.0)
        ]
    return {"tau": tau_figure(dict(sorted(kept.items())), (1.0, 0.7, 0.5, 0.3, 0.0))}
