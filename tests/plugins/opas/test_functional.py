from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from isotone_opas import functional as F
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from tests.plugins.opas.parts import Sinkhorn, unit

EXACT = {"rtol": 0.0, "atol": 1e-9}


def objective(q: Tensor, c: Tensor, plan: Tensor, lam: Tensor, a: Tensor, b: float) -> Tensor:
    """Equation 4, with the paper's matrix A."""
    m = len(q)
    matrix = torch.eye(m).double() - torch.diag(torch.ones(m - 1), -1)
    matrix[0] = 0
    return (q - plan @ c).square().sum() + (lam * (b - matrix @ plan @ a)).sum()


def problem(seed: int, m: int, n: int, d: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    rng = torch.Generator().manual_seed(seed)
    q = unit(rng, m, d, dtype=torch.float64)
    c = unit(rng, n, d, dtype=torch.float64)
    if seed % 2:
        c[seed % n] = 0  # a silent window
    lam = torch.rand(m, generator=rng, dtype=torch.float64)
    lam[0] = 0
    return q, c, lam, F.positions(n).double()


def best_of_all(q: Tensor, c: Tensor, lam: Tensor, a: Tensor, b: float) -> tuple[Tensor, float, float]:
    """The best selection in any order, its objective, and that of the next best."""
    found = []
    for choice in itertools.permutations(range(len(c)), len(q)):
        plan = torch.eye(len(c)).double()[list(choice)]
        found.append((float(objective(q, c, plan, lam, a, b)), plan))
    found.sort(key=lambda pair: pair[0])
    return found[0][1], found[0][0], found[1][0] if len(found) > 1 else float("inf")


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), m=st.integers(1, 4), spare=st.integers(0, 2), d=st.integers(2, 6))
def test_theorem_1(seed: int, m: int, spare: int, d: int) -> None:
    q, c, lam, a = problem(seed, m, m + spare, d)
    best, value, next_value = best_of_all(q, c, lam, a, 0.7)
    reward = F.theorem1_reward((q @ c.T)[None], c[None], lam[None], a)
    row, column = linear_sum_assignment(-reward[0].numpy())
    assigned = torch.zeros_like(best)
    assigned[row, column] = 1
    torch.testing.assert_close(float(objective(q, c, assigned, lam, a, 0.7)), value, **EXACT)
    # the limit of small temperatures: Sinkhorn's error falls as 1 / iterations, and slowly where two are nearly equal
    plan = Sinkhorn(temperature=5e-3, iterations=2000)(reward)[0]
    assert float((reward[0] * plan).sum()) > float((reward[0] * best).sum()) - 0.1
    if next_value - value > 0.3:
        torch.testing.assert_close(plan, best, rtol=0, atol=1e-2)


def test_scores_are_minus_the_objective() -> None:
    q, c, lam, a = problem(3, 4, 7, 5)
    plan = Sinkhorn()(F.theorem1_reward((q @ c.T)[None], c[None], lam[None], a))
    fit = F.fit_score(q[None], c[None], plan)
    order = F.order_score(plan, lam[None], a, margin=0.7)
    torch.testing.assert_close(-(fit + order)[0], objective(q, c, plan[0], lam, a, 0.7), **EXACT)


def test_hinge_gives_nothing_for_what_is_beyond_the_margin() -> None:
    a, lam = F.positions(5).double(), torch.tensor([[0.0, 1.0, 1.0]]).double()
    ordered = torch.eye(5).double()[[0, 2, 4]][None]
    swapped = torch.eye(5).double()[[0, 4, 2]][None]
    assert F.order_score(ordered, lam, a, margin=0.1, hinge=True) == 0
    assert F.order_score(ordered, lam, a, margin=0.1) > 0
    expected = -(0.1 + a[4] - a[2])
    torch.testing.assert_close(
        F.order_score(swapped, lam, a, margin=0.1, hinge=True), expected[None], **EXACT
    )


def test_gradients() -> None:
    rng = torch.Generator().manual_seed(0)
    q, c = (unit(rng, 2, k, 3, dtype=torch.float64).requires_grad_() for k in (3, 5))
    lam = torch.rand(2, 3, generator=rng, dtype=torch.float64).requires_grad_()
    a = F.positions(5).double()

    def value(q: Tensor, c: Tensor, lam: Tensor) -> Tensor:
        plan = Sinkhorn(iterations=4)(F.theorem1_reward(F.similarities(q, c), c, lam, a))
        return F.fit_score(q, c, plan) + F.order_score(plan, lam, a)

    assert torch.autograd.gradcheck(value, (q, c, lam))
    assert torch.autograd.gradcheck(F.hinge_reward, (q, c))


def test_positions() -> None:
    torch.testing.assert_close(F.positions(20)[-1], torch.tensor(1.2**19), rtol=1e-6, atol=0)
    assert F.positions(500, None).tolist() == list(range(500))
    assert (F.positions(40).diff() > 0).all()
    with pytest.raises(ValueError, match="Set growth to None"):
        F.positions(500)
    with pytest.raises(ValueError, match="growth > 1"):
        F.positions(5, 1.0)


def test_hinge_reward() -> None:
    q, c = torch.tensor([[[1.0, 0.0]]]), torch.tensor([[[0.5, 3.0], [2.0, -1.0]]])
    assert F.hinge_reward(q, c).tolist() == [[[-0.5, -1.0]]]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), items=st.integers(1, 7), share=st.sampled_from([0.0, 0.3, 1.0]))
def test_margin_loss_is_the_sum_over_pairs(seed: int, items: int, share: float) -> None:
    rng = torch.Generator().manual_seed(seed)
    scores = torch.rand(3, items, generator=rng, dtype=torch.float64).requires_grad_()
    relevant = torch.rand(3, items, generator=rng) < share
    valid = torch.rand(3, items, generator=rng) < 0.8
    loss = F.margin_loss(scores, relevant, 0.3, valid)
    values = scores.detach()
    for q in range(3):
        pairs = [
            max(0.0, float(0.3 + values[q, j] - values[q, i]))
            for i, j in itertools.product(range(items), repeat=2)
            if relevant[q, i] and not relevant[q, j] and valid[q, i] and valid[q, j]
        ]
        assert loss[q].item() == pytest.approx(sum(pairs) / len(pairs) if pairs else 0.0, abs=1e-12)
    if loss.requires_grad:
        (grad,) = torch.autograd.grad(loss.sum(), scores)
        assert torch.isfinite(grad).all()


def test_negatives_are_explored() -> None:
    rng = torch.Generator().manual_seed(0)
    relevant = torch.rand(30, 50, generator=rng) < 0.2
    relevant[0] = False
    relevant[1, :48] = True
    items, valid = F.explore_negatives(relevant, negatives=20, generator=rng)
    counts = torch.zeros(50)
    for q in range(30):
        chosen = items[q][valid[q]].tolist()
        assert len(set(chosen)) == len(chosen)
        positive = [i for i in chosen if relevant[q, i]]
        assert set(positive) == set(relevant[q].nonzero()[:, 0].tolist())
        assert len(chosen) - len(positive) == min(20, int((~relevant[q]).sum()))
        counts[[i for i in chosen if not relevant[q, i]]] += 1
    assert (counts > 0).all()
    again, _ = F.explore_negatives(relevant, 7, positives=1, generator=torch.Generator().manual_seed(1))
    assert again.shape == (30, 8)


def test_stagger_shows_the_next_rows() -> None:
    rows = torch.arange(6.0).view(1, 3, 2)
    shifted = F.shift_rows(rows, 4)
    assert shifted.shape == (1, 5, 3, 2)
    for k, i in itertools.product(range(5), range(3)):
        expected = rows[0, i + k] if i + k < 3 else torch.zeros(2)
        assert shifted[0, k, i].tolist() == expected.tolist()
