"""The OTTC head."""

from __future__ import annotations

import pytest
import torch
from isotone_ottc.head import OTTCHead
from isotone_ottc.loss import OTTCLoss

from isotone.testing import check_head
from isotone.types import Frames, Grid, Targets


@pytest.mark.parametrize(
    "options",
    [
        {"layers": 1},
        {"layers": 2, "dilation": 2, "width": 16},
        {"alpha": "uniform"},
        {"hidden": 3},
        {"track_prior": True},
    ],
    ids=str,
)
def test_every_head_keeps_the_laws(options: dict[str, object]) -> None:
    torch.manual_seed(0)
    check_head(OTTCHead(7, 5, **options), 7, 5)  # type: ignore[arg-type]


def test_alpha_begins_uniform_and_can_stay_so() -> None:
    frames = Frames(torch.randn(2, 4, 7), torch.tensor([4, 2]), Grid(0.02))
    uniform = [[0.25] * 4, [0.5, 0.5, 0.0, 0.0]]
    assert OTTCHead(7, 5)(frames).weights().tolist() == uniform
    fixed = OTTCHead(7, 5, alpha="uniform")
    assert fixed(frames).weight_logits is None
    assert fixed(frames).weights().tolist() == uniform


@pytest.mark.parametrize(
    ("layers", "kernel", "dilation", "reach"), [(0, 3, 1, 0), (1, 3, 1, 1), (2, 5, 1, 4), (2, 3, 3, 4)]
)
def test_receptive_field(layers: int, kernel: int, dilation: int, reach: int) -> None:
    torch.manual_seed(0)
    head = OTTCHead(4, 3, layers=layers, width=8, kernel=kernel, dilation=dilation).eval()
    values = torch.randn(1, 41, 4, requires_grad=True)
    head(Frames(values, torch.tensor([41]), Grid(0.02))).logits[0, 20].sum().backward()
    assert values.grad is not None
    read = values.grad[0].any(1).nonzero()[:, 0]
    assert (20 - int(read[0]), int(read[-1]) - 20) == (reach, reach)


def test_weights_freeze_late_in_training_only() -> None:
    torch.manual_seed(0)
    head = OTTCHead(4, 3, detach_after=0.75, dropout=0.0)
    values = torch.randn(1, 6, 4, requires_grad=True)
    frames = Frames(values, torch.tensor([6]), Grid(0.02))
    targets = Targets.from_lists([[1, 2]])
    assert head.weights is not None
    for progress, learns in ((0.7, True), (0.75, False)):
        head.progress = progress
        head.zero_grad(set_to_none=True)
        OTTCLoss()(head(frames), targets).sum().backward()
        grads = [p.grad is not None for p in head.weights.parameters()]
        assert grads == [learns] * 4
        assert head.labels[1].weight.grad is not None
    assert head.eval()(frames).weight_logits.requires_grad


@pytest.mark.parametrize(
    "options",
    [{"alpha": "fixed"}, {"layers": -1}, {"kernel": 4, "layers": 1}, {"blank": 5}],
    ids=lambda o: next(iter(o)),
)
def test_head_options_out_of_range_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"OTTCHead expects .*got"):
        OTTCHead(4, 5, **options)  # type: ignore[arg-type]
