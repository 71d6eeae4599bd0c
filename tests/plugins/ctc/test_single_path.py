"""The loss of one path: cross-entropy against a teacher's alignment."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from isotone_ctc.loss import SinglePathLoss

from isotone.types import FramePath
from tests.plugins.ctc.parts import FLOAT32, batch, value_and_gradient, with_paths


def test_single_path_loss_is_the_cross_entropy_of_the_path(rng: torch.Generator) -> None:
    emissions, targets = batch(rng, blank=2)
    targets = with_paths(emissions, targets, rng)
    assert targets.paths is not None
    for blank_weight in (1.0, 0.25, 0.0):
        loss = SinglePathLoss(blank_weight=blank_weight)
        value, gradient = value_and_gradient(loss, emissions, targets)
        logits = emissions.logits.clone().requires_grad_()
        expected = []
        for b, n in enumerate(emissions.lengths.tolist()):
            path = targets.paths.tokens[b, :n].tolist()
            labels = torch.tensor([2 if u < 0 else int(targets.labels[b, u]) for u in path])
            weight = torch.tensor([blank_weight if u < 0 else 1.0 for u in path])
            losses = torch.nn.functional.cross_entropy(logits[b, :n], labels, reduction="none")
            expected.append((losses * weight).sum() / weight.sum())
        torch.stack([(b + 1) * x for b, x in enumerate(expected)]).sum().backward()
        torch.testing.assert_close(value, torch.stack(expected).detach(), **FLOAT32)
        torch.testing.assert_close(gradient, logits.grad, **FLOAT32)


def test_single_path_loss_leaves_out_what_the_teacher_could_not_align(rng: torch.Generator) -> None:
    emissions, targets = batch(rng)
    targets = with_paths(emissions, targets, rng)
    assert targets.paths is not None
    targets.paths.tokens[1] = -2
    value, gradient = value_and_gradient(SinglePathLoss(), emissions, targets)
    assert value[1] == 0
    assert (gradient[1] == 0).all()
    assert (value[[0, 2]] > 0).all()


def test_frames_of_no_weight_may_hold_anything(rng: torch.Generator) -> None:
    emissions, targets = batch(rng)
    emissions.logits[:, :, 0] = -torch.inf
    targets = with_paths(emissions, targets, rng)
    value, gradient = value_and_gradient(SinglePathLoss(blank_weight=0.0), emissions, targets)
    assert torch.isfinite(value).all()
    assert torch.isfinite(gradient).all()
    assert SinglePathLoss()(emissions, targets)[0] == torch.inf


def test_single_path_loss_asks_for_paths(rng: torch.Generator) -> None:
    emissions, targets = batch(rng)
    with pytest.raises(ValueError, match="give training a teacher"):
        SinglePathLoss()(emissions, targets)
    with pytest.raises(ValueError, match=r"paths of shape \(3, 30\).* got \(3, 29\)"):
        SinglePathLoss()(emissions, replace(targets, paths=FramePath(torch.zeros(3, 29, dtype=torch.long))))
    with pytest.raises(ValueError, match="blank_weight >= 0"):
        SinglePathLoss(blank_weight=-1.0)
