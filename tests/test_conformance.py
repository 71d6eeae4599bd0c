"""Every registered plugin keeps to the laws of its kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from isotone import aligners, decoders, formats, heads, losses
from isotone.alignment import Alignment
from isotone.interfaces import Aligner, Format, Head, Loss
from isotone.kernels.paths import coupling_from_paths
from isotone.testing import check_aligner, check_decoder, check_format, check_head, check_loss
from isotone.types import Coupling, Emissions, Frames, Targets, length_mask


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("name", losses.names())
def test_loss(name: str) -> None:
    check_loss(losses.build(name))


@pytest.mark.parametrize("name", heads.names())
def test_head(name: str) -> None:
    check_head(heads.build(name, 7, 5), 7, 5)


@pytest.mark.parametrize("name", aligners.names())
def test_aligner(name: str) -> None:
    check_aligner(aligners.build(name))


@pytest.mark.parametrize("name", decoders.names())
def test_decoder(name: str) -> None:
    check_decoder(decoders.build(name))


@pytest.mark.parametrize("name", formats.names())
def test_format(name: str) -> None:
    check_format(formats.build(name))


# The checks see what they are for: each of these breaks one law.


class _Mean(Loss):
    """Mean negative log-probability of the first token, as some function of the emissions."""

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
        (_Safe(lambda value, *_: value + value.mean().detach()), "a row is as it is alone"),
        (_Safe(lambda value, e, _: value + torch.arange(len(value))), "a row is as it is alone"),
        (_Safe(lambda value, e, _: value + e.logits.exp().sum((1, 2)) * 1e-6), "finite on logits of 1e4"),
        (_Safe(lambda value, e, _: value.to(e.logits.dtype)), "are float32"),
        (_Safe(lambda value, *_: value.detach()), "has a gradient"),
        (_Safe(lambda value, *_: 2 * value - value.detach()), "Jacobian mismatch"),
    ],
)
def test_a_loss_that_breaks_a_law_is_caught(loss: Loss, law: str) -> None:
    with pytest.raises((AssertionError, RuntimeError), match=law):
        check_loss(loss)


def test_a_loss_of_the_whole_batch_is_caught() -> None:
    class Whole(_Safe):
        def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
            return super().forward(emissions, targets).mean()

    with pytest.raises(AssertionError, match="one value an utterance"):
        check_loss(Whole(lambda value, *_: value))


def test_a_loss_of_rows_that_cannot_be_aligned_is_caught() -> None:
    class Everywhere(_Safe):
        def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
            return super().forward(emissions, replace(targets, lengths=torch.zeros_like(targets.lengths)))

    with pytest.raises(AssertionError, match="3 tokens in 2 frames have loss 0"):
        check_loss(Everywhere(lambda value, *_: value))


class _BrokenHead(Head):
    def __init__(self, law: str) -> None:
        super().__init__()
        self.law = law
        self.linear = nn.Linear(7, 5)
        self.idle = nn.Linear(7, 5) if law == "idle" else None

    def forward(self, frames: Frames) -> Emissions:
        mask = length_mask(frames.lengths, frames.values.shape[1])[..., None]
        values = frames.values if self.law == "gradient" else frames.values.masked_fill(~mask, 0.0)
        if self.law == "neighbours":
            values = values - values.mean((0, 1))
        return Emissions(self.linear(values), frames.lengths, frames.grid, 9 if self.law == "blank" else 0)


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        ("gradient", "gradient of linear.weight"),
        ("neighbours", "a row is as it is alone"),
        ("blank", "the blank is a label"),
        ("idle", "idle.weight takes part"),
    ],
)
def test_a_head_that_breaks_a_law_is_caught(broken: str, law: str) -> None:
    check_head(_BrokenHead("none"), 7, 5)
    with pytest.raises(AssertionError, match=law):
        check_head(_BrokenHead(broken), 7, 5)


@pytest.mark.parametrize(
    ("change", "law"),
    [
        (lambda c: replace(c, target=c.target.flip(1)), "never decrease"),
        (lambda c: replace(c, source=c.source + 1), "within the lengths"),
        (lambda c: replace(c, mass=-c.mass), "not negative"),
        (lambda c: replace(c, mass=c.mass * (c.target > 0)), "every token gets mass"),
        (lambda c: replace(c, target_lengths=c.target_lengths + 1), "target lengths"),
    ],
)
def test_an_aligner_that_breaks_a_law_is_caught(change: Callable[[Coupling], Coupling], law: str) -> None:
    good = aligners.build("ctc")
    with pytest.raises(AssertionError, match=law):
        check_aligner(lambda emissions, targets: change(good(emissions, targets)))


def test_an_aligner_without_errors_is_caught() -> None:
    def even(emissions: Emissions, targets: Targets) -> Coupling:
        frame = torch.arange(emissions.logits.shape[1])
        paths = frame * targets.lengths[:, None] // emissions.lengths[:, None]
        paths = torch.where(frame < emissions.lengths[:, None], paths, -2)
        return coupling_from_paths(paths, emissions.lengths, targets.lengths)

    aligner: Aligner = even
    with pytest.raises(AssertionError, match="Expected an AlignmentError for 3 tokens in 2 frames"):
        check_aligner(aligner)


def test_a_decoder_that_keeps_blanks_is_caught() -> None:
    good = decoders.build("ctc-greedy")

    def broken(emissions: Emissions) -> tuple[Targets, Coupling]:
        tokens, coupling = good(emissions)
        return replace(tokens, labels=torch.full_like(tokens.labels, emissions.blank)), coupling

    with pytest.raises(AssertionError, match="labels, not blanks"):
        check_decoder(broken)


@pytest.mark.parametrize(("shift_s", "law"), [(0.01, "times are kept"), (0.0, "stays what it is")])
def test_a_format_that_loses_something_is_caught(shift_s: float, law: str) -> None:
    json = formats.build("json")

    class Broken(Format):
        suffix = ".json"

        def dumps(self, alignment: Alignment) -> str:
            return json.dumps(alignment)

        def loads(self, text: str, id: str) -> Alignment:
            tiers = []
            for tier in json.loads(text, id).tiers:
                moved = [replace(s, start=s.start + shift_s, end=s.end + shift_s, score=None) for s in tier]
                tiers.append(replace(tier, segments=tuple(moved)))
            return Alignment(id, 2.5, tuple(tiers))

    with pytest.raises(AssertionError, match=law):
        check_format(Broken())
