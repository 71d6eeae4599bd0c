"""OT4P's transform, forward, and its two matrix functions, against the reference implementation's algorithm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from isotone_permutation.orthogonal import orthogonal_power, permutation_sign, random_rotation, skew, skew_exp
from isotone_permutation.ot4p import nearest_permutation, toward_permutation
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from benchmarks.harness import Bench, Peer, Size

_TEMPERATURE = 0.5
# About 1 degree away from a half turn.
_LEAST_COSINE = -1 + 1.5e-4
# Single precision keeps about 1e-6 of the exponential; the power magnifies that next to a half turn.
_TOLERANCE = 1e-4


class Problem(NamedTuple):
    """Parameters ``(B, n, n)``, a base ``(n, n)`` and a rotation moved before its permutation ``(B, n, n)``."""

    parameters: Tensor
    base: Tensor
    turned: Tensor


def problem(dims: Mapping[str, int]) -> Problem:
    """Draw random parameters, except near the eigenvalue -1, where float32 has no digits left to compare."""
    batch, size = dims["matrices"], dims["n"]
    generator = torch.Generator().manual_seed(0)
    base = random_rotation(size, np.random.default_rng(0))
    kept: list[Tensor] = []
    while len(kept) < batch:
        drawn = torch.randn(1, size, size, generator=generator)
        rotation = base @ skew_exp(skew(drawn.double()))
        columns = nearest_permutation(rotation, torch.tensor([size]))
        turned = rotation.gather(1, columns.argsort(1)[:, :, None].expand_as(rotation))
        turned[:, -1] *= permutation_sign(columns)
        if float(torch.linalg.eigvalsh((turned + turned.mT) / 2).min()) > _LEAST_COSINE:
            kept.append(torch.stack([drawn[0].double(), turned[0]]))
    both = torch.stack(kept)
    return Problem(both[:, 0].float(), base, both[:, 1].float())


def transform(given: Problem) -> Tensor:
    rotation = given.base @ skew_exp(skew(given.parameters))
    size = rotation.shape[1]
    columns = nearest_permutation(rotation, torch.full((len(rotation),), size))
    return toward_permutation(rotation, _TEMPERATURE, columns)


def power(given: Problem) -> Tensor:
    return orthogonal_power(given.turned, _TEMPERATURE)


def exponential(given: Problem) -> Tensor:
    return skew_exp(skew(given.parameters))


def general_power(matrix: Tensor, exponent: float) -> Tensor:
    """Use a general complex eigendecomposition and an inverse, like the reference."""
    values, vectors = torch.linalg.eig(matrix)
    return torch.real(vectors @ torch.diag_embed(values**exponent) @ torch.linalg.inv(vectors))


def reference(given: Problem) -> Tensor:
    """Re-implement the public reference's steps: torch.matrix_exp, determinants, a general eigensolver."""
    rotation = given.base.float() @ torch.matrix_exp(skew(given.parameters))
    columns = [linear_sum_assignment(o, maximize=True)[1] for o in rotation.numpy()]
    permutation = torch.eye(rotation.shape[1])[torch.from_numpy(np.stack(columns))]
    sign = torch.where(torch.linalg.det(permutation) < 0, -1.0, 1.0)[:, None]
    permutation[:, :, -1] *= sign
    moved = permutation @ general_power(permutation.mT @ rotation, _TEMPERATURE)
    moved[:, :, -1] *= sign
    return (moved @ rotation.mT) @ rotation


def reference_power(given: Problem) -> Tensor:
    return general_power(given.turned, _TEMPERATURE)


def hermitian_power(given: Problem) -> Tensor:
    """Use one Hermitian eigendecomposition of a generic combination of the symmetric part and i times the skew one."""
    matrix = given.turned.double()
    symmetric, skewed = (matrix + matrix.mT) / 2, (matrix - matrix.mT) / 2
    _, vectors = torch.linalg.eigh(np.cos(0.7) * symmetric - 1j * np.sin(0.7) * skewed)
    angles = torch.angle((vectors.conj() * (matrix.to(vectors.dtype) @ vectors)).sum(1))
    turned = torch.exp(1j * _TEMPERATURE * angles)
    return torch.real((vectors * turned[:, None]) @ vectors.mH)


def matrix_exp(given: Problem) -> Tensor:
    return torch.matrix_exp(skew(given.parameters))


def hermitian_exp(given: Problem) -> Tensor:
    """Use one Hermitian eigendecomposition of i times the skew matrix."""
    values, vectors = torch.linalg.eigh(-1j * skew(given.parameters.double()))
    return torch.real((vectors * torch.exp(1j * values)[:, None]) @ vectors.mH)


def same(given: Problem, result: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(result.double(), theirs.double(), rtol=0, atol=_TOLERANCE)


def check(given: Problem, result: Tensor) -> None:
    """Check that the result is orthogonal."""
    eye = torch.eye(result.shape[1], dtype=result.dtype).expand_as(result)
    torch.testing.assert_close(result @ result.mT, eye, rtol=0, atol=1e-5)


_SIZES = [(30, 110), (250, 1)]
_SWEPT = [(15, 5), (30, 5), (60, 5), (120, 5), (250, 5)]
# Determinants and inverses of several matrices of 250 hang on two threads (MKL: "SLASWP"), and with them the reference.
_FEW = _SWEPT[:-1]


def _sizes(peer: str, ratio: float, swept: Sequence[tuple[int, int]] = _SWEPT) -> list[Size]:
    """Return the sizes of the paper's experiments, with a target, and a sweep over n."""
    goals = [Size({"n": n, "matrices": batch}, {peer: ratio}) for n, batch in _SIZES]
    return [*goals, *(Size({"n": n, "matrices": batch}, swept=True, quick=n == 15) for n, batch in swept)]


BENCHES = [
    Bench(
        name="ot4p",
        about="OT4P forward: exponential, assignment, power; float32 parameters",
        inputs=problem,
        ours=transform,
        check=check,
        peers=[Peer("reference's algorithm", reference, same)],
        sizes=_sizes("reference's algorithm", 0.5, swept=_FEW),
        axis="n",
    ),
    Bench(
        name="orthogonal-power",
        about="the square root of rotations",
        inputs=problem,
        ours=power,
        check=check,
        peers=[
            Peer("general eig", reference_power, same),
            Peer("Hermitian eigh", hermitian_power, same),
        ],
        sizes=_sizes("general eig", 0.5, swept=_FEW),
        axis="n",
    ),
    Bench(
        name="skew-exp",
        about="the exponential of skew-symmetric matrices",
        inputs=problem,
        ours=exponential,
        check=check,
        peers=[Peer("torch.matrix_exp", matrix_exp, same), Peer("Hermitian eigh", hermitian_exp, same)],
        sizes=_sizes("Hermitian eigh", 1.0),
        axis="n",
    ),
]
