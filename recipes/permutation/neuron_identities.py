"""Identities of observed neurons: a latent permutation of a linear dynamical system."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import methods
import torch
from settings import NeuronIdentities
from torch import Tensor

# Steps between two evaluations of the permutation.
_LOOK_EVERY = 5


@dataclass(frozen=True)
class Recording:
    """A recording's sufficient statistics, in units of the noise's variance per step, with the true parameters.

    Attributes:
        now, cross, before: The sum of squares of Y_t, ``Y_t Y_{t-1}^T (n, n)`` and ``Y_{t-1} Y_{t-1}^T (n, n)``.
        dynamics: ``(n, n)`` of the reference's neurons.
        columns: ``(n,)`` int64, the reference's neuron of every observed one.
        steps: T.
    """

    now: Tensor
    cross: Tensor
    before: Tensor
    dynamics: Tensor
    columns: Tensor
    steps: int

    def log_likelihood(self, permutation: Tensor) -> Tensor:
        """Compute ``log p(Y | P) / T`` without its constant, ``(S,)`` nats per step, of permutations ``(S, n, n)``."""
        moves = permutation @ self.dynamics @ permutation.mT
        quadratic = ((moves @ self.before) * moves).sum((-2, -1))
        return -0.5 * (self.now - 2 * (moves * self.cross).sum((-2, -1)) + quadratic)

    def explains(self, permutation: Tensor) -> bool:
        """Return whether a permutation's residuals pass for noise: their sum of squares is chi-squared."""
        freedom = self.steps * len(self.columns)
        residual = -2 * float(self.log_likelihood(permutation)) * self.steps
        return residual <= freedom + 4 * (2 * freedom) ** 0.5


def record(config: NeuronIdentities, generator: torch.Generator) -> Recording:
    """Generate dynamics on a random symmetric graph, a permutation, and T steps of observed activity."""
    n = config.neurons
    upper = (torch.rand(n, n, generator=generator) < config.density).float().triu(1)
    dynamics = (upper + upper.mT) * torch.randn(n, n, generator=generator)
    dynamics *= config.radius / torch.linalg.eigvals(dynamics).abs().max()
    columns = torch.randperm(n, generator=generator)
    observed = dynamics[columns][:, columns]
    activity = torch.zeros(config.steps + 1, n)
    for t in range(config.steps):
        noise = config.noise * torch.randn(n, generator=generator)
        activity[t + 1] = observed @ activity[t] + noise
    last, this = activity[:-1], activity[1:]
    unit = config.steps * config.noise**2
    return Recording(
        this.square().sum() / unit,
        this.mT @ last / unit,
        last.mT @ last / unit,
        dynamics,
        columns,
        config.steps,
    )


def allowed_pairs(columns: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Return the allowed pairs, ``(n, n)`` bool: in rows and columns of known neurons only their own."""
    n = len(columns)
    rows = torch.randperm(n, generator=generator)[: round(share * n)]
    allowed = torch.ones(n, n, dtype=torch.bool)
    allowed[rows], allowed[:, columns[rows]] = False, False
    allowed[rows, columns[rows]] = True
    return allowed


def infer(
    recording: Recording, method: methods.Method, lr: float, iterations: int, samples: int
) -> dict[str, Any]:
    """Maximise the expected log-likelihood; of all the permutations on the way, keep the likeliest.

    It ends early where the residuals of a permutation pass for noise. It does not use the truth.
    """
    optimiser = torch.optim.Adam(method.parameters(), lr=lr)
    best, expected, kept, done = -torch.inf, -torch.inf, method.permutation(), 0
    for done in range(1, iterations + 1):
        optimiser.zero_grad()
        loss = -recording.log_likelihood(method.draw(samples)).mean()
        loss.backward()
        optimiser.step()
        method.stepped()
        if done % _LOOK_EVERY and done < iterations:
            continue
        found = method.permutation()
        score = float(recording.log_likelihood(found))
        if score > best:
            best, expected, kept = score, -loss.item(), found
        if recording.explains(found):
            break
    right, of = methods.accuracy(kept, torch.eye(len(recording.columns))[recording.columns][None])
    return {
        "precision": 100 * right / of,
        "hamming": 2 * (of - right),
        "log_likelihood": best,
        "expected_log_likelihood": expected,
        "iterations": done,
    }


def run(config: NeuronIdentities) -> Iterator[dict[str, Any]]:
    """Yield one row per setting, method and seed."""
    for seed in config.seeds:
        recording = record(config, torch.Generator().manual_seed(seed))
        for share in config.known:
            for name, options in config.methods.items():
                generator = torch.Generator().manual_seed(seed)
                allowed = allowed_pairs(recording.columns, share, generator)
                begin = time.perf_counter()
                method = methods.build(options, (1, config.neurons), generator, allowed)
                result = infer(recording, method, options["lr"], config.iterations, config.samples)
                seconds = time.perf_counter() - begin
                yield {
                    "setting": f"{share:.0%} known",
                    "method": name,
                    "seed": seed,
                    **result,
                    "seconds": seconds,
                }


def total(config: NeuronIdentities) -> int:
    """Return the number of rows."""
    return len(config.seeds) * len(config.known) * len(config.methods)
