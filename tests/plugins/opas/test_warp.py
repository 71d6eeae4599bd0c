"""The warper `opas` against enumeration of all selections."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from isotone_opas import warp as module
from isotone_opas.warp import OPASWarper

from isotone.alignment import AlignmentError
from isotone.types import Window


def draw_pair(seed: int, n: int, m: int) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    x, y = (torch.randn(k, 2, generator=draw, dtype=torch.float64) for k in (n, m))
    return x, y


def value(x: torch.Tensor, y: torch.Tensor, chosen: tuple[int, ...], made: OPASWarper, part: bool) -> float:
    """The objective of the class's docstring, term by term, with its gaps at both ends."""
    n, m, w = len(x), len(y), made.context
    spread = float((y - y.mean(0)).square().sum(1).mean())
    rows = range(min(made.step // 2, n - 1), n, made.step)
    total = 0.0
    for i, t in zip(rows, chosen):
        for o in range(-w, w + 1):
            a, b = x[min(max(i + o, 0), n - 1)], y[min(max(t + o, 0), m - 1)]
            total -= float((a - b).square().sum()) / spread / (2 * w + 1)
    for a, b in pairwise(chosen):
        total -= made.slope * abs((b - a) / made.step - 1)
    if not part:
        total -= made.slope / made.step * abs(chosen[0] - rows[0])
        total -= made.slope / made.step * abs(m - 1 - chosen[-1] - (n - 1 - rows[-1]))
    return total


@settings(deadline=None, max_examples=80)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 9),
    m=st.integers(5, 9),
    step=st.integers(1, 3),
    context=st.integers(0, 2),
    slope=st.sampled_from([0.0, 0.1, 1.0]),
    part=st.booleans(),
    block=st.sampled_from([1, 2**22]),
)
def test_the_best_of_all_selections(
    seed: int, n: int, m: int, step: int, context: int, slope: float, part: bool, block: int
) -> None:
    x, y = draw_pair(seed, n, m)
    made = OPASWarper(step=step, context=context, slope=slope)
    rows = torch.arange(min(step // 2, n - 1), n, step)
    if len(rows) > m:
        with pytest.raises(AlignmentError, match="larger step"):
            made(x, y, part=part)
        return
    every = {c: value(x, y, c, made, part) for c in combinations(range(m), len(rows))}
    before, module._BLOCK = module._BLOCK, block
    try:
        found = made(x, y, part=part)
    finally:
        module._BLOCK = before
    assert found.score == pytest.approx(max(every.values()), abs=1e-4)
    chosen = tuple(round(p) for p in found.places[rows].tolist())
    assert every[chosen] == pytest.approx(found.score, abs=1e-4)


def test_a_window_restricts_the_selection() -> None:
    x, y = draw_pair(1, 6, 9)
    made = OPASWarper(step=1, context=0, slope=0.2)
    low = torch.tensor([0, 1, 2, 3, 4, 6])
    window = Window(low, (low + 3).clamp(max=9))
    inside = [c for c in combinations(range(9), 6) if all(a <= t < a + 3 for a, t in zip(low.tolist(), c))]
    best = max(value(x, y, c, made, False) for c in inside)
    assert made(x, y, window).score == pytest.approx(best, abs=1e-4)


def test_another_relaxation_gives_the_same_where_its_plan_is_sharp() -> None:
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(20, 3, generator=draw)
    y = x.repeat_interleave(2, 0)
    exact = OPASWarper(step=2, context=0, slope=0.0)(x, y)
    soft = OPASWarper(
        step=2, context=0, slope=0.0, relaxation={"name": "sinkhorn", "temperature": 0.01, "iterations": 200}
    )(x, y)
    assert (exact.places - soft.places).abs().max() <= 1


@pytest.mark.parametrize("bad", [{"step": 0}, {"context": -1}, {"slope": -0.1}, {"slope": float("nan")}])
def test_options_out_of_range(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="OPASWarper expects"):
        OPASWarper(**bad)  # type: ignore[arg-type]


def test_an_unknown_relaxation() -> None:
    with pytest.raises(LookupError, match="nothing"):
        OPASWarper(relaxation="nothing")


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1e-30, 1e30])
@pytest.mark.parametrize("part", [False, True])
def test_the_scale_and_the_middle_of_the_numbers_do_not_matter(
    kind: torch.dtype, scale: float, part: bool
) -> None:
    x, y = draw_pair(3, 20, 30)
    plain = OPASWarper()(x, y, part=part)
    found = OPASWarper()((x * scale).to(kind), (y * scale).to(kind), part=part)
    assert torch.allclose(found.places, plain.places)
    assert found.score == pytest.approx(plain.score, rel=1e-3)
    assert torch.equal(OPASWarper()(x + 1e6, y + 1e6, part=part).places, plain.places)


@pytest.mark.parametrize("far", [0.0, 1.0, 1e30])
def test_equal_vectors_have_places_inside(far: float) -> None:
    x, y = torch.full((20, 3), far), torch.full((30, 3), 0.1)
    found = OPASWarper()(x, y)
    assert (found.places >= 0).all()
    assert (found.places <= 29).all()
    assert found.places[-1] == 29
