"""Instances of permutation synchronisation: pairwise matchings, shuffled at random or made from descriptors."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from isotone_permutation.relax import Hungarian
from torch import Tensor


class Instance(NamedTuple):
    """Noisy pairwise matchings of k objects with n points each.

    Attributes:
        pairs: ``(k n, k n)`` blocks P(i, j); P(j, i) is the transpose, and the diagonal has identities.
        true: ``(k, n, n)`` the permutations P_i; a right P(i, j) is P_i P_j^T.
        positions: ``(k, n, 2)`` of the points of each object in its image, for a drawing; None without images.
    """

    pairs: Tensor
    true: Tensor
    positions: Tensor | None = None


def shuffled(objects: int, points: int, outliers: float, generator: torch.Generator) -> Instance:
    """Draw matchings whose outliers are independent of each other.

    Args:
        objects: k.
        points: n.
        outliers: Share of the points of each pair of objects whose matches are shuffled.
        generator: Of the instance.
    """
    true = _permutations(objects, points, generator)
    pairs = torch.einsum("iab,jcb->iajc", true, true).contiguous()
    for i in range(objects):
        for j in range(i + 1, objects):
            wrong = torch.randperm(points, generator=generator)[: round(outliers * points)]
            mixed = wrong[torch.randperm(len(wrong), generator=generator)]
            block = pairs[i, :, j].clone()
            block[wrong] = block[mixed]
            pairs[i, :, j], pairs[j, :, i] = block, block.mT
    return Instance(pairs.reshape(objects * points, objects * points), true)


def matched(
    objects: int, points: int, noise: float, generator: torch.Generator, features: int = 16
) -> Instance:
    """Match descriptors of points that are seen from changing directions, as the paper matches those of VGG16.

    Outliers are correlated, as in photographs: an object's noise is in all of its matchings, points come in pairs that
    look alike, and objects seen from directions far apart are hard to match.

    Args:
        objects: k views, from directions 0 to 60 degrees.
        points: n.
        noise: Standard deviation of an object's descriptors, beside 1 of the points'.
        generator: Of the instance.
        features: Numbers of a descriptor.
    """
    true = _permutations(objects, points, generator)
    angle = torch.linspace(0, math.pi / 3, objects)
    twins = torch.randn(-(-points // 2), features, generator=generator).repeat_interleave(2, 0)[:points]
    base = 0.5**0.5 * (twins + torch.randn(points, features, generator=generator))
    side = torch.randn(points, features, generator=generator)
    seen = torch.cos(angle)[:, None, None] * base + torch.sin(angle)[:, None, None] * side
    seen = true @ (seen + noise * torch.randn(objects, points, features, generator=generator))
    first, second = torch.triu_indices(objects, objects, 1)
    # the assignment with the least sum of squared distances has the largest sum of inner products
    found = Hungarian()(seen[first] @ seen[second].mT)
    pairs = torch.eye(points).repeat(objects, objects, 1, 1)
    pairs[first, second], pairs[second, first] = found, found.mT
    body = torch.randn(points, 3, generator=generator)
    x = torch.cos(angle)[:, None] * body[:, 0] + torch.sin(angle)[:, None] * body[:, 2]
    positions = torch.einsum("kab,kbc->kac", true, torch.stack([x, body[:, 1].expand_as(x)], 2))
    stacked = pairs.transpose(1, 2).reshape(objects * points, objects * points)
    return Instance(stacked, true, positions)


def _permutations(objects: int, points: int, generator: torch.Generator) -> Tensor:
    eye = torch.eye(points)
    return torch.stack([eye[torch.randperm(points, generator=generator)] for _ in range(objects)])
