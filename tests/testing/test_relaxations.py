"""Every law of relaxations can fail."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from isotone import relaxations
from isotone.testing import check_relaxation


class Broken:
    """Sinkhorn with one fault."""

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.good = relaxations.build("sinkhorn")

    def __call__(
        self, reward: Tensor, row_lengths: Tensor | None = None, column_lengths: Tensor | None = None
    ) -> Tensor:
        if self.fault == "shape of one problem" and reward.ndim == 2:
            return self.good(reward[None])[0]
        if self.fault == "rewards" and reward.ndim == 3:
            reward.add_(0)[0, 0, 0] += 1
        out = self.good(reward, row_lengths, column_lengths)
        return self._spoil(reward, out, row_lengths)

    def _spoil(self, reward: Tensor, out: Tensor, rows: Tensor | None) -> Tensor:
        match self.fault:
            case "shape":
                return out[:, :, :-1]
            case "dtype":
                return out.double()
            case "not finite":
                return out / 0
            case "padding":
                return out + 0.01
            case "NaN":
                return out + reward.nan_to_num(1.0).sum((1, 2), keepdim=True) * (out > 0)
            case "no lengths" if rows is None:
                return out / 2
            case "doubles":
                return out.float()
            case "negative":
                return torch.where(out > 0, out - 0.5, out)
            case "rows":
                return out / 2
            case "best":
                return out.roll(1, 2) if reward.max() > 40 else out
            case "alone":
                return out * (1 + 0.01 * (len(out) == 1))
        return out


@pytest.mark.parametrize(
    ("fault", "law"),
    [
        ("shape", "is kept"),
        ("dtype", "dtype torch.float32 is kept"),
        ("not finite", "are finite"),
        ("rewards", "rewards are not changed"),
        ("padding", "padding gets 0"),
        ("NaN", "padding is never read"),
        ("no lengths", "no lengths are full lengths"),
        ("doubles", "double rewards give doubles"),
        ("negative", "not negative"),
        ("rows", "rows sum to 1"),
        ("best", "the best columns are"),
        ("alone", "the same alone as in a batch"),
        ("shape of one problem", "ValueError for rewards without a batch dimension"),
    ],
)
def test_a_relaxation_that_breaks_a_law_is_caught(fault: str, law: str) -> None:
    with pytest.raises(AssertionError, match=law):
        check_relaxation(Broken(fault))


def test_a_relaxation_that_keeps_the_laws_passes() -> None:
    check_relaxation(Broken("none"))


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("single-step-exp", "columns sum to 1 at most"),
        ("single-step-sum", "columns sum to 1 at most"),
        ("ordered", "a permuted assignment"),
        ("gumbel-sinkhorn", "a permuted assignment"),
    ],
)
def test_laws_that_are_left_out_are_really_not_kept(name: str, law: str) -> None:
    with pytest.raises(AssertionError, match=law):
        check_relaxation(relaxations.build(name))


class _Gradient(torch.autograd.Function):
    """The identity, with a gradient that is a constant everywhere."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, constant: float) -> Tensor:
        ctx.constant = constant
        return values.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return torch.full_like(gradients[0], ctx.constant), None


@pytest.mark.parametrize(
    ("constant", "law"),
    [
        (torch.nan, "gradients are finite"),
        (1.0, "padding has no gradient"),
        (0.0, "has a gradient in the rewards"),
    ],
)
def test_a_relaxation_with_a_wrong_gradient_is_caught(constant: float, law: str) -> None:
    good = relaxations.build("sinkhorn")

    def broken(reward: Tensor, rows: Tensor | None = None, columns: Tensor | None = None) -> Tensor:
        if not reward.requires_grad:
            return good(reward, rows, columns)
        out = good(reward.detach(), rows, columns)
        return (
            out + 0 * _Gradient.apply(reward, constant).nan_to_num()
            if constant
            else out + 0 * reward.nan_to_num()
        )

    with pytest.raises(AssertionError, match=law):
        check_relaxation(broken)


def test_a_relaxation_that_depends_on_the_order_is_caught() -> None:
    good = relaxations.build("sinkhorn")

    def broken(reward: Tensor, rows: Tensor | None = None, columns: Tensor | None = None) -> Tensor:
        out = good(reward, rows, columns)
        first = 0 if rows is None else int(rows[0])
        return out * 1.01 if first == 2 and len(out) == 3 else out

    with pytest.raises(AssertionError, match="the order of a batch does not matter"):
        check_relaxation(broken)


def test_unknown_laws_are_refused() -> None:
    with pytest.raises(ValueError, match=r"alone, best, columns, equivariance, rows; got \['row'\]"):
        check_relaxation(relaxations.build("sinkhorn"), without={"row"})
