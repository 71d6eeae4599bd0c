"""Functions of orthogonal matrices by real arithmetic: exponential, fractional power, rotations, signs.

All of it is computed in float64, whatever the input is: near the eigenvalue -1 the cosine of an angle keeps only half
of its digits.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg
import torch
from torch import Tensor

from isotone.kernels.threads import each_task

# Degrees d of Taylor's polynomial, multiples of 4, and the norms r up to which r^(d + 1) / (d + 1)! is below 1e-16 for
# float64, and below 1e-13 for narrower parameters.
_DOUBLE = ((8, 0.07), (12, 0.3), (16, 0.8))
_SINGLE = ((8, 0.14), (12, 0.56), (16, 1.2))
# Work of a matrix power per n^3, in the half nanoseconds of each_task.
_POWER_CELLS = 6
# Planes with 1 + cos(angle) below this count as turned by about 180 degrees.
_NEAR_HALF_TURN = 1e-7


def skew(parameters: Tensor) -> Tensor:
    """Return ``A - A^T`` for the strict upper triangle A of ``(..., n, n)``; the rest is never read."""
    upper = parameters.triu(1)
    return upper - upper.mT


def skew_exp(generator: Tensor) -> Tensor:
    r"""The rotation :math:`\exp(K)` of a skew-symmetric matrix, differentiable any number of times.

    Taylor's polynomial of the halved matrix, then squarings. Degree and halvings take the fewest products for an error
    of 1e-16 (1e-13 where the parameters are not float64).

    Args:
        generator: ``(B, n, n)`` skew-symmetric.

    Returns:
        ``(B, n, n)`` float64, orthogonal with determinant 1.

    Raises:
        ValueError: the matrix is inf or NaN somewhere.
    """
    first = generator.double()
    second = first @ first
    third, fourth = second @ first, second @ second
    degree, squarings = _plan(second.detach(), fourth.detach(), generator.dtype)
    c = [0.5 ** (k * squarings) / math.factorial(k) for k in range(degree + 1)]
    # Horner's rule in the fourth power; tensors changed in place are new, and autograd saved none of them
    result = fourth * c[degree]
    for low in range(degree - 4, -1, -4):
        part = (first * c[low + 1]).add_(second, alpha=c[low + 2]).add_(third, alpha=c[low + 3])
        part.diagonal(dim1=-2, dim2=-1).add_(c[low])
        result = part.add_(result) if low == degree - 4 else torch.baddbmm(part, result, fourth)
    for _ in range(squarings):
        result = result @ result
    return result


def _plan(second: Tensor, fourth: Tensor, dtype: torch.dtype) -> tuple[int, int]:
    """Choose the polynomial's degree and the number of halvings, from bounds of the norm by those of its powers."""
    plans = _DOUBLE if dtype == torch.float64 else _SINGLE
    if second.numel() == 0:
        return plans[0][0], 0
    of_square = second.abs().sum(-1).amax(-1).sqrt()
    of_fourth = fourth.abs().sum(-1).amax(-1).sqrt().sqrt()
    norm = float(torch.minimum(of_square, of_fourth).max())
    if not math.isfinite(norm):
        raise ValueError("skew_exp expects finite parameters; got inf or NaN.")
    halvings = [
        (degree, max(0, math.ceil(math.log2(max(norm, 1e-300) / radius)))) for degree, radius in plans
    ]
    return min(halvings, key=lambda plan: plan[0] // 4 + plan[1])


def straightened(rotation: Tensor) -> Tensor:
    """Take a step of Newton and Schulz on ``(B, n, n)``: an error e in orthogonality becomes about e^2."""
    return torch.baddbmm(rotation, rotation, rotation.mT @ rotation, beta=1.5, alpha=-0.5)


def orthogonal_power(rotation: Tensor, exponent: float) -> Tensor:
    r"""The real power :math:`O^\tau` of rotations: each angle is multiplied by the exponent. No gradient.

    With :math:`O = S + K`, the symmetric and the skew part, :math:`O^\tau = g(S) + h(S) K` where
    :math:`g(\cos\theta) = \cos\tau\theta` and :math:`h(\cos\theta) = \sin\tau\theta / \sin\theta`: one real
    symmetric eigendecomposition. Eigenvectors may mix where eigenvalues repeat: a function of S does not depend on the
    basis of an eigenspace. Near the eigenvalue -1, where h has a pole, the real Schur form is used instead. Planes that
    turn by exactly 180 degrees have no direction of rotation and get one, so that the result is always a rotation.

    Args:
        rotation: ``(B, n, n)`` orthogonal with determinant 1. What is not float64 is straightened first.
        exponent: From 0 (the identity) to 1 (the matrix itself).

    Returns:
        ``(B, n, n)`` float64.

    Raises:
        ValueError: a matrix has determinant -1: it has no real power.

    Numerics: errors grow as ``1 / d^2`` for angles that are d short of 180 degrees, up to about 1e-8, where the Schur
    form is used; those of the input grow as ``1 / d``.
    """
    matrix = rotation.detach().double()
    if rotation.dtype != torch.float64:
        matrix = straightened(matrix)
    count, size, _ = matrix.shape
    if matrix.device.type != "cpu" or count < 2:
        return _power(matrix, exponent, 0)
    # torch decomposes the matrices of a batch one after the other: each thread gets a part
    result = torch.empty_like(matrix)
    run = -(-count // torch.get_num_threads())

    def some(task: int) -> None:
        rows = slice(task * run, (task + 1) * run)
        result[rows] = _power(matrix[rows], exponent, task * run)

    each_task(some, -(-count // run), _POWER_CELLS * count * size**3)
    return result


def _power(matrix: Tensor, exponent: float, first: int) -> Tensor:
    """Find the power of some rows of the batch; ``first`` is the number of the first, for messages."""
    double_cosine, vectors = torch.linalg.eigh(matrix + matrix.mT)
    cosine = double_cosine / 2
    turned = vectors.mT @ (matrix - matrix.mT)  # 2 V^T K
    sine = torch.linalg.vector_norm(turned, dim=-1) / 2
    angle = torch.atan2(sine, cosine)
    ends = sine < 1e-9
    gain = torch.where(ends, exponent, torch.sin(exponent * angle) / sine.masked_fill(ends, 1.0)) / 2
    turned *= gain[..., None]
    result = vectors @ turned.addcmul_(torch.cos(exponent * angle)[..., None], vectors.mT)
    for row in (cosine < _NEAR_HALF_TURN - 1).any(-1).nonzero()[:, 0].tolist():
        result[row] = torch.from_numpy(_schur_power(matrix[row].cpu().numpy(), exponent, first + row))
    return result


def _schur_power(rotation: np.ndarray, exponent: float, row: int) -> np.ndarray:
    """Find the power of one rotation ``(n, n)``; its Schur form consists of rotations of planes, 1 and -1."""
    form, basis = scipy.linalg.schur(rotation, output="real")
    size = len(form)
    power = np.eye(size)
    half_turns = []
    at = 0
    while at < size:
        if at + 1 < size and form[at + 1, at] != 0:
            pair = [at, at + 1]
            angle = exponent * np.arctan2(
                form[at + 1, at] - form[at, at + 1], form[at, at] + form[at + 1, at + 1]
            )
            power[np.ix_(pair, pair)] = _turn(angle)
            at += 2
            continue
        if form[at, at] < 0:
            half_turns.append(at)
        at += 1
    if len(half_turns) % 2:
        raise ValueError(
            f"Row {row}: orthogonal_power expects rotations; got a matrix of determinant -1, without a real power."
        )
    for first, second in zip(half_turns[::2], half_turns[1::2]):
        power[np.ix_([first, second], [first, second])] = _turn(exponent * np.pi)
    return basis @ power @ basis.T


def _turn(angle: float) -> np.ndarray:
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def random_rotation(size: int, rng: np.random.Generator) -> Tensor:
    """Draw a rotation that moves permutations off the eigenvalue -1: planes (1, 2), (3, 4) ... turned at random.

    Args:
        size: n.
        rng: Draws the angles, uniform from pi/8 to 3 pi/8 as in the OT4P paper's code.

    Returns:
        ``(n, n)`` float64; for odd n the last axis is fixed. Leading blocks of even size are rotations too.
    """
    angles = torch.from_numpy(rng.uniform(np.pi / 8, 3 * np.pi / 8, size // 2))
    base = torch.eye(size, dtype=torch.float64)
    even = 2 * torch.arange(size // 2)
    odd = even + 1
    base[even, even] = base[odd, odd] = torch.cos(angles)
    base[even, odd] = -torch.sin(angles)
    base[odd, even] = torch.sin(angles)
    return base


def permutation_sign(columns: Tensor) -> Tensor:
    """Find the signs of permutations from the number of their cycles, ``(-1)^(n - cycles)``.

    Args:
        columns: ``(B, n)`` int64, the column of each row.

    Returns:
        ``(B,)`` int64, 1 for even permutations and -1 for odd ones.
    """
    size = columns.shape[1]
    number = torch.arange(size, device=columns.device).expand_as(columns)
    least, jump = number, columns
    # by doubling: the smallest number of a cycle within 2^k steps, k = 1, 2 ...
    for _ in range(max(size - 1, 0).bit_length()):
        least = torch.minimum(least, least.gather(1, jump))
        jump = jump.gather(1, jump)
    cycles = (least == number).sum(1)
    return 1 - 2 * ((size - cycles) % 2)
