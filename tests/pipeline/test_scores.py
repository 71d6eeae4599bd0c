"""Scores of alignments: by hand, by brute force over all paths, and where they are undefined."""

from __future__ import annotations

import itertools
import math
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone import tensors
from isotone.kernels.paths import coupling_from_paths
from isotone.kernels.viterbi import ctc_path
from isotone.pipeline import scores
from isotone.pipeline.scores import token_scores
from isotone.pipeline.stars import STAR_NUMBER
from isotone.tensors import without_torch
from isotone.types import Coupling, Emissions, Grid, Targets

SILENCE = 3


def emissions_of(frames: int, vocab: int = 4, seed: int = 0, rows: int = 1) -> Emissions:
    logits = 2 * torch.randn(rows, frames, vocab, generator=torch.Generator().manual_seed(seed))
    return Emissions(logits, torch.full((rows,), frames), Grid(0.02))


def coupling_of(path: list[int], tokens: int) -> Coupling:
    return coupling_from_paths(torch.tensor([path]), torch.tensor([len(path)]), torch.tensor([tokens]))


def collapsed(labels: tuple[int, ...], blank: int = 0) -> list[int]:
    return [label for label, _ in itertools.groupby(labels) if label != blank]


def test_the_fit_by_hand() -> None:
    probs = torch.tensor(
        [
            [
                [0.7, 0.1, 0.1, 0.1],
                [0.1, 0.6, 0.2, 0.1],
                [0.2, 0.2, 0.5, 0.1],
                [0.1, 0.2, 0.3, 0.4],
                [0.5, 0.2, 0.2, 0.1],
            ]
        ]
    )
    emissions = Emissions(probs.log(), torch.tensor([5]), Grid(0.02))
    targets = Targets.from_lists([[1, 2]])
    coupling = coupling_of([-1, 0, 0, -1, 1], 2)
    # the first token's two frames are averaged; of what is between, silence is no speech
    expected = (0.5 * math.log(0.2 / 0.5) + math.log(0.2 / 0.5)) / 2
    found = scores.score(emissions, targets, coupling, SILENCE)
    assert float(found.fit) == pytest.approx(expected, rel=1e-5)
    assert found.weight.tolist() == [[2, 1]]
    assert found.log_prob[0].tolist() == pytest.approx([(math.log(0.6) + math.log(0.2)) / 2, math.log(0.2)])
    # with no such label the fourth frame is speech that the text does not have
    without = scores.score(emissions, targets, coupling)
    assert float(without.fit) == pytest.approx(expected + math.log(0.1 / 0.4) / 2, rel=1e-5)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 999), frames=st.integers(1, 40))
def test_the_fit_is_at_most_zero_and_zero_for_what_is_heard(seed: int, frames: int) -> None:
    emissions = emissions_of(frames, seed=seed)
    best = emissions.logits[0].argmax(-1).tolist()
    recognised = collapsed(tuple(best))
    for labels in (recognised, [1 + (label % 3) for label in recognised]):
        targets = Targets.from_lists([labels])
        paths, _ = ctc_path(emissions.log_probs(), targets.labels, emissions.lengths, targets.lengths, 0)
        fit = float(
            scores.score(
                emissions, targets, coupling_from_paths(paths, emissions.lengths, targets.lengths)
            ).fit
        )
        assert fit <= 1e-9
        assert (abs(fit) < 1e-6) == (labels == recognised)


@pytest.mark.parametrize("labels", [[1, 2], [1, 1], [2]])
def test_confidence_is_the_posterior_of_all_paths(labels: list[int]) -> None:
    emissions = emissions_of(5, vocab=3)
    probs = emissions.log_probs()[0].exp().double().numpy()
    path = [0, -1, 1, 1, -1] if len(labels) == 2 else [0, 0, -1, -1, -1]
    total, carried = 0.0, np.zeros((5, len(labels)))
    for spelt in itertools.product(range(3), repeat=5):
        if collapsed(spelt) != labels:
            continue
        p = float(np.prod([probs[t, v] for t, v in enumerate(spelt)]))
        total += p
        starts = [v != 0 and (t == 0 or spelt[t - 1] != v) for t, v in enumerate(spelt)]
        for t, v in enumerate(spelt):
            if v:
                carried[t, sum(starts[: t + 1]) - 1] += p
    expected = [
        np.mean([carried[t, u] / total for t in range(5) if path[t] == u]) for u in range(len(labels))
    ]
    found = scores.score(emissions, Targets.from_lists([labels]), coupling_of(path, len(labels)))
    assert found.confidence[0].tolist() == pytest.approx(expected, rel=1e-5)


def long_row(frames: int, tokens: int, seed: int = 0) -> tuple[Emissions, Targets]:
    """Make emissions with higher scores at the positions of their tokens."""
    rng = torch.Generator().manual_seed(seed)
    labels = torch.randint(1, 12, (1, tokens), generator=rng)
    positions = torch.sort(torch.randperm(frames, generator=rng)[:tokens]).values
    emissions = emissions_of(frames, vocab=12, seed=seed)
    emissions.logits[0, :, 0] += 4
    emissions.logits[0, positions, labels[0]] += 6
    return emissions, Targets(
        labels, torch.tensor([tokens]), optional=torch.rand(1, tokens, generator=rng) < 0.1
    )


def test_pieces_of_a_long_row_say_what_the_whole_says(monkeypatch: pytest.MonkeyPatch) -> None:
    emissions, targets = long_row(2_000, 300)
    paths, _ = ctc_path(
        emissions.log_probs(), targets.labels, emissions.lengths, targets.lengths, 0, targets.optional
    )
    coupling = coupling_from_paths(paths, emissions.lengths, targets.lengths)
    whole = scores.score(emissions, targets, coupling).confidence
    for name, value in (("_LONG", 850), ("_PIECE", 300), ("_CONTEXT", 250)):
        monkeypatch.setattr(scores, name, value)
    pieces = scores.score(emissions, targets, coupling).confidence
    torch.testing.assert_close(pieces, whole, rtol=1e-6, atol=1e-6, equal_nan=True)
    unused = torch.ones(300, dtype=torch.bool)
    unused[paths[paths >= 0]] = False
    assert torch.equal(torch.isnan(pieces[0]), unused)
    assert 0 < unused.sum() < 100


def test_a_row_without_a_ctc_path_has_no_confidence_and_the_others_have_theirs() -> None:
    emissions = emissions_of(4, rows=2)
    targets = Targets.from_lists([[1, 1, 2, 2], [1, 2]])  # the first needs six frames
    paths = torch.tensor([[0, 1, 2, 3], [0, 0, 1, 1]])
    coupling = coupling_from_paths(paths, emissions.lengths, targets.lengths)
    found = scores.score(emissions, targets, coupling)
    assert found.confidence[0].isnan().all()
    alone = scores.score(
        replace(emissions, logits=emissions.logits[1:], lengths=emissions.lengths[1:]),
        Targets.from_lists([[1, 2]]),
        coupling_of([0, 0, 1, 1], 2),
    )
    torch.testing.assert_close(found.confidence[1, :2], alone.confidence[0])
    assert torch.isfinite(found.fit).all()


def test_stars_are_neither_right_nor_wrong() -> None:
    emissions = emissions_of(6, seed=3)
    path = [0, 1, 1, 1, 2, 2]
    with_star = Targets.from_lists([[1, STAR_NUMBER, 2]])
    found = scores.score(emissions, with_star, coupling_of(path, 3))
    log_probs = emissions.log_probs()[0]
    ratio = log_probs - log_probs.amax(-1, keepdim=True)
    expected = (float(ratio[0, 1]) + float(ratio[4:, 2].mean())) / 2
    assert float(found.fit) == pytest.approx(expected, rel=1e-5)
    assert found.log_prob[0, [0, 2]].tolist() == pytest.approx(
        [float(log_probs[0, 1]), float(log_probs[4:, 2].mean())]
    )
    assert ((found.confidence >= 0) & (found.confidence <= 1)).all()


def test_token_scores() -> None:
    rng = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(2, 6, 4, generator=rng)
    emissions = Emissions(logits, torch.tensor([6, 4]), Grid(0.02))
    targets = Targets.from_lists([[1, 3, 2], [2, 2]])
    source = torch.tensor([[0, 1, 1, 2, 4], [0, 1, 3, 3, 3]])
    target = torch.tensor([[0, 0, 1, 1, 1], [0, 0, 1, 1, 1]])
    mass = torch.tensor([[0.2, 0.1, 0.3, 0.25, 0.15], [1.0, 1.0, 1.0, 0.0, 0.0]])
    coupling = Coupling(source, target, mass, emissions.lengths, targets.lengths)
    scores = token_scores(emissions.log_probs(), targets, coupling)
    exact = np.exp(logits.double().numpy())
    log_probs = np.log(exact / exact.sum(-1, keepdims=True))
    for row, labels in enumerate(targets.tolist()):
        for number, label in enumerate(labels):
            pairs = [(m, s) for s, t, m in zip(source[row], target[row], mass[row].tolist()) if t == number]
            total = sum(m for m, _ in pairs)
            expected = sum(m * log_probs[row, s, label] for m, s in pairs) / total if total else 0.0
            assert float(scores[row, number]) == pytest.approx(expected, rel=1e-5, abs=1e-7)
    assert (scores <= 0).all()
    assert scores[0, 2] == 0  # nothing is coupled to it


@pytest.mark.parametrize("arrays", [False, True])
def test_the_fit_is_the_same_beside_a_longer_row(arrays: bool) -> None:
    drawn = np.random.default_rng(0)
    with without_torch() if arrays else nullcontext():
        for first in range(150, 550, 20):
            lengths = tensors.torch.tensor([first, 700])
            logits = tensors.torch.from_numpy(drawn.normal(size=(2, 700, 20)).astype(np.float32))
            labels = [drawn.integers(1, 20, n // 10).tolist() for n in (first, 700)]
            # half of the frames lie between tokens
            paths = np.where(np.arange(700) % 10 < 5, np.arange(700) // 10, -1)
            rows = tensors.torch.from_numpy(np.stack([np.where(np.arange(700) < first, paths, -1), paths]))

            def fit(count: int, frames: int) -> float:
                targets, own = Targets.from_lists(labels[:count]), lengths[:count]  # noqa: B023
                coupling = coupling_from_paths(rows[:count, :frames], own, targets.lengths)  # noqa: B023
                some = Emissions(logits[:count, :frames], own, Grid(0.02))  # noqa: B023
                return float(scores.score(some, targets, coupling).fit[0])

            assert fit(1, first) == fit(2, 700)
