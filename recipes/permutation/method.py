"""The interface of methods that optimise over permutations by gradient."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from isotone_permutation.relax import Hungarian
from torch import Tensor

# Rewards of pairs that are not allowed: far below any other, and finite.
_FORBIDDEN = -1e6


class Method(ABC):
    """Method that makes soft permutations ``(B, n, n)`` of free parameters.

    Args:
        shape: ``(B, n)``.
        generator: Of the start and the noise.
        allowed: ``(n, n)`` bool, pairs that may be taken. Default: all.
        start: Standard deviation of the parameters at the start.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        generator: torch.Generator,
        allowed: Tensor | None = None,
        *,
        start: float,
    ) -> None:
        batch, size = shape
        self.generator = generator
        self.allowed = allowed
        values = start * torch.randn(batch, size, size, generator=generator)
        self.values = values.requires_grad_()

    def parameters(self) -> list[Tensor]:
        """Return the tensors to optimise."""
        return [self.values]

    @abstractmethod
    def draw(self, samples: int) -> Tensor:
        """Draw soft permutations ``(samples * B, n, n)`` with gradient; sample s of b is ``s * B + b``."""

    def soft(self) -> Tensor:
        """Return soft permutations ``(B, n, n)`` without noise."""
        return self.draw(1)

    @abstractmethod
    def permutation(self) -> Tensor:
        """Return permutations ``(B, n, n)`` of zeros and ones, without noise and gradient."""

    def stepped(self) -> None:  # noqa: B027
        """Update after a step of the optimiser; most methods have nothing to do."""

    def penalty(self) -> Tensor:
        """Return what is added to the objective, a scalar; by default 0."""
        return torch.zeros(())

    def optimiser(self, name: str, lr: float) -> torch.optim.Optimizer:
        """Build the optimiser of the parameters, ``"adam"`` or ``"sgd"``.

        Raises:
            ValueError: another name.
        """
        if name not in ("adam", "sgd"):
            raise ValueError(f"Expected an optimiser of adam and sgd; got {name!r}.")
        return (torch.optim.Adam if name == "adam" else torch.optim.SGD)(self.parameters(), lr=lr)

    def _scores(self) -> Tensor:
        return self.values if self.allowed is None else self.values.masked_fill(~self.allowed, _FORBIDDEN)

    def _rounded(self) -> Tensor:
        return Hungarian()(self._scores().detach())
