"""Soft-DTW of costs: its value and gradient against enumeration of all alignments, limits and refusals."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.alignment import AlignmentError
from isotone.kernels.softdtw import (
    dtw,
    expected_alignment,
    soft_dtw,
    soft_dtw_sqeuclidean,
    squared_distances,
    subsequence_dtw,
)
from tests.kernels.softdtw_parts import EXACT, enumerated, in_band, matrix


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 5), m=st.integers(1, 5), gamma=st.sampled_from([0.0, 0.03, 0.5, 4.0]),
    band=st.sampled_from([None, 0, 1, 2]), seed=st.integers(0, 99),
)  # fmt: skip
def test_is_the_soft_minimum_of_all_alignments(
    n: int, m: int, gamma: float, band: int | None, seed: int
) -> None:
    cost = (matrix(n, m, seed) - 1).requires_grad_()  # some are negative
    value, visits = enumerated(cost[0].detach(), gamma, band)
    got = soft_dtw(cost, gamma, band=band)
    torch.testing.assert_close(got[0].detach(), value, **EXACT)
    (gradient,) = torch.autograd.grad(got.sum(), cost)
    torch.testing.assert_close(gradient[0], visits, **EXACT)
    torch.testing.assert_close(expected_alignment(cost.detach(), gamma, band=band)[0], visits, **EXACT)


@pytest.mark.parametrize("shape", [(6, 9), (9, 6)])
@pytest.mark.parametrize("gamma", [0.0, 0.7])
@pytest.mark.parametrize("band", [None, 1])
def test_rows_of_several_lengths_are_as_they_are_alone(
    shape: tuple[int, int], gamma: float, band: int | None
) -> None:
    n, m = torch.tensor([shape[0], 2, 5, 1]), torch.tensor([shape[1], 6, 3, 1])
    clean = matrix(*shape, batch=4)
    cost = clean.clone()
    for row in range(4):
        cost[row, n[row] :], cost[row, :, m[row] :] = math.nan, math.nan
    cost.requires_grad_()
    value = soft_dtw(cost, gamma, n, m, band=band)
    (gradient,) = torch.autograd.grad(value.sum(), cost)
    for row in range(4):
        alone = clean[row : row + 1, : n[row], : m[row]].clone().requires_grad_()
        expected = soft_dtw(alone, gamma, band=band)
        torch.testing.assert_close(value[row : row + 1], expected, **EXACT)
        (of_alone,) = torch.autograd.grad(expected.sum(), alone)
        torch.testing.assert_close(gradient[row, : n[row], : m[row]], of_alone[0], **EXACT)
        assert not gradient[row, n[row] :].any()
        assert not gradient[row, :, m[row] :].any()


def test_the_limits_of_gamma() -> None:
    cost = matrix(7, 6, batch=3)
    hard, path = soft_dtw(cost, 0.0), expected_alignment(cost, 0.0)
    for gamma in (1e-4, 1e-9, 1e-15, 1e-30):  # the last two lie beyond the range of the exponents
        torch.testing.assert_close(soft_dtw(cost, gamma), hard, rtol=0, atol=15 * gamma + 1e-12)
        torch.testing.assert_close(expected_alignment(cost, gamma), path, rtol=0, atol=1e-9)
    # every alignment alike: their number is Delannoy's
    numbers = {(1, 4): 1, (2, 2): 3, (3, 3): 13, (4, 4): 63, (5, 5): 321, (4, 6): 231}
    for (n, m), count in numbers.items():
        zero = torch.zeros(1, n, m, dtype=torch.float64)
        torch.testing.assert_close(soft_dtw(zero, 2.0).item(), -2 * math.log(count), **EXACT)


def test_long_rows_keep_their_digits() -> None:
    # a constant cost is worth the number of alignments and their lengths: compare with shifted small costs
    cost = matrix(300, 310, batch=1)
    value = soft_dtw(cost, 0.01)
    assert torch.isfinite(value).all()
    # scaling costs and gamma scales the value
    torch.testing.assert_close(soft_dtw(1e6 * cost, 1e4) / 1e6, value, rtol=1e-13, atol=0)
    visits = expected_alignment(cost.float(), 0.01)
    torch.testing.assert_close(visits.double(), expected_alignment(cost, 0.01), rtol=0, atol=2e-5)


def test_small_weights_are_not_lost_along_long_rows() -> None:
    # diagonal steps of a weight below the rounding of float32: at each of them a path would lose as much
    cost = (matrix(300, 300, batch=1) / 10 - 13.5).float()
    visits = expected_alignment(cost, 1.0)
    torch.testing.assert_close(visits.double(), expected_alignment(cost.double(), 1.0), rtol=0, atol=3e-6)
    direction = matrix(300, 300, batch=1)
    changes = []
    for dtype in (torch.float32, torch.float64):
        leaf = cost.to(dtype).requires_grad_()
        (gradient,) = torch.autograd.grad(soft_dtw(leaf, 1.0).sum(), leaf, create_graph=True)
        changes.append(torch.autograd.grad((gradient * direction.to(dtype)).sum(), leaf)[0].double())
    torch.testing.assert_close(*changes, rtol=0, atol=1e-5 * float(changes[1].abs().max()))


def test_forbidden_pairs_and_nan() -> None:
    cost = matrix(4, 4, batch=4)
    cost[0, 1, :3] = math.inf  # one way is left
    cost[1, 2] = math.inf  # none
    cost[2, 1, 1] = math.nan
    cost.requires_grad_()
    for gamma in (0.0, 0.5):
        value = soft_dtw(cost, gamma)
        (gradient,) = torch.autograd.grad(value.sum(), cost)
        assert torch.isfinite(value[[0, 3]]).all()
        assert not gradient[0, 1, :3].any()
        assert gradient[0, 1, 3].item() == pytest.approx(1)
        assert value[1] == math.inf
        assert not gradient[1].any()
        assert torch.isnan(value[2])
        torch.testing.assert_close(
            value[3], soft_dtw(cost[3:].detach(), gamma)[0], msg="other rows are not touched"
        )
    assert not expected_alignment(cost.detach()[1:2], 0.5).any()


@pytest.mark.parametrize("n", range(1, 9))
@pytest.mark.parametrize("m", [1, 2, 5, 8, 17])
def test_a_band_is_the_same_from_all_sides_and_holds_a_path(n: int, m: int) -> None:
    for band in (0, 1, 3):
        inside = torch.tensor([[in_band(i, j, n, m, band) for j in range(m)] for i in range(n)])
        cost = torch.where(inside, matrix(n, m), torch.inf)
        value = soft_dtw(matrix(n, m), 0.4, band=band)
        assert torch.isfinite(value).all()
        torch.testing.assert_close(value, soft_dtw(cost, 0.4), **EXACT)
        torch.testing.assert_close(value, soft_dtw(matrix(n, m).mT, 0.4, band=band), **EXACT)
        torch.testing.assert_close(value, soft_dtw(matrix(n, m).flip(1, 2), 0.4, band=band), **EXACT)
        if n == m:
            places = torch.arange(n)
            assert torch.equal(inside, (places[:, None] - places).abs() <= band)


def test_threads_change_nothing() -> None:
    cost = matrix(90, 80, batch=24).requires_grad_()
    results = []
    before = torch.get_num_threads()
    for threads in (1, 3):
        torch.set_num_threads(threads)
        try:
            value = soft_dtw(cost, 0.3)
            results.append((value.detach(), torch.autograd.grad(value.sum(), cost)[0]))
        finally:
            torch.set_num_threads(before)
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_summed_in_float32(dtype: torch.dtype) -> None:
    cost = matrix(30, 30).to(dtype).requires_grad_()
    value = soft_dtw(cost)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value.detach(), soft_dtw(cost.detach().float()))
    assert torch.autograd.grad(value.sum(), cost)[0].dtype == dtype


def test_wrong_arguments_are_named() -> None:
    cost = matrix(3, 4)
    for wrong, match in (
        (lambda: soft_dtw(cost[0]), r"\(B, n, m\)"),
        (lambda: soft_dtw(cost.long()), "floating"),
        (lambda: soft_dtw(cost, -1.0), "gamma"),
        (lambda: soft_dtw(cost, math.nan), "gamma"),
        (lambda: soft_dtw(cost, band=-1), "band"),
        (lambda: soft_dtw(cost, 1.0, torch.tensor([0])), "lengths"),
        (lambda: soft_dtw(cost, 1.0, None, torch.tensor([5])), "lengths"),
        (lambda: soft_dtw(cost[:, :0]), "n, m >= 1"),
        (lambda: subsequence_dtw(cost[0]), r"\(B, n, m\)"),
        (lambda: soft_dtw_sqeuclidean(cost[:, :0], cost), "one element"),
        (lambda: soft_dtw_sqeuclidean(cost, cost[..., :2]), r"\(B, n, d\) and \(B, m, d\)"),
        (lambda: squared_distances(cost[0], cost[0]), r"\(B, n, d\) and \(B, m, d\)"),
    ):
        with pytest.raises(ValueError, match=match):
            wrong()
    broken = matrix(3, 3, batch=2)
    broken[1, 1, 1] = math.nan
    with pytest.raises(AlignmentError, match=r"Row 1.*NaN"):
        dtw(broken)
    broken[1] = math.inf
    with pytest.raises(AlignmentError, match=r"Row 1.*forbidden"):
        dtw(broken)
    assert soft_dtw(torch.zeros(0, 3, 4)).shape == (0,)
    assert squared_distances(torch.zeros(2, 3, 1), torch.ones(2, 4, 1)).shape == (2, 3, 4)
