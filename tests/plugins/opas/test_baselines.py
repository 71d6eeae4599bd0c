from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from isotone_opas.baselines import ColBERT, MaxSim, scorers
from isotone_opas.functional import margin_loss
from torch import Tensor

from isotone.evaluation.ranking import average_precision
from isotone.registry import UnknownPlugin
from tests.plugins.opas.parts import collection, unit


@pytest.fixture
def data() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    rng = torch.Generator().manual_seed(0)
    q, c = unit(rng, 3, 4, 6), unit(rng, 5, 8, 6)
    m, n = torch.tensor([4, 2, 3]), torch.tensor([8, 5, 4, 8, 6])
    for rows, lengths in ((q, m), (c, n)):
        for row, size in zip(rows, lengths):
            row[size:] = torch.nan
    return q, c, m, n


def squared(q: Tensor, c: Tensor) -> np.ndarray:
    return (q[:, None] - c).square().sum(-1).double().numpy()


def soft_minimum(values: list[float], gamma: float) -> float:
    finite = torch.tensor(values, dtype=torch.float64)
    return float(finite.min() if gamma == 0 else -gamma * torch.logsumexp(-finite / gamma, 0))


def warping(costs: np.ndarray, gamma: float = 0.0, free_ends: bool = False) -> float:
    """The textbook recursion, one cell at a time."""
    m, n = costs.shape
    table = np.full((m + 1, n + 1), np.inf)
    table[0, 0] = 0
    if free_ends:
        table[0] = 0
    for i, j in itertools.product(range(1, m + 1), range(1, n + 1)):
        before = [table[i - 1, j], table[i, j - 1], table[i - 1, j - 1]]
        table[i, j] = costs[i - 1, j - 1] + soft_minimum(before, gamma)
    return float(table[m, 1:].min() if free_ends else table[m, n])


def sharp_cost(costs: np.ndarray, gamma: float) -> float:
    """<E, C>, from the derivative of soft-DTW in a scale of the costs."""
    step = 1e-5
    return (warping(costs * (1 + step), gamma) - warping(costs * (1 - step), gamma)) / (2 * step)


def expected(name: str, q: Tensor, c: Tensor) -> float:
    costs = squared(q, c)
    of_itself = squared(q, q), squared(c, c)
    if name == "max-sim":
        return float((q @ c.T).amax(1).sum())
    if name == "dtw":
        return -warping(costs)
    if name == "subsequence-dtw":
        return -warping(costs, free_ends=True)
    if name == "soft-dtw":
        return -warping(costs, 1.0)
    if name == "soft-dtw divergence":
        return -warping(costs, 1.0) + sum(warping(x, 1.0) for x in of_itself) / 2
    if name == "sharp":
        return -sharp_cost(costs, 1.0) + sum(sharp_cost(x, 1.0) for x in of_itself) / 2
    if name == "fastdtw":
        return -warping(np.sqrt(costs))
    ends = range(len(c) - len(q) + 1)
    return -min(float((q - c[k : k + len(q)]).norm()) for k in ends)


NAMES = ["max-sim", "dtw", "subsequence-dtw", "soft-dtw", "soft-dtw divergence", "sharp", "fastdtw", "mass"]


@pytest.mark.parametrize("name", NAMES)
def test_scores(name: str, data: tuple[Tensor, ...]) -> None:
    if name in ("fastdtw", "mass"):
        pytest.importorskip({"fastdtw": "fastdtw", "mass": "stumpy"}[name])
    options = {
        "soft-dtw divergence": {"divergence": True},
        # wide enough to be exact
        "fastdtw": {"radius": 20},
    }.get(name, {})
    q, c, m, n = data
    scores = scorers.build(name.split()[0], **options)(q, c, m, n)
    for i, j in itertools.product(range(3), range(5)):
        value = expected(name, q[i, : m[i]], c[j, : n[j]])
        assert float(scores[i, j]) == pytest.approx(value, rel=1e-4, abs=1e-4), (i, j)


def test_blocks_change_nothing(data: tuple[Tensor, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("max-sim", "soft-dtw")
    whole = [scorers.build(name)(*data) for name in names]
    monkeypatch.setattr("isotone_opas.baselines._BLOCK", 100)
    for name, scores in zip(names, whole):
        torch.testing.assert_close(scorers.build(name)(*data), scores)


def test_unknown_scorer() -> None:
    with pytest.raises(UnknownPlugin, match="max-sim"):
        scorers.build("maxsim")


def test_colbert_is_trained_with_the_margin_loss() -> None:
    windows, corpus, relevant = collection(0)
    torch.manual_seed(0)
    model = ColBERT({"name": "lrl", "input_size": 24, "size": 8, "hidden": 16}, input_size=24)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    lengths = torch.full((12,), 4)
    losses = []
    for _ in range(30):
        scores = MaxSim()(model(windows, lengths, query=True), model(corpus, query=False), lengths + 1)
        loss = margin_loss(scores, relevant, 1.0).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
    assert average_precision(scores.detach(), relevant).mean() > 0.9
    assert model(windows, query=True).shape == (12, 5, 8)
