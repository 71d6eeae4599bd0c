"""Laws of losses."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from isotone.interfaces import Loss
from isotone.testing.batches import alone, map_logits, poisoned, sample_batch
from isotone.testing.laws import HALF, close, require
from isotone.types import PAST_END, Emissions, Targets, length_mask


def check_loss(loss: Loss) -> None:
    """Check a loss: shape, gradients, padding, independent rows, extreme logits, rows that cannot be aligned.

    A loss of several views may compare rows with each other, needs no alignment, and may hold one view constant to
    teach another. Three laws do not apply to it: independent rows, rows that cannot be aligned, and the derivative.
    """
    emissions, targets = sample_views(loss.views)
    value, grads = value_and_grads(loss, emissions, targets)
    require(value.shape == (5,), f"a loss gives one value per utterance, (5,); got {tuple(value.shape)}")
    require(value.is_floating_point(), f"a loss is floating; got {value.dtype}")
    require(bool(torch.isfinite(value).all()), f"a loss of feasible rows is finite; got {value.tolist()}")
    require(bool((grads[0] != 0).any()), "a loss has a gradient in the logits")
    _check_padding(loss, emissions, targets, value, grads)
    for row in range(5) if loss.views == 1 else ():
        single, _ = value_and_grads(loss, alone(emissions, row), alone(targets, row))
        close(single[0], value[row], "a row gives the same alone as in a batch")
    order = torch.tensor([3, 0, 4, 2, 1])
    index = torch.cat([order + 5 * view for view in range(loss.views)])
    shuffled, _ = value_and_grads(loss, emissions.rows(index), targets.rows(index))
    close(shuffled, value[order], "the order of a batch does not matter")
    extreme, grads = value_and_grads(loss, replace(emissions, logits=emissions.logits * 1e4), targets)
    require(bool(torch.isfinite(extreme).all()), f"finite on logits of 1e4; got {extreme.tolist()}")
    require(all(bool(torch.isfinite(g).all()) for g in grads), "finite gradients on logits of 1e4")
    _check_half_precision(loss, targets)
    if loss.views == 1:
        _check_infeasible(loss)
        _check_derivative(loss)


def sample_views(views: int, dtype: torch.dtype = torch.float32) -> tuple[Emissions, Targets]:
    """Repeat :func:`sample_batch` once per view: other logits, the same targets."""
    batches = [sample_batch(dtype=dtype, seed=seed) for seed in range(views)]
    logits = torch.cat([emissions.logits for emissions, _ in batches])
    weights = torch.cat([e.weight_logits for e, _ in batches if e.weight_logits is not None])
    emissions, targets = batches[0]
    index = torch.arange(5).repeat(views)
    return replace(emissions.rows(index), logits=logits, weight_logits=weights), targets.rows(index)


def value_and_grads(loss: Loss, emissions: Emissions, targets: Targets) -> tuple[Tensor, list[Tensor]]:
    """Compute a loss ``(B,)``, and the gradients of its sum in the logits and in the weight logits."""
    leaves = [emissions.logits.detach().clone().requires_grad_()]
    if emissions.weight_logits is not None:
        leaves.append(emissions.weight_logits.detach().clone().requires_grad_())
    value = loss(
        replace(emissions, logits=leaves[0], weight_logits=leaves[1] if leaves[1:] else None), targets
    )
    if not value.requires_grad:
        return value.detach(), [torch.zeros_like(x) for x in leaves]
    grads = torch.autograd.grad(value.sum(), leaves, allow_unused=True)
    return value.detach(), [torch.zeros_like(x) if g is None else g for g, x in zip(grads, leaves)]


def _check_padding(
    loss: Loss, emissions: Emissions, targets: Targets, value: Tensor, grads: list[Tensor]
) -> None:
    other, other_grads = value_and_grads(loss, poisoned(emissions), poisoned(targets))
    close(other, value, "padding is never read")
    padding = ~length_mask(emissions.lengths, emissions.logits.shape[1])
    for got, expected in zip(other_grads, grads):
        close(got, expected, "padding is never read: gradient")
        require(not bool(got[padding].any()), "padding has no gradient")


def _check_half_precision(loss: Loss, targets: Targets) -> None:
    for half in (torch.float16, torch.bfloat16):
        emissions, _ = sample_views(loss.views, half)
        rounded, _ = value_and_grads(loss, emissions, targets)
        require(rounded.dtype == torch.float32, f"values of {half} logits are float32; got {rounded.dtype}")
        exact, _ = value_and_grads(loss, map_logits(emissions, Tensor.float), targets)
        close(rounded, exact, f"{half} logits are summed in float32", HALF)


def _check_infeasible(loss: Loss) -> None:
    emissions, targets = sample_batch()
    emissions = replace(emissions, lengths=torch.tensor([12, 2, 7, 4, 10]))
    if targets.paths is not None:  # a teacher has no path for this row
        targets.paths.tokens[1] = PAST_END
    value, grads = value_and_grads(loss, emissions, targets)
    require(value[1].item() == 0, f"3 tokens in 2 frames have loss 0; got {value[1].item()}")
    require(not any(bool(g[1].any()) for g in grads), "3 tokens in 2 frames have no gradient")
    require(bool((value[[0, 2, 3, 4]] != 0).all()), "the other rows keep their loss")


def _check_derivative(loss: Loss) -> None:
    emissions, targets = sample_batch(vocab_size=4, dtype=torch.float64, seed=1)
    keep = torch.tensor([0, 2])
    emissions, targets = emissions.rows(keep), targets.rows(keep)

    def value(logits: Tensor, weights: Tensor) -> Tensor:
        return loss(replace(emissions, logits=logits, weight_logits=weights), targets)

    if emissions.weight_logits is not None:
        leaves = (emissions.logits.requires_grad_(), emissions.weight_logits.requires_grad_())
        torch.autograd.gradcheck(value, leaves, atol=1e-4, rtol=1e-3)
