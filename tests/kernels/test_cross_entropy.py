from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numba import njit
from torch import Tensor

from isotone.kernels import cross_entropy
from isotone.kernels.arithmetic import exp32
from isotone.kernels.cross_entropy import TensorCrossEntropy, pair_cross_entropy

METHODS = (pair_cross_entropy, TensorCrossEntropy.apply)


def problem(
    seed: int, frames: int = 23, vocab_size: int = 37, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, ...]:
    """Pairs of three rows: some frames have none, some several, and the last row is left out."""
    rng = torch.Generator().manual_seed(seed)
    logits = (3 * torch.randn(3, frames, vocab_size, generator=rng)).to(dtype)
    lengths = torch.tensor([frames, frames - 6, 0])
    source = (torch.rand(3, 31, generator=rng) * lengths[:, None]).long().sort(1).values
    label = torch.randint(0, vocab_size, (3, 31), generator=rng)
    mass = torch.rand(3, 31, generator=rng)
    mass[:, ::7] = 0
    return logits, mass, source, label, lengths


def direct(logits: Tensor, mass: Tensor, source: Tensor, label: Tensor, lengths: Tensor) -> Tensor:
    """By the definition, in float64."""
    log_probs = logits.double().log_softmax(-1)
    rows = torch.arange(len(logits))[:, None]
    return -(mass * log_probs[rows, source, label] * (lengths > 0)[:, None]).sum(1)


def value_and_gradients(
    method: Any, logits: Tensor, mass: Tensor, *rest: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    x, w = logits.clone().requires_grad_(), mass.clone().requires_grad_()
    value = method(x, w, *rest)
    (value * torch.tensor([1.0, -2.0, 3.0])).sum().backward()
    assert x.grad is not None
    assert w.grad is not None
    return value.detach(), x.grad, w.grad


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("offset", [1e4, -1e6])
def test_what_all_scores_have_in_common_costs_no_digits(method: Any, offset: float) -> None:
    logits, *rest = problem(0)
    logits = logits + offset
    value, *grads = value_and_gradients(method, logits, *rest)
    expected, *expected_grads = value_and_gradients(direct, logits.double(), rest[0].double(), *rest[1:])
    torch.testing.assert_close(value.double(), expected, rtol=1e-6, atol=1e-5)
    for got, true in zip(grads, expected_grads):
        torch.testing.assert_close(got.double(), true, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("vocab_size", [1, 2, 37, 300])
def test_is_the_definition(method: Any, vocab_size: int) -> None:
    inputs = problem(vocab_size, vocab_size=vocab_size)
    value, *grads = value_and_gradients(method, *inputs)
    expected, *expected_grads = value_and_gradients(
        direct, inputs[0].double(), inputs[1].double(), *inputs[2:]
    )
    torch.testing.assert_close(value.double(), expected, rtol=1e-6, atol=1e-5)
    for got, true in zip(grads, expected_grads):
        torch.testing.assert_close(got.double(), true, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_summed_in_float32(dtype: torch.dtype) -> None:
    inputs = problem(3, frames=400, vocab_size=500, dtype=dtype)
    value, grad, grad_mass = value_and_gradients(pair_cross_entropy, *inputs)
    exact = value_and_gradients(direct, inputs[0].double(), inputs[1].double(), *inputs[2:])
    assert (value.dtype, grad.dtype) == (torch.float32, dtype)
    torch.testing.assert_close(value.double(), exact[0], rtol=1e-6, atol=1e-5)
    torch.testing.assert_close(grad_mass.double(), exact[2], rtol=1e-6, atol=1e-5)
    # the gradient is rounded once
    torch.testing.assert_close(grad.double(), exact[1], rtol=torch.finfo(dtype).eps / 2, atol=3e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_blocks_and_threads_change_nothing(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = problem(2, frames=3000, vocab_size=120, dtype=dtype)  # enough for threads
    results = []
    before = torch.get_num_threads()
    try:
        for threads, rows in ((1, 1 << 30), (3, 1)):
            torch.set_num_threads(threads)
            monkeypatch.setattr(cross_entropy, "BLOCK_SCORES", rows)
            results.append(value_and_gradients(pair_cross_entropy, *inputs))
    finally:
        torch.set_num_threads(before)
    for one, other in zip(*results):
        assert torch.equal(one, other)


@pytest.mark.parametrize("method", METHODS)
def test_padding_is_never_read(method: Any) -> None:
    inputs = problem(4)
    clean = value_and_gradients(method, *inputs)
    inputs[0][1, inputs[4][1] :] = torch.nan
    inputs[0][2] = torch.nan
    inputs[3][2] = -100
    for got, expected in zip(value_and_gradients(method, *inputs), clean):
        assert torch.equal(got, expected)
    assert not clean[1][1, inputs[4][1] :].any()
    assert not clean[1][2].any()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bad", [torch.nan, -torch.nan, torch.inf])
def test_what_is_not_a_number_is_seen_in_its_row_only(method: Any, bad: float) -> None:
    inputs = problem(5)
    clean = method(*inputs)
    frame = int(inputs[2][0, 1])
    inputs[0][0, frame, 20] = bad
    inputs[3][0] = 3
    value = method(*inputs)
    assert not torch.isfinite(value[0])
    assert torch.equal(value[1:], clean[1:])


@pytest.mark.parametrize("method", METHODS)
def test_impossible_labels(method: Any) -> None:
    logits, mass, source, label, lengths = problem(6)
    logits[0, :, 5] = -torch.inf
    label[0] = torch.where(mass[0] == 0, 5, 4)
    assert torch.isfinite(method(logits, mass, source, label, lengths)).all()
    label[0, 1] = 5
    assert method(logits, mass, source, label, lengths)[0] == torch.inf
    label[0] = 4
    _, grad, _ = value_and_gradients(method, logits, mass, source, label, lengths)
    assert not grad[0, :, 5].any()


@pytest.mark.parametrize("label", [-1, 37, 10_000])
def test_a_label_outside_the_vocabulary_is_refused(label: int) -> None:
    for dtype in (torch.float32, torch.float64):
        inputs = problem(7, dtype=dtype)
        inputs[3][1, 3] = label
        with pytest.raises((IndexError, RuntimeError), match=r"vocabulary|out of bounds"):
            pair_cross_entropy(*inputs)


def test_a_row_longer_than_the_logits_is_refused() -> None:
    *inputs, lengths = problem(7)
    with pytest.raises(IndexError, match="lengths up to T"):
        pair_cross_entropy(*inputs, lengths + 6)


@pytest.mark.parametrize("method", METHODS)
def test_logits_of_any_strides(method: Any) -> None:
    logits, *rest = problem(8)
    strided = logits.transpose(0, 1).contiguous().transpose(0, 1)
    for got, expected in zip(
        value_and_gradients(method, strided, *rest),
        value_and_gradients(method, logits, *rest),
    ):
        assert torch.equal(got, expected)


def test_gradients_can_be_had_twice_and_one_at_a_time() -> None:
    logits, mass, *rest = problem(9)
    whole = value_and_gradients(pair_cross_entropy, logits, mass, *rest)[1:]
    upstream = torch.tensor([1.0, -2.0, 3.0])
    for i in range(2):
        leaves = [logits.clone(), mass.clone()]
        leaves[i].requires_grad_()
        value = pair_cross_entropy(*leaves, *rest)
        for _ in range(2):
            (grad,) = torch.autograd.grad(value, leaves[i], upstream, retain_graph=True)
            assert torch.equal(grad, whole[i])


def test_the_logits_are_all_of_their_size_that_is_kept() -> None:
    logits, mass, *rest = problem(10)
    logits.requires_grad_()
    kept: list[Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        value = pair_cross_entropy(logits, mass.requires_grad_(), *rest)
    assert [t.data_ptr() for t in kept if t.numel() >= logits.numel()] == [logits.data_ptr()]
    # the first derivative is all there is: a second would be wrong in silence
    (grad,) = torch.autograd.grad(value.sum(), logits, create_graph=True)
    with pytest.raises(RuntimeError):
        grad.square().sum().backward()


def test_the_own_exponential() -> None:
    @njit
    def each(x: np.ndarray) -> np.ndarray:
        out = np.empty_like(x)
        for i in range(len(x)):
            out[i] = exp32(x[i])
        return out

    x = np.linspace(-87.25, 88, 300_001).astype(np.float32)
    np.testing.assert_allclose(each(x), np.exp(x.astype(np.float64)), rtol=1.2e-7)
    special = np.array([0.0, -0.0, -88.0, -1e30, -np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(each(special), np.array([1, 1, 0, 0, 0, np.nan], np.float32))
