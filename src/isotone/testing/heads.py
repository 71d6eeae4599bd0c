"""Laws of heads."""

from __future__ import annotations

import copy
from dataclasses import replace

import torch
from torch import Tensor

from isotone.interfaces import Head
from isotone.testing.batches import alone, poisoned
from isotone.testing.laws import close, require
from isotone.types import Emissions, Frames, Grid, length_mask


def check_head(head: Head, input_size: int, vocab_size: int) -> None:
    """Check a head: shapes, padding, independent rows, and a gradient for every parameter."""
    head = copy.deepcopy(head).eval()
    rng = torch.Generator().manual_seed(0)
    lengths = torch.tensor([9, 5, 1])
    frames = Frames(torch.randn(3, 9, input_size, generator=rng), lengths, Grid(0.02, 0.01))
    out = head(frames)
    _check_emissions(out, frames, vocab_size)
    _same_emissions(head(poisoned(frames)), out, "padding is never read")
    for row in range(3):
        _same_emissions(head(alone(frames, row)), alone(out, row), "a row gives the same alone as in a batch")
    order = torch.tensor([2, 0, 1])
    _same_emissions(head(frames.rows(order)), out.rows(order), "the order of a batch does not matter")
    double = copy.deepcopy(head).double()(replace(frames, values=frames.values.double()))
    require(double.logits.dtype == torch.float64, f"a double head gives doubles; got {double.logits.dtype}")
    _check_gradients(head, poisoned(frames))


def _check_emissions(out: Emissions, frames: Frames, vocab_size: int) -> None:
    require(isinstance(out, Emissions), f"a head gives isotone.types.Emissions; got a {type(out).__name__}")
    shape = tuple(out.logits.shape)
    require(shape == (3, 9, vocab_size), f"logits are (3, 9, {vocab_size}); got {shape}")
    require(
        torch.equal(out.lengths, frames.lengths) and out.grid == frames.grid,
        "lengths and grid are those of the frames",
    )
    require(0 <= out.blank < vocab_size, f"the blank is a label; got {out.blank}")
    if out.weight_logits is not None:
        shape = tuple(out.weight_logits.shape)
        require(shape == (3, 9), f"weight logits are (3, 9); got {shape}")


def _check_gradients(head: Head, frames: Frames) -> None:
    head.zero_grad(set_to_none=True)
    _sum_of_outputs(head(frames)).backward()
    for name, parameter in head.named_parameters():
        grad = parameter.grad
        require(grad is not None, f"the parameter {name} gets a gradient")
        if grad is not None:
            require(bool(torch.isfinite(grad).all()), f"padding is never read: gradient of {name}")


def _same_emissions(got: Emissions, expected: Emissions, law: str) -> None:
    mask = length_mask(expected.lengths, expected.logits.shape[1])
    close(got.logits[mask], expected.logits[mask], law)
    if expected.weight_logits is not None and got.weight_logits is not None:
        close(got.weight_logits[mask], expected.weight_logits[mask], law)


def _sum_of_outputs(emissions: Emissions) -> Tensor:
    """Return a scalar that depends on every valid output."""
    mask = length_mask(emissions.lengths, emissions.logits.shape[1])
    total = torch.where(mask[..., None], emissions.logits, 0.0).square().sum()
    if emissions.weight_logits is not None:
        total = total + torch.where(mask, emissions.weight_logits.exp(), 0.0).sum()
    return total
