"""Permutation synchronisation: consistent matchings of k objects from noisy pairwise ones."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import instances
import memory
import methods
import results
import torch
from figures import cost_figure, matching_figure
from instances import Instance
from isotone_permutation.relax import Hungarian
from matplotlib.figure import Figure
from method import Method
from settings import Synchronisation
from torch import Tensor


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


def optimise(pairs: Tensor, method: Method, options: Mapping[str, Any], iterations: int) -> Tensor:
    """Minimise the disagreement and the method's penalty, then round to permutations ``(k, n, n)``."""
    optimiser = method.optimiser(options.get("optimiser", "adam"), options["lr"])
    for _ in range(iterations):
        optimiser.zero_grad()
        (disagreement(pairs, method.draw(1)) + method.penalty()).backward()
        optimiser.step()
        method.stepped()
    return method.permutation()


def total(config: Synchronisation) -> int:
    """Return the number of rows."""
    return len(config.seeds) * len(config.objects) * (len(config.methods) + len(config.baselines))


def draw(config: Synchronisation, objects: int, generator: torch.Generator) -> Instance:
    """Draw an instance of the configured kind: ``shuffled`` or ``matched``."""
    if config.matching == "shuffled":
        return instances.shuffled(objects, config.points, config.outliers, generator)
    if config.matching == "matched":
        return instances.matched(objects, config.points, config.noise, generator)
    raise ValueError(f"Expected a matching of shuffled and matched; got {config.matching!r}.")


def run(config: Synchronisation) -> Iterator[dict[str, Any]]:
    """Yield one row per size, method and seed.

    ``precision`` is the F-score of the pairwise matchings, ``l1`` the mean distance of an object's relaxed matrix from
    its permutation, ``mib`` the peak memory beyond what there was before.
    """
    few = draw(config, 2, torch.Generator().manual_seed(0))
    for name in config.methods:  # what a first call loads is not the method's memory
        solve(replace(config, iterations=1), name, few, torch.Generator().manual_seed(0))
    for seed in config.seeds:
        for objects in config.objects:
            given = draw(config, objects, torch.Generator().manual_seed(seed))
            for name in [*config.baselines, *config.methods]:
                before = memory.mark()
                begin = time.perf_counter()
                found, l1 = solve(config, name, given, torch.Generator().manual_seed(seed))
                seconds = time.perf_counter() - begin
                yield {
                    "setting": f"k = {objects}", "method": name, "seed": seed, "seconds": seconds,
                    "precision": pairwise_score(given) if found is None else f_score(found, given.true),
                    "l1": l1, "mib": memory.peak_mib(before),
                    "drawing": None if found is None else ends(found),
                }  # fmt: skip


def drawings(config: Synchronisation, rows: Sequence[dict[str, Any]]) -> dict[str, Figure]:
    """Draw figure 6, and for matched descriptors figure 7: the first and the last view of the largest instance."""
    settings = [f"k = {objects}" for objects in config.objects]
    labels = {"precision": "F-score, %", "seconds": "seconds", "mib": "peak memory, MiB"}
    measures = {label: results.summary(rows, key) for key, label in labels.items()}
    made = {"cost": cost_figure(measures, settings, list(config.methods))}
    seed, objects = config.seeds[0], max(config.objects)
    given = draw(config, objects, torch.Generator().manual_seed(seed))
    own = [row for row in rows if (row["setting"], row["seed"]) == (f"k = {objects}", seed)]
    found = {row["method"]: row["drawing"] for row in own if row["drawing"] is not None}
    if given.positions is not None and found:
        found = {"Input": _columns(given.pairs[: config.points, -config.points :]), **found}
        ends_of = given.positions[[0, -1]].numpy()
        made["matching"] = matching_figure(
            ends_of, ends(given.true), found, f"first and last of {objects} views"
        )
    return made


def _columns(matrix: Tensor) -> list[int]:
    return [int(column) for column in matrix.argmax(1)]


def ends(found: Tensor) -> list[int]:
    """Return the matching of the first and the last object: the last's point of every point of the first."""
    return _columns(found[0] @ found[-1].mT)


def pairwise_score(given: Instance) -> float:
    """Compute the F-score of the input itself, in %."""
    pairs, true = given.pairs, given.true
    stacked = true.reshape(len(pairs), true.shape[1])
    right = float((pairs * (stacked @ stacked.mT)).sum()) - len(pairs)
    return 100 * right / (len(pairs) * (len(true) - 1))


def solve(
    config: Synchronisation, name: str, given: Instance, generator: torch.Generator
) -> tuple[Tensor | None, float | None]:
    """Find the permutations ``(k, n, n)`` by one method or baseline, and how far the relaxed ones are from them.

    Returns:
        Permutations, None for the input itself; and the distance, None without a relaxation.

    Raises:
        ValueError: no such baseline.
    """
    objects, points = given.true.shape[:2]
    if name in config.methods:
        options = config.methods[name]
        method = methods.build(options, (objects, points), generator)
        found = optimise(given.pairs, method, options, config.iterations)
        return found, float((method.soft().detach() - found).abs().sum((1, 2)).mean())
    if name == "Pairwise":
        return None, None
    if name == "Spectral":
        return spectral(given.pairs, objects), None
    if name == "Coordinate descent":
        return coordinate_descent(given.pairs, objects, config.rounds, generator), None
    raise ValueError(f"Expected a baseline of Pairwise, Spectral and Coordinate descent; got {name!r}.")
