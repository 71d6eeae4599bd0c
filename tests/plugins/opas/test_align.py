"""The aligner opas: its selection and its borders against enumeration, its laws, and peaky models."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from isotone_opas.align import OPASAligner
from isotone_opas.kernels._anchors import Guide, average_row, cut_row, select_row

from isotone import aligners
from isotone.alignment import AlignmentError
from isotone.kernels.assignment import ordered_assignment
from isotone.testing import check_aligner
from isotone.types import Emissions, Grid, Targets

SEEDS = st.integers(0, 9999)
NONE = Guide(np.zeros((0, 2), np.int64), 0.0)


def random_guide(rng: np.random.Generator, frames: int, tokens: int, cost: float) -> Guide:
    """First and last token of every frame, as a guide allows them; with cost 0 there is none."""
    near = np.sort(rng.integers(0, tokens, (frames, 2)), 1)
    return Guide(near, cost) if cost else NONE


def far(guide: Guide, frame: int, token: int) -> float:
    allowed = not len(guide.near) or guide.near[frame, 0] <= token <= guide.near[frame, 1]
    return 0.0 if allowed else guide.cost


def selected(
    scores: np.ndarray,
    row: list[int],
    optional: list[bool],
    *,
    spacing: int = 1,
    slope: float = 0.0,
    block: int = 99,
    guide: Guide = NONE,
) -> tuple[list[int], float]:
    anchors = np.full(len(row), -7)
    bonus = np.where(optional, 0.4, 0.0)
    value = select_row(
        np.ascontiguousarray(scores.T), np.array(row), bonus, np.array(optional, bool), spacing, slope, guide,
        min(block, scores.shape[1]), anchors,
    )  # fmt: skip
    return anchors.tolist(), value


def worth(
    anchors: tuple[int, ...],
    scores: np.ndarray,
    row: list[int],
    optional: list[bool],
    spacing: int,
    slope: float,
    guide: Guide,
) -> float:
    """The sum that a selection has; -inf where it may not be."""
    n, m = scores.shape[1], len(row)
    total, last = 0.0, None
    for j, t in enumerate(anchors):
        if t < 0:
            if not optional[j]:
                return -math.inf
            continue
        if last is not None and t - last < spacing:
            return -math.inf
        total += scores[row[j], t] + 0.4 * optional[j] - slope * abs((t + 0.5) / n - (j + 0.5) / m)
        total -= far(guide, t, j)
        last = t
    return total


@settings(max_examples=60, deadline=None)
@given(
    seed=SEEDS,
    spacing=st.integers(1, 3),
    slope=st.sampled_from([0.0, 2.0]),
    block=st.integers(1, 4),
    cost=st.sampled_from([0.0, 0.7, 30.0]),
)
def test_the_selection_is_the_best_of_all(
    seed: int, spacing: int, slope: float, block: int, cost: float
) -> None:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    scores = rng.normal(size=(3, n))
    row = rng.integers(0, 3, m).tolist()
    optional = (rng.random(m) < 0.4).tolist()
    guide = random_guide(rng, n, m, cost)
    every = list(itertools.product(range(-1, n), repeat=m))
    values = [worth(a, scores, row, optional, spacing, slope, guide) for a in every]
    anchors, value = selected(scores, row, optional, spacing=spacing, slope=slope, block=block, guide=guide)
    assert value == pytest.approx(max(values)) if max(values) > -math.inf else value == -math.inf
    if value > -math.inf:
        assert worth(tuple(anchors), scores, row, optional, spacing, slope, guide) == pytest.approx(value)


@pytest.mark.parametrize("width", [1, 2, 9])
def test_scores_are_averaged_over_valid_frames(width: int) -> None:
    rng = np.random.default_rng(width)
    scores, frames = rng.normal(size=(2, 6, 3)), np.array([6, 4])
    scores[1, 4:] = np.nan
    found = np.zeros_like(scores)
    for row in range(2):
        average_row(row, width, scores, frames, found)
    for row, n in enumerate(frames):
        for t in range(n):
            weights = np.maximum(0, width + 1 - np.abs(np.arange(n) - t))
            np.testing.assert_allclose(found[row, t], np.average(scores[row, :n], 0, weights))
    assert not found[1, 4:].any()


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, block=st.integers(1, 9))
def test_without_choices_it_is_the_ordered_assignment(seed: int, block: int) -> None:
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 9))
    scores = rng.normal(size=(m, m + int(rng.integers(0, 20))))
    _, value = ordered_assignment(torch.from_numpy(scores)[None])
    anchors, found = selected(scores, list(range(m)), [False] * m, block=block)
    assert found == pytest.approx(float(value[0]))
    assert (np.diff(anchors) > 0).all()


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, least=st.integers(1, 2), fill=st.booleans(), cost=st.sampled_from([0.0, 0.7, 30.0]))
def test_borders_are_the_best_of_all(seed: int, least: int, fill: bool, cost: float) -> None:
    """Every token has its anchor, and the frames are cut where the sum is best; with two tokens, of all cuts."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 10))
    scores, outside = rng.normal(size=(2, n)), rng.normal(size=n)
    a = int(rng.integers(0, n - 2))
    b = int(rng.integers(a + least, n)) if a + least < n else n - 1
    path, guide = np.full(n, -1), random_guide(rng, n, 2, cost)
    cut_row(
        np.ascontiguousarray(scores.T), np.array([0, 1]), np.array([a, b]), outside, least, fill, guide, path
    )
    scores = scores - [[far(guide, t, j) for t in range(n)] for j in range(2)]
    assert (path[a], path[b]) == (0, 1)
    assert (np.diff(path[path >= 0]) >= 0).all()
    begin, end = int(np.flatnonzero(path >= 0)[0]), int(np.flatnonzero(path >= 0)[-1]) + 1
    assert (begin, end) == (0, n) if fill else begin <= a < b < end

    def total(first: int, cut: int, last: int) -> float:
        inside = scores[0, first:cut].sum() + scores[1, cut:last].sum()
        return inside + outside[:first].sum() + outside[last:].sum()

    cut = int(np.flatnonzero(path == 1)[0])
    assert cut - begin >= least
    if least == 1:
        firsts = [0] if fill else range(a + 1)
        lasts = [n] if fill else range(b + 1, n + 1)
        best = max(total(f, c, x) for f in firsts for c in range(a + 1, b + 1) for x in lasts)
        assert total(begin, cut, end) == pytest.approx(best)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"width": 0},
        {"spacing": 2, "subframe": False},
        {"edges": "fill", "slope": 1.0},
        {"relaxation": {"name": "sinkhorn", "temperature": 0.2}},
        {"relaxation": "single-step-exp"},
        {"guide_cost": 0.0},
    ],
)
def test_the_laws(options: dict) -> None:
    check_aligner(aligners.build("opas", **options))


def heard(path: str, sure: float = 6.0) -> Emissions:
    """Emissions of labels by digits; 0 is the blank."""
    logits = sure * torch.nn.functional.one_hot(torch.tensor([[int(c) for c in path]]), 5).float()
    return Emissions(logits, torch.tensor([len(path)]), Grid(0.02))


def test_tokens_take_the_frames_that_look_like_them() -> None:
    coupling = OPASAligner()(heard("0011122233300"), Targets.from_lists([[1, 2, 3]]))
    assert coupling.path(13).tokens[0].tolist() == [-1, -1, 0, 0, 0, 1, 1, 1, 2, 2, 2, -1, -1]


def test_peaks_are_given_the_frames_between_them() -> None:
    """CTC's best path leaves most frames blank; a selection gives them to the tokens on either side."""
    emissions, targets = heard("0010000020000300"), Targets.from_lists([[1, 2, 3]])
    peaky = aligners.build("ctc")(emissions, targets).mass.sum()
    assert OPASAligner(width=0, edges="fill")(emissions, targets).mass.sum() == 16
    assert peaky == 3


def test_optional_tokens_are_selected_where_they_are_heard() -> None:
    targets = Targets.from_lists([[1, 4, 2]])
    targets = Targets(targets.labels, targets.lengths, optional=torch.tensor([[False, True, False]]))
    for path, expected in (("1112222", [0, 2]), ("1114442222", [0, 1, 2])):
        found = OPASAligner(width=0)(heard(path), targets).path(len(path)).tokens[0]
        assert sorted(set(found.tolist())) == expected


def test_phones_last_as_long_as_they_are_held() -> None:
    emissions, targets = heard("1111233333"), Targets.from_lists([[1, 2, 3]])
    free = OPASAligner(width=0, subframe=False)
    held = free.holding(3)

    def frames(aligner: OPASAligner) -> list[float]:
        return aligner(emissions, targets).spans()[0].diff(dim=-1)[:, 0].tolist()

    assert frames(free)[1] == 1
    assert min(frames(held)) >= 3
    short = Targets.from_lists([[1, 2, 3, 1, 2, 3, 1, 2, 3]])
    assert frames(OPASAligner().holding(3)) != [], "rows that are long enough"
    assert held(emissions, short).spans()[0].diff(dim=-1).min() >= 1, "others keep their frames"


def test_errors_name_the_row() -> None:
    emissions = Emissions(torch.zeros(2, 4, 5), torch.tensor([4, 2]), Grid(0.02))
    with pytest.raises(AlignmentError, match="Row 1: 3 tokens need at least as many frames, got 2") as caught:
        OPASAligner()(emissions, Targets.from_lists([[1, 2, 3], [1, 2, 3]]))
    assert caught.value.row == 1
    broken = emissions.logits.clone()
    broken[0, 1, 2] = torch.nan
    with pytest.raises(AlignmentError, match="Row 0: its emissions hold NaN"):
        OPASAligner()(Emissions(broken, emissions.lengths, Grid(0.02)), Targets.from_lists([[1], [2]]))


@pytest.mark.parametrize(
    "options",
    [
        {"width": -1}, {"spacing": 0}, {"slope": -1.0}, {"threshold": 1.0}, {"prior": -0.1}, {"edges": "cut"},
        {"guide_cost": -1.0}, {"guide_cost": math.inf},
    ],
)  # fmt: skip
def test_options_out_of_range(options: dict) -> None:
    with pytest.raises(ValueError, match=r"expects|Expected"):
        OPASAligner(**options)


def test_the_score_is_the_log_probability_of_its_labels() -> None:
    emissions, targets = heard("0112203"), Targets.from_lists([[1, 2, 3]])
    found = OPASAligner(subframe=False)(emissions, targets)
    tokens = found.path(7).tokens[0]
    labels = torch.where(tokens >= 0, targets.labels[0][tokens.clamp(min=0)], 0)
    log_probs = emissions.log_probs()[0]
    assert found.score is not None
    assert float(found.score[0]) == pytest.approx(float(log_probs[torch.arange(7), labels].sum()), abs=1e-4)
