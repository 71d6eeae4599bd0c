"""Permutation synchronisation: consistent matchings of k objects from noisy pairwise ones."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import methods
import torch
from isotone_permutation.relax import Hungarian
from settings import Synchronisation
from torch import Tensor


def instance(objects: int, points: int, outliers: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw noisy pairwise matchings, and the true ones.

    Args:
        objects: k.
        points: n.
        outliers: Share of the points of each pair of objects whose matches are shuffled.
        generator: Of the instance.

    Returns:
        ``(k n, k n)`` blocks P(i, j) with P(j, i) its transpose and identities on the diagonal; and ``(k, n, n)``
        the permutations P_i with P(i, j) = P_i P_j^T where nothing was shuffled.
    """
    eye = torch.eye(points)
    true = torch.stack([eye[torch.randperm(points, generator=generator)] for _ in range(objects)])
    pairs = torch.einsum("iab,jcb->iajc", true, true).contiguous()
    for i in range(objects):
        for j in range(i + 1, objects):
            wrong = torch.randperm(points, generator=generator)[: round(outliers * points)]
            shuffled = wrong[torch.randperm(len(wrong), generator=generator)]
            block = pairs[i, :, j].clone()
            block[wrong] = block[shuffled]
            pairs[i, :, j], pairs[j, :, i] = block, block.mT
    return pairs.reshape(objects * points, objects * points), true


def disagreement(pairs: Tensor, found: Tensor) -> Tensor:
    """Compute ``sum_ij ||P(i, j) - P_i P_j^T||^2`` per pair and point (equation 18), without a (k n, k n) matrix.

    Args:
        pairs: ``(k n, k n)`` permutations of points, so that their squares sum to k^2 n.
        found: ``(k, n, n)`` permutations or relaxed ones.
    """
    objects, points = found.shape[:2]
    stacked = found.reshape(objects * points, points)
    inner = ((pairs @ stacked) * stacked).sum()
    return (objects**2 * points - 2 * inner + (stacked.mT @ stacked).square().sum()) / (objects**2 * points)


def spectral(pairs: Tensor, objects: int) -> Tensor:
    """Solve by Pachauri et al. 2013: the n leading eigenvectors, rounded object by object against the first one's."""
    points = len(pairs) // objects
    _, vectors = torch.linalg.eigh(pairs)
    blocks = vectors[:, -points:].reshape(objects, points, points)
    return Hungarian()(blocks @ blocks[0].mT)


def coordinate_descent(pairs: Tensor, objects: int, rounds: int, generator: torch.Generator) -> Tensor:
    """Replace each permutation in turn by the best one for the others, from random ones, until none changes."""
    points = len(pairs) // objects
    blocks = pairs.reshape(objects, points, objects, points)
    eye = torch.eye(points)
    found = torch.stack([eye[torch.randperm(points, generator=generator)] for _ in range(objects)])
    for _ in range(rounds):
        before = found.clone()
        for i in torch.randperm(objects, generator=generator).tolist():
            votes = torch.einsum("ajb,jbc->ac", blocks[i], found) - found[i]
            found[i] = Hungarian()(votes[None])[0]
        if torch.equal(before, found):
            break
    return found


def f_score(found: Tensor, true: Tensor) -> float:
    """Compute the share of right matches over all pairs of objects in % (precision and recall are equal)."""
    objects, points = true.shape[:2]
    pairs = torch.einsum("iab,jcb->ijac", found, found)
    truth = torch.einsum("iab,jcb->ijac", true, true)
    off = objects * (objects - 1) * points
    return 100 * (float((pairs * truth).sum()) - objects * points) / off


def optimise(pairs: Tensor, method: methods.Method, lr: float, iterations: int) -> Tensor:
    """Minimise the disagreement by Adam, then round to permutations ``(k, n, n)``."""
    optimiser = torch.optim.Adam(method.parameters(), lr=lr)
    for _ in range(iterations):
        optimiser.zero_grad()
        disagreement(pairs, method.draw(1)).backward()
        optimiser.step()
        method.stepped()
    return method.permutation()


def total(config: Synchronisation) -> int:
    """Return the number of rows."""
    return len(config.seeds) * len(config.objects) * (len(config.methods) + len(config.baselines))


def run(config: Synchronisation) -> Iterator[dict[str, Any]]:
    """Yield one row per size, method and seed; ``precision`` is the F-score of the pairwise matchings."""
    for seed in config.seeds:
        for objects in config.objects:
            generator = torch.Generator().manual_seed(seed)
            pairs, true = instance(objects, config.points, config.outliers, generator)
            for name in [*config.baselines, *config.methods]:
                begin = time.perf_counter()
                score = solve(config, name, pairs, true, torch.Generator().manual_seed(seed))
                seconds = time.perf_counter() - begin
                yield {
                    "setting": f"k = {objects}", "method": name, "seed": seed, "precision": score, "seconds": seconds,
                }  # fmt: skip


def solve(
    config: Synchronisation, name: str, pairs: Tensor, true: Tensor, generator: torch.Generator
) -> float:
    """Compute the F-score of one method or baseline in %.

    Raises:
        ValueError: no such baseline.
    """
    objects, points = true.shape[:2]
    if name in config.methods:
        options = config.methods[name]
        method = methods.build(options, (objects, points), generator)
        return f_score(optimise(pairs, method, options["lr"], config.iterations), true)
    if name == "Pairwise":
        stacked = true.reshape(len(pairs), points)
        right = float((pairs * (stacked @ stacked.mT)).sum()) - len(pairs)
        return 100 * right / (len(pairs) * (objects - 1))
    if name == "Spectral":
        return f_score(spectral(pairs, objects), true)
    if name == "Coordinate descent":
        return f_score(coordinate_descent(pairs, objects, config.rounds, generator), true)
    raise ValueError(f"Expected a baseline of Pairwise, Spectral and Coordinate descent; got {name!r}.")
