"""Warping of long pairs against enumeration of all paths, and against the kernels of batches."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.alignment import AlignmentError
from isotone.kernels import softdtw, warping
from isotone.kernels.warping import dtw_spans, soft_dtw_warp
from isotone.types import Window

Path = list[tuple[int, int]]

sizes = st.integers(1, 5)


def paths(n: int, m: int, low: list[int], high: list[int], part: bool) -> Iterator[Path]:
    """All warping paths within a window."""

    def inside(i: int, j: int) -> bool:
        return i < n and low[i] <= j < high[i]

    def onward(path: Path) -> Iterator[Path]:
        i, j = path[-1]
        if i == n - 1 and (part or j == m - 1):
            yield path
        for step in ((i + 1, j + 1), (i + 1, j), (i, j + 1)):
            if inside(*step):
                yield from onward([*path, step])

    for j in range(m if part else 1):
        if inside(0, j):
            yield from onward([(0, j)])


def draw_pair(seed: int, n: int, m: int) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(k, 2, generator=draw, dtype=torch.float64) for k in (n, m))  # type: ignore[return-value]


def draw_window(seed: int, n: int, m: int) -> Window:
    """A window with a path from the first to the last corner."""
    draw = torch.Generator().manual_seed(seed)
    while True:
        low = torch.randint(0, m, (n,), generator=draw).sort().values
        high = torch.randint(1, m + 1, (n,), generator=draw).sort().values
        low[0], high[-1] = 0, m
        if bool((low < high).all()) and bool((low[1:] <= high[:-1]).all()):
            return Window(low, high)


@settings(deadline=None, max_examples=120)
@given(seed=st.integers(0, 10**6), n=sizes, m=sizes, part=st.booleans(), narrow=st.booleans())
def test_the_best_path_and_the_mean_of_all(seed: int, n: int, m: int, part: bool, narrow: bool) -> None:
    x, y = draw_pair(seed, n, m)
    window = draw_window(seed, n, m) if narrow else Window.whole(n, m)
    cost = (x[:, None] - y).square().sum(2)
    every = list(paths(n, m, window.low.tolist(), window.high.tolist(), part))
    costs = torch.stack([sum((cost[cell] for cell in path), torch.tensor(0.0)) for path in every])

    spans, value = dtw_spans(x, y, window, part=part)
    assert value == pytest.approx(float(costs.min()), abs=1e-9)
    best = [(i, j) for i in range(n) for j in range(int(spans[i, 0]), int(spans[i, 1]) + 1)]
    assert best in every
    assert float(sum(cost[cell] for cell in best)) == pytest.approx(value, abs=1e-9)

    gamma = 0.7
    weights = torch.softmax(-costs / gamma, 0)
    expected = torch.zeros(n, m, dtype=torch.float64)
    for weight, path in zip(weights, every):
        for cell in path:
            expected[cell] += weight
    places = (expected * torch.arange(m)).sum(1) / expected.sum(1)
    warp = soft_dtw_warp(x, y, gamma, window, part=part)
    torch.testing.assert_close(warp.places, places.cummax(0).values, atol=1e-9, rtol=1e-9)
    assert warp.score == pytest.approx(gamma * float(torch.logsumexp(-costs / gamma, 0)), abs=1e-9)


@pytest.mark.parametrize("block", [7, 100, 2**23])
@pytest.mark.parametrize(("n", "m"), [(150, 90), (90, 150), (1, 40), (40, 1), (65, 129)])
def test_blocks_change_nothing(block: int, n: int, m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warping, "_BLOCK", block)
    x, y = draw_pair(3, n, m)
    cost = softdtw.squared_distances(x[None], y[None])
    spans, value = dtw_spans(x, y)
    whole = softdtw.dtw(cost)
    assert whole.score is not None
    assert value == pytest.approx(-float(whole.score[0]))
    cells = [(i, j) for i in range(n) for j in range(int(spans[i, 0]), int(spans[i, 1]) + 1)]
    known = whole.mass[0] > 0
    assert cells == list(zip(whole.source[0][known].tolist(), whole.target[0][known].tolist()))
    expected = softdtw.expected_alignment(cost, 1.5)[0]
    places = (expected * torch.arange(m)).sum(1) / expected.sum(1)
    warp = soft_dtw_warp(x, y, 1.5)
    torch.testing.assert_close(warp.places, places.cummax(0).values, atol=1e-7, rtol=1e-7)
    if n <= m:
        spans, value = dtw_spans(x, y, part=True)
        inside = softdtw.subsequence_dtw(cost)
        assert inside.coupling.score is not None
        assert value == pytest.approx(-float(inside.coupling.score[0]))
        assert inside.spans[0].tolist() == [int(spans[0, 0]), int(spans[-1, 1]) + 1]


def test_a_window_of_blocks_gives_the_path_where_it_holds_it() -> None:
    x, _ = draw_pair(4, 700, 1)
    y = x.repeat_interleave(2, 0) + 0.01
    centre = 2 * torch.arange(700)
    window = Window((centre - 20).clamp(min=0), (centre + 22).clamp(max=1400))
    for part in (False, True):
        assert torch.equal(dtw_spans(x, y, window, part=part)[0], dtw_spans(x, y, part=part)[0])
        near, far = soft_dtw_warp(x, y, 0.1, window, part=part), soft_dtw_warp(x, y, 0.1, part=part)
        torch.testing.assert_close(near.places, far.places, atol=1e-6, rtol=0)


def test_memory_is_that_of_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def noted(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        seen.append(x.shape[1] * y.shape[1])
        return softdtw.squared_distances(x, y)

    monkeypatch.setattr(warping, "squared_distances", noted)
    monkeypatch.setattr(warping, "_BLOCK", 4096)
    x, y = draw_pair(5, 500, 400)
    dtw_spans(x, y)
    assert max(seen) <= 4096
    assert sum(seen) == 2 * 500 * 400


def test_extreme_costs_do_not_underflow() -> None:
    x = torch.arange(30.0)[:, None] * 1e3
    warp = soft_dtw_warp(x, x, 1e-3)
    torch.testing.assert_close(warp.places, torch.arange(30.0, dtype=torch.float64))
    assert math.isfinite(warp.score)


def test_errors() -> None:
    x, y = draw_pair(0, 4, 5)
    bad = y.clone()
    bad[2] = torch.inf
    with pytest.raises(AlignmentError, match="the sequence y has vectors that are not finite"):
        dtw_spans(x, bad)
    with pytest.raises(ValueError, match="gamma > 0"):
        soft_dtw_warp(x, y, 0.0)
    with pytest.raises(ValueError, match="a vector at least"):
        dtw_spans(x[:0], y)
    with pytest.raises(ValueError, match="window of 4 positions"):
        dtw_spans(x, y, Window.whole(5, 5))
    gap = Window(torch.tensor([0, 0, 3, 3]), torch.tensor([2, 2, 5, 5]))
    with pytest.raises(ValueError, match="no gaps"):
        dtw_spans(x, y, gap)
    late = Window(torch.tensor([1, 1, 1, 1]), torch.tensor([5, 5, 5, 5]))
    with pytest.raises(AlignmentError, match="no path"):
        dtw_spans(x, y, late)
    assert len(dtw_spans(x, y, late, part=True)[0]) == 4
