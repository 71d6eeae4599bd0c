"""Relaxations of rewards: Sinkhorn and its variants, single steps, and the two exact assignments."""

from __future__ import annotations

import torch
from torch import Tensor

from isotone.kernels.assignment import ordered_assignment
from isotone_permutation import functional


def _positive(name: str, value: float) -> float:
    if not value > 0:
        raise ValueError(f"Expected a {name} above 0; got {value}.")
    return value


def _whole(name: str, value: int) -> int:
    if value < 1:
        raise ValueError(f"Expected {name} of at least 1; got {value}.")
    return value


class Sinkhorn:
    """Sinkhorn's iterations in the log domain: a doubly stochastic matrix, or m of its rows without padding to n x n.

    Args:
        temperature: tau, in units of the reward: towards 0 the result is the exact assignment.
        iterations: Most iterations, each normalising columns and then rows.
        tolerance: On the CPU, iterations end when no column's sum differs from 1 by more than this; 0: never.
    """

    def __init__(self, *, temperature: float = 1.0, iterations: int = 20, tolerance: float = 1e-6) -> None:
        self.temperature = _positive("temperature", temperature)
        self.iterations = _whole("iterations", iterations)
        self.tolerance = tolerance

    def __call__(
        self, reward: Tensor, row_lengths: Tensor | None = None, column_lengths: Tensor | None = None
    ) -> Tensor:
        """Relax, as :func:`isotone_permutation.functional.sinkhorn`."""
        rows, columns = functional.check_lengths(reward, row_lengths, column_lengths)
        return functional.sinkhorn(
            reward,
            rows,
            columns,
            temperature=self.temperature,
            iterations=self.iterations,
            tolerance=self.tolerance,
        )


class GumbelSinkhorn:
    """Sinkhorn of rewards with Gumbel noise: each call is one sample of a relaxed permutation (Mena et al. 2018).

    Args:
        temperature, iterations, tolerance: As in :class:`Sinkhorn`.
        noise: Scale of the noise, in units of the reward.
        seed: Of the noise. Each call draws on from the one before.
    """

    def __init__(
        self,
        *,
        temperature: float = 1.0,
        iterations: int = 20,
        tolerance: float = 1e-6,
        noise: float = 1.0,
        seed: int = 0,
    ) -> None:
        if noise < 0:
            raise ValueError(f"Expected a noise of at least 0; got {noise}.")
        self.noise = noise
        self._sinkhorn = Sinkhorn(temperature=temperature, iterations=iterations, tolerance=tolerance)
        self._generator = torch.Generator().manual_seed(seed)

    def __call__(
        self, reward: Tensor, row_lengths: Tensor | None = None, column_lengths: Tensor | None = None
    ) -> Tensor:
        """Relax one draw; repeat the rewards along the batch for several."""
        noise = functional.gumbel_noise(reward.shape, self._generator, reward)
        return self._sinkhorn(reward + self.noise * noise, row_lengths, column_lengths)


class SingleStepExp:
    """Softmax of every row: rows sum to 1, columns to anything (SS_exp of OPAS).

    Args:
        temperature: In units of the reward.
    """

    def __init__(self, *, temperature: float = 1.0) -> None:
        self.temperature = _positive("temperature", temperature)

    def __call__(
        self, reward: Tensor, row_lengths: Tensor | None = None, column_lengths: Tensor | None = None
    ) -> Tensor:
        """Relax, as :func:`isotone_permutation.functional.row_softmax`."""
        rows, columns = functional.check_lengths(reward, row_lengths, column_lengths)
        return functional.row_softmax(reward, rows, columns, self.temperature)


class SingleStepSum:
    """Every row divided by its sum, for rewards that are not negative (SS_sum of OPAS)."""

    def __call__(
        self, reward: Tensor, row_lengths: Tensor | None = None, column_lengths: Tensor | None = None
    ) -> Tensor:
        """Relax, as :func:`isotone_permutation.functional.row_share`."""
        rows, columns = functional.check_lengths(reward, row_lengths, column_lengths)
        return functional.row_share(reward, rows, columns)


class Hungarian:
    """The best assignment: a hard permutation or selection, without gradient."""

    def __call__(
        self, reward: Tensor, row_lengths: Tensor | None = None, column_lengths: Tensor | None = None
    ) -> Tensor:
        """Assign, as :func:`isotone_permutation.functional.assignment`."""
        rows, columns = functional.check_lengths(reward, row_lengths, column_lengths)
        found = functional.assignment(reward, rows, columns)
        return functional.one_hot(found, reward.shape[2], reward.dtype)


class Ordered:
    """The best assignment that keeps order, row i left of row i + 1: hard, without gradient, O(m n)."""

    def __call__(
        self, reward: Tensor, row_lengths: Tensor | None = None, column_lengths: Tensor | None = None
    ) -> Tensor:
        """Assign, as :func:`isotone.kernels.assignment.ordered_assignment`."""
        rows, columns = functional.check_lengths(reward, row_lengths, column_lengths)
        found, _ = ordered_assignment(reward, rows, columns)
        return functional.one_hot(found, reward.shape[2], reward.dtype)
