"""The CTC aligners: ours and torchaudio's."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from isotone_ctc.align import CTCViterbi, TorchaudioViterbi

from isotone.alignment import AlignmentError
from isotone.types import Targets
from tests.plugins.ctc.parts import FLOAT32, batch, emissions_of


def test_aligners_agree() -> None:
    rng = torch.Generator().manual_seed(1)
    ours, theirs = CTCViterbi(), TorchaudioViterbi()
    for _ in range(50):
        blank = int(torch.randint(0, 5, (1,), generator=rng))
        rows = [
            [v + (v >= blank) for v in torch.randint(0, 4, (n,), generator=rng).tolist()]
            for n in torch.randint(0, 12, (4,), generator=rng).tolist()
        ]
        lengths = torch.randint(24, 60, (4,), generator=rng)
        emissions = emissions_of(2 * torch.randn(4, 60, 5, generator=rng), lengths.tolist(), blank)
        targets = Targets.from_lists(rows)
        a, b = ours(emissions, targets), theirs(emissions, targets)
        assert a.score is not None
        assert b.score is not None
        torch.testing.assert_close(a.score, b.score, **FLOAT32)
        # random scores have no ties: the paths are the same, too
        for field in ("source", "target", "mass", "source_lengths", "target_lengths"):
            assert torch.equal(getattr(a, field), getattr(b, field)), field


@pytest.mark.parametrize("aligner", [CTCViterbi, TorchaudioViterbi])
def test_alignments_are_monotone_and_fill_as_asked(rng: torch.Generator, aligner: type) -> None:
    emissions, targets = batch(rng)
    emissions = replace(emissions, lengths=torch.tensor([30, 17, 9]))
    spans = {
        blanks: aligner(blanks=blanks)(emissions, targets).spans()
        for blanks in ("leave", "previous", "split")
    }
    inner = aligner(blanks="split", edges="leave")(emissions, targets).spans()
    for b, (n, m) in enumerate(zip(emissions.lengths.tolist(), targets.lengths.tolist())):
        left = spans["leave"][b, :m]
        assert (left[:, 1] > left[:, 0]).all()
        assert (left[1:, 0] >= left[:-1, 1]).all()
        for name in ("previous", "split"):
            filled = spans[name][b, :m]
            assert (filled[0, 0], filled[-1, 1]) == (0, n)
            assert torch.equal(filled[1:, 0], filled[:-1, 1])
        assert torch.equal(spans["previous"][b, 1:m, 0], left[1:, 0])
        half = (left[1:, 0] - left[:-1, 1] + 1).floor_divide(2)
        assert torch.equal(spans["split"][b, 1:m, 0], left[:-1, 1] + half)
        assert (inner[b, 0, 0], inner[b, m - 1, 1]) == (left[0, 0], left[-1, 1])


@pytest.mark.parametrize("aligner", [CTCViterbi, TorchaudioViterbi])
def test_aligners_name_the_row_that_fails(rng: torch.Generator, aligner: type) -> None:
    emissions, targets = batch(rng)
    with pytest.raises(AlignmentError) as caught:
        aligner()(emissions, targets)
    assert str(caught.value) == "Row 2: 3 tokens (1 repeats) need at least 4 frames, got 3."
    emissions.logits[1, 16] = torch.nan
    targets = replace(targets, lengths=torch.tensor([4, 2, 0]))
    with pytest.raises(AlignmentError, match="Row 1: "):
        aligner()(emissions, targets)
    with pytest.raises(ValueError, match="rule for blanks"):
        aligner(blanks="next")
