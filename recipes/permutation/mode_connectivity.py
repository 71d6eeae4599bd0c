"""Mode connectivity: the permutations of hidden units that map one network's weights to another's."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import methods
import networks
import torch
from isotone_permutation.relax import Hungarian
from networks import Network
from settings import ModeConnectivity
from torch import Tensor


def distance(target: Sequence[Tensor], moved: Sequence[Tensor]) -> Tensor:
    """Compute ``sum_l ||W_l^(A) - P_l W_l^(B) P_{l-1}^T||^2`` (equation 17), over the weights' own sum of squares."""
    squares = torch.stack([(a - b).square().sum() for a, b in zip(target, moved)]).sum()
    return squares / torch.stack([a.square().sum() for a in target]).sum()


def weight_matching(
    network: Network,
    target: Sequence[Tensor],
    source: Sequence[Tensor],
    rounds: int,
    generator: torch.Generator,
) -> list[Tensor]:
    """Run Git Re-Basin's coordinate descent: each group in random order gets its best permutation given the others."""
    found = [torch.eye(n) for n in network.groups]
    for _ in range(rounds):
        changed = False
        for group in torch.randperm(len(found), generator=generator).tolist():
            gain = torch.zeros_like(found[group])
            for layer, a, b in zip(network.layers, target, source):
                if layer.out == group:
                    other = b if layer.into is None else torch.einsum("oit,ji->ojt", b, found[layer.into])
                    gain += a.flatten(1) @ other.flatten(1).mT
                if layer.into == group:
                    other = b if layer.out is None else torch.einsum("oit,jo->jit", b, found[layer.out])
                    gain += torch.einsum("oit,ojt->ij", a, other)
            best = Hungarian()(gain[None])[0]
            changed |= not torch.equal(best, found[group])
            found[group] = best
        if not changed:
            break
    return found


class Groups:
    """One method for the groups of a network: those of equal size are one batch."""

    def __init__(self, options: Mapping[str, Any], sizes: Sequence[int], generator: torch.Generator) -> None:
        self.members: dict[int, list[int]] = {}
        for group, size in enumerate(sizes):
            self.members.setdefault(size, []).append(group)
        self.methods = {
            size: methods.build(options, (len(groups), size), generator)
            for size, groups in self.members.items()
        }

    def parameters(self) -> list[Tensor]:
        return [p for method in self.methods.values() for p in method.parameters()]

    def soft(self) -> list[Tensor]:
        return self._in_order({size: method.soft() for size, method in self.methods.items()})

    def permutation(self) -> list[Tensor]:
        return self._in_order({size: method.permutation() for size, method in self.methods.items()})

    def stepped(self) -> None:
        for method in self.methods.values():
            method.stepped()

    def _in_order(self, batches: dict[int, Tensor]) -> list[Tensor]:
        of_group = {
            g: batches[size][i] for size, groups in self.members.items() for i, g in enumerate(groups)
        }
        return [of_group[g] for g in range(len(of_group))]


def optimise(
    network: Network,
    target: Sequence[Tensor],
    source: Sequence[Tensor],
    groups: Groups,
    lr: float,
    iterations: int,
) -> tuple[list[Tensor], int]:
    """Minimise the distance by AdamW until the permuted weights equal the target's; return permutations and steps."""
    optimiser = torch.optim.AdamW(groups.parameters(), lr=lr)
    for step in range(iterations):
        optimiser.zero_grad()
        distance(target, network.permuted(source, groups.soft())).backward()
        optimiser.step()
        groups.stepped()
        found = groups.permutation()
        if all(torch.equal(a, b) for a, b in zip(target, network.permuted(source, found))):
            return found, step + 1
    return groups.permutation(), iterations


def total(config: ModeConnectivity) -> int:
    """Return the number of rows."""
    return len(config.seeds) * len(config.networks) * (len(config.methods) + len(config.baselines))


def run(config: ModeConnectivity) -> Iterator[dict[str, Any]]:
    """Yield one row per network, method and seed."""
    for seed in config.seeds:
        for name in config.networks:
            network = networks.build(name, config.width, config.kernel)
            generator = torch.Generator().manual_seed(seed)
            source = network.weights(generator)
            true = [torch.eye(n)[torch.randperm(n, generator=generator)] for n in network.groups]
            target = network.permuted(source, true)
            for method in [*config.baselines, *config.methods]:
                begin = time.perf_counter()
                own, steps = torch.Generator().manual_seed(seed), 0
                if method in config.methods:
                    options = config.methods[method]
                    groups = Groups(options, network.groups, own)
                    found, steps = optimise(network, target, source, groups, options["lr"], config.iterations)
                else:
                    found = weight_matching(network, target, source, config.rounds, own)
                seconds = time.perf_counter() - begin
                right = sum(float((a * b).sum()) for a, b in zip(found, true))
                of = sum(network.groups)
                moved = network.permuted(source, found)
                l1 = sum(float((a - b).abs().sum()) for a, b in zip(target, moved))
                yield {
                    "setting": name, "method": method, "seed": seed, "precision": 100 * right / of,
                    "hamming": 2 * (of - right), "l1": l1, "iterations": steps, "seconds": seconds,
                }  # fmt: skip
