"""Contrastive losses against exhaustive search, hand-worked cases and pytorch-metric-learning."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from isotone_contrastive.functional import (
    assignment_loss,
    candidates,
    costs,
    hinge_loss,
    info_nce_loss,
    logistic_loss,
    sparse_loss,
    sparsemax,
)
from isotone_contrastive.losses import (
    ContrastiveLoss,
    InfoNCE,
    LinearAssignment,
    MarginTriplet,
    NTXent,
    SparseCLR,
    contrastive_losses,
    zero_gradient_share,
)
from torch import Tensor

NAMES = ("assignment", "triplet", "info-nce", "nt-xent", "nt-logistic", "sparse-clr")
METRICS = ("euclidean", "cosine")


def views(size: int = 7, dims: int = 4, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    a, b = torch.randn(2, size, dims, dtype=torch.float64, generator=generator)
    return a, a + 0.7 * b


def rows_of(seed: int, rows: int = 5, columns: int = 6, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    values = scale * torch.randn(rows, columns, dtype=torch.float64, generator=generator)
    return values, torch.randint(columns, (rows,), generator=generator)


def every_metric(name: str) -> list[ContrastiveLoss]:
    return [contrastive_losses.build(name, metric=metric) for metric in METRICS]


def test_all_losses_have_names() -> None:
    assert set(NAMES) <= set(contrastive_losses.names())


@pytest.mark.parametrize("name", NAMES)
def test_gradients_and_values_of_a_module(name: str) -> None:
    a, b = (x.requires_grad_() for x in views())
    for loss in every_metric(name):
        assert loss(a, b).shape == ()
        assert loss(a, b) >= 0
        assert torch.autograd.gradcheck(loss, (a, b))


@pytest.mark.parametrize("name", NAMES)
def test_a_loss_does_not_depend_on_the_order_of_items(name: str) -> None:
    a, b = views()
    order = torch.randperm(len(a), generator=torch.Generator().manual_seed(3))
    for loss in every_metric(name):
        torch.testing.assert_close(loss(a[order], b[order]), loss(a, b))
        assert loss(a, b) < loss(a, b[order])  # wrong partners


@pytest.mark.parametrize("name", NAMES)
def test_half_precision_is_widened(name: str) -> None:
    a, b = views()
    for loss in every_metric(name):
        value = loss(a.bfloat16(), b.bfloat16())
        assert value.dtype == torch.float32
        torch.testing.assert_close(value, loss(a.bfloat16().float(), b.bfloat16().float()))


def test_costs() -> None:
    a, b = views()
    torch.testing.assert_close(costs(a, b, "euclidean")[1, 2], (a[1] - b[2]).norm())
    torch.testing.assert_close(costs(a, b, "cosine")[1, 2], -torch.cosine_similarity(a[1], b[2], dim=0))
    zero = torch.zeros(2, 3, requires_grad=True)
    costs(zero, zero, "euclidean").sum().backward()
    assert (zero.grad == 0).all()
    # a distance of 1e-5 between vectors of length 10, in float32
    x = torch.full((30, 100), 1.0)
    y = x.clone()
    y[:, 0] += 2**-16
    torch.testing.assert_close(costs(x, y, "euclidean"), torch.full((30, 30), 2.0**-16), rtol=1e-5, atol=0)


def test_pairs_that_compete() -> None:
    a, b = views(4)
    rows, positive = candidates(a, b, "cosine", "rows")
    assert rows.shape == (4, 4)
    assert positive.tolist() == [0, 1, 2, 3]
    both, twice = candidates(a, b, "cosine", "symmetric")
    torch.testing.assert_close(both, torch.cat([rows, rows.mT]))
    assert twice.tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    everybody, where = candidates(a, b, "cosine", "all")
    assert everybody.shape == (8, 7)
    torch.testing.assert_close(everybody.gather(1, where[:, None])[:, 0], rows.diagonal().repeat(2))
    torch.testing.assert_close(everybody[0, :3], costs(a, a, "cosine")[0, 1:])


@pytest.mark.parametrize("size", [2, 4, 6])
def test_the_assignment_is_the_best_of_all(size: int) -> None:
    for seed in range(4):
        rows = torch.rand(size, size, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        for margin in (0.0, 0.3):
            raised = rows + margin * torch.eye(size)
            best = min(
                sum(float(raised[i, j]) for i, j in enumerate(order))
                for order in itertools.permutations(range(size))
            )
            value = assignment_loss(rows, margin).sum()
            assert value.item() == pytest.approx(float(raised.trace()) - best)
            assert value >= -1e-12


@given(seed=st.integers(0, 10**6), margin=st.floats(0, 3))
@settings(max_examples=30, deadline=None)
def test_proposition_1_margin_triplet_is_the_batch_hard_assignment(seed: int, margin: float) -> None:
    a, b = views(6, 3, seed)
    relaxed = LinearAssignment(mining="batch-hard", margin=margin)
    torch.testing.assert_close(relaxed(a, b), MarginTriplet(margin=margin)(a, b))
    # rows that may share columns do at least as well as rows that may not
    assert relaxed(a, b) >= LinearAssignment(margin=margin)(a, b) - 1e-12


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_proposition_2_info_nce_tends_to_the_batch_hard_assignment(seed: int) -> None:
    rows, positive = rows_of(seed)
    hard = rows.gather(1, positive[:, None])[:, 0] - rows.amin(1)
    for temperature in (0.1, 0.001):
        soft = temperature * info_nce_loss(rows, positive, temperature)
        sparse = temperature * sparse_loss(rows, positive, temperature)
        assert (soft >= hard - 1e-12).all()
        assert (soft <= hard + temperature * math.log(rows.shape[1]) + 1e-12).all()
        assert (sparse >= hard - 1e-9).all()
        assert (sparse <= hard + temperature / 2 + 1e-9).all()


def test_against_pytorch_metric_learning() -> None:
    pytest.importorskip("pytorch_metric_learning", reason="pytorch-metric-learning is not installed")
    from pytorch_metric_learning import distances, losses, miners

    a, b = views(12, 5)
    labels, same = (
        torch.arange(12),
        torch.arange(12),
    )  # the library leaves the diagonal out of one tensor and itself
    both, twice = torch.cat([a, b]), torch.cat([labels, labels])
    for temperature in (0.05, 0.5):
        theirs = losses.NTXentLoss(temperature)
        torch.testing.assert_close(NTXent(temperature=temperature)(a, b), theirs(both, twice))
        between = theirs(a, labels, ref_emb=b, ref_labels=same)
        torch.testing.assert_close(InfoNCE(temperature=temperature)(a, b), between)
    far = 1e3  # a margin that no triplet meets: the library averages over those that count
    for metric, distance in (
        ("euclidean", distances.LpDistance(normalize_embeddings=False)),
        ("cosine", distances.CosineSimilarity()),
    ):
        miner, triplet = (
            miners.BatchHardMiner(distance=distance),
            losses.TripletMarginLoss(far, distance=distance),
        )
        mined = triplet(a, labels, miner(a, labels, b, same), ref_emb=b, ref_labels=same)
        torch.testing.assert_close(MarginTriplet(margin=far, metric=metric)(a, b), mined)
        mined = triplet(both, twice, miner(both, twice))
        torch.testing.assert_close(MarginTriplet(margin=far, metric=metric, pairs="all")(a, b), mined)


def test_nt_logistic_is_a_regression_of_every_pair() -> None:
    rows, positive = rows_of(0, 4, 6)
    is_own = torch.nn.functional.one_hot(positive, 6).double()
    weight = torch.where(is_own > 0, 1.0, 1 / 5)
    expected = torch.nn.functional.binary_cross_entropy_with_logits(
        (0.2 - rows) / 0.7, is_own, weight, reduction="none"
    ).sum(1)
    torch.testing.assert_close(logistic_loss(rows, positive, 0.7, 0.2), expected)


# z, its projection on the simplex, and the sparsemax loss of each label, worked out by hand
BY_HAND = [
    ([0.0, 0.0], [0.5, 0.5], [0.25, 0.25]),
    ([2.0, 0.0], [1.0, 0.0], [0.0, 2.0]),
    ([1.0, 0.0], [1.0, 0.0], [0.0, 1.0]),
    ([0.5, 0.0], [0.75, 0.25], [0.0625, 0.5625]),
    ([0.5, 0.0, -3.0], [0.75, 0.25, 0.0], [0.0625, 0.5625, 3.5625]),
    ([1e4, 1e4, 0.0], [0.5, 0.5, 0.0], [0.25, 0.25, 1e4 + 0.25]),
]


@pytest.mark.parametrize("scores, projection, values", BY_HAND)
def test_sparsemax_by_hand(scores: list[float], projection: list[float], values: list[float]) -> None:
    z = torch.tensor([scores] * len(scores), dtype=torch.float64)
    torch.testing.assert_close(sparsemax(z)[0], torch.tensor(projection, dtype=torch.float64))
    found = sparse_loss(-z, torch.arange(len(scores)))
    torch.testing.assert_close(found, torch.tensor(values, dtype=torch.float64))
    torch.testing.assert_close(
        sparse_loss(-z.float(), torch.arange(len(scores))).double(), found, rtol=1e-6, atol=0
    )


@given(seed=st.integers(0, 10**6), scale=st.sampled_from([0.1, 1.0, 30.0]))
@settings(max_examples=40, deadline=None)
def test_sparsemax_is_the_projection_onto_the_simplex(seed: int, scale: float) -> None:
    scores, _ = rows_of(seed, scale=scale)
    point = sparsemax(scores)
    assert (point >= 0).all()
    torch.testing.assert_close(point.sum(1), torch.ones(len(point), dtype=torch.float64))
    # first-order optimality against every vertex of the simplex: <z - p, e_j - p> <= 0
    residual = scores - point
    assert (residual - (residual * point).sum(1, keepdim=True) <= 1e-9 * max(1, scale)).all()


@given(seed=st.integers(0, 10**6), share=st.floats(0, 1), scale=st.sampled_from([0.3, 1.0, 10.0]))
@settings(max_examples=60, deadline=None)
def test_sparse_clr_is_convex_and_not_negative(seed: int, share: float, scale: float) -> None:
    one, positive = rows_of(seed, scale=scale)
    other, _ = rows_of(seed + 1, scale=scale)
    middle = sparse_loss(share * one + (1 - share) * other, positive)
    ends = share * sparse_loss(one, positive) + (1 - share) * sparse_loss(other, positive)
    assert (middle <= ends + 1e-9 * scale).all()
    assert (middle >= -1e-12 * scale).all()
    # the published closed form, with its sum added instead of subtracted
    z = -one
    support = sparsemax(z) > 0
    threshold = ((z * support).sum(1) - 1) / support.sum(1)
    sums = ((z.square() - threshold[:, None].square()) * support).sum(1)
    gt = one.gather(1, positive[:, None])[:, 0]
    torch.testing.assert_close(sparse_loss(one, positive), gt + sums / 2 + 0.5)


def test_the_gradient_of_sparse_clr_is_sparse() -> None:
    rows, positive = rows_of(1, 30, 40)
    rows.requires_grad_()
    (gradient,) = torch.autograd.grad(sparse_loss(rows, positive).sum(), rows)
    expected = torch.nn.functional.one_hot(positive, 40).double() - sparsemax(-rows.detach())
    torch.testing.assert_close(gradient, expected)
    assert (gradient == 0).double().mean() > 0.8


def test_share_of_negatives_without_gradient() -> None:
    # unit steps on a line: distances 0, 1, 2 ...; only candidates less than 1 from the best have weight
    a = torch.arange(4.0)[:, None]
    assert zero_gradient_share(SparseCLR(), a, a) == 1.0
    assert zero_gradient_share(SparseCLR(temperature=1.5), a, a) == pytest.approx(1 - 6 / 12)
    assert zero_gradient_share(SparseCLR(temperature=1e6), a, a) == 0.0
    assert zero_gradient_share(contrastive_losses.build("info-nce", temperature=1.0), *views()) == 0.0
    assert zero_gradient_share(MarginTriplet(margin=100.0), *views(7)) == pytest.approx(1 - 1 / 6)
    assert zero_gradient_share(MarginTriplet(margin=0.0), a, a) == 1.0
    with torch.no_grad():
        assert zero_gradient_share(SparseCLR(), a, a) == 1.0


@pytest.mark.parametrize(
    "a, b",
    [
        (torch.zeros(3, 2), torch.zeros(4, 2)),
        (torch.zeros(1, 2), torch.zeros(1, 2)),
        (torch.zeros(3), torch.zeros(3)),
        (torch.zeros(3, 2, dtype=torch.long), torch.zeros(3, 2, dtype=torch.long)),
    ],
)
def test_what_are_not_two_views(a: Tensor, b: Tensor) -> None:
    with pytest.raises(ValueError, match="two views"):
        MarginTriplet()(a, b)


@pytest.mark.parametrize(
    "name, options",
    [
        ("assignment", {"mining": "soft"}),
        ("assignment", {"margin": -1.0}),
        ("triplet", {"margin": float("nan")}),
        ("triplet", {"metric": "manhattan"}),
        ("triplet", {"pairs": "some"}),
        ("info-nce", {"temperature": 0.0}),
        ("nt-xent", {"temperature": -1.0}),
        ("nt-logistic", {"temperature": 0.0}),
        ("sparse-clr", {"temperature": 0.0}),
    ],
)
def test_options_outside_their_range(name: str, options: dict) -> None:
    with pytest.raises(ValueError, match="expects"):
        contrastive_losses.build(name, **options)


def test_costs_that_cannot_be_assigned() -> None:
    with pytest.raises(ValueError, match="finite"):
        assignment_loss(torch.full((2, 2), torch.nan))
    with pytest.raises(ValueError, match="diagonal"):
        assignment_loss(torch.zeros(2, 3))


def test_hinge_is_zero_beyond_the_margin() -> None:
    rows = torch.tensor([[0.0, 1.0, 3.0], [2.0, 0.5, 4.0]])
    torch.testing.assert_close(hinge_loss(rows, torch.tensor([0, 0]), 0.5), torch.tensor([0.0, 2.0]))
