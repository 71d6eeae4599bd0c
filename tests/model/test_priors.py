"""Label priors: tracked by heads, and divided out of posteriors by losses and aligners."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from isotone_ottc.align import SegmentalViterbi
from isotone_ottc.head import OTTCHead
from isotone_ottc.loss import OTTCLoss
from isotone_softdtw.align import DTWAligner

from isotone.types import Emissions, Frames, Grid, Targets


def ambiguous() -> Emissions:
    """Four frames; a frequent label 1 and a rare label 2, whose likelihoods meet in the middle."""
    likelihood = torch.tensor([[0.0, 0.9, 0.1], [0.0, 0.6, 0.4], [0.0, 0.4, 0.6], [0.0, 0.1, 0.9]]) + 1e-6
    prior = torch.tensor([0.01, 0.9, 0.09])
    posterior = likelihood * prior
    return Emissions((posterior / posterior.sum(1, keepdim=True)).log()[None], torch.tensor([4]), Grid(0.02),
                     log_prior=prior.log())  # fmt: skip


#: Frames that the frequent label has of 14 where its prior is taken out with each power.
SHARES = {0.0: 13, 0.5: 9, 1.0: 6}


def drifting() -> tuple[Emissions, np.ndarray, np.ndarray]:
    """Emissions of 14 frames; their posteriors and priors.

    The likelihood of label 1 falls steadily beside that of label 2, and label 1 is a hundred times as frequent.
    """
    odds = np.exp(3.05 - 0.6 * np.arange(14))
    prior = np.array([0.01, 0.9801, 0.0099])
    joint = np.stack([np.full(14, 1e-6), odds / (1 + odds), 1 / (1 + odds)], 1) * prior
    posterior = joint / joint.sum(1, keepdims=True)
    logits = torch.from_numpy(np.log(posterior) + np.linspace(-2, 3, 14)[:, None])[None]  # any offset
    return (
        Emissions(logits, torch.tensor([14]), Grid(0.02), log_prior=torch.from_numpy(np.log(prior))),
        posterior,
        prior,
    )


def divided(posterior: np.ndarray, prior: np.ndarray, power: float) -> np.ndarray:
    """The posteriors divided by their priors to a power, brought to sum 1: logarithms."""
    scaled = posterior / prior**power
    return np.log(scaled / scaled.sum(1, keepdims=True))


@pytest.mark.parametrize("power", [0.3, 0.5, 1.0, 2.0])
def test_scaled_likelihoods_are_posteriors_over_powers_of_priors(power: float) -> None:
    emissions, posterior, prior = drifting()
    found = emissions.without_prior(power).log_probs()[0].numpy()
    np.testing.assert_allclose(found, divided(posterior, prior, power), rtol=0, atol=1e-12)
    assert emissions.without_prior(0.0) is emissions


@pytest.mark.parametrize("aligner", [SegmentalViterbi, DTWAligner])
@pytest.mark.parametrize(("power", "share"), SHARES.items())
def test_alignments_are_those_of_explicitly_divided_posteriors(
    aligner: type, power: float, share: int
) -> None:
    emissions, posterior, prior = drifting()
    scaled = divided(posterior, prior, power)
    scores = [scaled[:k, 1].sum() + scaled[k:, 2].sum() for k in range(1, 14)]
    assert 1 + int(np.argmax(scores)) == share  # or the example would not tell the powers apart
    coupling = aligner(prior=power)(emissions, Targets.from_lists([[1, 2]]))
    assert coupling.spans()[0].tolist() == [[0, share], [share, 14]]
    assert coupling.score.item() == pytest.approx(max(scores), rel=1e-6)


def transported(posterior: np.ndarray, frames: int) -> float:
    """The cross-entropy of 14 frames of weight 1 / 14 with two labels that had so many frames, and 14 less those."""
    first = (frames + 0.5) / 15  # the label's weight: half a frame beyond its own
    of_first = np.clip(first * 14 - np.arange(14), 0, 1)  # share of every frame that it is given
    return -float((of_first * np.log(posterior[:, 1]) + (1 - of_first) * np.log(posterior[:, 2])).sum()) / 14


@pytest.mark.parametrize(("power", "share"), SHARES.items())
def test_self_estimated_weights_are_those_of_explicitly_divided_posteriors(power: float, share: int) -> None:
    """The prior is divided out in the loss's alignment, not in its cross-entropy."""
    emissions, posterior, _ = drifting()
    value = OTTCLoss(beta="self", prior=power)(emissions, Targets.from_lists([[1, 2]]))
    assert value.item() == pytest.approx(transported(posterior, share), rel=1e-5)


@pytest.mark.parametrize(("power", "share"), SHARES.items())
def test_the_network_learns_weights_of_explicitly_divided_posteriors(power: float, share: int) -> None:
    emissions, targets = drifting()[0], Targets.from_lists([[1, 2]])
    torch.manual_seed(0)
    loss = OTTCLoss(beta="network", regress=True, prior=power)
    assert loss.network is not None
    torch.nn.init.zeros_(loss.network.last.weight)  # uniform weights
    torch.nn.init.zeros_(loss.network.last.bias)
    uniform = OTTCLoss()(emissions, targets)
    own = np.array([share + 0.5, 14.5 - share]) / 15
    divergence = (own * np.log(2 * own)).sum()
    assert (loss(emissions, targets) - uniform).item() == pytest.approx(divergence, rel=1e-4, abs=1e-6)


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
    for call in (OTTCLoss(beta="self", prior=0.5), SegmentalViterbi(prior=0.5), DTWAligner(prior=0.5)):
        with pytest.raises(ValueError, match="track_prior: true"):
            call(emissions, targets)


@pytest.mark.parametrize("kind", [OTTCLoss, SegmentalViterbi, DTWAligner])
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
