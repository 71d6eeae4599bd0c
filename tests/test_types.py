from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.kernels.coupling import couple
from isotone.kernels.paths import coupling_from_paths, subframe_coupling
from isotone.types import Coupling, Emissions, Encoded, Frames, Grid, Targets, length_mask

EXACT = {"rtol": 0.0, "atol": 1e-9}


def soft_coupling(seed: int, rows: int = 3) -> Coupling:
    """Random transport plans with dropped sources and empty targets."""
    rng = torch.Generator().manual_seed(seed)
    n = torch.randint(1, 9, (rows,), generator=rng)
    m = torch.randint(1, 6, (rows,), generator=rng)
    alpha = torch.randint(0, 4, (rows, int(n.max())), generator=rng).double()
    beta = torch.randint(0, 4, (rows, int(m.max())), generator=rng).double()
    alpha[:, 0] += 1
    beta[:, 0] += 1
    return couple(alpha, beta, n, m)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_dense_adds_up_the_entries(seed: int) -> None:
    c = soft_coupling(seed)
    dense = c.dense()
    expected = torch.zeros_like(dense)
    for b in range(len(c.mass)):
        for i, j, mass in zip(c.source[b].tolist(), c.target[b].tolist(), c.mass[b].tolist()):
            expected[b, i, j] += mass
    torch.testing.assert_close(dense, expected, **EXACT)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_hard_gives_every_source_to_its_heaviest_target(seed: int) -> None:
    c = soft_coupling(seed)
    dense, hard = c.dense(), c.hard()
    expected = torch.zeros_like(dense)
    for b in range(dense.shape[0]):
        for i in range(dense.shape[1]):
            if dense[b, i].any():
                # ties go to the first; entries of one position are whole, each target appears once in it
                expected[b, i, (dense[b, i] >= dense[b, i].max()).nonzero()[0]] = 1
    torch.testing.assert_close(hard.dense(), expected, **EXACT)
    assert (hard.source.diff(dim=1) >= 0).all()
    assert (hard.target.diff(dim=1) >= 0).all()
    assert torch.equal(hard.hard().dense(), hard.dense())


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_spans_are_ordered_apart_and_inside(seed: int) -> None:
    c = soft_coupling(seed)
    for coupling in (c, c.hard()):
        spans, dense = coupling.spans(), coupling.dense()
        for b in range(len(spans)):
            n, m = int(c.source_lengths[b]), int(c.target_lengths[b])
            row = spans[b, :m]
            assert (row[:, 0] <= row[:, 1]).all()
            assert (row[1:, 0] >= row[:-1, 1] - 1e-9).all()
            assert (row >= 0).all()
            assert (row <= n + 1e-9).all()
            for j in range(m):
                used = dense[b, :, j].nonzero()[:, 0].tolist()
                if used:
                    assert used[0] <= row[j, 0] < used[0] + 1
                    assert used[-1] < row[j, 1] <= used[-1] + 1 + 1e-9
                else:
                    assert row[j, 0] == row[j, 1]


def test_spans_divide_a_shared_frame_by_mass() -> None:
    # alpha (1/2, 1/2) to beta (1/4, 5/8, 1/8)
    c = couple(torch.tensor([[2.0, 2.0]]), torch.tensor([[2.0, 5.0, 1.0]]))
    expected = torch.tensor([[[0.0, 0.5], [0.5, 1.75], [1.75, 2.0]]], dtype=torch.float64)
    torch.testing.assert_close(c.spans(), expected, **EXACT)


def test_spans_of_a_path_with_gaps_and_a_skipped_token() -> None:
    paths = torch.tensor([[-1, 0, 0, -1, 2, 2], [0, 1, -2, -2, -2, -2]])
    c = coupling_from_paths(paths, torch.tensor([6, 2]), torch.tensor([3, 2]))
    spans = c.spans()
    assert spans[0].tolist() == [[1, 3], [3, 3], [4, 6]]
    assert spans[1, :2].tolist() == [[0, 1], [1, 2]]


@settings(max_examples=40, deadline=None)
@given(hop=st.floats(1e-3, 1.0), offset=st.floats(-0.1, 0.1), frame=st.floats(0.0, 1e5))
def test_grid_there_and_back(hop: float, offset: float, frame: float) -> None:
    grid = Grid(hop, offset)
    if offset + frame * hop >= 0:
        assert grid.frames(grid.seconds(frame)) == pytest.approx(frame, rel=1e-9, abs=1e-6)
    else:
        assert grid.seconds(frame) == 0.0


def test_length_mask() -> None:
    assert length_mask(torch.tensor([0, 2]), 3).tolist() == [[False, False, False], [True, True, False]]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_emissions_normalise_in_float32_at_least(dtype: torch.dtype) -> None:
    rng = torch.Generator().manual_seed(0)
    lengths = torch.tensor([5, 2])
    logits = torch.randn(2, 5, 4, generator=rng).to(dtype)
    weights = torch.randn(2, 5, generator=rng).to(dtype)
    weights[1, 2:] = torch.nan
    emissions = Emissions(logits, lengths, Grid(0.02), 0, weights)
    wide = torch.promote_types(dtype, torch.float32)
    assert emissions.log_probs().dtype == emissions.weights().dtype == wide
    torch.testing.assert_close(emissions.log_probs().exp().sum(-1), torch.ones(2, 5, dtype=wide))
    alpha = emissions.weights()
    torch.testing.assert_close(alpha.sum(1), torch.ones(2, dtype=wide))
    torch.testing.assert_close(alpha[1, :2], weights[1, :2].to(wide).softmax(0))
    assert not alpha[1, 2:].any()


def test_weights_without_a_weight_head_are_uniform() -> None:
    emissions = Emissions(torch.randn(2, 4, 3), torch.tensor([4, 2]), Grid(0.02))
    assert emissions.weights().tolist() == [[0.25] * 4, [0.5, 0.5, 0.0, 0.0]]


def test_targets_from_lists_and_back() -> None:
    rows = [[3, 1], [], [2, 2, 2]]
    targets = Targets.from_lists(rows)
    assert targets.tolist() == rows
    assert targets.labels.shape == (3, 3)
    assert Targets.from_lists([]).labels.shape == (0, 1)


def test_encoded_reads_sources_by_name_and_number() -> None:
    layers = tuple(Frames(torch.full((1, 2, 3), float(i)), torch.tensor([2]), Grid(0.02)) for i in range(3))
    features = Frames(torch.zeros(1, 4, 5), torch.tensor([4]), Grid(0.01))
    encoded = Encoded(features, layers)
    assert encoded.read("features") is features
    assert encoded.read("last") is encoded.read(2) is encoded.read("2") is layers[2]
    with pytest.raises(ValueError, match="'features', 'last' or a layer from 0 to 2; got 'top'"):
        encoded.read("top")


def test_moving_keeps_what_is_not_a_tensor() -> None:
    frames = Frames(torch.zeros(1, 2, 3), torch.tensor([2]), Grid(0.02))
    moved = frames.to("meta")
    assert moved.values.device.type == moved.lengths.device.type == "meta"
    assert moved.grid == frames.grid


def test_targets_without_what_may_be_skipped() -> None:
    optional = torch.tensor([[True, False, True, False], [False, True, True, True]])
    targets = Targets(torch.tensor([[9, 1, 9, 2], [3, 9, 7, 7]]), torch.tensor([4, 2]), optional=optional)
    assert targets.required().tolist() == [[1, 2], [3]]
    assert targets.required().optional is None
    assert Targets.from_lists([[1, 2], [3]]).required().tolist() == [[1, 2], [3]]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 999))
def test_paths_keep_every_token(seed: int) -> None:
    """Boundaries between frames can leave a token little of its only frame; it is in the path all the same."""
    rng = np.random.default_rng(seed)
    tokens = int(rng.integers(1, 9))
    path = np.sort(np.concatenate([np.arange(tokens), rng.integers(0, tokens, rng.integers(0, 6))]))
    paths, labels = torch.from_numpy(path)[None], torch.from_numpy(1 + np.arange(tokens) % 3)[None]
    lengths = torch.tensor([len(path)]), torch.tensor([tokens])
    logits = 3 * torch.from_numpy(rng.normal(size=(1, len(path), 4))).float()
    soft = subframe_coupling(paths, logits, labels, *lengths)
    found = soft.path(len(path) + 2).tokens
    assert torch.equal(found[:, : len(path)], paths)
    assert (found[:, len(path) :] == -2).all()


def test_the_last_of_several_tokens_in_little_of_one_frame_is_in_the_path() -> None:
    source, target = torch.tensor([[0, 0, 0, 0, 1]]), torch.tensor([[0, 1, 2, 3, 4]])
    mass = torch.tensor([[0.7, 0.1, 0.1, 0.1, 1.0]])
    soft = Coupling(source, target, mass, torch.tensor([2]), torch.tensor([5]))
    # the frame's main token has no other frame: it gives way to those that are rescued
    assert soft.path(3).tokens.tolist() == [[3, 4, -2]]


@pytest.mark.parametrize("rows", [[0, 1, 2], [1, 2], [2], [2, 0], [0, 0, 1], [-1], []])
def test_rows_are_those_asked_for_and_copied_only_where_they_must_be(rows: list[int]) -> None:
    values = torch.arange(12.0).view(3, 4)
    emissions = Emissions(values[..., None], torch.tensor([4, 3, 2]), Grid(0.02))
    found = emissions.rows(rows)
    assert torch.equal(found.logits[..., 0], values[rows])
    assert found.lengths.tolist() == [[4, 3, 2][row] for row in rows]
    shares = found.logits.untyped_storage().data_ptr() == values.untyped_storage().data_ptr()
    assert shares == (rows in ([0, 1, 2], [1, 2], [2]))
