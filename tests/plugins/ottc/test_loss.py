"""The OTTC loss with every choice of label weights."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from isotone_ottc.loss import OTTCLoss
from isotone_ottc.weights import duration_weights, own_weights, uniform_weights

from isotone.testing import check_loss, sample_batch
from isotone.types import Targets
from tests.plugins.ottc.parts import BLANK, peaked


@pytest.mark.parametrize("beta", ["uniform", "durations", "path", "self"])
def test_every_choice_of_label_weights_keeps_the_laws(beta: str) -> None:
    check_loss(OTTCLoss(beta=beta))


def test_path_weights_and_uniform_alpha_are_framewise_cross_entropy() -> None:
    emissions, targets = sample_batch()
    emissions = replace(emissions, weight_logits=None)
    value = OTTCLoss(beta="path")(emissions, targets)
    log_probs = emissions.log_probs()
    assert targets.paths is not None
    for b, n in enumerate(emissions.lengths.tolist()):
        path = targets.paths.tokens[b, :n]
        labels = torch.where(path >= 0, targets.labels[b, path.clamp(min=0)], BLANK)
        expected = -log_probs[b, torch.arange(n), labels].mean()
        torch.testing.assert_close(value[b], expected, rtol=1e-5, atol=1e-6)


def test_self_weights_begin_uniform_and_then_follow_the_emissions() -> None:
    emissions = peaked([[1, 1, 1, 1, 1, 1, 2, 3, 3]])
    targets = Targets.from_lists([[1, 2, 3]])
    loss, uniform = OTTCLoss(beta="self", self_after=0.3, smoothing=1e-6), OTTCLoss()
    loss.progress = 0.29
    assert torch.equal(loss(emissions, targets), uniform(emissions, targets))
    loss.progress = 0.3
    assert loss(emissions, targets) < 0.01 < uniform(emissions, targets)
    weights = own_weights(emissions, targets.labels, targets.lengths, 0.5)
    torch.testing.assert_close(weights, torch.tensor([[6.5, 1.5, 2.5]]) / 10.5)


def test_duration_weights() -> None:
    durations = torch.tensor([[0.2, 0.0, 0.6], [5.0, torch.nan, torch.nan], [0.0, 0.0, 0.0]])
    weights = duration_weights(durations, torch.tensor([3, 1, 2]), torch.tensor([8, 4, 4]), 0.5)
    expected = torch.tensor([[2.5 / 9.5, 0.5 / 9.5, 6.5 / 9.5], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    torch.testing.assert_close(weights, expected)
    assert uniform_weights(torch.tensor([2, 0]), 3).tolist() == [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]


def test_optional_tokens_may_be_skipped_by_self_weights() -> None:
    emissions = peaked([[1, 1, 1, 3, 3, 3]])
    labels, lengths = torch.tensor([[1, 2, 3]]), torch.tensor([3])
    optional = torch.tensor([[False, True, False]])
    weights = own_weights(emissions, labels, lengths, 0.5, optional)
    torch.testing.assert_close(weights, torch.tensor([[3.5, 0.5, 3.5]]) / 7.5)
    # a pause that nobody makes has no share of the frames
    weights = own_weights(emissions, labels, lengths, 0.5, optional, pauses=optional)
    assert weights.tolist() == [[0.5, 0.0, 0.5]]
    kept = own_weights(peaked([[1, 1, 2, 3]]), labels, lengths, 0.5, optional, pauses=optional)
    torch.testing.assert_close(kept, torch.tensor([[2.5, 1.5, 1.5]]) / 5.5)


@pytest.mark.parametrize("states", [1, 2])
def test_a_pause_that_nobody_makes_is_no_target(states: int) -> None:
    emissions = peaked([[1, 1, 1, 3, 3, 3]])
    emissions = replace(emissions, logits=emissions.logits.repeat(1, 1, states))
    targets = Targets.from_lists([[1, 2, 3]])
    free = replace(targets, optional=torch.tensor([[False, True, False]]))
    loss = OTTCLoss(beta="self", self_after=0.3, states=states)
    loss.progress = 0.5
    assert loss(emissions, free) < loss(emissions, targets) - 0.3
    loss.progress = 0.1  # still uniform
    assert torch.equal(loss(emissions, free), loss(emissions, targets))
    # nor does it need a frame
    short = replace(emissions, lengths=torch.tensor([2]))
    assert loss(short, targets) == 0 < loss(short, free)


@pytest.mark.parametrize(
    "options", [{"beta": "oracle"}, {"smoothing": 0.0}, {"self_after": 1.5}], ids=lambda o: next(iter(o))
)
def test_options_out_of_range_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"OTTCLoss expects .*got"):
        OTTCLoss(**options)  # type: ignore[arg-type]


def test_missing_durations_and_paths_are_named() -> None:
    emissions, targets = sample_batch()
    bare = replace(targets, durations=None, paths=None)
    for beta, field in (("durations", "durations"), ("path", "paths")):
        with pytest.raises(ValueError, match=f"expects targets.*{field}"):
            OTTCLoss(beta=beta)(emissions, bare)  # type: ignore[arg-type]
