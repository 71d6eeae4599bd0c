"""Excerpts of a sequence: the best total, by brute force, and pairs that are worth it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.kernels.excerpts import LARGEST, Excerpt, excerpts

COSTS = {"gap": 2, "skip": 3, "entry": 5}


def best_total(scores: np.ndarray, sequence: Sequence[int], gap: int, skip: int, entry: int) -> int:
    """The definition, over all pairs: ``value[i][j]`` is the best total whose last pair is (i, j)."""
    n, m = len(scores), len(sequence)
    value = np.full((n, m), -(10**9))
    best = [0] * (n + 1)  # of rows before i
    for i in range(n):
        for j in range(m):
            ways = [best[i] - entry]
            for k in range(max(0, j - 3), j):
                ways += [value[h][k] - gap * (i - h - 1) - skip * (j - k - 1) for h in range(i)]
            value[i][j] = max(ways) + scores[i][sequence[j]]
        best[i + 1] = max(best[i], value[i].max(initial=-(10**9)))
    return best[n]


def worth(found: Excerpt, scores: np.ndarray, sequence: np.ndarray, gap: int, skip: int) -> int:
    rows, positions = found.pairs.T
    left_out = int((np.diff(rows) - 1).sum()), int((np.diff(positions) - 1).sum())
    return int(scores[rows, sequence[positions]].sum()) - gap * left_out[0] - skip * left_out[1]


@given(st.integers(0, 10**6), st.integers(0, 12), st.integers(0, 9), st.integers(1, 4))
def test_the_total_is_that_of_brute_force_and_the_pairs_are_worth_it(
    seed: int, n: int, m: int, symbols: int
) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(-6, 7, (n, symbols)).astype(np.int16)
    sequence = rng.integers(0, symbols, m)
    costs = {
        "gap": int(rng.integers(0, 5)),
        "skip": int(rng.integers(0, 5)),
        "entry": int(rng.integers(1, 12)),
    }
    found = excerpts(scores, sequence, **costs)
    total = sum(one.value - costs["entry"] for one in found)
    assert total == best_total(scores, sequence.tolist(), **costs)
    for one in found:
        rows, positions = one.pairs.T
        assert (np.diff(rows) >= 1).all()
        assert (np.diff(positions) >= 1).all()
        assert (np.diff(positions) <= 3).all()
        assert one.value == worth(one, scores, sequence, costs["gap"], costs["skip"]) > costs["entry"]
    ends = [(one.pairs[0, 0], one.pairs[-1, 0]) for one in found]
    assert all(before[1] < after[0] for before, after in pairwise(ends))


def planted(rng: np.random.Generator, sequence: np.ndarray, parts: Sequence[slice | int]) -> np.ndarray:
    """Rows that hold parts of a sequence, and so many rows of noise, with a third of the symbols wrong."""
    rows = [rng.integers(0, 20, part) if isinstance(part, int) else sequence[part] for part in parts]
    symbols = np.concatenate(rows)
    wrong = rng.random(len(symbols)) < 1 / 3
    symbols[wrong] = rng.integers(0, 20, wrong.sum())
    scores = np.full((len(symbols), 20), -16, np.int16)
    scores[np.arange(len(symbols)), symbols] = 48
    return scores


def test_parts_are_found_in_any_order_among_other_rows() -> None:
    rng = np.random.default_rng(0)
    sequence = rng.integers(0, 20, 5000).astype(np.int8)
    scores = planted(rng, sequence, [90, slice(4000, 4300), 40, slice(100, 400), slice(1000, 1300)])
    found = excerpts(scores, sequence, gap=16, skip=16, entry=800)
    spans = [(*one.pairs[0].tolist(), *one.pairs[-1].tolist()) for one in found]
    truth = [(90, 4000, 389, 4299), (430, 100, 729, 399), (730, 1000, 1029, 1299)]
    assert np.abs(np.array(spans) - truth).max() <= 5


def test_a_long_excerpt_is_walked_back_in_blocks() -> None:
    rng = np.random.default_rng(0)
    sequence = rng.integers(0, 20, 6000).astype(np.int8)
    scores = planted(rng, sequence, [50, slice(500, 2600), slice(2610, 5400), 50])
    (found,) = excerpts(scores, sequence, gap=16, skip=16, entry=800)
    assert found.value == worth(found, scores, sequence, 16, 16) > 4890 * 16
    rows, positions = found.pairs.T
    assert len(rows) > 2 * 1024
    assert (positions - rows == np.where(rows < 2150, 450, 460))[np.abs(rows - 2150) > 20].mean() > 0.95


def test_rows_of_another_text_have_no_excerpts() -> None:
    rng = np.random.default_rng(0)
    sequence = rng.integers(0, 20, 5000)
    assert excerpts(planted(rng, sequence, [2000]), sequence, gap=40, skip=40, entry=800) == []


def test_a_long_excerpt_does_not_overflow() -> None:
    sequence = np.random.default_rng(0).integers(0, 20, 3000)
    scores = np.full((3000, 20), -LARGEST, np.int16)
    scores[np.arange(3000), sequence] = LARGEST
    found = excerpts(scores, sequence, gap=16, skip=16, entry=LARGEST)
    assert [len(one.pairs) for one in found] == [3000]
    assert found[0].value == 3000 * LARGEST


def test_nothing_has_no_excerpts() -> None:
    none = np.zeros((0, 3), np.int16)
    assert excerpts(none, np.array([1, 2]), **COSTS) == []
    assert excerpts(np.ones((2, 3), np.int16), np.array([], int), **COSTS) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sequence": np.array([3])}, "symbols 0 to 2"),
        ({"scores": np.zeros((2, 3))}, "of 16 bits"),
        ({"scores": np.full((2, 3), 32_000, np.int16)}, "scores of"),
        ({"entry": 0}, "entry of 1"),
        ({"skip": -1}, "a gap and a skip"),
    ],
)
def test_wrong_values_are_refused(change: dict[str, object], message: str) -> None:
    given = {"scores": np.zeros((2, 3), np.int16), "sequence": np.array([0]), **COSTS, **change}
    with pytest.raises(ValueError, match=message):
        excerpts(given.pop("scores"), given.pop("sequence"), **given)  # type: ignore[arg-type]
