"""The choice among several best paths: scores of a few whole numbers, against enumeration of all paths."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.kernels.viterbi import banded_path, ctc_path, monotone_path, search, segmental_decode

CASES = settings(max_examples=150, deadline=None)
seeds = st.integers(0, 2**32 - 1)
BLANK = 0

Path = tuple[int, ...]


def level(rng: np.random.Generator, rows: int, frames: int, values: int) -> np.ndarray:
    """Scores ``(B, T, 3)`` of so many different values; of one value, every path is as good as any other."""
    return -rng.integers(0, values, (rows, frames, 3)).astype(np.float64)


def places(path: Path) -> list[int]:
    """Return how far along each frame is: a blank is further than the token before it, and less far than the next."""
    out, last = [], -1
    for u in path:
        last = max(last, u)
        out.append(2 * u + 1 if u >= 0 else 2 * last + 2)
    return out


def total(log_probs: np.ndarray, path: Path, labels: np.ndarray) -> float:
    return sum(log_probs[t, BLANK if u < 0 else labels[u]] for t, u in enumerate(path))


def chosen(log_probs: np.ndarray, labels: np.ndarray, allowed: list[Path]) -> Path:
    """The rule: the best score, then the path that is further along in the last frame that differs."""
    return max(allowed, key=lambda path: (total(log_probs, path, labels), places(path)[::-1]))


def is_ctc(path: Path, labels: np.ndarray, optional: np.ndarray) -> bool:
    visited = [u for u, _ in itertools.groupby(path) if u >= 0]
    if visited != sorted(set(visited)) or not set(np.flatnonzero(~optional)) <= set(visited):
        return False
    return all(a < 0 or b < 0 or a == b or labels[a] != labels[b] for a, b in itertools.pairwise(path))


@pytest.mark.parametrize(
    ("frames", "tokens", "share"), [(2, 3, 0.7), (3, 3, 0.4), (4, 3, 0.7), (5, 2, 0.0), (6, 2, 0.5)]
)
@pytest.mark.parametrize("values", [1, 2])
def test_of_equal_ctc_paths_the_one_that_is_further_along_at_the_end_is_found(
    frames: int, tokens: int, share: float, values: int
) -> None:
    rng = np.random.default_rng(frames)
    log_probs = level(rng, 500, frames, values)
    labels, optional = rng.integers(1, 3, (500, tokens)), rng.random((500, tokens)) < share
    every = list(itertools.product(range(-1, tokens), repeat=frames))
    allowed = [[path for path in every if is_ctc(path, *row)] for row in zip(labels, optional)]
    kept = [b for b in range(500) if allowed[b]]
    expected = [chosen(log_probs[b], labels[b], allowed[b]) for b in kept]
    assert len(kept) > 300
    sizes = np.full(len(kept), frames), np.full(len(kept), tokens)
    arguments = log_probs[kept], labels[kept], *sizes
    for paths in (
        ctc_path(*arguments, BLANK, optional[kept])[0],
        banded_path(*arguments, 9, BLANK, optional[kept]).paths,
    ):
        assert [tuple(path) for path in paths.tolist()] == expected


@pytest.mark.parametrize(
    ("frames", "tokens", "share", "least"),
    [(3, 3, 0.7, 1), (5, 4, 0.5, 1), (6, 3, 0.0, 1), (6, 3, 0.5, 2), (7, 4, 0.7, 2), (7, 2, 0.0, 3)],
)
@pytest.mark.parametrize("values", [1, 2])
def test_of_equal_monotone_paths_the_one_that_is_further_along_at_the_end_is_found(
    frames: int, tokens: int, share: float, least: int, values: int
) -> None:
    rng = np.random.default_rng(frames)
    log_probs = level(rng, 500, frames, values)
    labels, optional = rng.integers(0, 3, (500, tokens)), rng.random((500, tokens)) < share
    every = [
        path
        for path in itertools.combinations_with_replacement(range(tokens), frames)
        if min(map(path.count, path)) >= least
    ]
    allowed = [[path for path in every if set(np.flatnonzero(~row)) <= set(path)] for row in optional]
    kept = [b for b in range(500) if allowed[b]]
    expected = [chosen(log_probs[b], labels[b], allowed[b]) for b in kept]
    assert len(kept) > 300
    sizes = np.full(len(kept), frames), np.full(len(kept), tokens)
    paths, _ = monotone_path(log_probs[kept], labels[kept], *sizes, optional[kept], least)
    assert [tuple(path) for path in paths.tolist()] == expected


@pytest.mark.parametrize("frames", [200, 501])
def test_the_rule_does_not_depend_on_what_is_stored(frames: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all is equal: tokens as early as they can be, then blanks; through many blocks of few frames."""
    monkeypatch.setattr(search, "LEAST_BLOCK", 3)
    labels = np.array([[1, 2, 2, 1, 1, 2]])
    row = (np.zeros((1, frames, 3)), labels, np.array([frames]), np.array([6]))
    early = [0, 1, -1, 2, 3, -1, 4, 5]
    assert ctc_path(*row, BLANK)[0][0].tolist() == early + [-1] * (frames - len(early))
    assert monotone_path(*row)[0][0].tolist() == [0, 1, 2, 3, 4] + [5] * (frames - 5)


@CASES
@given(seeds, st.integers(1, 6), st.integers(1, 3), st.integers(0, 2), st.integers(1, 3))
def test_of_equal_segmentations_the_lowest_label_and_the_longest_segment_is_found(
    seed: int, frames: int, values: int, penalty: int, least: int
) -> None:
    log_probs = level(np.random.default_rng(seed), 1, frames, values)[0]

    def segments(row: Path) -> list[tuple[int, int]]:
        """Label and length, the last segment first."""
        return [(label, len(list(group))) for label, group in itertools.groupby(row[::-1])]

    def rank(row: Path) -> tuple[float, list[tuple[int, int]]]:
        parts = segments(row)
        value = sum(log_probs[range(frames), row]) - penalty * (len(parts) - 1)
        return value, [(-label, length) for label, length in parts]

    rows = itertools.product(range(3), repeat=frames)
    allowed = [row for row in rows if min(n for _, n in segments(row)) >= min(least, frames)]
    expected = segments(max(allowed, key=rank))[::-1]
    labels, paths = segmental_decode(log_probs[None], np.array([frames]), float(penalty), None, least)
    assert labels[0] == [label for label, _ in expected]
    assert paths[0].tolist() == [k for k, (_, length) in enumerate(expected) for _ in range(length)]
