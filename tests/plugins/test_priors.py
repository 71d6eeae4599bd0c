from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from isotone_ottc.align import SegmentalViterbi
from isotone_ottc.head import OTTCHead
from isotone_ottc.loss import OTTCLoss

from isotone.types import Emissions, Frames, Grid, Targets


def ambiguous() -> Emissions:
    """Four frames; a frequent label 1 and a rare label 2, whose likelihoods meet in the middle."""
    likelihood = torch.tensor([[0.0, 0.9, 0.1], [0.0, 0.6, 0.4], [0.0, 0.4, 0.6], [0.0, 0.1, 0.9]]) + 1e-6
    prior = torch.tensor([0.01, 0.9, 0.09])
    posterior = likelihood * prior
    return Emissions((posterior / posterior.sum(1, keepdim=True)).log()[None], torch.tensor([4]), Grid(0.02),
                     log_prior=prior.log())  # fmt: skip


def test_scaled_likelihoods_are_posteriors_over_priors() -> None:
    emissions = ambiguous()
    assert emissions.log_prior is not None
    expected = emissions.log_probs().exp() / emissions.log_prior.exp()
    expected = expected / expected.sum(-1, keepdim=True)
    torch.testing.assert_close(emissions.without_prior(1.0).log_probs().exp(), expected)
    assert emissions.without_prior(0.0) is emissions


def test_half_precision_logits_are_divided_in_float32() -> None:
    emissions = replace(ambiguous(), logits=ambiguous().logits.bfloat16())
    assert emissions.without_prior(0.5).logits.dtype == torch.float32


def test_frequent_labels_do_not_take_their_neighbours_frames() -> None:
    targets = Targets.from_lists([[1, 2]])
    spans = [SegmentalViterbi(prior=w)(ambiguous(), targets).spans()[0, :, 0].tolist() for w in (0.0, 1.0)]
    assert spans == [[0, 3], [0, 2]]


def test_self_estimated_weights_use_the_prior() -> None:
    emissions, targets = ambiguous(), Targets.from_lists([[1, 2]])
    value = OTTCLoss(beta="self", prior=1.0)(emissions, targets)
    halves = replace(targets, durations=torch.tensor([[1.0, 1.0]]))
    assert torch.equal(value, OTTCLoss(beta="durations")(emissions, halves))
    assert not torch.equal(value, OTTCLoss(beta="self")(emissions, targets))


def test_a_head_without_counts_says_what_to_do() -> None:
    emissions, targets = replace(ambiguous(), log_prior=None), Targets.from_lists([[1, 2]])
    for call in (OTTCLoss(beta="self", prior=0.5), SegmentalViterbi(prior=0.5)):
        with pytest.raises(ValueError, match="track_prior: true"):
            call(emissions, targets)


@pytest.mark.parametrize("kind", [OTTCLoss, SegmentalViterbi])
def test_negative_powers_are_refused(kind: type) -> None:
    with pytest.raises(ValueError, match=r"prior >= 0.*got.*-0.5"):
        kind(prior=-0.5)


def test_the_head_counts_what_it_says_of_valid_frames_in_training() -> None:
    torch.manual_seed(0)
    head = OTTCHead(4, 3, track_prior=True, dropout=0.0)
    values = torch.randn(2, 5, 4)
    values[1, 2:] = torch.nan
    frames = Frames(values, torch.tensor([5, 2]), Grid(0.02))
    before = head.eval()(frames)
    torch.testing.assert_close(before.log_prior, torch.full((3,), 1 / 3).log())
    posteriors = before.log_probs().exp()
    mean = torch.cat([posteriors[0], posteriors[1, :2]]).mean(0)
    head.train()(frames)
    after = head.eval()(frames).log_prior
    assert after is not None
    torch.testing.assert_close(after.exp(), 0.98 / 3 + 0.02 * mean)
    head.train()
    for _ in range(400):
        head(frames)
    torch.testing.assert_close(head.eval()(frames).log_prior.exp(), mean, rtol=1e-3, atol=0.0)  # type: ignore[union-attr]
    assert "prior" in head.state_dict()
    assert "prior" not in OTTCHead(4, 3).state_dict()


def test_a_batch_without_frames_is_not_counted() -> None:
    head = OTTCHead(4, 3, track_prior=True).train()
    emissions = head(Frames(torch.zeros(1, 2, 4), torch.tensor([0]), Grid(0.02)))
    assert torch.equal(emissions.log_prior, torch.full((3,), 1 / 3).log())
