from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isotone.alignment import AlignmentError
from isotone.kernels import softdtw
from isotone.kernels.softdtw import (
    _plan,
    _torch,
    dtw,
    expected_alignment,
    soft_dtw,
    soft_dtw_sqeuclidean,
    squared_distances,
    subsequence_dtw,
)
from isotone.kernels.softdtw._plan import Plan, dense
from isotone.testing import check_coupling

EXACT = {"rtol": 1e-12, "atol": 1e-12}
Path = tuple[tuple[int, int], ...]


def alignments(n: int, m: int) -> Iterator[Path]:
    """All paths from (0, 0) to (n - 1, m - 1)."""
    if n == m == 1:
        yield ((0, 0),)
        return
    for i, j in ((n - 1, m), (n, m - 1), (n - 1, m - 1)):
        if i > 0 and j > 0:
            for path in alignments(i, j):
                yield (*path, (n - 1, m - 1))


def in_band(i: int, j: int, n: int, m: int, band: int | None) -> bool:
    """Within the band, from its definition."""
    if band is None or max(n, m) == 1:
        return True
    return 2 * abs(i * (m - 1) - j * (n - 1)) <= max(2 * band, 1) * (max(n, m) - 1)


def enumerated(cost: Tensor, gamma: float, band: int | None = None) -> tuple[Tensor, Tensor]:
    """Value and expected alignment of one float64 matrix, by going through all its paths."""
    n, m = cost.shape
    paths = [p for p in alignments(n, m) if all(in_band(i, j, n, m, band) for i, j in p)]
    totals = torch.stack([sum((cost[i, j] for i, j in p), cost.new_zeros(())) for p in paths])
    if gamma == 0:
        value, shares = totals.min(), torch.nn.functional.one_hot(totals.argmin(), len(paths)).double()
    else:
        value, shares = -gamma * torch.logsumexp(-totals / gamma, 0), torch.softmax(-totals / gamma, 0)
    visits = torch.zeros_like(cost)
    for share, path in zip(shares, paths):
        for i, j in path:
            visits[i, j] += share
    return value, visits


def matrix(n: int, m: int, seed: int = 0, batch: int = 1) -> Tensor:
    return 3 * torch.rand(batch, n, m, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


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


@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(1, 9), m=st.integers(1, 9), gamma=st.sampled_from([0.0, 0.05, 1.0]),
    band=st.sampled_from([-1, 0, 1, 3]), seed=st.integers(0, 99), columns=st.booleans(),
)  # fmt: skip
def test_compiled_loops_agree_with_tensor_operations(
    n: int, m: int, gamma: float, band: int, seed: int, columns: bool
) -> None:
    n, m = sorted((n, m))
    cost = matrix(n, m, seed, batch=2)
    if columns:  # the same numbers, laid out by columns
        cost = cost.mT.contiguous().mT
    lengths = np.array([n, max(1, n - 1)]), np.array([m, max(1, m // 2)])
    plan = Plan.of((2, n, m), *lengths, band)
    values, up, left = _plan.forward(dense(cost), plan, gamma, True)
    visits = _plan.backward(dense(cost), up, left, plan, torch.tensor([1.0, 2.0]))
    leaf = cost.clone().requires_grad_()
    expected = _torch.soft_dtw(leaf, plan, gamma)
    torch.testing.assert_close(values, expected.detach(), **EXACT)
    (gradient,) = torch.autograd.grad((expected * torch.tensor([1.0, 2.0])).sum(), leaf)
    torch.testing.assert_close(visits, gradient, **EXACT)


@pytest.mark.parametrize("shape", [(5, 4), (3, 6)])
@pytest.mark.parametrize("band", [None, 1])
def test_first_and_second_derivatives(shape: tuple[int, int], band: int | None) -> None:
    cost = matrix(*shape, batch=2).requires_grad_()
    n, m = torch.tensor([shape[0], 2]), torch.tensor([shape[1], 3])

    def value(c: Tensor) -> Tensor:
        return soft_dtw(c, 0.6, n, m, band=band)

    assert torch.autograd.gradcheck(value, cost)
    assert torch.autograd.gradgradcheck(value, cost)
    assert torch.autograd.gradcheck(lambda c: expected_alignment(c, 0.6, n, m, band=band), cost)


@pytest.mark.parametrize("with_loops", [False, True], ids=["tensors", "loops"])
@pytest.mark.parametrize("shape", [(5, 4), (3, 6)])
def test_what_other_devices_do(
    with_loops: bool, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tensor operations in place of everything; and loops that leave second derivatives to them, as on CUDA."""
    loops = SimpleNamespace(forward=_plan.forward, backward=_plan.backward)
    cost = matrix(*shape, batch=2).requires_grad_()
    n, m = torch.tensor([shape[0], 2]), torch.tensor([shape[1], 3])

    def results() -> list[Tensor]:
        out = []
        for gamma in (0.0, 0.6):
            value = soft_dtw(cost, gamma, n, m, band=1)
            (gradient,) = torch.autograd.grad(value.sum(), cost, create_graph=True)
            visits = expected_alignment(cost, gamma, n, m, band=1)
            out += [value, gradient, visits]
            if gamma > 0:
                out += torch.autograd.grad((gradient * cost.detach()).sum(), cost, retain_graph=True)
                out += torch.autograd.grad((visits * cost).sum(), cost)
        path = dtw(cost.detach().round(), n, m)  # ties
        out += [dtw(cost.detach(), n, m, band=1).dense(), dtw(cost.detach().mT, m, n).dense()]
        return [x.detach() for x in (*out, path.score, path.dense().sum((1, 2)))]

    expected = results()
    monkeypatch.setattr(softdtw, "_backend", lambda _: loops if with_loops else None)
    for got, right in zip(results(), expected):
        torch.testing.assert_close(got, right, **EXACT)


def test_third_derivatives_are_refused_in_words() -> None:
    cost = matrix(3, 3).requires_grad_()
    (first,) = torch.autograd.grad(soft_dtw(cost).sum(), cost, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), cost, create_graph=True)
    with pytest.raises(NotImplementedError, match="twice"):
        second.sum().backward()


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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sizes", [(40, 33), (33, 40, 6), (70, 90, 1), (20, 21, 130)])
def test_of_sequences_is_of_their_squared_distances(dtype: torch.dtype, sizes: tuple[int, ...]) -> None:
    rng = torch.Generator().manual_seed(1)
    features = sizes[2] if sizes[2:] else 3
    sizes = sizes[:2]
    x, y = (
        torch.randn(9, size, features, generator=rng, dtype=torch.float64) / features**0.5 for size in sizes
    )
    n, m = (torch.randint(1, size + 1, (9,), generator=rng) for size in sizes)
    exact = [z.clone().requires_grad_() for z in (x, y)]
    given_ = [z.to(dtype).requires_grad_() for z in (x, y)]
    costs = (exact[0][:, :, None] - exact[1][:, None]).square().sum(3)
    expected = soft_dtw(costs, 0.5, n, m, band=20)
    value = soft_dtw_sqeuclidean(*given_, 0.5, n, m, band=20)
    tolerance = {"rtol": 1e-5, "atol": 1e-4} if dtype == torch.float32 else {"rtol": 1e-12, "atol": 1e-10}
    torch.testing.assert_close(value.double(), expected, **tolerance)
    weights = torch.rand(9, generator=rng, dtype=torch.float64)
    gradients = torch.autograd.grad((value * weights.to(dtype)).sum(), given_)
    for got, right in zip(gradients, torch.autograd.grad((expected * weights).sum(), exact)):
        torch.testing.assert_close(got.double(), right, **tolerance)


@pytest.mark.parametrize("sizes", [(4, 5), (5, 4)])
def test_second_derivatives_of_sequences(sizes: tuple[int, int]) -> None:
    rng = torch.Generator().manual_seed(1)
    x, y = (torch.randn(2, s, 2, generator=rng, dtype=torch.float64, requires_grad=True) for s in sizes)
    n, m = torch.tensor([sizes[0], 2]), torch.tensor([3, sizes[1]])
    assert torch.autograd.gradcheck(lambda a, b: soft_dtw_sqeuclidean(a, b, 0.6, n, m), (x, y))
    assert torch.autograd.gradgradcheck(lambda a, b: soft_dtw_sqeuclidean(a, b, 0.6, n, m), (x, y))
    (alone,) = torch.autograd.grad(soft_dtw_sqeuclidean(x, y.detach(), 0.6, n, m).sum(), x)
    (both, _) = torch.autograd.grad(soft_dtw_sqeuclidean(x, y, 0.6, n, m).sum(), (x, y))
    torch.testing.assert_close(alone, both)


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


def test_distances_of_sequences_far_from_the_origin_whatever_the_padding() -> None:
    rng = torch.Generator().manual_seed(0)
    x, y = (100 + torch.randn(2, size, 150, generator=rng) for size in (9, 12))
    n, m = torch.tensor([9, 3]), torch.tensor([12, 2])
    x[1, 3:] = y[1, 2:] = 0
    for of in (squared_distances(x, y, m), squared_distances(x[1:, :3], y[1:, :2])):
        part = of[-1, :3, :2]
        exact = (x[1, :3, None].double() - y[1, None, :2].double()).square().sum(-1)
        torch.testing.assert_close(part.double(), exact, rtol=1e-6, atol=0)
    exact = soft_dtw_sqeuclidean(x.double(), y.double(), 1.0, n, m)
    torch.testing.assert_close(soft_dtw_sqeuclidean(x, y, 1.0, n, m).double(), exact, rtol=1e-6, atol=0)
    gradients = []
    for dtype in (torch.float32, torch.float64):
        leaf = (900 + x[:1]).to(dtype).requires_grad_()
        costs = squared_distances(leaf, (900 + y[:1]).to(dtype))
        gradients.append(torch.autograd.grad(costs.sum(), leaf)[0].double())
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-6 * float(gradients[1].abs().max()))
    with pytest.raises(ValueError, match="lengths from 1 to 12"):
        squared_distances(x, y, torch.tensor([12, 13]))


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


@settings(max_examples=30, deadline=None)
@given(n=st.integers(1, 6), m=st.integers(1, 6), seed=st.integers(0, 99), whole=st.booleans())
def test_dtw_is_a_best_path(n: int, m: int, seed: int, whole: bool) -> None:
    cost = matrix(n, m, seed)
    if whole:  # ties
        cost = cost.round()
    best, _ = enumerated(cost[0], 0.0)
    path = dtw(cost)
    check_coupling(path, torch.tensor([n]), torch.tensor([m]))
    torch.testing.assert_close(-path.score[0], best, **EXACT)
    torch.testing.assert_close((path.dense() * cost).sum(), best, **EXACT)
    steps = set(zip(path.source[0].diff().tolist(), path.target[0].diff().tolist()))
    assert steps <= {(0, 1), (1, 0), (1, 1)}
    assert (path.mass == 1).all()
    assert (path.source[0, 0], path.target[0, 0]) == (0, 0)
    assert (path.source[0, -1], path.target[0, -1]) == (n - 1, m - 1)


def test_dtw_is_that_of_dtaidistance() -> None:
    other = pytest.importorskip("dtaidistance.dtw_ndim", reason="dtaidistance is the oracle")
    rng = np.random.default_rng(0)
    for n, m in ((20, 20), (31, 17), (5, 40)):
        x, y = rng.normal(size=(n, 3)), rng.normal(size=(m, 3))
        cost = torch.from_numpy(((x[:, None] - y[None]) ** 2).sum(2))[None]
        assert -dtw(cost).score.item() == pytest.approx(other.distance(x, y) ** 2, rel=1e-9)


def test_dtw_of_several_rows_pads_by_repetition() -> None:
    n, m = torch.tensor([5, 2, 1]), torch.tensor([4, 4, 1])
    cost = matrix(5, 4, batch=3)
    path = dtw(cost, n, m)
    check_coupling(path, n, m)
    for row in range(3):
        alone = dtw(cost[row : row + 1, : n[row], : m[row]])
        size = alone.mass.shape[1]
        assert torch.equal(path.source[row, :size], alone.source[0])
        assert torch.equal(path.target[row, :size], alone.target[0])
        assert path.mass[row].sum() == size
    empty = dtw(torch.zeros(0, 3, 3))
    assert empty.mass.shape[0] == 0


@settings(max_examples=30, deadline=None)
@given(n=st.integers(1, 4), m=st.integers(1, 7), seed=st.integers(0, 99))
def test_subsequence_is_the_best_part(n: int, m: int, seed: int) -> None:
    cost = matrix(n, m, seed)
    best = min(
        -dtw(cost[:, :, begin:end]).score.item() for begin, end in itertools.combinations(range(m + 1), 2)
    )
    match = subsequence_dtw(cost)
    assert -match.coupling.score.item() == pytest.approx(best, rel=1e-12)
    begin, end = match.spans[0].tolist()
    assert -dtw(cost[:, :, begin:end]).score.item() == pytest.approx(best, rel=1e-12)
    check_coupling(match.coupling, torch.tensor([n]), torch.tensor([m]))
    torch.testing.assert_close((match.coupling.dense() * cost).sum().item(), best, **EXACT)
    assert (match.coupling.dense().sum(2) > 0).all()


def test_subsequence_of_several_lengths() -> None:
    n, m = torch.tensor([4, 2]), torch.tensor([9, 5])
    cost = matrix(4, 9, batch=2)
    cost[1, 2:] = math.nan
    match = subsequence_dtw(cost, n, m)
    for row in range(2):
        alone = subsequence_dtw(cost[row : row + 1, : n[row], : m[row]])
        assert torch.equal(match.spans[row], alone.spans[0])
        torch.testing.assert_close(match.coupling.score[row], alone.coupling.score[0], **EXACT)


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


def test_thousands_of_tiny_pairs() -> None:
    # several are one task of the compiled loops
    rng = torch.Generator().manual_seed(0)
    x, y = (torch.randn(3000, size, 3, generator=rng).requires_grad_() for size in (7, 9))
    n, m = (torch.randint(1, size + 1, (3000,), generator=rng) for size in (7, 9))
    values = soft_dtw_sqeuclidean(x, y, 0.5, n, m)
    of_x, of_y = torch.autograd.grad(values.sum(), (x, y))
    costs = squared_distances(x, y).detach().requires_grad_()
    direct = soft_dtw(costs, 0.5, n, m)
    visits = torch.autograd.grad(direct.sum(), costs)[0]
    paths = dtw(costs, n, m)
    torch.testing.assert_close(direct, values)
    for b in range(0, 3000, 331):
        a, c = x[b, : n[b]].detach(), y[b, : m[b]].detach()
        alone = squared_distances(a[None], c[None]).requires_grad_()
        value = soft_dtw(alone, 0.5)
        torch.testing.assert_close(values[b], value[0])
        share = torch.autograd.grad(value[0], alone)[0][0]
        torch.testing.assert_close(visits[b, : n[b], : m[b]], share)
        pull = 2 * (share.sum(1, keepdim=True) * a - share @ c)
        torch.testing.assert_close(of_x[b, : n[b]], pull, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(
            of_y[b, : m[b]], 2 * (share.sum(0)[:, None] * c - share.mT @ a), rtol=1e-4, atol=1e-5
        )
        assert not of_x[b, n[b] :].any()
        torch.testing.assert_close(paths.score[b], dtw(alone.detach()).score[0])


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


def test_what_does_not_fit_is_said() -> None:
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
