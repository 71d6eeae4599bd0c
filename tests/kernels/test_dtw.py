"""The best alignment, of whole sequences and of a part of one, against enumeration and dtaidistance."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.kernels.softdtw import (
    dtw,
    subsequence_dtw,
)
from isotone.testing import check_coupling
from tests.kernels.softdtw_parts import EXACT, enumerated, matrix


@settings(max_examples=30, deadline=None)
@given(n=st.integers(1, 6), m=st.integers(1, 6), seed=st.integers(0, 99), whole=st.booleans())
def test_dtw_is_a_best_path(n: int, m: int, seed: int, whole: bool) -> None:
    cost = matrix(n, m, seed)
    if whole:  # ties
        cost = cost.round()
    best, _ = enumerated(cost[0], 0.0)
    path = dtw(cost)
    check_coupling(path, torch.tensor([n]), torch.tensor([m]))
    torch.testing.assert_close(-path.score[0], best, **EXACT)
    torch.testing.assert_close((path.dense() * cost).sum(), best, **EXACT)
    steps = set(zip(path.source[0].diff().tolist(), path.target[0].diff().tolist()))
    assert steps <= {(0, 1), (1, 0), (1, 1)}
    assert (path.mass == 1).all()
    assert (path.source[0, 0], path.target[0, 0]) == (0, 0)
    assert (path.source[0, -1], path.target[0, -1]) == (n - 1, m - 1)


def test_dtw_is_that_of_dtaidistance() -> None:
    other = pytest.importorskip("dtaidistance.dtw_ndim", reason="dtaidistance is the oracle")
    rng = np.random.default_rng(0)
    for n, m in ((20, 20), (31, 17), (5, 40)):
        x, y = rng.normal(size=(n, 3)), rng.normal(size=(m, 3))
        cost = torch.from_numpy(((x[:, None] - y[None]) ** 2).sum(2))[None]
        assert -dtw(cost).score.item() == pytest.approx(other.distance(x, y) ** 2, rel=1e-9)


def test_dtw_of_several_rows_pads_by_repetition() -> None:
    n, m = torch.tensor([5, 2, 1]), torch.tensor([4, 4, 1])
    cost = matrix(5, 4, batch=3)
    path = dtw(cost, n, m)
    check_coupling(path, n, m)
    for row in range(3):
        alone = dtw(cost[row : row + 1, : n[row], : m[row]])
        size = alone.mass.shape[1]
        assert torch.equal(path.source[row, :size], alone.source[0])
        assert torch.equal(path.target[row, :size], alone.target[0])
        assert path.mass[row].sum() == size
    empty = dtw(torch.zeros(0, 3, 3))
    assert empty.mass.shape[0] == 0


@settings(max_examples=30, deadline=None)
@given(n=st.integers(1, 4), m=st.integers(1, 7), seed=st.integers(0, 99))
def test_subsequence_is_the_best_part(n: int, m: int, seed: int) -> None:
    cost = matrix(n, m, seed)
    best = min(
        -dtw(cost[:, :, begin:end]).score.item() for begin, end in itertools.combinations(range(m + 1), 2)
    )
    match = subsequence_dtw(cost)
    assert -match.coupling.score.item() == pytest.approx(best, rel=1e-12)
    begin, end = match.spans[0].tolist()
    assert -dtw(cost[:, :, begin:end]).score.item() == pytest.approx(best, rel=1e-12)
    check_coupling(match.coupling, torch.tensor([n]), torch.tensor([m]))
    torch.testing.assert_close((match.coupling.dense() * cost).sum().item(), best, **EXACT)
    assert (match.coupling.dense().sum(2) > 0).all()


def test_subsequence_of_several_lengths() -> None:
    n, m = torch.tensor([4, 2]), torch.tensor([9, 5])
    cost = matrix(4, 9, batch=2)
    cost[1, 2:] = math.nan
    match = subsequence_dtw(cost, n, m)
    for row in range(2):
        alone = subsequence_dtw(cost[row : row + 1, : n[row], : m[row]])
        assert torch.equal(match.spans[row], alone.spans[0])
        torch.testing.assert_close(match.coupling.score[row], alone.coupling.score[0], **EXACT)
