"""The aligners of OTTC: transport and segmental Viterbi."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from isotone_ottc.align import SegmentalViterbi
from isotone_ottc.sequences import insert_blanks, insert_silence
from isotone_ottc.transport import Transport

from isotone.alignment import AlignmentError
from isotone.testing import check_aligner
from isotone.types import Emissions, Grid, Targets
from tests.plugins.ottc.parts import BLANK, best_path, peaked


@pytest.mark.parametrize(
    "aligner",
    [
        Transport(beta="durations"), Transport(beta="self"), SegmentalViterbi(silence=0),
    ],
    ids=["transport-durations", "transport-self", "segmental-silence"],
)  # fmt: skip
def test_every_aligner_keeps_the_laws(aligner: Transport | SegmentalViterbi) -> None:
    check_aligner(aligner)


def test_transport_follows_the_weights() -> None:
    # three tokens of 1/3; the last two frames are dropped
    weights = torch.tensor([[1 / 3, 1 / 6, 1 / 6, 1 / 9, 1 / 9, 1 / 9, 0.0, 0.0]]).log()
    emissions = Emissions(torch.zeros(1, 8, 4), torch.tensor([8]), Grid(0.02), BLANK, weights)
    coupling = Transport()(emissions, Targets.from_lists([[1, 2, 3]]))
    spans = coupling.spans()
    expected = torch.tensor([[[0.0, 1.0], [1.0, 3.0], [3.0, 6.0]]])
    torch.testing.assert_close(spans.float(), expected, rtol=0, atol=1e-4)
    assert coupling.score is not None
    torch.testing.assert_close(coupling.score, torch.tensor([4.0]).log().neg())


def test_transport_drops_the_mass_of_inserted_blanks_and_of_light_frames() -> None:
    emissions = Emissions(torch.zeros(1, 6, 4), torch.tensor([6]), Grid(0.02))
    coupling = Transport()(emissions, Targets.from_lists([[1, 1]]))
    dense = coupling.dense()[0]
    torch.testing.assert_close(dense.sum(0), torch.tensor([1 / 3, 1 / 3]))
    assert not dense[2:4].any()
    light = replace(emissions, weight_logits=torch.tensor([[0.0, -9.0, 0.0, 0.0, 0.0, 0.0]]))
    assert Transport()(light, Targets.from_lists([[1, 2]])).dense()[0, 1].any()
    assert not Transport(min_alpha=0.5)(light, Targets.from_lists([[1, 2]])).dense()[0, 1].any()


def test_transport_needs_a_frame_for_the_blank_between_repeats() -> None:
    emissions = Emissions(torch.zeros(2, 3, 4), torch.tensor([3, 2]), Grid(0.02))
    with pytest.raises(AlignmentError, match=r"Row 1: .*at least 3 frames, got 2"):
        Transport()(emissions, Targets.from_lists([[1, 2, 3], [1, 1]]))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("silence", [None, 0, 3])
def test_segmental_viterbi_is_the_best_of_all_paths(seed: int, silence: int | None) -> None:
    rng = torch.Generator().manual_seed(seed)
    emissions = Emissions(torch.randn(1, 6, 4, generator=rng), torch.tensor([6]), Grid(0.02))
    target = torch.randint(1, 3, (3,), generator=rng).tolist()
    skip = torch.rand(3, generator=rng) < 0.3
    skip[0] = False
    targets = replace(Targets.from_lists([target]), optional=skip[None])
    coupling = SegmentalViterbi(silence=silence)(emissions, targets)
    if silence is None:
        labels, _, origin = insert_blanks(targets.labels, targets.lengths, BLANK)
    else:
        labels, _, origin = insert_silence(targets.labels, targets.lengths, BLANK, silence)
    optional = [j < 0 or bool(skip[j]) for j in origin[0].tolist()]
    score, walk = best_path(emissions.log_probs()[0], labels[0].tolist(), optional)
    assert coupling.score is not None
    assert coupling.score.item() == pytest.approx(score, abs=1e-4)
    spelt = {t: target[origin[0, j]] for t, j in enumerate(walk) if origin[0, j] >= 0}
    got = {t: target[j] for t, j in zip(coupling.source[0].tolist(), coupling.target[0].tolist())}
    assert got == spelt


def test_segmental_viterbi_leaves_silence_out_and_shares_repeats() -> None:
    emissions = peaked([[0, 0, 1, 1, 0, 2, 2, 2], [3, 3, 3, 3, 3, 3]])
    targets = Targets.from_lists([[1, 2], [3, 3]])
    spans = SegmentalViterbi(silence=BLANK)(emissions, targets).spans()
    assert spans.tolist() == [[[2, 4], [5, 8]], [[0, 3], [3, 6]]]
    assert SegmentalViterbi()(emissions, targets).spans()[1].tolist() == [[0, 3], [3, 6]]


def test_segmental_viterbi_names_the_row_beside_an_empty_one() -> None:
    emissions = Emissions(torch.zeros(3, 4, 4), torch.tensor([4, 4, 2]), Grid(0.02))
    coupling = SegmentalViterbi()(emissions, Targets.from_lists([[], [1], [2, 3]]))
    assert coupling.mass.sum(1).tolist() == [0, 4, 2]
    with pytest.raises(AlignmentError, match="Row 2"):
        SegmentalViterbi()(emissions, Targets.from_lists([[], [1], [1, 2, 3]]))
    broken = replace(emissions, logits=emissions.logits.clone())
    broken.logits[1, :, 1] = -torch.inf
    with pytest.raises(AlignmentError, match="Row 1"):
        SegmentalViterbi()(broken, Targets.from_lists([[], [1], [2]]))
    with pytest.raises(ValueError, match="silence from 0 to 3; got 9"):
        SegmentalViterbi(silence=9)(emissions, Targets.from_lists([[1], [1], [2]]))
