"""Laws of relaxations."""

from __future__ import annotations

import copy
from collections.abc import Collection

import torch
from torch import Tensor

from isotone.interfaces import Relaxation
from isotone.testing.laws import FLOAT32, check_names, close, raises, require
from isotone.types import length_mask

#: Laws that a relaxation may declare not to keep.
OPTIONAL = ("rows", "columns", "best", "equivariance", "alone")
#: Tolerance of column sums: an iteration that ends with rows leaves the columns a little off.
_COLUMN_TOLERANCE = 0.01


def check_relaxation(
    relaxation: Relaxation, *, square: bool = False, without: Collection[str] = frozenset()
) -> None:
    """Check a relaxation: shape, lengths, padding, gradient, errors, and the laws of a soft assignment.

    Every call goes to a fresh copy, so a relaxation that draws random numbers draws the same ones each time.

    Args:
        relaxation: The relaxation.
        square: Check with as many columns as rows only.
        without: Laws that it does not keep by design.
            ``rows``: rows are not negative and sum to 1. ``columns``: columns sum to 1 at most.
            ``best``: a reward far above the others is chosen. ``equivariance``: permuted rewards give a permuted
            assignment. ``alone``: a problem gives the same alone as in a batch (not with random numbers).
    """
    check_names(without, OPTIONAL)
    reward, rows, columns = _sample_rewards(square)
    before = reward.clone()
    out = _relax(relaxation, reward, rows, columns)
    require(out.shape == reward.shape, f"shape {tuple(reward.shape)} is kept; got {tuple(out.shape)}")
    require(out.dtype == reward.dtype, f"dtype {reward.dtype} is kept; got {out.dtype}")
    require(bool(torch.isfinite(out).all()), "assignments are finite")
    require(torch.equal(reward, before), "the rewards are not changed")
    inside = _inside(reward, rows, columns)
    require(not bool(out[~inside].any()), "padding gets 0")
    bad = reward.masked_fill(~inside, torch.nan)
    close(_relax(relaxation, bad, rows, columns), out, "padding is never read")
    full = torch.full_like(rows, reward.shape[1]), torch.full_like(columns, reward.shape[2])
    close(_relax(relaxation, reward), _relax(relaxation, reward, *full), "no lengths are full lengths")
    double = _relax(relaxation, reward.double(), rows, columns)
    require(double.dtype == torch.float64, f"double rewards give doubles; got {double.dtype}")
    _check_gradient(relaxation, reward, rows, columns)
    _check_assignment(out, rows, without)
    if "best" not in without:
        _check_best(relaxation, square)
    if "equivariance" not in without:
        _check_equivariance(relaxation, reward)
    if "alone" not in without:
        _check_alone(relaxation, reward, rows, columns, out)
    _check_errors(relaxation, reward, rows, columns)


def _sample_rewards(square: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Return rewards ``(3, m, n)`` above 0, which every relaxation accepts, and the lengths of each problem."""
    size = (3, 5, 5) if square else (3, 4, 6)
    reward = 0.1 + torch.rand(size, generator=torch.Generator().manual_seed(0))
    rows = torch.tensor([size[1], 3, 2])
    return reward, rows, rows.clone() if square else torch.tensor([6, 3, 5])


def _relax(
    relaxation: Relaxation, reward: Tensor, rows: Tensor | None = None, columns: Tensor | None = None
) -> Tensor:
    return copy.deepcopy(relaxation)(reward, rows, columns)


def _inside(reward: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    return length_mask(rows, reward.shape[1])[:, :, None] & length_mask(columns, reward.shape[2])[:, None]


def _check_gradient(relaxation: Relaxation, reward: Tensor, rows: Tensor, columns: Tensor) -> None:
    inside = _inside(reward, rows, columns)
    leaf = reward.masked_fill(~inside, torch.nan).requires_grad_()
    out = _relax(relaxation, leaf, rows, columns)
    if not out.requires_grad:  # a hard assignment
        return
    weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(1))
    (grad,) = torch.autograd.grad((out * weights).sum(), leaf)
    require(bool(torch.isfinite(grad).all()), "gradients are finite")
    require(not bool(grad[~inside].any()), "padding has no gradient")
    require(bool(grad[inside].any()), "a differentiable relaxation has a gradient in the rewards")


def _check_assignment(out: Tensor, rows: Tensor, without: Collection[str]) -> None:
    if "rows" not in without:
        require(bool((out >= 0).all()), "assignments are not negative")
        close(out.sum(2), length_mask(rows, out.shape[1]).to(out.dtype), "rows sum to 1")
    if "columns" not in without:
        most = out.sum(1).max().item()
        require(most <= 1 + _COLUMN_TOLERANCE, f"columns sum to 1 at most; got {most:.4f}")


def _check_best(relaxation: Relaxation, square: bool) -> None:
    size, best = (5, [0, 1, 2, 3, 4]) if square else (6, [0, 2, 3, 5])
    columns = torch.tensor(best)
    reward = 0.1 + 50.0 * torch.nn.functional.one_hot(columns, size)[None]
    found = _relax(relaxation, reward)[0].argmax(1)
    require(torch.equal(found, columns), f"the best columns are {best}; got {found.tolist()}")


def _check_equivariance(relaxation: Relaxation, reward: Tensor) -> None:
    rng = torch.Generator().manual_seed(2)
    rows, columns = (torch.randperm(size, generator=rng) for size in reward.shape[1:])
    out = _relax(relaxation, reward)
    permuted = _relax(relaxation, reward[:, rows][:, :, columns])
    close(permuted, out[:, rows][:, :, columns], "permuted rewards give a permuted assignment")


def _check_alone(relaxation: Relaxation, reward: Tensor, rows: Tensor, columns: Tensor, out: Tensor) -> None:
    for b, (m, n) in enumerate(zip(rows.tolist(), columns.tolist())):
        single = _relax(relaxation, reward[b : b + 1, :m, :n])
        close(single[0], out[b, :m, :n], "a problem gives the same alone as in a batch", FLOAT32)
    order = torch.tensor([2, 0, 1])
    shuffled = _relax(relaxation, reward[order], rows[order], columns[order])
    close(shuffled, out[order], "the order of a batch does not matter")


def _check_errors(relaxation: Relaxation, reward: Tensor, rows: Tensor, columns: Tensor) -> None:
    raises(ValueError, lambda: _relax(relaxation, reward[0]), "rewards without a batch dimension")
    raises(
        ValueError, lambda: _relax(relaxation, reward, columns + 9, columns + 9), "lengths beyond the size"
    )
    raises(ValueError, lambda: _relax(relaxation, reward, rows, rows - 1), "fewer columns than rows")
