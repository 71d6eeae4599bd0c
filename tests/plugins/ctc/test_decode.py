"""Greedy decoding."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from isotone_ctc.align import CTCViterbi, TorchaudioViterbi
from isotone_ctc.decode import GreedyCTC
from isotone_ctc.functional import collapse
from isotone_ctc.head import CTCHead
from isotone_ctc.loss import CTCLoss, SinglePathLoss

from isotone.types import Targets
from tests.plugins.ctc.parts import FLOAT32, emissions_of

labels_of_frames = st.lists(st.integers(0, 2), max_size=9)


@settings(max_examples=60, deadline=None)
@given(st.lists(labels_of_frames, min_size=1, max_size=4), st.integers(0, 2))
def test_collapse_equals_collapsing_by_hand(rows: list[list[int]], blank: int) -> None:
    frames = Targets.from_lists(rows)
    labels, counts, paths = collapse(frames.labels, frames.lengths, blank)
    assert labels.shape == (len(rows), max(1, int(counts.max())))
    for b, row in enumerate(rows):
        expected, path = [], []
        for t, v in enumerate(row):
            if v != blank and (t == 0 or v != row[t - 1]):
                expected.append(v)
            path.append(-1 if v == blank else len(expected) - 1)
        assert labels[b, : counts[b]].tolist() == expected
        assert paths[b].tolist() == path + [-2] * (paths.shape[1] - len(row))


def test_greedy_decoding(rng: torch.Generator) -> None:
    best = [[0, 2, 2, 0, 2, 1, 1, 0], [1, 1, 3, 0, 3, 3, 2, 2]]
    logits = torch.rand(2, 8, 4, generator=rng)
    logits.scatter_(2, torch.tensor(best)[..., None], 3.0)
    logits[1, 5:] = torch.nan
    emissions = emissions_of(logits, [8, 5])
    targets, coupling = GreedyCTC()(emissions)
    assert targets.tolist() == [[2, 2, 1], [1, 3, 3]]
    assert coupling.spans().tolist() == [[[1, 3], [4, 5], [5, 7]], [[0, 2], [2, 3], [4, 5]]]
    assert coupling.score is not None
    expected = [emissions.log_probs()[b, :n].max(-1).values.sum() for b, n in ((0, 8), (1, 5))]
    torch.testing.assert_close(coupling.score, torch.stack(expected))
    _, coupling = GreedyCTC(blanks="previous")(emissions)
    assert coupling.spans().tolist() == [[[0, 4], [4, 5], [5, 8]], [[0, 2], [2, 4], [4, 5]]]
    silent = emissions_of(torch.tensor([[[9.0, 0.0]] * 3]), [3])
    targets, coupling = GreedyCTC(blanks="split")(silent)
    assert targets.tolist() == [[]]
    assert float(coupling.mass.sum()) == 0


def test_decoding_then_aligning_gives_the_same_path(rng: torch.Generator) -> None:
    emissions = emissions_of(3 * torch.randn(4, 50, 5, generator=rng), [50, 31, 8, 1], blank=4)
    targets, decoded = GreedyCTC()(emissions)
    aligned = CTCViterbi()(emissions, targets)
    assert torch.equal(aligned.dense(), decoded.dense())
    torch.testing.assert_close(aligned.score, decoded.score, **FLOAT32)


def test_plugins_are_found_by_name() -> None:
    import isotone

    if "ctc" not in isotone.losses.names():
        pytest.skip("isotone is not installed: its entry points are not there")
    assert isinstance(isotone.losses.build("ctc", normalize="frames"), CTCLoss)
    assert isinstance(isotone.losses.build("single-path"), SinglePathLoss)
    assert isinstance(isotone.heads.build("ctc", 4, 5, 1, reads="features"), CTCHead)
    assert isinstance(isotone.aligners.build("ctc", blanks="split"), CTCViterbi)
    assert isinstance(isotone.aligners.build("ctc-torchaudio"), TorchaudioViterbi)
    assert isinstance(isotone.decoders.build("ctc-greedy"), GreedyCTC)
