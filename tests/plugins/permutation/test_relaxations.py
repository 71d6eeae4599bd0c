"""The relaxations against brute force, the padded Sinkhorn, and the laws that each must keep."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from isotone_permutation.functional import assignment, check_lengths, gumbel_noise, one_hot
from isotone_permutation.ot4p import OT4P, gaussian_samples, nearest_permutation, toward_permutation
from isotone_permutation.relax import (
    GumbelSinkhorn,
    Hungarian,
    Ordered,
    SingleStepExp,
    SingleStepSum,
    Sinkhorn,
)
from torch import Tensor

from isotone.interfaces import Relaxation

READERS: dict[str, Callable[[], Relaxation]] = {
    "sinkhorn": lambda: Sinkhorn(temperature=0.7, tolerance=0.0),
    "gumbel-sinkhorn": lambda: GumbelSinkhorn(temperature=0.7, tolerance=0.0),
    "single-step-exp": lambda: SingleStepExp(temperature=0.7),
    "single-step-sum": SingleStepSum,
    "hungarian": Hungarian,
    "ordered": Ordered,
}
SOFT = [name for name in READERS if name not in ("hungarian", "ordered")]


def rewards(batch: int, m: int, n: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(batch, m, n, generator=generator, dtype=torch.float64).to(dtype)


def padded_sinkhorn(reward: Tensor, temperature: float, iterations: int) -> Tensor:
    """The n x n problem that OPAS states, rows of zeros and all."""
    m, n = reward.shape
    scores = torch.cat([reward, reward.new_zeros(n - m, n)]) / temperature
    for _ in range(iterations):
        scores = scores - torch.logsumexp(scores, 0, keepdim=True)
        scores = scores - torch.logsumexp(scores, 1, keepdim=True)
    return scores.exp()[:m]


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_rows_sum_to_one_within_the_lengths_and_nothing_lies_beyond(name: str, dtype: torch.dtype) -> None:
    rows, columns = torch.tensor([4, 2, 0, 3, 0]), torch.tensor([6, 5, 3, 3, 0])
    reward = rewards(5, 4, 6, dtype=dtype)
    soft = READERS[name]()(reward, rows, columns)
    assert soft.dtype == dtype
    assert isinstance(READERS[name](), Relaxation)
    inside = (torch.arange(4) < rows[:, None])[:, :, None] & (torch.arange(6) < columns[:, None])[:, None]
    assert not soft[~inside].any()
    expected = (torch.arange(4) < rows[:, None]).double()
    tolerance = 0.03 if dtype == torch.bfloat16 else 1e-5
    torch.testing.assert_close(soft.double().sum(2), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", [name for name in READERS if name != "gumbel-sinkhorn"])
def test_a_row_of_a_batch_is_what_it_is_alone(name: str) -> None:
    rows, columns = torch.tensor([4, 2, 3]), torch.tensor([6, 5, 3])
    reward = rewards(3, 4, 6)
    whole = READERS[name]()(reward, rows, columns)
    reward[1, 2:] = torch.nan
    reward[2, :, 3:] = torch.inf
    again = READERS[name]()(reward, rows, columns)
    assert torch.equal(again, whole)
    for b, (m, n) in enumerate(zip(rows.tolist(), columns.tolist())):
        alone = READERS[name]()(reward[b : b + 1, :m, :n])
        torch.testing.assert_close(alone[0], whole[b, :m, :n], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in READERS if name not in ("gumbel-sinkhorn", "ordered")])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_relabelled_columns_give_relabelled_results(name: str, seed: int) -> None:
    reward = rewards(2, 3, 5, seed)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(5))
    expected = READERS[name]()(reward)[:, :, order]
    torch.testing.assert_close(READERS[name]()(reward[:, :, order]), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", SOFT)
def test_gradients_are_right_and_finite_with_ragged_sizes(name: str) -> None:
    rows, columns = torch.tensor([3, 1, 0]), torch.tensor([4, 3, 2])
    reward = (rewards(3, 3, 4) + 0.1).requires_grad_()
    # a fresh relaxation a call draws the same noise
    assert torch.autograd.gradcheck(lambda z: READERS[name]()(z, rows, columns), reward)
    (gradient,) = torch.autograd.grad(READERS[name]()(reward, rows, columns).square().sum(), reward)
    assert not gradient[1, 1:].any()
    assert not gradient[2].any()
    assert gradient[0].any()


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 3), (1, 7), (4, 9), (6, 20)])
@pytest.mark.parametrize("temperature", [0.05, 0.5, 3.0])
def test_sinkhorn_is_the_padded_one(shape: tuple[int, int], temperature: float) -> None:
    reward = rewards(2, *shape)
    for iterations in (1, 2, 20):
        relaxed = Sinkhorn(temperature=temperature, iterations=iterations, tolerance=0.0)(reward)
        expected = torch.stack([padded_sinkhorn(z, temperature, iterations) for z in reward])
        torch.testing.assert_close(relaxed, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shape", [(30, 30), (30, 60)])
def test_cold_sinkhorn_in_single_precision(shape: tuple[int, int]) -> None:
    """Rewards of 10,000 temperatures: what tells them apart is not rounded as they are."""
    reward = (100 * rewards(2, *shape)).float()
    weight = rewards(2, *shape, seed=1)
    results = []
    for dtype in (torch.float32, torch.float64):
        leaf = reward.to(dtype).requires_grad_()
        soft = Sinkhorn(temperature=0.01, tolerance=0.0)(leaf)
        torch.testing.assert_close(soft.sum(2), torch.ones_like(soft[..., 0]), rtol=0, atol=1e-6)
        gradient = torch.autograd.grad((soft * weight.to(dtype)).sum(), leaf)[0]
        results.append((soft.detach().double(), gradient.double()))
    (soft, gradient), (exact, exact_gradient) = results
    torch.testing.assert_close(soft, exact, rtol=0, atol=2e-5)
    torch.testing.assert_close(soft[0], padded_sinkhorn(reward[0].double(), 0.01, 20), rtol=0, atol=2e-5)
    torch.testing.assert_close(
        gradient, exact_gradient, rtol=0, atol=1e-3 * float(exact_gradient.abs().max())
    )


def test_sinkhorn_ends_when_columns_sum_to_one() -> None:
    reward = rewards(3, 5, 5)
    many = Sinkhorn(temperature=0.3, iterations=10_000, tolerance=1e-7)(reward)
    torch.testing.assert_close(many.sum(1), torch.ones(3, 5, dtype=torch.float64), rtol=0, atol=1e-7)
    exact = Sinkhorn(temperature=0.3, iterations=3000, tolerance=0.0)(reward)
    torch.testing.assert_close(many, exact, rtol=0, atol=1e-6)


def test_sinkhorn_forbids_what_is_minus_infinite() -> None:
    reward = rewards(1, 3, 4)
    reward[0, 0, :2] = reward[0, :, 3] = -torch.inf
    reward.requires_grad_()
    soft = Sinkhorn(iterations=500, tolerance=0.0)(reward)
    assert not soft[0, 0, :2].any()
    assert not soft[0, :, 3].any()
    torch.testing.assert_close(soft.sum(2), torch.ones(1, 3, dtype=torch.float64))
    (gradient,) = torch.autograd.grad(soft[0, 0, 2], reward)
    assert torch.isfinite(gradient).all()


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), m=st.integers(1, 4), spare=st.integers(0, 2))
def test_cold_sinkhorn_and_the_exact_assignments_are_the_best_by_brute_force(
    seed: int, m: int, spare: int
) -> None:
    n = m + spare
    reward = rewards(1, m, n, seed)
    by_sum = sorted(
        (float(reward[0, range(m), list(c)].sum()), c) for c in itertools.permutations(range(n), m)
    )
    best = one_hot(torch.tensor([by_sum[-1][1]]), n, reward.dtype)
    assert torch.equal(Hungarian()(reward), best)
    in_order = max((s, c) for s, c in by_sum if list(c) == sorted(c))
    assert torch.equal(Ordered()(reward), one_hot(torch.tensor([in_order[1]]), n, reward.dtype))
    # it gives up no more than its entropy is worth, and is as sharp as the best is ahead
    cold = Sinkhorn(temperature=0.002, iterations=1000, tolerance=0.0)(reward)
    assert float((cold * reward).sum()) >= by_sum[-1][0] - 0.002 * m * math.log(n) - 0.01
    if len(by_sum) == 1 or by_sum[-1][0] - by_sum[-2][0] > 0.1:
        torch.testing.assert_close(cold, best, rtol=0, atol=0.02)


def test_gumbel_noise_of_one_seed_is_one_sequence() -> None:
    reward = rewards(2, 3, 4)
    one, two = GumbelSinkhorn(seed=3), GumbelSinkhorn(seed=3)
    first, second = one(reward), one(reward)
    assert not torch.equal(first, second)
    assert torch.equal(two(reward), first)
    assert torch.equal(two(reward), second)
    assert torch.equal(GumbelSinkhorn(noise=0.0)(reward), Sinkhorn()(reward))


def test_gumbel_noise_draws_columns_by_their_softmax() -> None:
    """The Gumbel-max theorem: of one row, column j is the largest with probability softmax(reward)_j."""
    reward = torch.tensor([0.0, 1.0, 2.0]).expand(20_000, 1, 3)
    noise = gumbel_noise(reward.shape, torch.Generator().manual_seed(0), reward)
    assert torch.isfinite(noise).all()
    frequency = Hungarian()(reward + noise).mean(0)[0]
    torch.testing.assert_close(frequency, torch.softmax(reward[0, 0], 0), rtol=0, atol=0.015)


def test_single_steps() -> None:
    reward = torch.tensor([[[1.0, 3.0], [-1.0, 1.0]]])
    torch.testing.assert_close(SingleStepSum()(reward), torch.tensor([[[0.25, 0.75], [0.5, 0.5]]]))
    torch.testing.assert_close(SingleStepExp(temperature=2.0)(reward), torch.softmax(reward / 2, 2))


def rotated(relaxation: OT4P, parameters: Tensor) -> tuple[Tensor, Tensor]:
    rotation = relaxation.rotation(parameters)
    size = parameters.shape[1]
    return rotation, nearest_permutation(rotation, torch.full((len(parameters),), size))


def parameters(batch: int, size: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, size, size, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("size", [1, 2, 3, 6, 15])
@pytest.mark.parametrize("temperature", [0.0, 0.3, 0.7, 1.0])
def test_ot4p_lies_between_a_rotation_and_the_nearest_permutation(size: int, temperature: float) -> None:
    a = parameters(10, size)
    relaxation = OT4P(temperature=temperature)
    rotation, columns = rotated(relaxation, a)
    soft, hard = relaxation(a), relaxation.permutation(a)
    assert torch.equal(hard, one_hot(columns, size, torch.float64))
    eye = torch.eye(size, dtype=torch.float64).expand(10, size, size)
    torch.testing.assert_close(soft @ soft.mT, eye, rtol=0, atol=1e-10)
    if temperature == 0:
        torch.testing.assert_close(soft, hard, rtol=0, atol=1e-10)
    signs = torch.linalg.det(hard).round()
    torch.testing.assert_close(torch.linalg.det(soft), signs)
    if temperature == 1:
        rotation[:, :, -1] *= signs[:, None]
        torch.testing.assert_close(soft, rotation, rtol=0, atol=1e-7)


def test_ot4p_is_the_papers_formula_for_even_and_odd_permutations() -> None:
    a = parameters(30, 6)
    relaxation = OT4P(temperature=0.4)
    rotation, columns = rotated(relaxation, a)
    found = toward_permutation(rotation, 0.4, columns)
    odd = 0
    for o, p, soft in zip(rotation.numpy(), one_hot(columns, 6, torch.float64).numpy(), found):
        d = np.eye(6)
        d[5, 5] = np.sign(np.linalg.det(p))
        odd += d[5, 5] < 0
        values, vectors = np.linalg.eig((p @ d).T @ o)
        if (abs(values + 1) > 1e-3).all():
            power = vectors @ np.diag(values**0.4) @ np.linalg.inv(vectors)
            torch.testing.assert_close(soft, torch.from_numpy((p @ d @ power @ d).real), rtol=0, atol=1e-8)
    assert 5 < odd < 25


def test_theorem_2_the_rotation_can_be_had_back() -> None:
    """OT4P's theorem 2: where the nearest permutation is the same, different rotations stay different."""
    rotation, columns = rotated(OT4P(temperature=0.4), parameters(20, 6))
    for o, column, soft in zip(rotation.numpy(), columns, toward_permutation(rotation, 0.4, columns).numpy()):
        p, d = one_hot(column[None], 6, torch.float64)[0].numpy(), np.eye(6)
        d[5, 5] = np.linalg.det(p)
        values, vectors = np.linalg.eig((p @ d).T @ soft @ d)
        turned = vectors @ np.diag(values ** (1 / 0.4)) @ np.linalg.inv(vectors)
        np.testing.assert_allclose((p @ d @ turned).real, o, atol=1e-6)


def test_ot4p_passes_its_gradient_through_one_linear_map() -> None:
    """With W held, the derivative of <G, W B exp(A - A^T)>: the same as of the rotation for W^T G."""
    a = parameters(3, 5).requires_grad_()
    weights = parameters(3, 5, seed=1)
    relaxation = OT4P(temperature=0.3)
    soft = relaxation(a)
    (gradient,) = torch.autograd.grad((weights * soft).sum(), a)
    rotation = relaxation.rotation(a)
    fixed = (soft @ rotation.mT).detach()
    assert torch.autograd.gradcheck(lambda x: fixed @ relaxation.rotation(x), a)
    (expected,) = torch.autograd.grad((weights * (fixed @ rotation)).sum(), a)
    torch.testing.assert_close(gradient, expected)
    assert gradient.triu(1).any()
    assert not gradient.tril().any()


def test_ot4p_leaves_what_lies_beyond_the_lengths_alone() -> None:
    lengths = torch.tensor([6, 5, 2, 1, 0])
    a = parameters(5, 6)
    whole = OT4P()(a, lengths, lengths)
    a[1, 5:], a[2, :, 2:] = torch.nan, torch.inf
    again = OT4P()(a, lengths, lengths)
    assert torch.equal(again, whole)
    for row, (soft, n) in enumerate(zip(whole, lengths.tolist())):
        torch.testing.assert_close(soft[:n, :n], OT4P()(a[row : row + 1, :n, :n])[0], rtol=0, atol=1e-9)
        assert not soft[n:].any()
        assert not soft[:, n:].any()


def test_ot4p_selects_by_appended_rows_of_zeros() -> None:
    a = parameters(6, 7)[:, :4]
    square = torch.cat([a, a.new_zeros(6, 3, 7)], 1)
    torch.testing.assert_close(OT4P()(a), OT4P()(square)[:, :4], rtol=0, atol=0)
    chosen = OT4P().permutation(a)
    assert chosen.sum(2).eq(1).all()
    assert chosen.sum(1).max() == 1
    torch.testing.assert_close(OT4P(temperature=0.0)(a), chosen, rtol=0, atol=1e-9)
    eye = torch.eye(4, dtype=torch.float64).expand(6, 4, 4)
    torch.testing.assert_close(OT4P()(a) @ OT4P()(a).mT, eye, rtol=0, atol=1e-9)


def test_the_coordinates_of_a_selection_are_the_degrees_of_freedom_of_orthonormal_rows() -> None:
    a = (0.1 * parameters(1, 6)[:, :3]).requires_grad_()
    jacobian = torch.autograd.functional.jacobian(lambda x: OT4P(temperature=1.0).rotation(x)[:, :3], a)
    ranks = torch.linalg.svdvals(jacobian.reshape(18, 18))
    assert int((ranks > 1e-6).sum()) == 3 * 6 - 3 * 4 // 2


def test_a_selection_is_learned_by_gradient_and_its_base_moves() -> None:
    """Recover 4 of 7 rows from their sum of squares: the objective sees the whole selection at once."""
    generator = torch.Generator().manual_seed(3)
    items = torch.randn(7, 5, generator=generator, dtype=torch.float64)
    true = [5, 0, 6, 2]
    a = torch.zeros(1, 4, 7, dtype=torch.float64, requires_grad=True)
    relaxation = OT4P(temperature=0.5)
    optimiser = torch.optim.Adam([a], lr=0.05)
    for _ in range(150):
        optimiser.zero_grad()
        (items[true] - relaxation(a) @ items).square().sum().backward()
        optimiser.step()
        relaxation.rebase(a)
    assert relaxation.permutation(a)[0].argmax(1).tolist() == true


def test_a_moved_base_changes_nothing_but_the_coordinates() -> None:
    a = parameters(4, 7)
    relaxation = OT4P(temperature=0.5)
    before = relaxation(a)
    relaxation.rebase(a)
    assert not a.any()
    torch.testing.assert_close(relaxation(a), before, rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match=r"moved for parameters of shape \(4, 7, 7\); got \(2, 7, 7\)"):
        relaxation(a[:2])
    assert OT4P(base="identity")(a.float()).dtype == torch.float32
    torch.testing.assert_close(OT4P(base="identity")(a), torch.eye(7, dtype=torch.float64).expand(4, 7, 7))


def test_known_pairs_are_kept() -> None:
    a = parameters(20, 6)
    relaxation = OT4P(temperature=0.0)
    relaxation.know(torch.tensor([0, 3]), torch.tensor([5, 0]), 6)
    hard = relaxation.permutation(a)
    assert hard[:, 0, 5].all()
    assert hard[:, 3, 0].all()
    torch.testing.assert_close(relaxation(a), hard, rtol=0, atol=1e-9)
    # among the permutations that keep them it is the nearest
    rotation = relaxation.rotation(a)
    for o, p in zip(rotation, hard):
        allowed = [c for c in itertools.permutations(range(6)) if c[0] == 5 and c[3] == 0]
        assert float((o * p).sum()) == pytest.approx(max(float(o[range(6), list(c)].sum()) for c in allowed))
    with pytest.raises(ValueError, match="distinct rows"):
        relaxation.know(torch.tensor([1, 1]), torch.tensor([2, 3]), 6)


def test_gaussian_samples_reach_both_parameters() -> None:
    mean = parameters(2, 3).requires_grad_()
    deviation = torch.full((2, 3, 3), 0.5, dtype=torch.float64, requires_grad=True)
    drawn = gaussian_samples(mean, deviation, 4000, torch.Generator().manual_seed(0))
    assert drawn.shape == (8000, 3, 3)
    of_row = drawn.view(4000, 2, 3, 3)
    torch.testing.assert_close(of_row.mean(0), mean, rtol=0, atol=0.04)
    torch.testing.assert_close(of_row.std(0), deviation, rtol=0, atol=0.03)
    of_mean, of_deviation = torch.autograd.grad(drawn.square().sum() / 4000, (mean, deviation))
    torch.testing.assert_close(of_mean, 2 * mean.detach(), rtol=0, atol=0.1)
    torch.testing.assert_close(of_deviation, 2 * deviation.detach(), rtol=0, atol=0.15)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: Sinkhorn()(torch.zeros(2, 3)), r"expects floating rewards \(B, m, n\); got \(2, 3\)"),
        (lambda: Sinkhorn()(torch.zeros(1, 3, 2)), "Row 0: .* 3 rows and 2 columns"),
        (lambda: Hungarian()(torch.zeros(2, 2, 2), torch.tensor([1, 3])), "Row 1: expected a row length from 0 to 2"),
        (lambda: Hungarian()(torch.zeros(1, 2, 2), torch.tensor([1, 1])), "row lengths of shape"),
        (lambda: Hungarian()(torch.full((1, 2, 2), -torch.inf)), "Row 0: .*infeasible"),
        (lambda: Hungarian()(torch.full((1, 2, 2), torch.nan)), "Row 0: expected finite rewards"),
        (lambda: OT4P()(torch.zeros(1, 3, 2)), "Row 0: .* 3 rows and 2 columns"),
        (lambda: OT4P(temperature=1.5), "from 0 to 1; got 1.5"),
        (lambda: OT4P(base="none"), "'random' or 'identity'"),  # type: ignore[arg-type]
        (lambda: Sinkhorn(temperature=0.0), "temperature above 0"),
        (lambda: Sinkhorn(iterations=0), "iterations of at least 1"),
        (lambda: GumbelSinkhorn(noise=-1.0), "noise of at least 0"),
    ],
)  # fmt: skip
def test_mistakes_are_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_large_batches_are_assigned_on_threads_as_on_one() -> None:
    reward = rewards(6, 60, 90)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = assignment(reward, *check_lengths(reward, None, None))
        torch.set_num_threads(2)
        two = assignment(reward, *check_lengths(reward, None, None))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(one, two)
