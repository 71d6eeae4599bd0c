import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from isotone_ottc.align import SegmentalViterbi

from isotone.kernels.paths import (
    _moved_by_loops,
    _moved_by_tensors,
    coupling_from_paths,
    subframe_coupling,
)
from isotone.testing import check_aligner, check_coupling


def _coupling(path, logits, labels):
    rows = torch.tensor([path])
    return subframe_coupling(
        rows, logits[None], torch.tensor([labels]), torch.tensor([len(path)]), torch.tensor([len(labels)])
    )


def test_boundary_moves_by_the_difference_of_the_posteriors():
    # frame 1 is half b's: p = 1/2 of b against a; frame 2 is b's alone: the boundary moves back by 0.5, cut at 0.49
    logits = torch.tensor([[9.0, -9.0], [0.0, 0.0], [-99.0, 99.0], [-9.0, 9.0]])
    spans = _coupling([0, 0, 1, 1], logits, [0, 1]).spans()[0]
    assert spans.tolist() == [[0.0, pytest.approx(1.51)], [pytest.approx(1.51), 4.0]]
    # log-odds of log 3 for b in frame 1: p = 3/4, so 1/4 of it is b; of log 9 in frame 2: 1/10 of it is a
    logits = torch.tensor([[9.0, -9.0], [math.log(3.0), 0.0], [0.0, math.log(9.0)], [-9.0, 9.0]])
    spans = _coupling([0, 0, 1, 1], logits, [0, 1]).spans()[0]
    assert spans[0, 1].item() == pytest.approx(1.85, abs=1e-6)
    assert spans[1, 0].item() == pytest.approx(1.85, abs=1e-6)


def test_later_boundary_shares_the_frame_after_it():
    logits = torch.tensor([[9.0, -9.0], [99.0, -99.0], [0.0, math.log(3.0)], [-9.0, 9.0]])
    coupling = _coupling([0, 0, 1, 1], logits, [0, 1])
    assert coupling.spans()[0, 0, 1].item() == pytest.approx(2.25, abs=1e-6)
    assert coupling.dense()[0, 2].tolist() == pytest.approx([0.25, 0.75], abs=1e-6)


def test_certain_frames_keep_the_path_and_blanks_are_no_boundary():
    path = [0, 0, -1, 1, 1, 2]
    logits = torch.full((6, 4), -1e4)
    for t, u in enumerate(path):
        logits[t, u] = 1e4
    found = _coupling(path, logits, [0, 1, 2])
    plain = coupling_from_paths(torch.tensor([path]), torch.tensor([6]), torch.tensor([3]))
    assert torch.equal(found.dense(), plain.dense())


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), frames=st.integers(1, 12), tokens=st.integers(1, 6))
def test_frames_keep_their_mass_and_order(seed, frames, tokens):
    generator = torch.Generator().manual_seed(seed)
    tokens = min(tokens, frames)
    cuts = torch.randperm(frames - 1, generator=generator)[: tokens - 1].sort().values + 1
    path = torch.bucketize(torch.arange(frames), cuts, right=True)
    logits = torch.randn(frames, 5, generator=generator) * 3
    labels = torch.randint(5, (tokens,), generator=generator).tolist()
    coupling = _coupling(path.tolist(), logits, labels)
    check_coupling(coupling, torch.tensor([frames]), torch.tensor([tokens]))
    assert torch.allclose(coupling.dense()[0].sum(1), torch.ones(frames))
    spans = coupling.spans()[0]
    assert (spans[:, 1] - spans[:, 0] > 0.01).all()
    assert torch.allclose(spans[1:, 0], spans[:-1, 1], atol=1e-6)
    assert ((spans[1:, 0] - cuts).abs() < 0.5).all()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), rows=st.integers(1, 3), frames=st.integers(1, 12))
def test_loops_give_what_tensors_give_on_other_devices(seed, rows, frames):
    generator = torch.Generator().manual_seed(seed)
    paths = torch.randint(-1, 4, (rows, frames), generator=generator).cummax(1).values
    paths[torch.rand(paths.shape, generator=generator) < 0.2] = -1
    paths[0, frames // 2 :] = -2
    logits = torch.randn(rows, frames, 5, generator=generator) * 3
    logits[torch.rand(logits.shape, generator=generator) < 0.1] = -torch.inf
    lengths = torch.full((rows,), frames), torch.full((rows,), 4)
    given_all = paths, logits, torch.randint(5, (rows, 4), generator=generator), lengths, None
    found, expected = _moved_by_loops(*given_all), _moved_by_tensors(*given_all)
    assert torch.equal(found.source, expected.source)
    assert torch.equal(found.target, expected.target)
    torch.testing.assert_close(found.mass, expected.mass, rtol=0, atol=1e-6)


def test_the_laws_of_aligners_hold():
    check_aligner(SegmentalViterbi(subframe=True))
