"""Methods to optimise over permutations by gradient: OT4P, Sinkhorn, softmax and the baselines, by kind."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from baselines import Birkhoff, OrthReg, Reg
from isotone_permutation.ot4p import OT4P, gaussian_samples
from isotone_permutation.relax import GumbelSinkhorn, SingleStepExp, Sinkhorn
from method import Method
from torch import Tensor


class Rotations(Method):
    """OT4P; with ``deviation``, Gaussian noise whose scale is learned too.

    Args:
        temperature: tau.
        deviation: Of the noise at the start, radians; 0 for none.
        dynamic: Move the base after every step.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        generator: torch.Generator,
        allowed: Tensor | None = None,
        *,
        temperature: float,
        start: float = 1.0,
        deviation: float = 0.0,
        dynamic: bool = True,
    ) -> None:
        super().__init__(shape, generator, start=start)
        self.map = OT4P(temperature=temperature, seed=int(torch.randint(2**31, (1,), generator=generator)))
        self.map.allowed = allowed
        self.dynamic = dynamic
        self.log_deviation = None
        if deviation > 0:
            self.log_deviation = torch.full_like(self.values, deviation).detach().log().requires_grad_()
        if dynamic:
            self.map.rebase(self.values)

    def parameters(self) -> list[Tensor]:
        return [self.values] if self.log_deviation is None else [self.values, self.log_deviation]

    def draw(self, samples: int) -> Tensor:
        if self.log_deviation is None:
            return self.map(self.values)
        drawn = gaussian_samples(self.values, self.log_deviation.exp(), samples, self.generator)
        if self.map.base is None or self.map.base.ndim == 2:
            return self.map(drawn)
        base = self.map.base
        self.map.base = base.repeat(samples, 1, 1)
        try:
            return self.map(drawn)
        finally:
            self.map.base = base

    def soft(self) -> Tensor:
        return self.map(self.values)

    def permutation(self) -> Tensor:
        return self.map.permutation(self.values)

    def stepped(self) -> None:
        if self.dynamic:
            self.map.rebase(self.values)


class DoublyStochastic(Method):
    """Sinkhorn; with ``noise``, Gumbel-Sinkhorn.

    Args:
        temperature, iterations: Of Sinkhorn's iterations.
        noise: Scale of the Gumbel noise; 0 for none.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        generator: torch.Generator,
        allowed: Tensor | None = None,
        *,
        temperature: float = 0.5,
        iterations: int = 20,
        start: float = 1.0,
        noise: float = 0.0,
    ) -> None:
        super().__init__(shape, generator, allowed, start=start)
        self.plain = Sinkhorn(temperature=temperature, iterations=iterations)
        self.noisy = None
        if noise > 0:
            seed = int(torch.randint(2**31, (1,), generator=generator))
            self.noisy = GumbelSinkhorn(
                temperature=temperature, iterations=iterations, noise=noise, seed=seed
            )

    def draw(self, samples: int) -> Tensor:
        if self.noisy is None:
            return self.plain(self._scores())
        return self.noisy(self._scores().repeat(samples, 1, 1))

    def soft(self) -> Tensor:
        return self.plain(self._scores())

    def permutation(self) -> Tensor:
        return self._rounded()


class Rows(Method):
    """Softmax of every row, without constraint on the columns: the naive method; ``deviation`` adds Gaussian noise."""

    def __init__(
        self,
        shape: tuple[int, int],
        generator: torch.Generator,
        allowed: Tensor | None = None,
        *,
        temperature: float = 1.0,
        start: float = 1.0,
        deviation: float = 0.0,
    ) -> None:
        super().__init__(shape, generator, allowed, start=start)
        self.softmax = SingleStepExp(temperature=temperature)
        self.deviation = deviation

    def draw(self, samples: int) -> Tensor:
        if self.deviation == 0:
            return self.softmax(self._scores())
        spread = torch.full_like(self.values, self.deviation)
        return self.softmax(gaussian_samples(self._scores(), spread, samples, self.generator))

    def soft(self) -> Tensor:
        return self.softmax(self._scores())

    def permutation(self) -> Tensor:
        return self._rounded()


METHODS: dict[str, type[Method]] = {
    "ot4p": Rotations,
    "sinkhorn": DoublyStochastic,
    "naive": Rows,
    "reg": Reg,
    "orth-reg": OrthReg,
    "birkhoff": Birkhoff,
}


def build(
    options: Mapping[str, Any],
    shape: tuple[int, int],
    generator: torch.Generator,
    allowed: Tensor | None = None,
) -> Method:
    """Build a method from its configuration: ``kind`` and the options of its class.

    Raises:
        ValueError: no such kind or option.
    """
    settings = {key: value for key, value in options.items() if key not in ("kind", "lr", "optimiser")}
    kind = options.get("kind")
    if kind not in METHODS:
        raise ValueError(f"Expected a method of kind {', '.join(sorted(METHODS))}; got {kind!r}.")
    known = list(inspect.signature(METHODS[kind]).parameters)[3:]
    if unknown := [name for name in settings if name not in known]:
        raise ValueError(f"The method {kind} takes {', '.join(known)}; got {unknown[0]!r}.")
    return METHODS[kind](shape, generator, allowed, **settings)


def accuracy(found: Tensor, true: Tensor) -> tuple[int, int]:
    """Count the right rows, and all rows, of permutations ``(B, n, n)``; their ratio is precision and recall."""
    return int((found * true).sum().round()), found.shape[0] * found.shape[1]
