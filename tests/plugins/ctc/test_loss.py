"""The CTC loss against an exact sum over all paths, and its laws."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch
from isotone_ctc.loss import CTCLoss, SinglePathLoss

from isotone.types import Emissions, FramePath, Grid, Targets, length_mask
from tests.plugins.ctc.parts import (
    FLOAT32,
    FLOAT32_SUM,
    GRID,
    batch,
    emissions_of,
    long_batch,
    value_and_gradient,
    with_paths,
)


@pytest.mark.parametrize("blank", [0, 3, 5])
def test_ctc_loss_is_the_sum_over_all_paths(rng: torch.Generator, blank: int) -> None:
    logits = 2 * torch.randn(2, 4, 6, generator=rng)
    labels = [v for v in range(6) if v != blank]
    targets = Targets.from_lists([[labels[0], labels[0]], [labels[4]]])
    lengths = [4, 3]
    value, gradient = value_and_gradient(
        CTCLoss(normalize="none"), emissions_of(logits, lengths, blank), targets
    )

    exact = logits.double().requires_grad_()
    log_probs = torch.log_softmax(exact, -1)
    expected = []
    for b, target in enumerate(targets.tolist()):
        paths = [
            path
            for path in itertools.product(range(6), repeat=lengths[b])
            if [v for v, _ in itertools.groupby(path) if v != blank] == target
        ]
        frame = torch.arange(lengths[b])
        expected.append(-torch.logsumexp(torch.stack([log_probs[b, frame, list(p)].sum() for p in paths]), 0))
    (expected[0] + 2 * expected[1]).backward()
    torch.testing.assert_close(value.double(), torch.stack(expected).detach(), **FLOAT32_SUM)
    torch.testing.assert_close(gradient.double(), exact.grad, **FLOAT32_SUM)


def test_ctc_loss_normalises(rng: torch.Generator) -> None:
    emissions, targets = batch(rng)
    none = CTCLoss(normalize="none")(emissions, targets)
    torch.testing.assert_close(CTCLoss()(emissions, targets), none / targets.lengths)
    torch.testing.assert_close(CTCLoss(normalize="frames")(emissions, targets), none / emissions.lengths)
    with pytest.raises(ValueError, match="'words'"):
        CTCLoss(normalize="words")  # type: ignore[arg-type]


def test_pauses_may_be_left_to_the_blank(rng: torch.Generator) -> None:
    emissions = Emissions(torch.randn(2, 9, 5, generator=rng), torch.tensor([9, 7]), Grid(0.02))
    paused = Targets.from_lists([[4, 1, 4, 2, 4], [4, 3, 4]])
    paused = replace(paused, optional=paused.labels == 4)
    unpaused = Targets.from_lists([[1, 2], [3]])
    expected = CTCLoss(normalize="none")(emissions, unpaused)
    torch.testing.assert_close(CTCLoss(normalize="none", skip_optional=True)(emissions, paused), expected)
    assert (CTCLoss(normalize="none")(emissions, paused) != expected).all()
    torch.testing.assert_close(
        CTCLoss(skip_optional=True)(emissions, paused), expected / torch.tensor([2, 1])
    )


def test_an_infeasible_row_gives_zero_and_no_gradient(rng: torch.Generator) -> None:
    emissions, targets = batch(rng)
    value, gradient = value_and_gradient(CTCLoss(), emissions, targets)
    assert (value[:2] > 0).all()
    assert value[2] == 0
    assert (gradient[2] == 0).all()
    assert torch.isfinite(gradient).all()
    assert CTCLoss(zero_infinity=False)(emissions, targets)[2] == torch.inf


def test_an_empty_target_is_all_blank(rng: torch.Generator) -> None:
    emissions, _ = batch(rng, blank=2)
    targets = Targets.from_lists([[], [1], []])
    value = CTCLoss()(emissions, targets)
    expected = -emissions.log_probs()[0, :, 2].sum()
    torch.testing.assert_close(value[0], expected, **FLOAT32_SUM)


@pytest.mark.parametrize("name", ["ctc", "single-path"])
def test_padding_is_never_read(rng: torch.Generator, name: str) -> None:
    emissions, targets = batch(rng)
    targets = with_paths(emissions, targets, rng)
    loss = {"ctc": CTCLoss(), "single-path": SinglePathLoss(blank_weight=0.5)}[name]
    value, gradient = value_and_gradient(loss, emissions, targets)
    outside = ~length_mask(emissions.lengths, 30)
    spoilt = replace(emissions, logits=emissions.logits.masked_fill(outside[:, :, None], torch.nan))
    labels = targets.labels.masked_fill(~length_mask(targets.lengths, targets.labels.shape[1]), -100)
    again, gradient_again = value_and_gradient(loss, spoilt, replace(targets, labels=labels))
    assert torch.equal(value, again)
    assert torch.equal(gradient, gradient_again)
    assert (gradient[outside] == 0).all()


@pytest.mark.parametrize("name", ["ctc", "single-path"])
def test_a_batch_is_its_rows(rng: torch.Generator, name: str) -> None:
    emissions, targets = batch(rng)
    targets = with_paths(emissions, targets, rng)
    loss = {"ctc": CTCLoss(), "single-path": SinglePathLoss()}[name]
    together = loss(emissions, targets)
    for b, (frames, tokens) in enumerate(zip(emissions.lengths.tolist(), targets.lengths.tolist())):
        row = emissions_of(emissions.logits[b : b + 1, :frames], [frames])
        assert targets.paths is not None
        alone = Targets(
            targets.labels[b : b + 1, :tokens],
            targets.lengths[b : b + 1],
            paths=FramePath(targets.paths.tokens[b : b + 1, :frames]),
        )
        torch.testing.assert_close(loss(row, alone)[0], together[b], **FLOAT32)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_summed_in_float32(rng: torch.Generator, dtype: torch.dtype) -> None:
    emissions, targets = batch(rng)
    targets = with_paths(emissions, targets, rng)
    half = replace(emissions, logits=emissions.logits.to(dtype))
    for loss in (CTCLoss(), SinglePathLoss()):
        value, gradient = value_and_gradient(loss, half, targets)
        expected, expected_gradient = value_and_gradient(
            loss, replace(half, logits=half.logits.float()), targets
        )
        assert value.dtype == torch.float32
        torch.testing.assert_close(value, expected, **FLOAT32)
        torch.testing.assert_close(gradient, expected_gradient.to(dtype))


def test_priors_of_scores_that_have_much_in_common(rng: torch.Generator) -> None:
    logits, labels, frames, tokens = long_batch(rng, 100)
    prior = torch.randn(8, generator=rng).log_softmax(0)
    loss, targets = CTCLoss(prior=0.3, delay_penalty=0.01), Targets(labels, tokens)
    results = []
    for dtype in (torch.float32, torch.float64):
        leaf = (1e5 + logits).to(dtype).requires_grad_()
        emissions = Emissions(leaf, frames, GRID, log_prior=prior.to(dtype))
        value = loss(emissions, targets)
        results.append((value.detach().double(), torch.autograd.grad(value.sum(), leaf)[0].double()))
    for single, exact in zip(*results):
        torch.testing.assert_close(single, exact, rtol=1e-5, atol=1e-5)
