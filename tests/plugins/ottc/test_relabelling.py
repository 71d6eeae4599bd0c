"""Targets with blanks and silence between labels, and paths over them."""

from __future__ import annotations

import itertools

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from isotone_ottc.sequences import (
    collapse_frames,
    insert_blanks,
    insert_silence,
    labels_from_paths,
    share_repeats,
)

from isotone.types import Targets
from tests.plugins.ottc.parts import BLANK

sequences = st.lists(st.lists(st.integers(1, 3), min_size=0, max_size=7), min_size=1, max_size=4)


@settings(max_examples=40, deadline=None)
@given(rows=sequences)
def test_blanks_go_between_equal_neighbours_only(rows: list[list[int]]) -> None:
    targets = Targets.from_lists(rows)
    targets.labels[torch.arange(targets.labels.shape[1]) >= targets.lengths[:, None]] = -100
    labels, lengths, origin = insert_blanks(targets.labels, targets.lengths, BLANK)
    spread, spread_lengths, spread_origin = insert_silence(targets.labels, targets.lengths, BLANK, 4)
    for b, row in enumerate(rows):
        expected, where = [], []
        for j, label in enumerate(row):
            if j and row[j - 1] == label:
                expected, where = [*expected, BLANK], [*where, -1]
            expected, where = [*expected, label], [*where, j]
        assert labels[b, : lengths[b]].tolist() == expected
        assert origin[b, : lengths[b]].tolist() == where
        assert (origin[b, lengths[b] :] == -1).all()
        silences = [BLANK if j and row[j - 1 : j] == row[j : j + 1] else 4 for j in range(len(row) + 1)]
        interleaved = [x for pair in zip(silences, [*row, -1]) for x in pair][:-1]
        assert spread[b, : spread_lengths[b]].tolist() == interleaved
        numbers = [x for j in range(len(row)) for x in (-1, j)] + [-1]
        assert spread_origin[b, : spread_lengths[b]].tolist() == numbers


def test_the_papers_relabelling() -> None:
    # YES with the path (blank Y blank blank E E S)
    paths = torch.tensor([[-1, 0, -1, -1, 1, 1, 2], [0, 0, -2, -2, -2, -2, -2]])
    labels, lengths, frames = labels_from_paths(paths, torch.tensor([[3, 1, 2], [4, -100, -100]]), BLANK)
    assert labels[0, : lengths[0]].tolist() == [BLANK, 3, BLANK, 1, 2]
    assert frames[0, : lengths[0]].tolist() == [1, 1, 2, 2, 1]
    assert labels[1, : lengths[1]].tolist() == [4]
    assert frames[1, : lengths[1]].tolist() == [2]


@settings(max_examples=40, deadline=None)
@given(
    frame_labels=st.lists(st.integers(0, 3), min_size=1, max_size=10),
    kept=st.lists(st.booleans(), min_size=10, max_size=10),
)
def test_frames_collapse_after_pruning(frame_labels: list[int], kept: list[bool]) -> None:
    mask = kept[: len(frame_labels)]
    labels, counts, paths = collapse_frames(torch.tensor([frame_labels]), torch.tensor([mask]), BLANK)
    pruned = [x for x, keep in zip(frame_labels, mask) if keep]
    expected = [label for label, _ in itertools.groupby(pruned) if label != BLANK]
    assert labels[0, : counts[0]].tolist() == expected
    for t, token in enumerate(paths[0].tolist()):
        assert (token >= 0) == (mask[t] and frame_labels[t] != BLANK)
        assert token < 0 or expected[token] == frame_labels[t]
    carried = paths[paths >= 0]
    assert (carried.diff() >= 0).all()
    assert sorted(set(carried.tolist())) == list(range(len(expected)))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_touching_repeats_share_their_frames(seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    labels = torch.randint(1, 3, (1, 6), generator=rng)
    steps = torch.randint(0, 2, (1, 14), generator=rng)
    path = steps.cumsum(1).clamp(max=5)
    path[torch.rand(1, 14, generator=rng) < 0.1] = -1
    shared = share_repeats(path, labels)
    assert torch.equal(shared < 0, path < 0)
    carried = path >= 0
    spell = [labels[0, p[0][carried[0]]] for p in (path, shared)]
    assert torch.equal(*spell)
    assert sorted(set(shared.flatten().tolist())) == sorted(set(path.flatten().tolist()))
    assert (shared[carried].diff() >= 0).all()


def test_touching_repeats_share_evenly() -> None:
    labels = torch.tensor([[1, 2, 2, 2]])
    path = torch.tensor([[0, 1, 2, 2, 2, 2, 3, -1, 3]])
    assert share_repeats(path, labels).tolist() == [[0, 1, 1, 2, 2, 3, 3, -1, 3]]
    path = torch.tensor([[0, 0, 1, -1, 3, 3, 3]])
    assert torch.equal(share_repeats(path, labels), path)
