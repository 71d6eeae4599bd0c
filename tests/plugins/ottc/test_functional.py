"""The OTTC loss in numbers: the dense formula, its gradients, and rows that cannot be aligned."""

from __future__ import annotations

import pytest
import torch
from isotone_ottc.functional import ottc_loss
from torch import Tensor

from isotone.kernels.coupling import couple
from tests.plugins.ottc.parts import random_problem

EXACT = {"rtol": 0.0, "atol": 1e-12}


def test_loss_is_the_dense_formula() -> None:
    logits, alpha, labels, beta, n, m = random_problem(0)
    plan = couple(alpha, beta, n, m).dense()
    log_probs = logits.log_softmax(-1)
    chosen = torch.stack([log_probs[b][:, labels[b]] for b in range(3)])
    expected = -(plan * chosen).sum((1, 2))
    torch.testing.assert_close(ottc_loss(logits, alpha, labels, beta, n, m), expected, **EXACT)


def test_gradients_are_those_of_the_dense_formula() -> None:
    logits, alpha, labels, beta, n, m = random_problem(1)
    leaves = [x.requires_grad_() for x in (logits, alpha, beta)]
    assert torch.autograd.gradcheck(lambda x, a, b: ottc_loss(x, a, labels, b, n, m), leaves)


def test_half_precision_is_summed_in_float32() -> None:
    logits, alpha, labels, beta, n, m = random_problem(3, torch.bfloat16)
    x = logits.clone().requires_grad_()
    value = ottc_loss(x, alpha, labels, beta, n, m)
    exact_x = logits.double().requires_grad_()
    exact = ottc_loss(exact_x, alpha.double(), labels, beta.double(), n, m)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value.double(), exact, rtol=1e-5, atol=1e-6)
    value.sum().backward()
    exact.sum().backward()
    assert x.grad is not None
    assert exact_x.grad is not None
    # rounded once, to 8 bits
    torch.testing.assert_close(x.grad.double(), exact_x.grad, rtol=2**-8, atol=1e-7)


def test_nothing_as_large_as_the_logits_is_kept_but_the_logits() -> None:
    logits, alpha, labels, beta, n, m = random_problem(4)
    x = logits.requires_grad_()
    kept: list[Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        ottc_loss(x, alpha.requires_grad_(), labels, beta, n, m).sum().backward()
    assert [t.data_ptr() for t in kept if t.numel() >= x.numel()] == [x.data_ptr()]


def test_impossible_labels_cost_infinity_only_where_mass_goes() -> None:
    logits = torch.zeros(1, 4, 3)
    logits[0, 0, 2] = -torch.inf
    args = (torch.tensor([[1, 2]]), torch.tensor([[0.5, 0.5]]), torch.tensor([4]), torch.tensor([2]))
    assert torch.isfinite(ottc_loss(logits, torch.ones(1, 4), *args)).all()
    assert torch.isinf(ottc_loss(logits, torch.tensor([[4.0, 0.1, 0.1, 0.1]]), *args)).all()


def test_rows_that_cannot_be_aligned_give_nothing() -> None:
    logits, alpha, labels, beta, _, _ = random_problem(5)
    logits[1:] = torch.nan
    labels[1:] = -100
    x = logits.requires_grad_()
    lengths = torch.tensor([9, 2, 9]), torch.tensor([4, 3, 0])
    value = ottc_loss(x, alpha, labels, beta, *lengths)
    assert value[0] > 0
    assert value[1:].tolist() == [0, 0]
    value.sum().backward()
    assert x.grad is not None
    assert x.grad[0].any()
    assert not x.grad[1:].any()


def test_wrong_shapes_are_named() -> None:
    logits, alpha, labels, beta, n, m = random_problem(6)
    with pytest.raises(ValueError, match=r"expects logits \(B, T, V\).* got .*\(3, 8\)"):
        ottc_loss(logits, alpha[:, :8], labels, beta, n, m)
