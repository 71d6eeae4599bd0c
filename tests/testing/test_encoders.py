"""Every law of encoders can fail."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import pytest
import torch
from torch import Tensor, nn

from isotone.interfaces import Encoder, Statistics
from isotone.testing import check_encoder
from isotone.types import Encoded, Frames, Grid, length_mask

HOP = 160


class Energies(Encoder):
    """Encoder of 10 ms frames: a linear map of the samples minus their mean, with an optional fault."""

    name = "energies"
    sample_rate = 16_000

    def __init__(self, fault: str = "", units: int = 4) -> None:
        super().__init__()
        self.fault = fault
        self.linear = nn.Linear(HOP, units)

    def statistics(self, audio: Tensor) -> Statistics:
        mean = audio.mean() * (2 if self.fault == "statistics" else 1)
        return mean[None], torch.ones(1)

    def forward(
        self, audio: Tensor, lengths: Tensor, hidden: bool = True, statistics: Statistics | None = None
    ) -> Encoded:
        mask = length_mask(lengths, audio.shape[1])
        audio = audio if self.fault == "padding" else audio.masked_fill(~mask, 0.0)
        mean = audio.sum(1) / lengths if statistics is None else statistics[0]
        if self.fault == "forgets":
            mean = mean + 1
        if self.fault == "neighbours":
            mean = mean + audio.abs().mean()
        if self.fault == "order":
            mean = mean + torch.arange(len(audio)) * (len(audio) > 1)
        values = (audio - mean[:, None] * mask).unfold(1, HOP, HOP)
        counts = (lengths // HOP).clamp(max=values.shape[1]) - (6 if self.fault == "short" else 0)
        grid = Grid(HOP / self.sample_rate)
        features = Frames(values * (1.0 if hidden or self.fault != "hidden" else 2.0), counts, grid)
        if not hidden or self.fault == "no layers":
            return Encoded(features, ())
        out = self.linear(values)
        if self.fault == "gradient":  # the value is right, its derivative is not: 0 times infinity
            out = out + 0 * (self.linear.weight.sum() * 0).sqrt()
        if self.fault == "no gradient":
            out = out.detach() + 0 * self.linear.weight.sum()
        out = out / 0 if self.fault == "not finite" else out
        return Encoded(features, (Frames(out, counts, grid),))

    def size(self, source: str | int) -> int:
        return HOP if source == "features" else self.linear.out_features + (self.fault == "size")

    def frames(self, samples: int) -> int:
        return samples // HOP + (self.fault == "frames") - (6 if self.fault == "short" else 0)

    def save(self, folder: Path) -> None:
        (folder / "units").write_text(f"{self.linear.out_features + (self.fault == 'shape')} {self.fault}")

    @classmethod
    def load(cls, folder: Path) -> Self:
        units, _, fault = (folder / "units").read_text().partition(" ")
        return cls("" if fault == "forgets" else fault, int(units))


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def test_an_encoder_that_keeps_the_laws_passes() -> None:
    check_encoder(Energies())


@pytest.mark.parametrize(
    ("fault", "law"),
    [
        ("size", "'last' has 5 features; got 4"),
        ("frames", "gives the frames of the last layer"),
        ("short", "span the audio"),
        ("not finite", "is finite"),
        ("no layers", "hidden states are returned"),
        ("hidden", "do not depend on hidden states"),
        ("padding", "is finite|never read"),
        ("neighbours", "the same alone as in a batch"),
        ("order", "the order of a batch does not matter"),
        ("statistics", "own statistics"),
        ("shape", "weights of the same names and shapes"),
        ("forgets", "with the same weights gives the same"),
        ("no gradient", "the parameters get gradients"),
        ("gradient", "gradients of the parameters"),
    ],
)
def test_an_encoder_that_breaks_a_law_is_caught(fault: str, law: str) -> None:
    with pytest.raises(AssertionError, match=law):
        check_encoder(Energies(fault))


def test_dependent_rows_are_allowed_where_they_are_declared() -> None:
    check_encoder(Energies("neighbours"), without={"alone"})


def test_unknown_laws_are_refused() -> None:
    with pytest.raises(ValueError, match=r"can be left out are alone; got \['padding'\]"):
        check_encoder(Energies(), without={"padding"})
