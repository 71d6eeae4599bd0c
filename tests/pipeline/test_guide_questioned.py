"""A guide that is questioned: it loses the tokens that the aligner puts elsewhere where it has less weight."""

from __future__ import annotations

import pytest
import torch

from isotone import aligners
from isotone.pipeline.placing import FAR_S, Placer
from isotone.types import Emissions, Grid, Targets

BLANK, SIL, A, Z = range(4)
FRAMES, HOP_S = 40, 0.02
SPOKEN_END = 7


def emissions(labels: dict[int, dict[int, float]], otherwise: int) -> Emissions:
    """One label per frame, and other log-probabilities at some frames."""
    log_probs = torch.full((1, FRAMES, 4), -12.0)
    log_probs[..., otherwise] = 0.0
    for frame, found in labels.items():
        for label, value in found.items():
            log_probs[0, frame, label] = value
    return Emissions(log_probs, torch.tensor([FRAMES]), Grid(HOP_S), BLANK)


def timing(noise: float) -> Emissions:
    """a in frames 0 to 3, z in 4 to 6, a noise that is more of a pause than of a z, a in 30 to 39."""
    said = (*range(SPOKEN_END), *range(30, FRAMES))
    spoken = {t: {SIL: -12.0, A if t < 4 or t >= 30 else Z: 0.0} for t in said}
    return emissions({t: spoken.get(t, {Z: noise}) for t in range(FRAMES)}, SIL)


def guide(late: int) -> Emissions:
    """The peaks of both a, and a z that is heard late."""
    return emissions({t: {label: 0.0, BLANK: -9.0} for t, label in ((1, A), (late, Z), (33, A))}, BLANK)


@pytest.mark.parametrize(
    ("noise", "late", "end"),
    [
        (-1.5, 25, SPOKEN_END),  # far from its place where the guide costs 1 nat per frame: it has no guide
        (-0.5, 25, 25),  # there as well the noise is rather a z
        (-1.5, 15, 15),  # not far
        (-2.5, 25, SPOKEN_END),  # no guide of 2 nats holds it
    ],
)
def test_a_token_that_is_far_from_its_guide_has_none(noise: float, late: int, end: int) -> None:
    placer = Placer("times", aligners.build("segmental"), "ctc", aligners.build("ctc"))
    targets = Targets.from_lists([[A, Z, SIL, A]])
    targets = Targets(targets.labels, targets.lengths, optional=torch.tensor([[False, False, True, False]]))
    found, coupling = placer(["x"], {"times": timing(noise), "ctc": guide(late)}, targets, 3.0)
    assert coupling.spans()[0, 1].tolist() == [4, end]
    assert found.guide is not None
    far = end == SPOKEN_END and (late - SPOKEN_END) * HOP_S > FAR_S
    assert found.guide.tokens[0, [1, late, 33]].tolist() == [0, -1 if far else 1, 3]


def test_every_utterance_has_its_own_guide() -> None:
    placer = Placer("times", aligners.build("segmental"), "ctc", aligners.build("ctc"))
    both = [(timing(-1.5), guide(25)), (timing(-1.5), guide(15)), (timing(-0.5), guide(25))]
    times, peaks = (
        Emissions(torch.cat([e.logits for e in own]), torch.full((3,), FRAMES), Grid(HOP_S), BLANK)
        for own in zip(*both)
    )
    targets = Targets.from_lists([[A, Z, SIL, A]] * 3)
    optional = torch.tensor([[False, False, True, False]] * 3)
    targets = Targets(targets.labels, targets.lengths, optional=optional)
    _, coupling = placer(list("xyz"), {"times": times, "ctc": peaks}, targets, 3.0)
    assert coupling.spans()[:, 1, 1].tolist() == [SPOKEN_END, 15, 25]
