"""Every law of losses can fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from isotone.interfaces import Loss
from isotone.testing import check_loss
from isotone.types import Emissions, Targets, length_mask


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


class _Mean(Loss):
    """Mean negative log-probability of the first token, changed by a function."""

    def __init__(self, change: Callable[[Tensor, Emissions, Targets], Tensor]) -> None:
        super().__init__()
        self.change = change

    def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
        mask = length_mask(emissions.lengths, emissions.logits.shape[1])
        log_probs = emissions.log_probs().masked_fill(~mask[..., None], 0.0)
        first = log_probs.gather(2, targets.labels[:, :1, None].expand(-1, log_probs.shape[1], 1))[..., 0]
        value = -first.sum(1) / emissions.lengths
        feasible = targets.lengths <= emissions.lengths
        return torch.where(feasible, self.change(value, emissions, targets), 0.0)


def _safe(emissions: Emissions) -> Emissions:
    # NaN in the padding would come back through the gradient of log-softmax
    mask = length_mask(emissions.lengths, emissions.logits.shape[1])
    return replace(emissions, logits=emissions.logits.masked_fill(~mask[..., None], 0.0))


class _Safe(_Mean):
    def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
        return super().forward(_safe(emissions), targets)


def test_a_loss_that_keeps_the_laws_passes() -> None:
    check_loss(_Safe(lambda value, *_: value))


@pytest.mark.parametrize(
    ("loss", "law"),
    [
        (_Mean(lambda value, *_: value), "padding is never read"),
        (_Safe(lambda value, *_: value + value.mean().detach()), "a row gives the same alone"),
        (_Safe(lambda value, e, _: value + torch.arange(len(value))), "a row gives the same alone"),
        (_Safe(lambda value, e, _: value + e.logits.exp().sum((1, 2)) * 1e-6), "finite on logits of 1e4"),
        (_Safe(lambda value, e, _: value.to(e.logits.dtype)), "are float32"),
        (_Safe(lambda value, *_: value.detach()), "has a gradient"),
        (_Safe(lambda value, *_: 2 * value - value.detach()), "Jacobian mismatch"),
        (_Safe(lambda value, *_: value / 0), "a loss of feasible rows is finite"),
        (_Safe(lambda value, e, _: value + (len(value) == 5 and e.lengths[0] == 4)), "the order of a batch"),
        (
            _Safe(lambda value, e, _: value * (e.lengths.tolist()[1:2] != [2])),
            "the other rows keep their loss",
        ),
        (_Safe(lambda value, e, _: value + (e.logits.dtype != torch.float32) * 0.5), "are summed in float32"),
    ],
)
def test_a_loss_that_breaks_a_law_is_caught(loss: Loss, law: str) -> None:
    with pytest.raises((AssertionError, RuntimeError), match=law):
        check_loss(loss)


def test_a_loss_of_the_whole_batch_is_caught() -> None:
    class Whole(_Safe):
        def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
            return super().forward(emissions, targets).mean()

    with pytest.raises(AssertionError, match="one value per utterance"):
        check_loss(Whole(lambda value, *_: value))


def test_a_loss_of_rows_that_cannot_be_aligned_is_caught() -> None:
    class Everywhere(_Safe):
        def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
            return super().forward(emissions, replace(targets, lengths=torch.zeros_like(targets.lengths)))

    with pytest.raises(AssertionError, match="3 tokens in 2 frames have loss 0"):
        check_loss(Everywhere(lambda value, *_: value))


def test_a_gradient_in_the_padding_is_caught() -> None:
    class Everywhere(_Mean):
        def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
            everything = emissions.logits.nan_to_num().clamp(-1e6, 1e6).sum((1, 2))
            return _Safe(self.change)(emissions, targets) + everything - everything.detach()

    with pytest.raises(AssertionError, match=r"padding has no gradient|padding is never read: gradient"):
        check_loss(Everywhere(lambda value, *_: value))


def test_a_loss_of_whole_numbers_is_caught() -> None:
    class Rounded(_Safe):
        def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
            return super().forward(emissions, targets).long()

    with pytest.raises(AssertionError, match="a loss is floating"):
        check_loss(Rounded(lambda value, *_: value))
