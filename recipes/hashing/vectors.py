"""Codes of clustered unit vectors by the hash indexes, AP_T: `python recipes/hashing/vectors.py [bits ...]`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import torch
from isotone_hashing.codes import HashIndex
from torch import Tensor
from torch.nn import functional as F

from isotone import indexes
from isotone.evaluation import markdown_table
from isotone.evaluation.ranking import average_precision

#: Systems: the index, its options, and the pairs it is given.
SYSTEMS: dict[str, tuple[str, Mapping[str, Any], bool]] = {
    "random": ("lsh-random", {}, False),
    "trained, silver labels": ("lsh-trained", {"steps": 200}, False),
    "trained, positives": ("lsh-trained", {"steps": 200}, True),
    "TALR": ("lsh-talr", {"steps": 200}, True),
    "TALR, alpha 40": ("lsh-talr", {"steps": 200, "first_scale": None}, True),
    "TALR, AP_r": ("lsh-talr", {"steps": 200, "relaxation": "integral"}, True),
}


def clusters(seed: int, *, items: int = 4000, groups: int = 250, size: int = 64) -> tuple[Tensor, Tensor]:
    """Draw unit vectors ``(N, D)`` in clusters that all lie to one side of the origin, and their clusters."""
    generator = torch.Generator().manual_seed(seed)
    centres = 0.7 + torch.randn(groups, size, generator=generator)
    group = torch.randint(groups, (items,), generator=generator)
    return F.normalize(centres[group] + 0.9 * torch.randn(items, size, generator=generator), dim=1), group


def measure(name: str, bits: int) -> float:
    """Train one system on 3,600 vectors and half of 400 queries; mean AP_T of the other half."""
    vectors, group = clusters(0)
    corpus, queries = vectors[:3600], vectors[3600:]
    relevant = group[3600:, None] == group[:3600]
    kind, options, given = SYSTEMS[name]
    index = indexes.build(kind, vectors.shape[1], bits=bits, **options)
    assert isinstance(index, HashIndex)
    positives = relevant[:200].nonzero() if given else None
    if kind != "lsh-random":
        index.fit(corpus, queries[:200], positives)
    signs = [2.0 * torch.from_numpy(index.codes(x)).float() - 1 for x in (queries[200:], corpus)]
    kept = relevant[200:].any(1)
    return float(average_precision((signs[0] @ signs[1].T)[kept], relevant[200:][kept]).mean())


def main(lengths: list[int]) -> str:
    """Return the table of all systems."""
    lines = [[name, *(f"{measure(name, bits):.3f}" for bits in lengths)] for name in SYSTEMS]
    return markdown_table(["AP_T", *(f"{bits} bits" for bits in lengths)], lines)


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(main([int(text) for text in sys.argv[1:]] or [24, 64]), end="")
