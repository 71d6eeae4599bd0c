"""Derivatives of soft-DTW, and the implementations that stand in for each other."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isotone.kernels.softdtw import (
    backends,
    cpu,
    dtw,
    expected_alignment,
    soft_dtw,
    tensors,
)
from isotone.kernels.softdtw.plan import Plan, dense
from tests.kernels.softdtw_parts import EXACT, matrix


@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(1, 9), m=st.integers(1, 9), gamma=st.sampled_from([0.0, 0.05, 1.0]),
    band=st.sampled_from([-1, 0, 1, 3]), seed=st.integers(0, 99), columns=st.booleans(),
)  # fmt: skip
def test_compiled_loops_agree_with_tensor_operations(
    n: int, m: int, gamma: float, band: int, seed: int, columns: bool
) -> None:
    n, m = sorted((n, m))
    cost = matrix(n, m, seed, batch=2)
    if columns:  # the same numbers, laid out by columns
        cost = cost.mT.contiguous().mT
    lengths = np.array([n, max(1, n - 1)]), np.array([m, max(1, m // 2)])
    plan = Plan.of((2, n, m), *lengths, band)
    values, up, left = cpu.forward(dense(cost), plan, gamma, True)
    visits = cpu.backward(dense(cost), up, left, plan, torch.tensor([1.0, 2.0]))
    leaf = cost.clone().requires_grad_()
    expected = tensors.soft_dtw(leaf, plan, gamma)
    torch.testing.assert_close(values, expected.detach(), **EXACT)
    (gradient,) = torch.autograd.grad((expected * torch.tensor([1.0, 2.0])).sum(), leaf)
    torch.testing.assert_close(visits, gradient, **EXACT)


@pytest.mark.parametrize("shape", [(5, 4), (3, 6)])
@pytest.mark.parametrize("band", [None, 1])
def test_first_and_second_derivatives(shape: tuple[int, int], band: int | None) -> None:
    cost = matrix(*shape, batch=2).requires_grad_()
    n, m = torch.tensor([shape[0], 2]), torch.tensor([shape[1], 3])

    def value(c: Tensor) -> Tensor:
        return soft_dtw(c, 0.6, n, m, band=band)

    assert torch.autograd.gradcheck(value, cost)
    assert torch.autograd.gradgradcheck(value, cost)
    assert torch.autograd.gradcheck(lambda c: expected_alignment(c, 0.6, n, m, band=band), cost)


@pytest.mark.parametrize("with_loops", [False, True], ids=["tensors", "loops"])
@pytest.mark.parametrize("shape", [(5, 4), (3, 6)])
def test_what_other_devices_do(
    with_loops: bool, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tensor operations in place of everything; and loops that leave second derivatives to them, as on CUDA."""
    loops = SimpleNamespace(forward=cpu.forward, backward=cpu.backward)
    cost = matrix(*shape, batch=2).requires_grad_()
    n, m = torch.tensor([shape[0], 2]), torch.tensor([shape[1], 3])

    def results() -> list[Tensor]:
        out = []
        for gamma in (0.0, 0.6):
            value = soft_dtw(cost, gamma, n, m, band=1)
            (gradient,) = torch.autograd.grad(value.sum(), cost, create_graph=True)
            visits = expected_alignment(cost, gamma, n, m, band=1)
            out += [value, gradient, visits]
            if gamma > 0:
                out += torch.autograd.grad((gradient * cost.detach()).sum(), cost, retain_graph=True)
                out += torch.autograd.grad((visits * cost).sum(), cost)
        path = dtw(cost.detach().round(), n, m)  # ties
        out += [dtw(cost.detach(), n, m, band=1).dense(), dtw(cost.detach().mT, m, n).dense()]
        return [x.detach() for x in (*out, path.score, path.dense().sum((1, 2)))]

    expected = results()
    monkeypatch.setattr(backends, "backend_of", lambda _: loops if with_loops else None)
    for got, right in zip(results(), expected):
        torch.testing.assert_close(got, right, **EXACT)


def test_third_derivatives_are_refused_in_words() -> None:
    cost = matrix(3, 3).requires_grad_()
    (first,) = torch.autograd.grad(soft_dtw(cost).sum(), cost, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), cost, create_graph=True)
    with pytest.raises(NotImplementedError, match="twice"):
        second.sum().backward()
