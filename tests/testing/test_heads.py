"""Every law of heads can fail."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from isotone.interfaces import Head
from isotone.testing import check_head
from isotone.types import Emissions, Frames, Grid, length_mask


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


class _BrokenHead(Head):
    def __init__(self, law: str) -> None:
        super().__init__()
        self.law = law
        self.linear = nn.Linear(7, 5)
        self.idle = nn.Linear(7, 5) if law == "idle" else None

    def forward(self, frames: Frames) -> Emissions:
        mask = length_mask(frames.lengths, frames.values.shape[1])[..., None]
        values = frames.values if self.law == "gradient" else frames.values.masked_fill(~mask, 0.0)
        if self.law == "neighbours":
            values = values - values.mean((0, 1))
        out = Emissions(self.linear(values), frames.lengths, frames.grid, 9 if self.law == "blank" else 0)
        match self.law:
            case "kind":
                return out.logits  # type: ignore[return-value]
            case "shape":
                return replace(out, logits=out.logits[:, :-1])
            case "lengths":
                return replace(out, lengths=out.lengths - 1)
            case "grid":
                return replace(out, grid=Grid(0.01))
            case "weights":
                return replace(out, weight_logits=out.logits)
            case "padding":
                return replace(out, logits=out.logits + frames.values.isnan().any())
            case "order":
                return replace(
                    out, logits=out.logits + (len(out.logits) == 3 and int(frames.lengths[0]) == 1)
                )
            case "dtype":
                return replace(out, logits=out.logits.float())
        return out


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        ("gradient", "gradient of linear.weight"),
        ("neighbours", "a row gives the same alone"),
        ("blank", "the blank is a label"),
        ("shape", "logits are"),
        ("kind", "a head gives isotone.types.Emissions; got a Tensor"),
        ("lengths", "those of the frames"),
        ("grid", "those of the frames"),
        ("weights", "weight logits are"),
        ("padding", "padding is never read"),
        ("order", "the order of a batch"),
        ("dtype", "a double head gives doubles"),
        ("idle", "idle.weight gets a gradient"),
    ],
)
def test_a_head_that_breaks_a_law_is_caught(broken: str, law: str) -> None:
    check_head(_BrokenHead("none"), 7, 5)
    with pytest.raises(AssertionError, match=law):
        check_head(_BrokenHead(broken), 7, 5)
