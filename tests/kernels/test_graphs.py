"""Graphs with fillers: CTC's lattice and its alternatives as graphs, and guides along them, by definition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from isotone.kernels.graphs import Filled, near_frames, with_fillers
from isotone.kernels.guide import near_labels
from isotone.kernels.viterbi import ctc_path, graph_path
from isotone.types import FramePath, Targets, TokenGraph
from isotone.types.graph import line
from tests.kernels.test_guide import random_guide
from tests.kernels.test_viterbi_graph import random_graph
from tests.kernels.viterbi_parts import CASES, random_log_probs, seeds


def lined(labels: np.ndarray, lengths: np.ndarray, optional: np.ndarray) -> Targets:
    """Targets in a line as a graph."""
    rows = [line(row[:n].tolist()) for row, n in zip(optional, lengths)]
    none = [[(0.0, 0.0)] * n for n in lengths]
    graph = TokenGraph.from_lists(rows, none, [[False] * n for n in lengths])
    return Targets.from_lists([row[:n].tolist() for row, n in zip(labels, lengths)], graph=graph)


@CASES
@given(seeds, st.booleans())
def test_ctc_as_a_graph_has_the_path_of_ctc_path(seed: int, level: bool) -> None:
    rng = np.random.default_rng(seed)
    rows, frames, tokens = 2, 200, 20
    log_probs = random_log_probs(rng, rows, frames, 4)
    if level:
        log_probs = np.round(log_probs)
    labels, optional = rng.integers(1, 4, (rows, tokens)), rng.random((rows, tokens)) < 0.3
    n, m = rng.integers(3 * tokens, frames + 1, rows), rng.integers(1, tokens + 1, rows)
    optional[:, 0] = False  # CTC's own lattice may be all blank; a graph has a token
    filled = with_fillers(lined(labels, m, optional), 0, "ctc")
    size = int(m.max())
    paths, scores = graph_path(
        torch.from_numpy(log_probs), filled.labels, torch.from_numpy(n), filled.lengths, filled.arcs
    )
    expected, expected_scores = ctc_path(log_probs, labels[:, :size], n, m, 0, optional[:, :size])
    np.testing.assert_allclose(scores.numpy(), expected_scores, atol=1e-9)
    if not level:
        np.testing.assert_array_equal(filled.tokens(paths).numpy(), expected)


def spellings(filled: Filled, ways: list[list[tuple[int, float]]]) -> set[tuple[int, ...]]:
    """The labels of all ways through a graph."""
    count = len(ways) - 1
    return {
        tuple(filled.labels[0, list(path)].tolist())
        for size in range(1, count + 1)
        for path in itertools.combinations(range(count), size)
        if all(p in dict(ways[u]) for p, u in zip((-1, *path), (*path, count)))
    }


@CASES
@given(seeds, st.integers(1, 4), st.sampled_from(["repeats", "all", "ctc"]))
def test_ways_with_fillers(seed: int, tokens: int, rule: str) -> None:
    """They are those without fillers, with fillers put in wherever the rule has them."""
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, tokens, 4)
    labels = rng.integers(1, 3, tokens).tolist()
    none = [[(0.0, 0.0)] * tokens]
    targets = Targets.from_lists(
        [labels], graph=TokenGraph.from_lists([graph.before], none, [[False] * tokens])
    )
    filled = with_fillers(targets, 0, rule)  # type: ignore[arg-type]
    found = spellings(filled, filled.graph.ways(0, int(filled.lengths[0])))
    plain = with_fillers(targets, 0, "repeats")
    bare = {
        tuple(x for x in said if x) for said in spellings(plain, plain.graph.ways(0, int(plain.lengths[0])))
    }
    expected = set()
    for said in bare:
        gaps = []
        for a, b in zip((None, *said), (*said, None)):
            optional, required = [()], [(0,)]
            if a is not None and a == b:
                gaps.append(required if rule == "ctc" else optional + required)
            else:
                gaps.append(optional if rule == "repeats" else optional + required)
        for some in itertools.product(*gaps):
            spelt = [*some[0]]
            for label, gap in zip(said, some[1:]):
                spelt += [label, *gap]
            expected.add(tuple(spelt))
    assert found == expected


@CASES
@given(seeds, st.integers(1, 9), st.integers(1, 5), st.booleans())
def test_in_a_line_frames_near_a_guide_are_labels_near_it(
    seed: int, frames: int, tokens: int, fillers: bool
) -> None:
    draw = torch.Generator().manual_seed(seed)
    guide = FramePath(random_guide(frames, tokens, draw))
    none = np.zeros((1, tokens), bool)
    labels = np.arange(1, tokens + 1)[None]
    filled = with_fillers(lined(labels, np.array([tokens]), none), 0, "all" if fillers else "repeats")
    ranges = near_frames(guide, filled)[0]
    near = near_labels(guide, tokens, filled.origin)[0]
    frame, position = torch.arange(frames)[:, None], torch.arange(filled.origin.shape[1])
    of_frames = (ranges[:, 0] <= frame) & (frame <= ranges[:, 1])
    of_labels = (near[:, :1] <= position) & (position <= near[:, 1:])
    assert torch.equal(of_frames, of_labels)


@CASES
@given(seeds, st.integers(1, 7))
def test_frames_near_a_guide_along_a_graph(seed: int, tokens: int) -> None:
    """By the tokens from which a way leads to each token, and those that one leads to from it."""
    rng = np.random.default_rng(seed)
    ways = random_graph(rng, tokens, 4).before
    leads = np.eye(tokens, dtype=bool)  # from row to column
    for u in range(tokens):
        for p, _ in ways[u]:
            if p >= 0:
                leads[:, u] |= leads[:, p]
    path = [int(rng.integers(tokens))]
    while after := [u for u in range(tokens) if path[-1] in dict(ways[u])]:
        path.append(int(rng.choice(after)))
    guide = [u if rng.random() < 0.7 else -1 for u in path]
    graph = TokenGraph.from_lists([ways], [[(0.0, 0.0)] * tokens], [[False] * tokens])
    targets = Targets.from_lists([list(range(1, tokens + 1))], graph=graph)
    found = near_frames(FramePath(torch.tensor([guide])), with_fillers(targets, 0, "repeats"))[0].tolist()
    for u in range(tokens):
        earlier = [t for t, k in enumerate(guide) if k >= 0 and k != u and leads[k, u]]
        later = [t for t, k in enumerate(guide) if k >= 0 and k != u and leads[u, k]]
        assert found[u] == [max(earlier, default=0), min(later, default=len(guide))]


def test_tokens_beside_the_guides_are_free_between_the_neighbours_of_these() -> None:
    ways = [[(-1, 0.0)], [(0, 0.0)], [(1, 0.0)], [(0, 0.0)], [(2, 0.0), (3, 0.0)], [(4, 0.0)]]
    graph = TokenGraph.from_lists([ways], [[(0.0, 0.0)] * 5], [[False] * 5])
    filled = with_fillers(Targets.from_lists([[1, 2, 3, 4, 5]], graph=graph), 0, "repeats")
    guide = FramePath(torch.tensor([[0, -1, 1, 2, -1, 4]]))
    assert near_frames(guide, filled)[0].tolist() == [[0, 2], [0, 3], [2, 5], [0, 5], [3, 6]]


def test_pauses_may_have_any_frame_and_bind_the_words_beside_them_no_less() -> None:
    marked = ([False, False, True, False],), ([False] * 4,)
    free, bound = (
        TokenGraph.from_lists([line([False, False, True, False])], [[(0.0, 0.0)] * 4], [[False] * 4], pauses)
        for pauses in marked
    )
    guide = FramePath(torch.tensor([[0, -1, 1, 2, -1, 3]]))
    ranges = [
        near_frames(guide, with_fillers(Targets.from_lists([[1, 2, 3, 4]], graph=graph), 0, "all"))[0]
        for graph in (bound, free)
    ]
    pause = 5  # a filler stands before every token
    assert ranges[0][pause].tolist() == [2, 5]
    assert ranges[1][pause].tolist() == [0, 6]
    others = torch.arange(len(ranges[0])) != pause
    assert torch.equal(ranges[0][others], ranges[1][others])


def test_durations_in_frames() -> None:
    graph = TokenGraph.from_lists(
        [line([False] * 4)],
        [[(0.0, 0.0), (0.0, 0.12), (0.15, 0.0), (0.0, 0.005)]],
        [[False, True, False, True]],
    )
    filled = with_fillers(Targets.from_lists([[1, 2, 3, 4]], graph=graph), 0, "repeats")
    assert filled.least(2, 0.02).tolist() == [[2, 1, 8, 1]]
    assert filled.most(0.02).tolist() == [[0, 6, 0, 1]]
    assert filled.least(4, 0.01).tolist() == [[4, 2, 15, 2]]
    assert filled.most(0.01).tolist() == [[0, 12, 0, 1]]


@pytest.mark.parametrize("rule", ["ctc", "all"])
def test_a_row_without_tokens_has_a_filler(rule: str) -> None:
    graph = TokenGraph.from_lists([[], line([False])], [[], [(0.0, 0.0)]], [[], [False]])
    targets = Targets.from_lists([[], [1]], graph=graph)
    filled = with_fillers(targets, 0, rule)  # type: ignore[arg-type]
    paths, _ = graph_path(
        torch.zeros(2, 3, 2), filled.labels, torch.tensor([3, 3]), filled.lengths, filled.arcs
    )
    assert filled.tokens(paths)[0].tolist() == [-1, -1, -1]
