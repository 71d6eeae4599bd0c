"""CTC against peaks and delay: label priors and the delay penalty."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from isotone_ctc.functional import ctc, delay_bonus
from isotone_ctc.head import CTCHead
from isotone_ctc.loss import CTCLoss
from torch import Tensor

from isotone.interfaces import Loss
from isotone.testing import check_head, check_loss, sample_batch
from isotone.types import Emissions, Frames, Grid, Targets


def by_enumeration(emissions: Emissions, targets: Targets, prior: float, delay: float) -> Tensor:
    """Minus the logarithm of the sum over all paths, in float64."""
    log_probs = emissions.logits.double().log_softmax(-1)
    log_prior = (
        torch.zeros(log_probs.shape[-1]) if emissions.log_prior is None else emissions.log_prior.double()
    )
    blank, out = emissions.blank, []
    for b, target in enumerate(targets.tolist()):
        size = int(emissions.lengths[b])
        scores = []
        for path in itertools.product(range(log_probs.shape[-1]), repeat=size):
            if [v for v, _ in itertools.groupby(path) if v != blank] != target:
                continue
            score = torch.zeros((), dtype=torch.float64)
            for t, v in enumerate(path):
                early = 0.0 if v == blank else (size - 1) / 2 - t
                score = score + log_probs[b, t, v] - prior * log_prior[v] + delay * early
            scores.append(score)
        out.append(-torch.logsumexp(torch.stack(scores), 0))
    return torch.stack(out)


def small_problem(seed: int, blank: int = 0) -> tuple[Emissions, Targets]:
    rng = torch.Generator().manual_seed(seed)
    others = [v for v in range(4) if v != blank]
    rows = [[others[0], others[0]], [others[1]], [others[2], others[0], others[1]]]
    logits = 2 * torch.randn(3, 5, 4, generator=rng, dtype=torch.float64)
    prior = torch.rand(4, generator=rng).softmax(0).log()
    return Emissions(logits, torch.tensor([5, 3, 4]), Grid(0.02), blank, log_prior=prior), Targets.from_lists(
        rows
    )


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 10_000), blank=st.sampled_from([0, 3]), prior=st.sampled_from([0.0, 0.3, 1.0]),
    delay=st.sampled_from([0.0, 0.01, 0.5]),
)  # fmt: skip
def test_values_and_gradients_are_those_of_all_paths(
    seed: int, blank: int, prior: float, delay: float
) -> None:
    emissions, targets = small_problem(seed, blank)
    values = []
    for of in (CTCLoss(normalize="none", prior=prior, delay_penalty=delay), None):
        logits = emissions.logits.clone().requires_grad_()
        mine = replace(emissions, logits=logits)
        value = by_enumeration(mine, targets, prior, delay) if of is None else of(mine, targets)
        (gradient,) = torch.autograd.grad((value * torch.tensor([1.0, 2.0, 3.0])).sum(), logits)
        values.append((value.detach(), gradient))
    torch.testing.assert_close(values[0], values[1], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "options", [{"prior": 0.4}, {"delay_penalty": 0.05}, {"prior": 0.4, "delay_penalty": 0.05}]
)
def test_the_gradient_agrees_with_finite_differences(options: dict[str, float]) -> None:
    emissions, targets = small_problem(3)
    loss = CTCLoss(**options)  # type: ignore[arg-type]
    leaf = emissions.logits.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: loss(replace(emissions, logits=x), targets), (leaf,))


@pytest.mark.parametrize("loss", [CTCLoss(delay_penalty=0.01)], ids=["delay"])
def test_the_laws_of_losses(loss: Loss) -> None:
    check_loss(loss)


def test_the_laws_of_losses_with_priors() -> None:
    class WithPrior(Loss):
        """The sample batch has emissions of a head without priors: it gets some here."""

        def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
            return CTCLoss(prior=0.3)(
                replace(emissions, log_prior=prior[: emissions.logits.shape[2]]), targets
            )

    prior = torch.tensor([0.9, 0.02, 0.02, 0.02, 0.02, 0.02]).log()
    check_loss(WithPrior())


def test_targets_that_do_not_fit_give_nothing() -> None:
    emissions, _ = small_problem(0)
    targets = Targets.from_lists([[1, 1, 1], [1, 1], [2, 3]])  # 5 of 5, 3 of 3 and 2 of 4 frames needed
    short = replace(emissions, lengths=torch.tensor([4, 3, 4]), logits=emissions.logits.requires_grad_())
    value = CTCLoss(prior=0.5, delay_penalty=0.1)(short, targets)
    assert (value != 0).tolist() == [False, True, True]
    (gradient,) = torch.autograd.grad(value.sum(), short.logits)
    assert not gradient[0].any()
    assert gradient[1].any()
    infinite = CTCLoss(prior=0.5, zero_infinity=False)(short, targets)
    assert torch.isinf(infinite).tolist() == [True, False, False]


def test_a_norm_of_their_own_is_the_plain_loss() -> None:
    emissions, targets = small_problem(1)
    args = (emissions.logits, targets.labels, emissions.lengths, targets.lengths, 0)
    norm = torch.logsumexp(emissions.logits, -1)
    torch.testing.assert_close(ctc(*args, log_norm=norm), ctc(*args))
    torch.testing.assert_close(ctc(*args, log_norm=norm + 1), ctc(*args) + emissions.lengths)  # a nat a frame


def test_a_uniform_prior_changes_no_path() -> None:
    emissions, targets = small_problem(2)
    even = replace(emissions, log_prior=torch.full((4,), 0.25).log())
    plain, scaled = CTCLoss(normalize="none"), CTCLoss(normalize="none", prior=0.7)
    constant = 0.7 * torch.log(torch.tensor(0.25)) * emissions.lengths
    torch.testing.assert_close(scaled(even, targets), plain(even, targets) + constant)


def test_priors_make_blanks_dear_and_the_penalty_makes_tokens_early() -> None:
    """Gradient descent on free logits, of one token in nine frames."""

    def learned(loss: CTCLoss) -> Tensor:
        logits = torch.zeros(1, 9, 2, requires_grad=True)
        prior = torch.tensor([0.9, 0.1]).log()
        optimizer = torch.optim.SGD([logits], lr=0.5)
        for _ in range(60):
            optimizer.zero_grad()
            emissions = Emissions(logits, torch.tensor([9]), Grid(0.02), log_prior=prior)
            loss(emissions, Targets.from_lists([[1]])).sum().backward()
            optimizer.step()
        return logits.detach().softmax(-1)[0, :, 1]

    plain, scaled, early = (learned(x) for x in (CTCLoss(), CTCLoss(prior=0.5), CTCLoss(delay_penalty=0.5)))
    frame = torch.arange(9)
    assert scaled.sum() > plain.sum() + 0.5
    assert (early * frame).sum() / early.sum() < (plain * frame).sum() / plain.sum() - 0.5


def test_the_bonus_is_balanced_over_every_row() -> None:
    bonus = delay_bonus(torch.tensor([5, 2, 0]), 5, 3, blank=1)
    assert bonus[0, :, 0].tolist() == [2, 1, 0, -1, -2]
    assert bonus[1, :2, 2].tolist() == [0.5, -0.5]
    assert not bonus[..., 1].any()


def test_a_head_tracks_the_priors_that_the_loss_asks_for() -> None:
    torch.manual_seed(0)
    head = CTCHead(4, 6, track_prior=True, dropout=0.0)
    check_head(head, 4, 6)
    frames = Frames(torch.randn(2, 5, 4), torch.tensor([5, 3]), Grid(0.02))
    before = head.eval()(frames)
    torch.testing.assert_close(before.log_prior, torch.full((6,), 1 / 6).log())
    head.train()(frames)
    after = head.eval()(frames)
    posteriors = after.log_probs().exp()
    mean = torch.cat([posteriors[0], posteriors[1, :3]]).mean(0)
    torch.testing.assert_close(after.log_prior.exp(), 0.98 / 6 + 0.02 * mean)
    assert set(head.state_dict()) == {"prior", "lm_head.weight", "lm_head.bias"}
    plain = CTCHead(4, 6)
    assert set(plain.state_dict()) == {"lm_head.weight", "lm_head.bias"}
    with pytest.raises(ValueError, match="track_prior: true"):
        CTCLoss(prior=0.3)(plain(frames), Targets.from_lists([[1], [2]]))


@pytest.mark.parametrize(
    "options", [{"prior": -0.1}, {"delay_penalty": -1.0}, {"prior": float("nan")}], ids=str
)
def test_options_out_of_range_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"CTCLoss expects prior >= 0 and delay_penalty >= 0; got"):
        CTCLoss(**options)  # type: ignore[arg-type]


def test_half_precision_is_normalised_in_float32() -> None:
    emissions, targets = sample_batch(dtype=torch.bfloat16)
    loss = CTCLoss(delay_penalty=0.01)
    wide = replace(emissions, logits=emissions.logits.float())
    value = loss(emissions, targets)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, loss(wide, targets))
