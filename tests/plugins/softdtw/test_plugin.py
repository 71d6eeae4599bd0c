from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from isotone_softdtw import functional as F
from isotone_softdtw.align import DTWAligner
from isotone_softdtw.costs import label_costs, pairwise_cost
from isotone_softdtw.loss import SoftDTWLoss
from torch import Tensor

from isotone.alignment import AlignmentError
from isotone.kernels.paths import coupling_from_paths
from isotone.kernels.softdtw import expected_alignment
from isotone.kernels.softdtw import soft_dtw as of_costs
from isotone.testing import check_aligner, check_coupling, check_loss, sample_batch
from isotone.types import Emissions, Grid, Targets

EXACT = {"rtol": 1e-11, "atol": 1e-11}
N, M = torch.tensor([6, 3, 4]), torch.tensor([4, 4, 2])


def pair(seed: int = 0, sizes: tuple[int, int] = (6, 4)) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(seed)
    x, y = (torch.randn(3, s, 2, generator=rng, dtype=torch.float64, requires_grad=True) for s in sizes)
    return x, y


def squared(x: Tensor, y: Tensor) -> Tensor:
    return (x[:, :, None] - y[:, None]).square().sum(-1)


@pytest.mark.parametrize(
    "loss",
    [
        SoftDTWLoss(),
        SoftDTWLoss(gamma=0.0),
        SoftDTWLoss(gamma=0.2, normalize="none"),
        SoftDTWLoss(normalize="tokens", band=1),
    ],
    ids=["default", "hard", "sharp", "band"],
)
def test_losses_keep_the_laws(loss: SoftDTWLoss) -> None:
    check_loss(loss)


@pytest.mark.parametrize("aligner", [DTWAligner(), DTWAligner(band=0)], ids=["free", "band"])
def test_aligners_keep_the_laws(aligner: DTWAligner) -> None:
    check_aligner(aligner)


def test_the_loss_is_soft_dtw_of_minus_log_posteriors() -> None:
    emissions, targets = sample_batch(dtype=torch.float64)
    logits = emissions.logits.requires_grad_()
    value = SoftDTWLoss(gamma=0.7, normalize="none")(emissions, targets)
    gradient = torch.autograd.grad(value.sum(), logits)[0]
    for row, (n, m) in enumerate(zip(emissions.lengths.tolist(), targets.lengths.tolist())):
        log_probs = torch.log_softmax(logits[row, :n], -1)
        costs = -log_probs[:, targets.labels[row, :m]]
        expected = of_costs(costs[None], 0.7)[0]
        torch.testing.assert_close(value[row], expected, **EXACT)
        torch.testing.assert_close(gradient[row], torch.autograd.grad(expected, logits)[0][row], **EXACT)
    for normalize, lengths in (("frames", emissions.lengths), ("tokens", targets.lengths)):
        normalized = SoftDTWLoss(gamma=0.7, normalize=normalize)(emissions, targets)
        torch.testing.assert_close(normalized * lengths, value, **EXACT)


def test_loss_without_frames_or_labels_is_zero() -> None:
    nothing = Emissions(torch.zeros(2, 0, 3), torch.zeros(2, dtype=torch.long), Grid(0.02))
    assert SoftDTWLoss()(nothing, Targets.from_lists([[1], []])).tolist() == [0, 0]
    frames = Emissions(torch.zeros(2, 4, 3), torch.tensor([4, 4]), Grid(0.02))
    value = SoftDTWLoss()(frames, Targets.from_lists([[1], []]))
    assert value[0] > 0
    assert value[1] == 0


@pytest.mark.parametrize(
    "options", [{"gamma": -1.0}, {"gamma": math.nan}, {"band": -1}, {"normalize": "words"}]
)
def test_loss_options_that_do_not_fit(options: dict) -> None:
    with pytest.raises(ValueError, match="SoftDTWLoss expects"):
        SoftDTWLoss(**options)


def test_label_costs_and_their_gradient() -> None:
    rng = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 5, 4, generator=rng, dtype=torch.float64)
    labels = torch.tensor([[1, 1, 3], [2, 0, -7]])  # a label twice, and padding that is no label
    n, m = torch.tensor([5, 3]), torch.tensor([3, 2])
    poisoned = logits.clone()
    poisoned[1, 3:] = math.nan
    poisoned.requires_grad_()
    costs = label_costs(poisoned, labels, n, m)
    torch.testing.assert_close(costs[0], -torch.log_softmax(logits[0], -1)[:, labels[0]], **EXACT)
    inside = torch.zeros(2, 5, 3, dtype=torch.float64)
    inside[0], inside[1, :3, :2] = 1, 1
    (gradient,) = torch.autograd.grad(costs, poisoned, inside)
    assert not gradient[1, 3:].any()

    def masked(x: Tensor) -> Tensor:
        return torch.where(inside > 0, label_costs(x, labels, n, m), 0.0)

    assert torch.autograd.gradcheck(masked, logits.requires_grad_())


def test_aligner_divides_a_frame_by_posteriors() -> None:
    # B and C are likely in the last frame only: the path passes over C there
    probabilities = torch.tensor([[0.98, 0.01, 0.01]] * 3 + [[0.1, 0.5, 0.4]], dtype=torch.float64)
    emissions = Emissions(probabilities.log()[None], torch.tensor([4]), Grid(0.02), blank=2)
    coupling = DTWAligner()(emissions, Targets.from_lists([[0, 1, 2]]))
    check_coupling(coupling, torch.tensor([4]), torch.tensor([3]))
    expected = torch.tensor([[1, 0, 0], [1, 0, 0], [1, 0, 0], [0, 5 / 9, 4 / 9]], dtype=torch.float64)
    torch.testing.assert_close(coupling.dense()[0], expected)
    assert -coupling.score.item() == pytest.approx(-math.log(0.98**3 * 0.5 * 0.4))
    assert not coupling.frameless_share().any()
    assert coupling.hard().frameless_share().item() == pytest.approx(1 / 3)


def test_aligner_of_rows_without_tokens() -> None:
    emissions = Emissions(torch.randn(2, 4, 3), torch.tensor([4, 3]), Grid(0.02))
    coupling = DTWAligner()(emissions, Targets.from_lists([[1, 2], []]))
    check_coupling(coupling, emissions.lengths, torch.tensor([2, 0]))
    assert coupling.mass[0].sum() == pytest.approx(4)
    assert not coupling.mass[1].any()
    none = DTWAligner()(emissions, Targets.from_lists([[], []]))
    assert not none.mass.any()
    with pytest.raises(AlignmentError, match="Row 1"):
        DTWAligner()(emissions, Targets.from_lists([[1], [1, 2, 1, 2]]))
    with pytest.raises(ValueError, match="DTWAligner expects"):
        DTWAligner(band=-1)


def test_frameless_share() -> None:
    paths = torch.tensor([[0, 0, 2, 2], [0, 1, -1, -2], [-1, -1, -1, -1]])
    coupling = coupling_from_paths(paths, torch.tensor([4, 3, 4]), torch.tensor([4, 2, 0]))
    assert coupling.frameless_share().tolist() == [0.5, 0.0, 0.0]
    optional = torch.tensor([[False, True, False, False], [False, True, False, False], [True] * 4])
    assert coupling.frameless_share(optional).tolist() == pytest.approx([1 / 3, 0.0, 0.0])


@pytest.mark.parametrize("cost", ["sqeuclidean", "cosine", squared])
def test_padding_is_never_read(cost: str | Callable) -> None:
    x, y = (z.detach() for z in pair())
    poisoned = [z.clone() for z in (x, y)]
    for row in range(3):
        poisoned[0][row, N[row] :], poisoned[1][row, M[row] :] = math.nan, math.inf
    for function in (
        F.soft_dtw, F.soft_dtw_divergence, F.sharp_soft_dtw, F.sharp_divergence, F.mean_cost, F.mean_cost_divergence,
    ):  # fmt: skip
        options = {} if function in (F.mean_cost, F.mean_cost_divergence) else {"gamma": 0.5}
        leaves = [z.clone().requires_grad_() for z in poisoned]
        value = function(*leaves, source_lengths=N, target_lengths=M, cost=cost, **options)
        for row in range(3):
            alone = [x[row : row + 1, : N[row]], y[row : row + 1, : M[row]]]
            torch.testing.assert_close(value[row], function(*alone, cost=cost, **options)[0], **EXACT)
        gradients = torch.autograd.grad(value.sum(), leaves)
        assert all(torch.isfinite(g).all() for g in gradients)
        assert not gradients[0][1, 3:].any()


@pytest.mark.parametrize("cost", ["sqeuclidean", "cosine"])
def test_gradients(cost: str) -> None:
    x, y = pair()
    for function in (F.soft_dtw, F.soft_dtw_divergence, F.sharp_soft_dtw, F.sharp_divergence):
        assert torch.autograd.gradcheck(lambda a, b: function(a, b, 0.8, N, M, cost=cost), (x, y))  # noqa: B023
    for function in (F.mean_cost, F.mean_cost_divergence):
        assert torch.autograd.gradcheck(lambda a, b: function(a, b, N, M, cost=cost), (x, y))  # noqa: B023
    assert torch.autograd.gradgradcheck(
        lambda a, b: F.soft_dtw_divergence(a, b, 0.8, N, M, cost=cost), (x, y)
    )
    # the masses of a coupling are differentiable, too
    assert torch.autograd.gradcheck(
        lambda a, b: F.expected_coupling(a, b, 0.8, N, M, cost=cost).mass.square().sum(1), (x, y)
    )


def test_label_costs_of_scores_that_have_much_in_common() -> None:
    rng = torch.Generator().manual_seed(0)
    logits = 1e5 + torch.randn(2, 20, 7, generator=rng)
    labels, n, m = torch.randint(7, (2, 5), generator=rng), torch.tensor([20, 12]), torch.tensor([5, 3])
    results = []
    for dtype in (torch.float32, torch.float64):
        leaf = logits.to(dtype).requires_grad_()
        costs = label_costs(leaf, labels, n, m)
        gradient = torch.autograd.grad((costs[0].sum() + costs[1, :12, :3].square().sum()), leaf)[0]
        results.append((costs.detach().double(), gradient.double()))
    for single, exact in zip(*results):
        torch.testing.assert_close(single, exact, rtol=1e-5, atol=1e-5)


def test_costs() -> None:
    x, y = pair()
    torch.testing.assert_close(pairwise_cost(x, y), squared(x, y), **EXACT)
    expected = 1 - torch.nn.functional.cosine_similarity(x[:, :, None], y[:, None], dim=-1)
    torch.testing.assert_close(pairwise_cost(x, y, "cosine"), expected, **EXACT)
    # far from the origin squares cancel: what is left of a distance of 1e-3 in float32
    near = torch.tensor([[[1000.0], [1000.001]]])
    assert pairwise_cost(near, near + 0.5)[0, 0, 0].item() == pytest.approx(0.25, rel=1e-3)
    for wrong in ((x, y[:2]), (x[0], y[0]), (x, y[..., :1])):
        with pytest.raises(ValueError, match="Expected sequences"):
            pairwise_cost(*wrong)
    with pytest.raises(ValueError, match="sqeuclidean"):
        F.soft_dtw(x, y, cost="manhattan")
    with pytest.raises(ValueError, match="function that gives"):
        F.soft_dtw(x, y, cost=lambda a, b: a @ a.mT)


def test_the_divergence_of_an_augmented_cost_is_a_divergence() -> None:
    gamma = 0.6

    def augmented(a: Tensor, b: Tensor) -> Tensor:
        """exp(-C / gamma) / (1 + exp(-C / gamma)) is a Gaussian kernel: Blondel et al. 2021, proposition 3."""
        delta = squared(a, b) / (2 * gamma)
        return gamma * (delta + torch.log(2 - torch.exp(-delta)))

    for seed in range(20):
        for scale in (0.1, 1.0):
            x, y = (scale * z.detach() for z in pair(seed, (6, 5)))
            assert (F.soft_dtw_divergence(x, y, gamma, cost=augmented) > 0).all()
    x = pair()[0].detach().requires_grad_()
    same = F.soft_dtw_divergence(x, x.detach().clone(), gamma, cost=augmented)
    torch.testing.assert_close(same, torch.zeros_like(same), **EXACT)
    gradient = torch.autograd.grad(same.sum(), x)[0]
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), **EXACT)
    assert (F.soft_dtw(x, x, gamma) < 0).any(), "soft-DTW itself is no divergence"


@pytest.mark.parametrize("gamma", [0.1, 1.0])
def test_divergences_are_symmetric_and_zero_at_equality(gamma: float) -> None:
    x, y = (z.detach() for z in pair())
    for function in (F.soft_dtw_divergence, F.sharp_divergence):
        torch.testing.assert_close(function(x, y, gamma, N, M), function(y, x, gamma, M, N), **EXACT)
        same = function(x, x.clone(), gamma, N, N)
        torch.testing.assert_close(same, torch.zeros_like(same), **EXACT)
    same = F.mean_cost_divergence(x, x.clone(), N, N)
    torch.testing.assert_close(same, torch.zeros_like(same), **EXACT)
    assert (F.mean_cost_divergence(x, y, N, M) > 0).all()


def test_sharp_soft_dtw_lies_between_dtw_and_the_mean_cost() -> None:
    x, y = (z.detach() for z in pair())
    hard = -F.dtw(x, y, N, M).score
    mean = F.mean_cost(x, y, N, M)
    before = hard
    for gamma in (0.01, 0.1, 1.0, 10.0, 100.0):
        sharp = F.sharp_soft_dtw(x, y, gamma, N, M)
        assert (F.soft_dtw(x, y, gamma, N, M) <= hard + 1e-12).all()
        assert (sharp >= before - 1e-12).all(), "more of the alignments, at a higher cost"
        before = sharp
    assert (before <= mean + 1e-12).all()
    torch.testing.assert_close(F.sharp_soft_dtw(x, y, 1e7, N, M), mean, rtol=1e-5, atol=0)
    torch.testing.assert_close(F.sharp_soft_dtw(x, y, 0.0, N, M), hard, **EXACT)
    expected = (expected_alignment(squared(x, y), 0.5, N, M) * squared(x, y)).sum((1, 2))
    torch.testing.assert_close(F.sharp_soft_dtw(x, y, 0.5, N, M), expected, **EXACT)


def test_the_mean_cost_is_that_of_all_alignments() -> None:
    # of 2 by 3 positions there are 5: by number of visits of the two rows' cells
    visits = torch.tensor([[5, 3, 1], [1, 3, 5]], dtype=torch.float64) / 5
    x, y = torch.randn(4, 2, 3, dtype=torch.float64), torch.randn(4, 3, 3, dtype=torch.float64)
    torch.testing.assert_close(F.mean_cost(x, y), (visits * squared(x, y)).sum((1, 2)), **EXACT)


def test_dtw_of_a_stretched_sequence_is_free() -> None:
    x = torch.randn(1, 7, 3, dtype=torch.float64)
    stretched = x.repeat_interleave(torch.tensor([1, 3, 2, 1, 1, 4, 2]), 1)
    path = F.dtw(stretched, x)
    assert -path.score.item() == pytest.approx(0, abs=1e-12)
    assert path.target[0].tolist() == [0, 1, 1, 1, 2, 2, 3, 4, 5, 5, 5, 5, 6, 6]
    noise = torch.randn(1, 30, 3, dtype=torch.float64)
    match = F.subsequence_dtw(x, torch.cat([noise[:, :11], stretched, noise[:, 11:]], 1))
    # the last element is there twice: whether the second is taken is a matter of rounding
    assert match.spans.tolist() in ([[11, 24]], [[11, 25]])
    part = F.subsequence_dtw(x, stretched, torch.tensor([3]), torch.tensor([8]))
    assert part.spans.tolist() in ([[0, 5]], [[0, 6]])


def test_expected_coupling_has_the_marginals_of_the_expected_alignment() -> None:
    x, y = (z.detach() for z in pair())
    coupling = F.expected_coupling(x, y, 0.5, N, M)
    check_coupling(coupling, N, M)
    visits = expected_alignment(squared(x, y), 0.5, N, M)
    total = visits.sum((1, 2))[:, None]
    dense = coupling.dense()
    torch.testing.assert_close(dense.sum(2), visits.sum(2) / total, **EXACT)
    torch.testing.assert_close(dense.sum(1), visits.sum(1) / total, **EXACT)
    torch.testing.assert_close(coupling.score, -F.soft_dtw(x, y, 0.5, N, M), **EXACT)
