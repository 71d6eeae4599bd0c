"""Label weights that are learned or come from fixed alignments, and training along a single path."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from isotone_ottc.durations import DurationNetwork, divergence
from isotone_ottc.functional import ottc_loss
from isotone_ottc.loss import OTTCLoss
from isotone_ottc.sequences import insert_blanks
from isotone_ottc.weights import own_weights, path_frames, spread_weights
from torch import Tensor

from isotone.kernels.viterbi import monotone_path
from isotone.testing import check_loss, sample_batch
from isotone.types import Emissions, FramePath, Grid, Targets


def network_of(seed: int, dtype: torch.dtype = torch.float64) -> DurationNetwork:
    """A network whose durations differ."""
    torch.manual_seed(seed)
    network = DurationNetwork(6, width=4, kernel=3, floor=0.2)
    torch.nn.init.normal_(network.last.weight)
    return network.to(dtype)


# the network


def test_weights_begin_uniform() -> None:
    weights = DurationNetwork(9)(
        torch.tensor([[1, 8, 3], [2, -7, -7], [-7, -7, -7]]), torch.tensor([3, 1, 0])
    )
    torch.testing.assert_close(weights, torch.tensor([[1 / 3] * 3, [1.0, 0, 0], [0.0, 0, 0]]))


def test_no_label_weighs_less_than_the_floor() -> None:
    network = network_of(0)
    with torch.no_grad():
        network.last.weight *= 1000
    labels, lengths = torch.tensor([[1, 2, 3, 4], [5, 1, -9, -9]]), torch.tensor([4, 2])
    weights = network(labels, lengths)
    torch.testing.assert_close(weights.sum(1), torch.ones(2, dtype=torch.float64))
    assert (weights[0] >= 0.2 / 4 - 1e-12).all()
    assert (weights[1, :2] >= 0.2 / 2 - 1e-12).all()
    assert weights.max() > 0.8
    assert not weights[1, 2:].any()


def test_a_label_sees_its_neighbours_and_no_padding() -> None:
    network = network_of(1)
    lengths = torch.tensor([4])
    weights = network(torch.tensor([[1, 2, 3, 4]]), lengths)
    wide = network(torch.tensor([[1, 2, 3, 4, 5, 5]]), lengths)
    torch.testing.assert_close(wide[:, :4], weights)
    other = network(torch.tensor([[1, 2, 3, 5]]), lengths)
    ratio = (other / other[:, :1]) / (weights / weights[:, :1])
    assert (ratio[0, 1:3] != 1).all()


def test_gradients_reach_the_network_through_the_coupling() -> None:
    """Float64, against finite differences: embedding, convolutions and all."""
    network = network_of(2)
    rng = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 7, 6, generator=rng, dtype=torch.float64, requires_grad=True)
    alpha = torch.rand(2, 7, generator=rng, dtype=torch.float64)
    labels, n, m = torch.tensor([[1, 4, 2], [3, 5, 0]]), torch.tensor([7, 5]), torch.tensor([3, 2])
    names = [name for name, _ in network.named_parameters()]

    def loss(x: Tensor, *values: Tensor) -> Tensor:
        beta = torch.func.functional_call(network, dict(zip(names, values)), (labels, m))
        return ottc_loss(x, alpha, labels, beta, n, m)

    leaves = [p.detach().clone().requires_grad_() for p in network.parameters()]
    assert torch.autograd.gradcheck(loss, (logits, *leaves))
    gradients = torch.autograd.grad(loss(logits, *leaves).sum(), leaves)
    assert all(bool(g.any()) for g in gradients[:-1])
    assert gradients[-1].abs().item() < 1e-12, "a bias on all durations changes no weight"


def test_the_divergence_is_that_of_torch() -> None:
    rng = torch.Generator().manual_seed(0)
    target, weights = (torch.rand(3, 5, generator=rng, dtype=torch.float64).softmax(1) for _ in range(2))
    expected = torch.nn.functional.kl_div(weights.log(), target, reduction="none").sum(1)
    torch.testing.assert_close(divergence(target, weights), expected)
    none = torch.tensor([[0.5, 0.5, 0.0]])
    assert divergence(none, none).tolist() == [0.0]


def test_entropy_is_asked_for_early_only() -> None:
    emissions, targets = sample_batch()
    loss = OTTCLoss(beta="network", entropy=2.0)
    assert loss.network is not None
    torch.nn.init.normal_(loss.network.last.weight)
    labels, lengths, _ = insert_blanks(targets.labels, targets.lengths, 0)
    beta = loss.network(labels, lengths)
    entropy = torch.special.entr(beta).sum(1)
    at = {}
    for progress in (0.0, 0.5, 1.0):
        loss.progress = progress
        at[progress] = loss(emissions, targets)
    for progress in (0.0, 0.5):
        expected = 2.0 * (1 - progress) * (lengths.log() - entropy)
        torch.testing.assert_close(at[progress] - at[1.0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"regress": True}, {"regress": True, "self_after": 0.0}], ids=str)
def test_every_network_keeps_the_laws(options: dict[str, object]) -> None:
    torch.manual_seed(0)
    loss = OTTCLoss(beta="network", **options)  # type: ignore[arg-type]
    assert loss.network is not None
    torch.nn.init.normal_(loss.network.last.weight)
    check_loss(loss)


def test_a_network_that_regresses_learns_what_self_would_use() -> None:
    """From sentences in which label 1 always lasts four times as long as the others."""
    torch.manual_seed(0)
    rng = torch.Generator().manual_seed(0)
    rows = [(1 + torch.randint(1, 3, (5,), generator=rng).cumsum(0) % 3).tolist() for _ in range(16)]
    paths = [[v for v in row for _ in range(8 if v == 1 else 2)] for row in rows]
    lengths = torch.tensor([len(p) for p in paths])
    logits = torch.zeros(16, int(lengths.max()), 4)
    for b, path in enumerate(paths):
        logits[b, range(len(path)), path] = 8.0
    emissions, targets = Emissions(logits, lengths, Grid(0.02)), Targets.from_lists(rows)
    loss = OTTCLoss(beta="network", regress=True, self_after=0.5, smoothing=1e-3)
    assert loss.network is not None
    loss.progress = 0.4
    assert torch.equal(loss(emissions, targets), OTTCLoss()(emissions, targets))
    loss.progress = 0.5
    optimizer = torch.optim.Adam(loss.parameters(), lr=0.02)
    for _ in range(60):
        optimizer.zero_grad()
        loss(emissions, targets).mean().backward()
        optimizer.step()
    own = own_weights(emissions, targets.labels, targets.lengths, 1e-3)
    guess = loss.network(targets.labels, targets.lengths)
    even = torch.full_like(own, 0.2)
    assert divergence(own, guess).mean() < 0.1 * divergence(own, even).mean()


def test_a_vocabulary_that_is_too_large_is_refused() -> None:
    emissions, targets = sample_batch()
    with pytest.raises(ValueError, match=r"expects at most 5 labels; got 6\. Raise network_labels"):
        OTTCLoss(beta="network", network_labels=5)(emissions, targets)


# fixed alignments


def test_frames_of_a_path_are_counted() -> None:
    paths = torch.tensor([[-1, 0, 0, -1, 2, 2, 2], [1, 1, -1, -2, -2, -2, -2]])
    assert path_frames(paths, 3).tolist() == [[2, 0, 3], [0, 2, 0]]
    assert path_frames(paths[:, :0], 3).tolist() == [[0, 0, 0], [0, 0, 0]]


def test_aligned_weights_are_the_durations_of_the_paths() -> None:
    emissions, targets = sample_batch()
    assert targets.paths is not None
    counts = path_frames(targets.paths.tokens, 4)
    assert counts.sum() == targets.paths.carried.sum()
    counted = OTTCLoss(beta="durations")(emissions, replace(targets, durations=counts))
    assert torch.equal(OTTCLoss(beta="aligned")(emissions, targets), counted)


@pytest.mark.parametrize("size", [0, 12])
def test_without_a_path_yet_the_weights_are_uniform(size: int) -> None:
    emissions, targets = sample_batch()
    empty = replace(targets, paths=FramePath(torch.full((5, size), -2)))
    torch.testing.assert_close(OTTCLoss(beta="aligned")(emissions, empty), OTTCLoss()(emissions, empty))


def test_missing_paths_say_where_they_come_from() -> None:
    emissions, targets = sample_batch()
    with pytest.raises(ValueError, match=r"beta='aligned'\) expects targets.paths.*teacher.*realign"):
        OTTCLoss(beta="aligned")(emissions, replace(targets, paths=None))


def test_aligned_weights_keep_the_laws() -> None:
    check_loss(OTTCLoss(beta="aligned"))


def test_weights_are_divided_evenly() -> None:
    weights = torch.tensor([[0.6, 0.4], [1.0, 0.0]])
    origin = torch.tensor([[0, 0, 0, 1], [0, -1, -1, -1]])
    torch.testing.assert_close(
        spread_weights(weights, origin), torch.tensor([[0.2, 0.2, 0.2, 0.4], [1.0, 0, 0, 0]])
    )


# a single path


@pytest.mark.parametrize("beta", ["uniform", "self"])
def test_late_in_training_it_is_the_cross_entropy_of_the_best_path(beta: str) -> None:
    emissions, targets = sample_batch(seed=3)
    emissions = replace(emissions, log_prior=torch.tensor([0.3, 0.2, 0.2, 0.1, 0.1, 0.1]).log())
    loss = OTTCLoss(beta=beta, path_after=0.5, prior=0.5)  # type: ignore[arg-type]
    loss.progress = 0.49
    before = OTTCLoss(beta=beta, prior=0.5)  # type: ignore[arg-type]
    before.progress = 0.49
    assert torch.equal(loss(emissions, targets), before(emissions, targets))
    loss.progress = 0.5
    value = loss(emissions, targets)
    labels, lengths, _ = insert_blanks(targets.labels, targets.lengths, 0)
    scaled = emissions.without_prior(0.5).log_probs()
    for b in range(5):
        n, m = int(emissions.lengths[b]), int(lengths[b])
        row = (scaled[b : b + 1, :n], labels[b : b + 1, :m], torch.tensor([n]), torch.tensor([m]))
        path = monotone_path(*row)[0][0]
        expected = -emissions.log_probs()[b, torch.arange(n), labels[b, path]].mean()
        torch.testing.assert_close(value[b], expected, rtol=1e-5, atol=1e-6)


def test_a_single_path_keeps_the_laws_and_leaves_the_ot_weights_alone() -> None:
    emissions, targets = sample_batch()
    weights = emissions.weight_logits.requires_grad_()  # type: ignore[union-attr]
    logits = emissions.logits.requires_grad_()
    value = OTTCLoss(path_after=0.5)(replace(emissions, weight_logits=weights), targets).sum()
    grads = torch.autograd.grad(value, (logits, weights), allow_unused=True)
    assert grads[0].any()
    assert grads[1] is None
    check_loss(OTTCLoss(path_after=0.0))


@pytest.mark.parametrize(
    "options", [{"path_after": 1.5}, {"network_labels": 0}, {"entropy": -1.0}, {"beta": "neural"}], ids=str
)
def test_options_out_of_range_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"OTTCLoss expects .*got"):
        OTTCLoss(**options)  # type: ignore[arg-type]
