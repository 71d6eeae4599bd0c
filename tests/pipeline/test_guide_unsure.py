"""A guide that has not heard a sound: its tokens are left out where they are unsure."""

from __future__ import annotations

import math

import pytest
import torch

from isotone import aligners
from isotone.alignment import Tier, tier_from_spans
from isotone.pipeline.forced import SURE
from isotone.pipeline.placing import Placer
from isotone.pipeline.sounds import LONG_S, stretched_s
from isotone.types import Emissions, Grid, Targets

BLANK, SIL, A, Z = range(4)
FRAMES = 40


def emissions(labels: dict[int, dict[int, float]], otherwise: int) -> Emissions:
    """One label per frame, and other log-probabilities at some frames."""
    log_probs = torch.full((1, FRAMES, 4), -12.0)
    log_probs[..., otherwise] = 0.0
    for frame, found in labels.items():
        for label, value in found.items():
            log_probs[0, frame, label] = value
    return Emissions(log_probs, torch.tensor([FRAMES]), Grid(0.02), BLANK)


def timing() -> Emissions:
    """a in frames 0 to 3, z in 4 to 6, a noise that is more of a pause than of a z, a in 30 to 39."""
    spoken = {t: {SIL: -12.0, A if t < 4 or t >= 30 else Z: 0.0} for t in (*range(7), *range(30, FRAMES))}
    return emissions({t: spoken.get(t, {Z: -1.0}) for t in range(FRAMES)}, SIL)


def guide(late: float) -> Emissions:
    """The peaks of both a, and a z that is as good as unheard, best in frame 25."""
    return emissions(
        {1: {A: 0.0, BLANK: -9.0}, 5: {Z: -9.0}, 25: {Z: late}, 33: {A: 0.0, BLANK: -9.0}}, BLANK
    )


@pytest.mark.parametrize(
    ("late", "sure", "end"),
    [(-7.0, -math.inf, 25), (-7.0, SURE, 7), (-7.0, -8.0, 25), (-1.0, SURE, 25)],
)
def test_an_unsure_token_does_not_hold_the_aligner(late: float, sure: float, end: int) -> None:
    placer = Placer("times", aligners.build("segmental"), "ctc", aligners.build("ctc"), sure)
    targets = Targets.from_lists([[A, Z, SIL, A]])
    targets = Targets(targets.labels, targets.lengths, optional=torch.tensor([[False, False, True, False]]))
    both = {"times": timing(), "ctc": guide(late)}
    _, coupling = placer(["x"], both, targets, 3.0)
    assert coupling.spans()[0, 1].tolist() == [4, end]


def test_seconds_beyond_what_a_phone_lasts() -> None:
    spans = [("a", 0.0, 0.2), ("z", 0.2, 0.2 + LONG_S + 0.3), ("sil", 1.0, 3.0), ("a", 3.0, 3.6)]
    tier = tier_from_spans("phones", [(*span, None) for span in spans], 4.0)
    assert stretched_s(tier) == pytest.approx(0.4)
    assert stretched_s(Tier("phones", ())) == 0.0
