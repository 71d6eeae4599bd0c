"""Ordered states inside labels."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from isotone_ottc.align import SegmentalViterbi
from isotone_ottc.decode import GreedyOTTC, SegmentalDecoder
from isotone_ottc.functional import ottc_loss
from isotone_ottc.head import OTTCHead
from isotone_ottc.loss import OTTCLoss
from isotone_ottc.states import merge_states, spell_states
from isotone_ottc.transport import Transport
from torch import Tensor

from isotone.interfaces import Aligner, Loss
from isotone.pipeline.stars import with_star
from isotone.testing import check_aligner, check_decoder, check_head, check_loss
from isotone.types import Emissions, Frames, Grid, Targets
from tests.plugins.ottc.parts import best_path

# of three states in time: before the core, the core, after it
ORDER = {2: (0, 1), 3: (1, 0, 2), 4: (1, 0, 2, 3)}


def state_number(label: int, position: int, states: int, vocab_size: int) -> int:
    return ORDER[states][position] * vocab_size + label


def with_states(emissions: Emissions, states: int) -> Emissions:
    """Split labels into equally probable states, which must not change anything that merges states."""
    share = torch.log(torch.tensor(float(states)))
    prior = None if emissions.log_prior is None else (emissions.log_prior - share).repeat(states)
    return replace(emissions, logits=(emissions.logits - share).repeat(1, 1, states), log_prior=prior)


class Widened(Aligner):
    """An aligner or decoder that reads states, given emissions of labels."""

    def __init__(self, part: object, states: int) -> None:
        self.part, self.states = part, states
        self.skips_optional = getattr(part, "skips_optional", False)
        self.takes_guide = getattr(part, "takes_guide", False)

    def __call__(self, emissions: Emissions, *rest: Targets) -> Any:  # type: ignore[override]
        return self.part(with_states(emissions, self.states), *rest)  # type: ignore[operator]


class WidenedLoss(Loss):
    def __init__(self, loss: OTTCLoss) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
        # states that differ, by what depends on the number of the state alone
        size = emissions.logits.shape[2]
        tilt = torch.arange(self.loss.states).repeat_interleave(size) * 0.3
        wide = with_states(emissions, self.loss.states)
        return self.loss(replace(wide, logits=wide.logits + tilt), targets)


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=5), min_size=1, max_size=3),
    states=st.sampled_from([1, 2, 3, 4]),
)
def test_labels_spell_their_states_and_collapse_back(rows: list[list[tuple[int, bool]]], states: int) -> None:
    targets = Targets.from_lists([[label for label, _ in row] for row in rows])
    whole = torch.zeros(targets.labels.shape, dtype=torch.bool)
    for b, row in enumerate(rows):
        whole[b, : len(row)] = torch.tensor([flag for _, flag in row], dtype=torch.bool)
    spelt = spell_states(targets.labels, targets.lengths, whole, states, 4)
    for b, row in enumerate(rows):
        expected, origin = [], []
        for position, (label, flag) in enumerate(row):
            one = flag or label == 4 or states == 1  # 4 is a star: above the labels
            got = [label] if one else [state_number(label, s, states, 4) for s in range(states)]
            expected, origin = [*expected, *got], [*origin, *[position] * len(got)]
        n = int(spelt.lengths[b])
        assert spelt.labels[b, :n].tolist() == expected
        assert spelt.origin[b, :n].tolist() == origin
        assert (spelt.origin[b, n:] == -1).all()
        assert not spelt.core[b, n:].any()
        # every label has its core once, and that has the label's own number
        cores = spelt.labels[b][spelt.core[b]]
        assert cores.tolist() == [label for label, _ in row]
        back = [spelt.labels[b, k].item() % 4 if row[o][0] < 4 else 4 for k, o in enumerate(origin)]
        assert [label for (_, label), _ in itertools.groupby(zip(origin, back))] == [
            label for label, _ in row
        ]


def test_a_label_is_its_states_together() -> None:
    rng = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 5, 12, generator=rng)
    prior = torch.rand(12, generator=rng).softmax(0).log()
    emissions = Emissions(logits, torch.tensor([5, 3]), Grid(0.02), log_prior=prior)
    merged = merge_states(emissions, 3)
    torch.testing.assert_close(merged.log_probs().exp(), emissions.log_probs().exp().view(2, 5, 3, 4).sum(2))
    assert merged.log_prior is not None
    torch.testing.assert_close(merged.log_prior.exp(), prior.exp().view(3, 4).sum(0))
    assert merge_states(emissions, 1) is emissions
    with pytest.raises(ValueError, match=r"5 states of every label; got 12.*same number of states"):
        merge_states(emissions, 5)


@pytest.mark.parametrize("states", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_the_aligner_finds_the_best_path_of_states(seed: int, states: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    emissions = Emissions(torch.randn(1, 6, 4 * states, generator=rng), torch.tensor([6]), Grid(0.02))
    target = [1, 3, 2]
    labels = [state_number(v, s, states, 4) for v in target for s in range(states)]
    score, walk = best_path(emissions.log_probs()[0], labels, [v >= 4 for v in labels])
    coupling = SegmentalViterbi(states=states)(emissions, Targets.from_lists([target]))
    assert coupling.score is not None
    assert coupling.score.item() == pytest.approx(score, abs=1e-4)
    assert coupling.target[0].tolist() == [j // states for j in walk]


def test_a_token_of_one_frame_takes_its_core() -> None:
    targets = Targets.from_lists([[1, 2, 1, 1]])
    emissions = Emissions(torch.zeros(1, 4, 12), torch.tensor([4]), Grid(0.02))
    coupling = SegmentalViterbi(states=3)(emissions, targets)
    assert coupling.spans()[0].tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]
    assert coupling.score is not None
    assert coupling.score.item() == pytest.approx(-4 * torch.log(torch.tensor(12.0)).item(), abs=1e-5)


def test_states_tell_equal_neighbours_apart() -> None:
    """Of six frames of one label, the second token begins where the first state comes again."""
    path = [1, 1, 0, 2, 1, 2]  # before the core, again, core, after; before, after
    logits = torch.full((1, 6, 12), -9.0)
    for t, state in enumerate(path):
        logits[0, t, state * 4 + 1] = 9.0
    logits[0, 4, 1] = 8.0  # its core
    emissions = Emissions(logits, torch.tensor([6]), Grid(0.02))
    for subframe in (False, True):
        spans = SegmentalViterbi(states=3, subframe=subframe)(emissions, Targets.from_lists([[1, 1]])).spans()
        torch.testing.assert_close(spans[0], torch.tensor([[0.0, 4], [4, 6]]).double(), rtol=0, atol=0.01)


def test_boundaries_between_frames_look_at_the_states_that_meet() -> None:
    states, size = 3, 4
    rng = torch.Generator().manual_seed(1)
    emissions = Emissions(torch.randn(1, 9, states * size, generator=rng), torch.tensor([9]), Grid(0.02))
    targets = Targets.from_lists([[1, 2, 3]])
    whole = SegmentalViterbi(states=states)(emissions, targets)
    shifted = SegmentalViterbi(states=states, subframe=True)(emissions, targets)
    assert torch.equal(whole.score, shifted.score)  # type: ignore[arg-type]
    moved = (shifted.spans() - whole.spans())[0]
    assert moved.abs().max() <= 0.5
    assert moved[0, 0] == 0
    assert moved[2, 1] == 0
    assert moved[:2, 1].abs().min() > 0
    torch.testing.assert_close(shifted.dense().sum(2), torch.ones(1, 9))


def test_a_star_has_no_states() -> None:
    emissions = Emissions(torch.zeros(1, 8, 12), torch.tensor([8]), Grid(0.02))
    emissions.logits[0, :3, 1] = 9.0
    emissions.logits[0, 3:6, 3] = 9.0
    emissions.logits[0, 6:, 2] = 9.0
    targets = Targets.from_lists([[1, -1, 2]]).numbered(12)
    spans = SegmentalViterbi(states=3)(with_star(emissions, 1.0), targets).spans()
    assert spans[0].tolist() == [[0, 3], [3, 6], [6, 8]]


@pytest.mark.parametrize("states", [2, 3])
def test_the_laws(states: int) -> None:
    torch.manual_seed(0)
    check_head(OTTCHead(7, 5, states=states, track_prior=True, layers=1), 7, 5 * states)
    check_decoder(Widened(SegmentalDecoder(change_penalty=0.0, states=states), states))  # type: ignore[arg-type]
    check_decoder(Widened(GreedyOTTC(states=states), states))  # type: ignore[arg-type]
    check_aligner(Widened(SegmentalViterbi(states=states), states))  # type: ignore[arg-type]
    check_aligner(Widened(SegmentalViterbi(states=states, silence=0, subframe=True), states))  # type: ignore[arg-type]
    check_aligner(Widened(Transport(beta="self", states=states), states))  # type: ignore[arg-type]


@pytest.mark.parametrize("beta", ["uniform", "durations", "path", "aligned", "self", "network"])
def test_the_loss_keeps_the_laws(beta: str) -> None:
    torch.manual_seed(0)
    check_loss(WidenedLoss(OTTCLoss(beta=beta, states=3)))  # type: ignore[arg-type]


def test_a_labels_weight_is_divided_among_its_states() -> None:
    rng = torch.Generator().manual_seed(2)
    emissions = Emissions(torch.randn(1, 8, 12, generator=rng), torch.tensor([8]), Grid(0.02))
    targets = Targets.from_lists([[1, 1]], durations=torch.tensor([[1.0, 3.0]]))
    value = OTTCLoss(beta="durations", states=3, smoothing=1e-9)(emissions, targets)
    labels = torch.tensor([[5, 1, 9, 0, 5, 1, 9]])
    beta = torch.tensor([[1 / 12] * 3 + [1e-9] + [1 / 4] * 3])
    alpha, n, m = torch.ones(1, 8), torch.tensor([8]), torch.tensor([7])
    torch.testing.assert_close(
        value, ottc_loss(emissions.logits, alpha, labels, beta, n, m), rtol=1e-5, atol=1e-5
    )


def test_a_row_needs_a_frame_a_label_and_not_a_state() -> None:
    emissions = Emissions(torch.randn(2, 4, 12), torch.tensor([4, 2]), Grid(0.02))
    targets = Targets.from_lists([[1, 2, 3], [1, 2, 3]])
    for beta in ("uniform", "self"):
        value = OTTCLoss(beta=beta, states=3)(emissions, targets)  # type: ignore[arg-type]
        assert (value > 0).tolist() == [True, False]


@pytest.mark.parametrize("kind", [OTTCLoss, SegmentalViterbi, Transport, SegmentalDecoder, GreedyOTTC])
def test_no_states_are_refused(kind: type) -> None:
    with pytest.raises(ValueError, match=f"{kind.__name__} expects states >= 1; got 0"):
        kind(states=0)
    with pytest.raises(ValueError, match="OTTCHead expects states >= 1; got 0"):
        OTTCHead(4, 3, states=0)


def test_a_head_learns_states_from_the_order_of_labels() -> None:
    """Labels that begin and end unlike their middles: the states become what they are."""
    rng = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    values, tokens, ends = [], [], []
    for _ in range(24):
        labels = 1 + torch.randint(1, 3, (4,), generator=rng).cumsum(0) % 3
        durations = torch.randint(3, 8, (4,), generator=rng)
        position = torch.cat([torch.tensor([1, *[0] * (int(d) - 2), 2]) for d in durations])
        kind = position * 4 + labels.repeat_interleave(durations)
        noise = 0.2 * torch.randn(len(kind), 12, generator=rng)
        values.append(torch.nn.functional.one_hot(kind, 12) + noise)
        tokens.append(labels.tolist())
        ends.append(durations.cumsum(0))
    lengths = torch.tensor([len(v) for v in values])
    frames = Frames(torch.nn.utils.rnn.pad_sequence(values, batch_first=True), lengths, Grid(0.02))
    targets = Targets.from_lists(tokens)
    head = OTTCHead(12, 4, states=3, layers=1, width=32, kernel=1, dropout=0.0)
    loss = OTTCLoss(beta="self", self_after=0.5, states=3)
    optimizer = torch.optim.Adam(head.parameters(), lr=0.02)
    for step in range(120):
        loss.progress = step / 120
        optimizer.zero_grad()
        loss(head(frames), targets).mean().backward()
        optimizer.step()
    emissions = head.eval()(frames)
    decoded = SegmentalDecoder(change_penalty=1.0, states=3)(emissions)[0].tolist()
    assert sum(d == t for d, t in zip(decoded, tokens)) >= 22
    spans = SegmentalViterbi(states=3)(emissions, targets).spans()
    assert (spans[..., 1] - torch.stack(ends)).abs().mean() < 0.3, "frames, of the end of a token"
    assert OTTCHead(12, 4, states=3).labels[1].out_features == 12
