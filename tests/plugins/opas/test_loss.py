"""The loss opas: its score against every selection, its laws, and a head that learns labels and times from order."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from isotone_opas.align import OPASAligner
from isotone_opas.loss import OPASLoss

from isotone import decoders, losses
from isotone.testing import check_loss
from isotone.types import Emissions, Grid, Targets

BETWEEN = ["neighbours", "mean", "blank"]


def written(
    log_probs: torch.Tensor, labels: list[int], chosen: tuple[int, ...], between: str, weight: float
) -> float:
    """The score of one selection, frame by frame as the loss's docstring has it."""
    total = 0.0
    for t, scores in enumerate(log_probs.tolist()):
        if t in chosen:
            total += scores[labels[chosen.index(t)]]
            continue
        passed = sum(c < t for c in chosen)
        beside = {passed - 1, passed} & set(range(len(labels)))
        found = [scores[labels[j]] for j in beside]
        if between == "blank":
            total += weight * scores[0]
        elif between == "mean":
            total += weight * sum(found) / len(found)
        else:
            total += weight * math.log(sum(math.exp(scores[v]) for v in {labels[j] for j in beside}))
    return total


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 9999),
    between=st.sampled_from(BETWEEN),
    weight=st.sampled_from([0.0, 0.1, 1.0]),
    temperature=st.sampled_from([0.0, 0.3, 1.0]),
    slope=st.sampled_from([0.0, 4.0]),
)
def test_it_is_the_maximum_over_every_selection(
    seed: int, between: str, weight: float, temperature: float, slope: float
) -> None:
    rng = torch.Generator().manual_seed(seed)
    n = int(torch.randint(1, 8, (), generator=rng))
    m = int(torch.randint(1, min(n, 4) + 1, (), generator=rng))
    logits = 2 * torch.randn(1, n, 4, generator=rng, dtype=torch.float64)
    labels = torch.randint(1, 4, (m,), generator=rng).tolist()
    loss = OPASLoss(
        temperature=temperature, between=between, weight=weight, slope=slope, normalize="none"
    )  # fmt: skip
    loss.progress = 0.15  # half of the way until the slope is 0
    found = -loss(Emissions(logits, torch.tensor([n]), Grid(0.02)), Targets.from_lists([labels]))
    scores = []
    for chosen in itertools.combinations(range(n), m):
        far = sum(abs((t + 0.5) / n - (j + 0.5) / m) for j, t in enumerate(chosen))
        scores.append(written(logits[0].log_softmax(-1), labels, chosen, between, weight) - slope / 2 * far)
    every = torch.tensor(scores, dtype=torch.float64)
    expected = every.max() if temperature == 0 else temperature * (every / temperature).logsumexp(0)
    torch.testing.assert_close(found[0], expected)


@pytest.mark.parametrize(
    "options",
    [
        *({"between": between, "temperature": t} for between in BETWEEN for t in (0.0, 1.0)),
        {"slope": 5.0, "normalize": "tokens"},
        {"weight": 1.0, "temperature": 0.1, "normalize": "none"},
    ],
)
def test_the_laws(options: dict) -> None:
    check_loss(losses.build("opas", **options))


def test_rows_without_tokens_cost_nothing() -> None:
    logits = torch.randn(2, 6, 4, requires_grad=True)
    targets = Targets(torch.tensor([[-(2**40)], [2]]), torch.tensor([0, 1]))
    value = OPASLoss()(Emissions(logits, torch.tensor([6, 5]), Grid(0.02)), targets)
    value.sum().backward()
    assert value[0] == 0
    assert value[1] != 0
    assert not logits.grad[0].any()  # type: ignore[index]


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": -1.0}, {"weight": -0.1}, {"slope": math.nan}, {"slope_until": 0.0},
        {"between": "labels"}, {"normalize": "words"},
    ],
)  # fmt: skip
def test_options_out_of_range(options: dict) -> None:
    with pytest.raises(ValueError, match="OPASLoss expects"):
        OPASLoss(**options)


@pytest.mark.parametrize("options", [{}, {"temperature": 0.0, "slope": 50.0}])
def test_a_head_learns_labels_and_times_from_order_alone(options: dict) -> None:
    """Frames of labels in noise; label 5 stands between all others, as silence does."""
    rng = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    tokens, ends, values = [], [], []
    for _ in range(24):
        durations = torch.randint(2, 9, (5,), generator=rng)
        labels = 1 + torch.randint(1, 4, (5,), generator=rng).cumsum(0) % 4
        labels[::2] = 5
        path = torch.repeat_interleave(labels, durations)
        values.append(torch.nn.functional.one_hot(path, 6) + 0.25 * torch.randn(len(path), 6, generator=rng))
        tokens.append(labels.tolist())
        ends.append(durations.cumsum(0))
    lengths = torch.tensor([len(v) for v in values])
    frames, targets = torch.nn.utils.rnn.pad_sequence(values, batch_first=True), Targets.from_lists(tokens)
    head = torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.GELU(), torch.nn.Linear(32, 6))
    loss, optimizer = OPASLoss(**options), torch.optim.Adam(head.parameters(), lr=0.02)
    for step in range(120):
        loss.progress = step / 120
        optimizer.zero_grad()
        loss(Emissions(head(frames), lengths, Grid(0.02)), targets).mean().backward()
        optimizer.step()
    emissions = Emissions(head(frames).detach(), lengths, Grid(0.02))
    decoded = decoders.build("segmental", change_penalty=2.0)(emissions)[0].tolist()
    assert sum(d == t for d, t in zip(decoded, tokens)) >= 22
    truth = torch.stack(ends).double()
    blind = (torch.arange(1, 6) / 5 * lengths[:, None] - truth).abs().mean().item()
    error = (OPASAligner()(emissions, targets).spans()[..., 1] - truth).abs().mean().item()
    assert error < 0.7 < blind, "frames, of the end of a token"
