"""The CTC kernel in numbers: gradients, long utterances, large vocabularies."""

from __future__ import annotations

import pytest
import torch
from isotone_ctc.functional import ctc

from isotone.types import length_mask
from tests.plugins.ctc.parts import long_batch


def test_ctc_gradient_agrees_with_finite_differences(rng: torch.Generator) -> None:
    logits = torch.randn(2, 5, 4, generator=rng, dtype=torch.float64, requires_grad=True)
    labels, frames, tokens = torch.tensor([[1, 1], [3, 0]]), torch.tensor([5, 4]), torch.tensor([2, 1])
    assert torch.autograd.gradcheck(lambda x: ctc(x, labels, frames, tokens, 0), (logits,))


def test_gradients_of_long_utterances_in_single_precision(rng: torch.Generator) -> None:
    """Sums over paths are as large as the loss, thousands of nats; what they differ by is a probability."""
    logits, *rest = long_batch(rng, 2000)
    results = []
    for dtype in (torch.float32, torch.float64):
        leaf = logits.to(dtype).requires_grad_()
        value = ctc(leaf, *rest, 0)
        assert value.dtype == dtype
        results.append((value.detach().double(), torch.autograd.grad(value.sum(), leaf)[0].double()))
    (value, gradient), (exact, exact_gradient) = results
    torch.testing.assert_close(value, exact, rtol=1e-6, atol=0)
    torch.testing.assert_close(gradient, exact_gradient, rtol=0, atol=1e-5)


@pytest.mark.parametrize("blank", [0, 17])
@pytest.mark.parametrize("widest", [6, 3, 0])
def test_a_large_vocabulary_changes_nothing(rng: torch.Generator, blank: int, widest: int) -> None:
    """Columns of labels that a row does not have count in the norm alone; torch has them all in the sums."""
    logits = (3 * torch.randn(5, 14, 40, generator=rng, dtype=torch.float64)).requires_grad_()
    rows = [[7, 7, 3, 9, 3, 39], [5, 5, 5], [], [30, 2, 30, 2], [8] * 6]  # the last needs 11 frames and has 9
    rows = [row[:widest] for row in rows]
    labels = torch.full((5, widest), -1)  # never read
    for out, row in zip(labels, rows):
        out[: len(row)] = torch.tensor(row)
    frames, tokens = torch.tensor([14, 12, 10, 13, 9]), torch.tensor([len(row) for row in rows])
    z = torch.randn(5, 14, generator=rng, dtype=torch.float64)
    weight = torch.rand(5, generator=rng, dtype=torch.float64)
    normal = logits.log_softmax(-1)
    expected = torch.nn.functional.ctc_loss(
        normal.transpose(0, 1),
        labels.clamp(min=1),
        frames,
        tokens,
        blank=blank,
        reduction="none",
        zero_infinity=True,
    )
    found = ctc(logits, labels, frames, tokens, blank)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)
    expected_gradient = torch.autograd.grad(expected @ weight, logits)[0]
    torch.testing.assert_close(
        torch.autograd.grad(found @ weight, logits)[0], expected_gradient, rtol=0, atol=1e-9
    )
    # another norm moves the value by what it differs from the logits' own
    moved = ctc(logits, labels, frames, tokens, blank, log_norm=z)
    differs = ((torch.logsumexp(logits, -1) - z) * length_mask(frames, 14)).sum(1)
    fits = torch.tensor([True, True, True, True, widest < 6])
    torch.testing.assert_close(moved, found - torch.where(fits, differs, 0.0), rtol=0, atol=1e-9)


def test_long_utterances_of_a_large_vocabulary(rng: torch.Generator) -> None:
    logits = torch.randn(2, 1500, 500, generator=rng).requires_grad_()
    labels = torch.randint(1, 500, (2, 90), generator=rng)
    frames, tokens = torch.tensor([1500, 1200]), torch.tensor([90, 71])
    (found,) = torch.autograd.grad(ctc(logits, labels, frames, tokens, 0).sum(), logits)
    wide = logits.detach().double().requires_grad_()
    expected = torch.nn.functional.ctc_loss(
        wide.log_softmax(-1).transpose(0, 1), labels, frames, tokens, reduction="none"
    )
    (right,) = torch.autograd.grad(expected.sum(), wide)
    torch.testing.assert_close(found.double(), right, rtol=0, atol=1e-5)


@pytest.mark.parametrize("widest", [1, 12])
def test_impossible_labels_of_a_large_vocabulary(rng: torch.Generator, widest: int) -> None:
    """A row that has no path left is 0 without a gradient, whether the vocabulary is larger than the labels or not."""
    logits = torch.randn(2, 6, 12, generator=rng)
    logits[0, :, 4] = -torch.inf
    logits.requires_grad_()
    labels, sizes = torch.full((2, widest), 4), torch.tensor([1, 1])
    labels[1, 0] = 7
    loss = ctc(logits, labels, torch.tensor([6, 6]), sizes, 0)
    assert loss[0] == 0
    torch.testing.assert_close(loss[1], ctc(logits[1:], labels[1:], torch.tensor([6]), sizes[1:], 0)[0])
    loss.sum().backward()
    assert logits.grad is not None
    assert not logits.grad[0].any()
    assert logits.grad[1].abs().sum() > 0
