"""OT4P: permutations relaxed on the orthogonal group, with a temperature."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from isotone.types import length_mask
from isotone_permutation.functional import assignment, check_lengths, one_hot
from isotone_permutation.orthogonal import (
    orthogonal_power,
    permutation_sign,
    random_rotation,
    skew,
    skew_exp,
    straightened,
)


def nearest_permutation(rotation: Tensor, lengths: Tensor, allowed: Tensor | None = None) -> Tensor:
    """Find the permutation nearest to a matrix, ``argmax_P <P, O>`` (equation 7).

    Args:
        rotation: ``(B, n, n)``.
        lengths: ``(B,)`` int64.
        allowed: ``(n, n)`` or ``(B, n, n)`` bool, pairs that may be taken. Default: all.

    Returns:
        The column of each row, ``(B, n)`` int64, -1 beyond the lengths.

    Raises:
        ValueError: the allowed pairs leave no permutation.
    """
    scores = rotation.detach()
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -torch.inf)
    return assignment(scores, lengths, lengths)


@torch.no_grad()
def toward_permutation(rotation: Tensor, temperature: float, columns: Tensor) -> Tensor:
    r"""Move rotations along the geodesic to permutations: :math:`P D [(P D)^T O]^\tau D` (equation 11).

    Args:
        rotation: ``(B, n, n)`` O, of determinant 1; where a permutation is shorter, its block and an identity.
        temperature: tau, from 0 (P itself) to 1 (O D).
        columns: ``(B, n)`` int64, the permutation P as the column of each row, -1 beyond its size. D changes the sign
            of P's last column where P is odd.

    Returns:
        ``(B, n, n)`` float64, orthogonal, with P's determinant.
    """
    matrix = rotation.double()
    number = torch.arange(columns.shape[1], device=columns.device)
    inside = columns >= 0
    columns = torch.where(inside, columns, number)
    last = number == inside.sum(1, keepdim=True) - 1
    signs = torch.where(last, permutation_sign(columns)[:, None], 1)
    batch = torch.arange(len(columns), device=columns.device)[:, None]
    # (P D)^T O: rows of O in the order of P's columns
    turned = matrix[batch, torch.argsort(columns, 1)].mul_(signs[:, :, None])
    turned = orthogonal_power(turned, temperature).mul_(signs[:, :, None]).mul_(signs[:, None])
    return turned[batch, columns]


class _Straight(torch.autograd.Function):
    """The moved rotation, with the derivative of W O for a constant W that takes O there."""

    @staticmethod
    def forward(ctx: Any, rotation: Tensor, moved: Tensor) -> Tensor:
        ctx.save_for_backward(rotation.detach(), moved)
        return moved.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        rotation, moved = ctx.saved_tensors
        # W^T G = O (O~^T G)
        return rotation @ (moved.mT @ gradients[0]), None


class OT4P:
    r"""A temperature-controlled map from free parameters to orthogonal matrices near permutations.

    :math:`O = B \exp(A - A^T)` with A the strict upper triangle of the input, then
    :math:`\tilde O = P D [(P D)^T O]^\tau D` with P the permutation nearest to O. The input is called ``reward``, as in
    all relaxations, but holds coordinates on the rotation group. The gradient takes :math:`W = \tilde O O^T` as
    constant, as in the paper: :math:`\tilde O = W O` is linear in O.

    **Selections.** With m < n rows, n - m rows of zeros are appended, and the first m rows of the n x n result are the
    choice. The :math:`mn - m(m + 1)/2` entries right of the diagonal are read: as many as m orthonormal rows have
    degrees of freedom, so nothing is lost and nothing is counted twice.

    Args:
        temperature: tau from 0 to 1: 0 gives permutations; 1 gives O, with its last column negated where P is odd.
        base: B. ``"random"``: a rotation that keeps permutations off the eigenvalue -1, where A has no unique value; or
            ``"identity"``.
        seed: Of the random base.

    Attributes:
        temperature: As given; a schedule may change it.
        base: ``(n, n)`` or ``(B, n, n)`` float64 after the first call, None before. :meth:`rebase` moves it.
        allowed: ``(n, n)`` or ``(B, n, n)`` bool, pairs that P may take, or None; see :meth:`know`.

    References: Guo et al., "OT4P: Unlocking Effective Orthogonal Group Path for Permutation Relaxation", NeurIPS 2024.
    """

    def __init__(
        self, *, temperature: float = 0.5, base: Literal["random", "identity"] = "random", seed: int = 0
    ) -> None:
        if not 0 <= temperature <= 1:
            raise ValueError(f"OT4P expects a temperature from 0 to 1; got {temperature}.")
        if base not in ("random", "identity"):
            raise ValueError(f"OT4P expects base 'random' or 'identity'; got {base!r}.")
        self.temperature = temperature
        self.base: Tensor | None = None
        self.allowed: Tensor | None = None
        self._start = base
        self._seed = seed

    def __call__(
        self, reward: Tensor, row_lengths: Tensor | None = None, column_lengths: Tensor | None = None
    ) -> Tensor:
        """Relax.

        Args:
            reward: ``(B, m, n)`` parameters A, m <= n; only entries right of the diagonal are read.
            row_lengths, column_lengths: ``(B,)`` int64; a row's leading block is its problem.

        Returns:
            ``(B, m, n)`` with orthonormal rows in the leading blocks, orthogonal where square; 0 elsewhere; in
            the dtype of ``reward``.

        Raises:
            ValueError: fewer columns than rows, or known pairs that leave no permutation.
        """
        rows, lengths = check_lengths(reward, row_lengths, column_lengths)
        rotation = self.rotation(reward, lengths, rows)
        columns = nearest_permutation(rotation, lengths, self._allowed(reward))
        moved = toward_permutation(rotation, self.temperature, columns)
        soft: Tensor = _Straight.apply(rotation, moved)
        return soft[:, : reward.shape[1]].masked_fill(~_inside(reward, rows, lengths), 0.0).to(reward.dtype)

    def permutation(
        self, reward: Tensor, row_lengths: Tensor | None = None, column_lengths: Tensor | None = None
    ) -> Tensor:
        """Return the permutation or selection of the parameters, ``(B, m, n)`` of zeros and ones; no gradient."""
        with torch.no_grad():
            rows, lengths = check_lengths(reward, row_lengths, column_lengths)
            found = nearest_permutation(self.rotation(reward, lengths, rows), lengths, self._allowed(reward))
            chosen = one_hot(found, reward.shape[2], reward.dtype)[:, : reward.shape[1]]
            return chosen.masked_fill(~length_mask(rows, reward.shape[1])[:, :, None], 0.0)

    def rotation(
        self, reward: Tensor, lengths: Tensor | None = None, row_lengths: Tensor | None = None
    ) -> Tensor:
        """Return ``B exp(A - A^T)``, step I (equation 6): ``(B, n, n)`` float64, differentiable.

        Args:
            reward: ``(B, m, n)``; rows of zeros are appended to make it square.
            lengths: ``(B,)`` int64, columns of each problem. Default: n.
            row_lengths: ``(B,)`` int64. Default: as many as columns, m at most.
        """
        parameters = reward
        if lengths is not None:
            rows = lengths.clamp(max=reward.shape[1]) if row_lengths is None else row_lengths
            parameters = reward.masked_fill(~_inside(reward, rows, lengths), 0.0)
        _, m, n = reward.shape
        parameters = torch.nn.functional.pad(parameters, (0, 0, 0, n - m))
        return self._base(parameters, lengths) @ skew_exp(skew(parameters))

    @torch.no_grad()
    def rebase(self, parameters: Tensor) -> None:
        """Move the base to where the parameters ``(B, m, n)`` point and set these to zero, in place.

        The relaxation does not change. The next step starts from there, far from where the exponential folds (dynamic
        trivialisation, Lezcano Casado 2019).
        """
        self.base = straightened(self.rotation(parameters))
        parameters.zero_()

    def know(self, rows: Tensor, columns: Tensor, size: int) -> None:
        """Fix pairs of the permutation: row ``rows[k]`` goes to column ``columns[k]``.

        Args:
            rows, columns: ``(k,)`` int64, distinct.
            size: n.

        Raises:
            ValueError: numbers that repeat or are not below n.
        """
        for name, numbers in (("rows", rows), ("columns", columns)):
            if numbers.unique().numel() != numbers.numel() or not bool(
                ((numbers >= 0) & (numbers < size)).all()
            ):
                raise ValueError(f"Expected distinct {name} from 0 to {size - 1}; got {numbers.tolist()}.")
        allowed = torch.ones(size, size, dtype=torch.bool, device=rows.device)
        allowed[rows], allowed[:, columns] = False, False
        allowed[rows, columns] = True
        self.allowed = allowed

    def _base(self, reward: Tensor, lengths: Tensor | None) -> Tensor:
        size = reward.shape[1]
        if self.base is not None and self.base.ndim == 3 and self.base.shape != reward.shape:
            raise ValueError(
                f"OT4P's base was moved for parameters of shape {tuple(self.base.shape)}; got {tuple(reward.shape)}. "
                "Set base to None to start anew."
            )
        if self.base is None or self.base.shape[-1] != size:
            if self._start == "identity":
                self.base = torch.eye(size, dtype=torch.float64)
            else:
                self.base = random_rotation(size, np.random.default_rng(self._seed))
        self.base = self.base.to(reward.device)
        if lengths is None or self.base.ndim == 3:
            return self.base
        # the base is not applied in the plane that an odd length cuts in two
        even_size = lengths - lengths % 2
        inside = length_mask(even_size, size)
        eye = torch.eye(size, dtype=self.base.dtype, device=reward.device)
        return torch.where(inside[:, :, None] & inside[:, None], self.base, eye)

    def _allowed(self, reward: Tensor) -> Tensor | None:
        return None if self.allowed is None else self.allowed.to(reward.device)


def _inside(reward: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    _, m, n = reward.shape
    return length_mask(rows, m)[:, :, None] & length_mask(columns, n)[:, None]


def gaussian_samples(
    mean: Tensor, deviation: Tensor, samples: int, generator: torch.Generator | None = None
) -> Tensor:
    r"""Draw :math:`A + \sigma \epsilon` (equation 15), re-parameterised, to be relaxed one by one.

    A mean over the samples of a function of the relaxed draws is the paper's estimator (equation 16); its gradient
    reaches both parameters.

    Args:
        mean: ``(B, m, n)``.
        deviation: Standard deviations that broadcast to it.
        samples: S.
        generator: Of the noise; on the CPU.

    Returns:
        ``(S B, m, n)``; sample s of batch row b is ``s * B + b``.
    """
    noise = torch.randn(samples, *mean.shape, generator=generator, dtype=mean.dtype).to(mean.device)
    return (mean + deviation * noise).flatten(0, 1)
