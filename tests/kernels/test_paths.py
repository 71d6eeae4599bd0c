"""Paths without their blanks, and as couplings."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from isotone.kernels.paths import coupling_from_paths, fill_blanks
from tests.kernels.viterbi_parts import (
    CASES,
    seeds,
)


def filled_by_hand(path: list[int], rule: str, edges: str) -> list[int]:
    """Blanks given away one run at a time."""
    out, t = list(path), 0
    while t < len(path):
        end = t
        while end < len(path) and path[end] == -1:
            end += 1
        left = path[t - 1] if t > 0 else None
        right = path[end] if end < len(path) and path[end] >= 0 else None
        size = end - t
        if left is not None and right is not None:
            kept = size if rule == "previous" else (size + 1) // 2
            out[t:end] = [left] * kept + [right] * (size - kept)
        elif edges == "fill" and (left, right) != (None, None):
            out[t:end] = [right if left is None else left] * size
        t = max(end, t + 1)
    return out


@CASES
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=5),
    st.integers(0, 4),
    st.integers(0, 3),
)
def test_fill_blanks_equals_filling_by_hand(tokens: list[tuple[int, int]], tail: int, padding: int) -> None:
    path = [u for i, (blanks, frames) in enumerate(tokens) for u in [-1] * blanks + [i] * frames] + [
        -1
    ] * tail
    paths = torch.tensor([path + [-2] * padding], dtype=torch.long).reshape(1, -1)
    assert fill_blanks(paths, "leave").tolist() == paths.tolist()
    for rule, edges in itertools.product(("previous", "split"), ("fill", "leave")):
        result = fill_blanks(paths, rule, edges)[0].tolist()
        assert result == filled_by_hand(path, rule, edges) + [-2] * padding
        if edges == "fill" and tokens:
            assert -1 not in result


def test_fill_blanks_examples() -> None:
    paths = torch.tensor([[-1, 0, -1, -1, -1, 1, -1, -2]])
    assert fill_blanks(paths, "previous").tolist() == [[0, 0, 0, 0, 0, 1, 1, -2]]
    assert fill_blanks(paths, "split").tolist() == [[0, 0, 0, 0, 1, 1, 1, -2]]
    assert fill_blanks(paths, "split", edges="leave").tolist() == [[-1, 0, 0, 0, 1, 1, -1, -2]]
    with pytest.raises(ValueError, match="rule for blanks"):
        fill_blanks(paths, "next")  # type: ignore[arg-type]


@CASES
@given(seeds, st.integers(1, 4), st.integers(0, 8))
def test_coupling_from_paths_holds_the_path(seed: int, rows: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = rng.integers(0, size + 1, rows), rng.integers(1, 5, rows)
    paths = np.full((rows, size), -2)
    for b in range(rows):
        paths[b, : n[b]] = np.where(rng.random(n[b]) < 0.4, -1, np.sort(rng.integers(0, m[b], n[b])))
    scores = torch.from_numpy(rng.normal(size=rows))
    coupling = coupling_from_paths(torch.from_numpy(paths), torch.from_numpy(n), torch.from_numpy(m), scores)
    expected = [[(t, u, 1.0) for t, u in enumerate(row) if u >= 0] for row in paths.tolist()]
    width = max([1, *map(len, expected)])
    assert coupling.source.shape == coupling.target.shape == coupling.mass.shape == (rows, width)
    for b, entries in enumerate(expected):
        columns = (coupling.source[b], coupling.target[b], coupling.mass[b])
        got = list(zip(*(x.tolist() for x in columns)))
        assert got[: len(entries)] == entries
        assert all(mass == 0.0 for *_, mass in got[len(entries) :])
        assert all(entry[:2] == entries[-1][:2] for entry in got[len(entries) :] if entries)
    assert coupling.score is scores
    assert coupling.source_lengths.tolist() == n.tolist()
    assert coupling.target_lengths.tolist() == m.tolist()
