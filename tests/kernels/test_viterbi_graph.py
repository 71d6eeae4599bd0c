"""The best path through a graph of tokens, against all paths, and against the kernels of linear lattices."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.alignment import AlignmentError
from isotone.kernels.viterbi import Arcs, fewest_frames, graph_path, monotone_path
from tests.kernels.viterbi_parts import CASES, EXACT, random_log_probs, seeds


class Graph(NamedTuple):
    """One row: for every token and the end a list of (token before, cost)."""

    before: list[list[tuple[int, float]]]
    least: list[int]
    most: list[int]
    near: list[tuple[int, int]]


def packed(rows: list[list[list[tuple[int, float]]]], size: int) -> Arcs[np.ndarray]:
    most = max(sum(map(len, row)) for row in rows)
    first = np.zeros((len(rows), size + 2), np.int64)
    before, costs = np.full((len(rows), most + 1), -7), np.full((len(rows), most + 1), -7.0)
    for b, row in enumerate(rows):
        first[b, 1 : len(row) + 1] = np.cumsum([len(ways) for ways in row])
        flat = [way for ways in row for way in sorted(ways)]
        before[b, : len(flat)] = [p for p, _ in flat]
        costs[b, : len(flat)] = [c for _, c in flat]
    return Arcs(first, before, costs)


def random_graph(rng: np.random.Generator, tokens: int, frames: int) -> Graph:
    before: list[list[tuple[int, float]]] = []
    for u in range(tokens + 1):
        possible = range(-1 if u < tokens else 0, u)
        chosen = [p for p in possible if rng.random() < 0.4] or [u - 1]
        before.append([(p, float(rng.choice([0.0, 0.0, 0.5, 1.5]))) for p in chosen])
    least = rng.integers(1, 4, tokens).tolist()
    most = [int(rng.choice([0, n, n + 1, n + 3])) for n in least]
    near = [
        (int(a), int(a + n))
        for a, n in zip(rng.integers(-1, frames, tokens), rng.integers(0, frames, tokens))
    ]
    return Graph(before, least, most, near)


def all_paths(graph: Graph, frames: int) -> list[tuple[tuple[int, ...], float]]:
    """Every path of so many frames, with the costs of its arcs."""
    tokens = len(graph.least)
    found = []

    # token ahead (reversed topological order keeps it simple): the frames from t on, given that u begins at t
    def extend(path: tuple[int, ...], cost: float, at: int) -> None:
        for p, c in graph.before[tokens] if len(path) == frames else ():
            if p == at:
                found.append((path, cost + c))
        for u in range(at + 1, tokens):
            for p, c in graph.before[u]:
                if p == at:
                    limit = graph.most[u] or frames
                    for n in range(graph.least[u], min(limit, frames - len(path)) + 1):
                        extend(path + (u,) * n, cost + c, u)

    extend((), 0.0, -1)
    return found


def value(
    log_probs: np.ndarray, labels: np.ndarray, graph: Graph, path: tuple[int, ...], far: float
) -> float:
    outside = sum(not graph.near[u][0] <= t <= graph.near[u][1] for t, u in enumerate(path))
    return sum(log_probs[t, labels[u]] for t, u in enumerate(path)) - far * outside


@CASES
@given(seeds, st.integers(1, 6), st.integers(1, 8), st.sampled_from([0.0, 0.7]))
def test_best_of_all_paths(seed: int, tokens: int, frames: int, far: float) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, tokens, frames)
    log_probs, labels = random_log_probs(rng, 1, frames, 4), rng.integers(0, 4, (1, tokens))
    arguments = log_probs, labels, np.array([frames]), np.array([tokens]), packed([graph.before], tokens)
    options = np.array([graph.least]), np.array([graph.most]), np.array([graph.near]), far
    known = all_paths(graph, frames)
    if not known:
        with pytest.raises(AlignmentError):
            graph_path(*arguments, *options)
        return
    best = max(value(log_probs[0], labels[0], graph, path, far) - cost for path, cost in known)
    paths, scores = graph_path(*arguments, *options)
    assert scores[0] == pytest.approx(best, abs=EXACT)
    found = tuple(paths[0].tolist())
    worth = [value(log_probs[0], labels[0], graph, path, far) - cost for path, cost in known if path == found]
    assert max(worth) == pytest.approx(best, abs=EXACT)


@CASES
@given(seeds, st.integers(1, 5), st.integers(1, 8))
def test_ties_go_to_the_later_token_in_the_last_frame_that_differs(
    seed: int, tokens: int, frames: int
) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, tokens, frames)
    graph = graph._replace(before=[[(p, 0.0) for p, _ in ways] for ways in graph.before])
    known = all_paths(graph, frames)
    if known:
        log_probs = rng.integers(-2, 0, (1, frames, 3)).astype(float)
        labels = rng.integers(0, 3, (1, tokens))
        best = max(known, key=lambda one: (value(log_probs[0], labels[0], graph, one[0], 0.0), one[0][::-1]))
        paths, _ = graph_path(
            log_probs, labels, np.array([frames]), np.array([tokens]), packed([graph.before], tokens),
            np.array([graph.least]), np.array([graph.most]),
        )  # fmt: skip
        assert tuple(paths[0].tolist()) == best[0]


def skipping(optional: np.ndarray) -> list[list[tuple[int, float]]]:
    """The arcs of a linear lattice with optional tokens."""
    rows = []
    for u in range(len(optional) + 1):
        ways, p = [], u - 1
        while p >= 0 and optional[p]:
            ways.append((p, 0.0))
            p -= 1
        rows.append([*ways, (p, 0.0)] if u < len(optional) or p >= 0 else ways)
    return rows


@CASES
@given(seeds, st.integers(1, 3), st.booleans(), st.booleans())
def test_linear_graphs_have_the_path_of_monotone_path(
    seed: int, least: int, level: bool, guided: bool
) -> None:
    """Path for path, ties included, in batches of long rows; ranges of frames as ranges of tokens."""
    rng = np.random.default_rng(seed)
    rows, frames, tokens = 3, 400, 40
    log_probs = random_log_probs(rng, rows, frames, 5)
    if level:
        log_probs = np.round(log_probs)
    labels, optional = rng.integers(0, 5, (rows, tokens)), rng.random((rows, tokens)) < 0.4
    n, m = rng.integers(3 * tokens, frames + 1, rows), rng.integers(2, tokens + 1, rows)
    near, of_tokens = None, None
    if guided:
        low = np.sort(rng.integers(0, tokens, (rows, frames)), 1)
        high = np.maximum.accumulate(low + rng.integers(0, 6, (rows, frames)), 1)
        near = np.stack([low, high], 2)
        inside = (low[:, :, None] <= np.arange(tokens)) & (np.arange(tokens) <= high[:, :, None])
        first = np.where(inside.any(1), inside.argmax(1), frames)
        last = np.where(inside.any(1), frames - 1 - inside[:, ::-1].argmax(1), -1)
        of_tokens = np.stack([first, last], 2)
    arcs = packed([skipping(optional[b, : m[b]]) for b in range(rows)], tokens)
    paths, scores = graph_path(
        log_probs, labels, n, m, arcs, np.full(labels.shape, least), None, of_tokens, 0.5
    )
    expected, expected_scores = monotone_path(log_probs, labels, n, m, optional, least, near, 0.5)
    np.testing.assert_array_equal(paths, expected)
    np.testing.assert_array_equal(scores, expected_scores)


@CASES
@given(seeds, st.integers(1, 6), st.booleans())
def test_fewest_frames(seed: int, tokens: int, longer: bool) -> None:
    graph = random_graph(np.random.default_rng(seed), tokens, 4)
    lengths = [
        sum(graph.least[u] for u in path)
        for size in range(1, tokens + 1)
        for path in itertools.combinations(range(tokens), size)
        if all(p in dict(graph.before[u]) for p, u in zip((-1, *path), (*path, tokens)))
    ]
    found = fewest_frames(packed([graph.before], tokens), np.array([tokens]), np.array([graph.least]))[0]
    assert found == min(lengths) if lengths else found >= 2**60


def test_the_end_takes_any_number_of_arcs() -> None:
    """A line of tokens that may end anywhere: the best of its beginnings."""
    frames, tokens = 5, 300
    log_probs = random_log_probs(np.random.default_rng(0), 1, frames, 4)
    labels = np.random.default_rng(1).integers(4, size=(1, tokens))
    line = [[(u - 1, 0.0)] for u in range(tokens)]
    arcs = packed([[*line, [(u, 0.0) for u in range(tokens)]]], tokens)
    path, score = graph_path(log_probs, labels, np.array([frames]), np.array([tokens]), arcs)
    beginnings = [
        monotone_path(log_probs, labels[:, :count], np.array([frames]), np.array([count]))
        for count in range(1, frames + 1)
    ]
    best = max(reversed(beginnings), key=lambda found: float(found[1][0]))
    assert score[0] == pytest.approx(best[1][0])
    assert path.tolist() == best[0].tolist()
