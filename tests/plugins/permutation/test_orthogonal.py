"""Functions of orthogonal matrices, against SciPy's general ones and against laws; degenerate spectra above all."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.linalg
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from isotone_permutation.orthogonal import (
    orthogonal_power,
    permutation_sign,
    random_rotation,
    skew,
    skew_exp,
)
from torch import Tensor


def rotations(batch: int, size: int, seed: int = 0, scale: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return skew_exp(skew(scale * torch.randn(batch, size, size, generator=generator, dtype=torch.float64)))


def turned(angles: list[float], seed: int = 0, fixed: int = 0) -> tuple[Tensor, np.ndarray, list[np.ndarray]]:
    """A rotation of planes in general position, that position, and its blocks."""
    size = 2 * len(angles) + fixed
    basis = np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))[0]
    blocks = [np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]) for a in angles]
    form = scipy.linalg.block_diag(*blocks, *np.ones(fixed))
    return torch.from_numpy(basis @ form @ basis.T)[None], basis, blocks


def assert_rotation(matrix: Tensor, tolerance: float = 1e-10) -> None:
    eye = torch.eye(matrix.shape[-1], dtype=matrix.dtype).expand_as(matrix)
    torch.testing.assert_close(matrix @ matrix.mT, eye, rtol=0, atol=tolerance)
    torch.testing.assert_close(torch.linalg.det(matrix), torch.ones(len(matrix), dtype=matrix.dtype))


@pytest.mark.parametrize("size", [2, 3, 8, 15])
def test_theorem_1_every_rotation_has_parameters(size: int) -> None:
    """OT4P's theorem 1: for any rotation there is an A with angles below pi and exp(A - A^T) equal to it."""
    drawn = np.linalg.qr(np.random.default_rng(size).normal(size=(size, size)))[0]
    drawn[:, 0] *= np.linalg.det(drawn)
    parameters = torch.from_numpy(scipy.linalg.logm(drawn).real).triu(1)
    assert np.abs(scipy.linalg.eigvals(skew(parameters).numpy()).imag).max() < np.pi
    torch.testing.assert_close(
        skew_exp(skew(parameters)[None])[0], torch.from_numpy(drawn), rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("size", [1, 2, 3, 7, 20])
@pytest.mark.parametrize("scale", [1e-9, 0.01, 1.0, 30.0])
def test_the_exponential_is_scipys(size: int, scale: float) -> None:
    generator = torch.Generator().manual_seed(size)
    matrix = skew(scale * torch.randn(2, size, size, generator=generator, dtype=torch.float64))
    expected = torch.from_numpy(np.stack([scipy.linalg.expm(m) for m in matrix.numpy()]))
    torch.testing.assert_close(skew_exp(matrix), expected, rtol=0, atol=1e-12 * max(1, scale * size))
    torch.testing.assert_close(skew_exp(matrix.float()), expected, rtol=0, atol=1e-6 * max(1, scale * size))
    assert_rotation(skew_exp(matrix.float()), 1e-7 * max(1, scale))


def test_the_exponential_of_nothing_is_the_identity() -> None:
    assert torch.equal(skew_exp(torch.zeros(2, 3, 3)), torch.eye(3, dtype=torch.float64).expand(2, 3, 3))
    assert skew_exp(torch.zeros(0, 3, 3)).shape == (0, 3, 3)
    with pytest.raises(ValueError, match="finite"):
        skew_exp(skew(torch.full((1, 3, 3), torch.nan)))


@pytest.mark.parametrize("scale", [0.1, 3.0])
def test_the_exponential_has_its_derivatives(scale: float) -> None:
    generator = torch.Generator().manual_seed(0)
    parameters = scale * torch.randn(2, 4, 4, generator=generator, dtype=torch.float64)
    parameters.requires_grad_()
    assert torch.autograd.gradcheck(lambda a: skew_exp(skew(a)), parameters)
    assert torch.autograd.gradgradcheck(lambda a: skew_exp(skew(a)), parameters)


@pytest.mark.parametrize("size", [1, 2, 3, 8, 30])
@pytest.mark.parametrize("exponent", [0.0, 0.3, 0.5, 1.0])
def test_the_power_is_scipys(size: int, exponent: float) -> None:
    matrix = rotations(3, size, seed=size)
    expected = np.stack([scipy.linalg.fractional_matrix_power(m, exponent) for m in matrix.numpy()])
    assert abs(expected.imag).max() < 1e-8
    power = orthogonal_power(matrix, exponent)
    torch.testing.assert_close(power, torch.from_numpy(expected.real.copy()), rtol=0, atol=1e-8)
    assert_rotation(power)


@settings(max_examples=40, deadline=None)
@given(
    angles=st.lists(
        st.sampled_from([0.0, 1e-12, 1e-6, 0.5, 0.5 + 1e-9, 1.5, np.pi / 2, 3.0]) | st.floats(-3.1, 3.1),
        min_size=1,
        max_size=5,
    ),
    fixed=st.integers(0, 2),
    exponent=st.floats(0.0, 1.0),
    seed=st.integers(0, 100),
)
def test_every_angle_is_multiplied_however_often_it_repeats(
    angles: list[float], fixed: int, exponent: float, seed: int
) -> None:
    matrix, basis, _ = turned(angles, seed, fixed)
    blocks = [scipy.linalg.expm(exponent * a * np.array([[0.0, -1.0], [1.0, 0.0]])) for a in angles]
    expected = basis @ scipy.linalg.block_diag(*blocks, *np.ones(fixed)) @ basis.T
    found = orthogonal_power(matrix, exponent)[0]
    torch.testing.assert_close(found, torch.from_numpy(expected), rtol=0, atol=1e-8)


@pytest.mark.parametrize("gap", [0.0, 1e-15, 1e-12, 1e-9, 1e-6, 1e-4, 4.4e-4, 4.6e-4, 1e-3, 1e-2])
@pytest.mark.parametrize("others", [[], [np.pi], [np.pi - 1e-7], [np.pi - 1e-5, 0.3], [0.0, 2.0]])
def test_roots_of_half_turns_are_rotations_whose_powers_come_back(gap: float, others: list[float]) -> None:
    matrix, _, _ = turned([np.pi - gap, *others], seed=3)
    root = orthogonal_power(matrix, 0.5)
    assert_rotation(root, 1e-8)
    torch.testing.assert_close(root @ root, matrix, rtol=0, atol=1e-8)
    third = orthogonal_power(matrix, 1 / 3)
    torch.testing.assert_close(third @ third @ third, matrix, rtol=0, atol=1e-8)


@pytest.mark.parametrize("size", [4, 5])
def test_even_permutations_have_roots(size: int) -> None:
    for order in itertools.permutations(range(size)):
        matrix = torch.eye(size, dtype=torch.float64)[list(order)][None]
        if np.linalg.det(matrix[0].numpy()) > 0:
            root = orthogonal_power(matrix, 0.5)
            assert_rotation(root)
            torch.testing.assert_close(root @ root, matrix, rtol=0, atol=1e-10)
        else:
            with pytest.raises(ValueError, match=r"Row 0: .*determinant -1"):
                orthogonal_power(matrix, 0.5)


def test_the_power_of_float32_keeps_its_digits() -> None:
    matrix = rotations(20, 12, seed=1)
    away = torch.linalg.eigvalsh((matrix + matrix.mT) / 2)[:, 0] > -0.99
    assert away.any()
    expected = orthogonal_power(matrix, 0.3)[away]
    torch.testing.assert_close(orthogonal_power(matrix.float(), 0.3)[away], expected, rtol=0, atol=1e-5)


def test_a_power_of_a_batch_is_that_of_its_rows() -> None:
    matrix = torch.cat([rotations(3, 6), turned([np.pi, np.pi - 1e-9, 0.2])[0]])
    together = orthogonal_power(matrix, 0.4)
    for row, expected in zip(matrix, together):
        torch.testing.assert_close(orthogonal_power(row[None], 0.4)[0], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [0, 1, 2, 5, 10])
def test_the_random_base_is_a_rotation_without_fixed_planes(size: int) -> None:
    base = random_rotation(size, np.random.default_rng(0))
    assert_rotation(base[None])
    assert int((torch.linalg.eigvals(base) - 1).abs().lt(0.1).sum()) == size % 2


def test_the_sign_is_the_determinant() -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 4, 5, 8, 17):
        columns = torch.from_numpy(np.stack([rng.permutation(size) for _ in range(30)]))
        determinants = torch.linalg.det(torch.eye(size, dtype=torch.float64)[columns]).round().long()
        assert torch.equal(permutation_sign(columns), determinants)
    assert permutation_sign(torch.zeros(2, 0, dtype=torch.long)).tolist() == [1, 1]


def test_the_sign_of_long_cycles() -> None:
    """One cycle of n is even where n is odd: the longest way that the labels have to go."""
    for size in (2, 3, 64, 65, 250):
        assert permutation_sign(torch.arange(size).roll(1)[None]).item() == (1 if size % 2 else -1)


def test_a_batch_on_threads_is_what_its_rows_are() -> None:
    matrix = rotations(21, 30, seed=3)
    half = torch.eye(30, dtype=torch.float64)
    half[0, 0] = half[1, 1] = -1  # the way by the Schur form
    matrix[13] = half
    alone = torch.cat([orthogonal_power(row[None], 0.4) for row in matrix])
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            torch.testing.assert_close(orthogonal_power(matrix, 0.4), alone, rtol=0, atol=1e-12)
        matrix[17, :, 0] *= -1
        with pytest.raises(ValueError, match=r"Row 17: .* determinant -1"):
            orthogonal_power(matrix, 0.4)
    finally:
        torch.set_num_threads(before)
