"""The OTTC loss under torch.compile, as operators and with fake tensors."""

from __future__ import annotations

import pytest
import torch
from isotone_ottc.functional import ottc_loss
from isotone_ottc.loss import OTTCLoss
from isotone_ottc.sequences import insert_blanks
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from isotone.kernels.coupling import couple
from isotone.testing import sample_batch


def random_problem(dtype: torch.dtype) -> tuple[Tensor, ...]:
    rng = torch.Generator().manual_seed(0)
    logits = torch.randn(3, 9, 5, generator=rng).to(dtype).requires_grad_()
    weight_logits = torch.randn(3, 9, generator=rng).to(dtype).requires_grad_()
    beta = torch.rand(3, 4, generator=rng).to(dtype).requires_grad_()
    labels = torch.randint(0, 5, (3, 4), generator=rng)
    return logits, weight_logits, labels, beta, torch.tensor([9, 6, 4]), torch.tensor([4, 2, 4])


def loss(x: Tensor, w: Tensor, labels: Tensor, beta: Tensor, n: Tensor, m: Tensor) -> Tensor:
    return ottc_loss(x, w.softmax(-1), labels, beta, n, m)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_compiles_as_one_graph(dtype: torch.dtype) -> None:
    torch._dynamo.reset()
    inputs = random_problem(dtype)
    leaves = (inputs[0], inputs[1], inputs[3])
    plain = loss(*inputs)
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)(*inputs)
    assert torch.equal(compiled, plain)
    for got, expected in zip(
        torch.autograd.grad(compiled.sum(), leaves), torch.autograd.grad(plain.sum(), leaves)
    ):
        assert torch.equal(got, expected)


def test_the_operators_keep_the_rules_of_torch() -> None:
    # schema, fake shapes, registration of the gradient, and what torch.compile makes of them
    logits, weight_logits, labels, beta, n, m = random_problem(torch.float32)
    alpha, beta = (x.detach().softmax(-1).requires_grad_() for x in (weight_logits, beta))
    torch.library.opcheck(torch.ops.isotone.frame_weights.default, (weight_logits, n))
    torch.library.opcheck(torch.ops.isotone.couple.default, (alpha, beta, n, m))
    plan = couple(alpha.detach(), beta.detach(), n, m)
    inputs = (logits, plan.mass.requires_grad_(), plan.source, labels.gather(1, plan.target), n)
    torch.library.opcheck(torch.ops.isotone.pair_cross_entropy.default, inputs)


def test_tensors_without_values_have_losses_and_gradients() -> None:
    # what tools that plan memory hand in: no numpy array can be made of them
    inputs = random_problem(torch.float32)
    with FakeTensorMode() as mode:
        fake = tuple(mode.from_tensor(x) for x in inputs)
        value = loss(*fake)
        value.sum().backward()
    assert value.shape == (3,)
    assert all(x.grad is not None and x.grad.shape == x.shape for x in (fake[0], fake[1], fake[3]))


def test_the_whole_loss_compiles_as_one_graph() -> None:
    torch._dynamo.reset()
    emissions, targets = sample_batch()
    for beta in ("uniform", "durations", "path"):
        whole = OTTCLoss(beta=beta)  # type: ignore[arg-type]
        compiled = torch.compile(whole, backend="aot_eager", fullgraph=True)
        torch.testing.assert_close(compiled(emissions, targets), whole(emissions, targets))


@pytest.mark.parametrize("beta", ["uniform", "durations", "path"])
def test_no_device_has_to_wait_for_the_host(beta: str) -> None:
    # tensors of the meta device have no values: whatever reads one, a size that depends on it, fails
    emissions, targets = (x.to("meta") for x in sample_batch())
    logits = emissions.logits.requires_grad_()
    OTTCLoss(beta=beta)(emissions, targets).sum().backward()  # type: ignore[arg-type]
    assert logits.grad is not None
    assert logits.grad.shape == logits.shape


def test_spare_columns_change_nothing() -> None:
    # devices other than the CPU pad labels to the most that there could be
    labels, lengths = torch.tensor([[1, 1, 2], [3, 2, 2]]), torch.tensor([3, 2])
    spread, spread_lengths, _ = insert_blanks(labels, lengths, 0)
    rng = torch.Generator().manual_seed(0)
    logits, alpha = torch.randn(2, 7, 5, generator=rng), torch.rand(2, 7, generator=rng)
    values = []
    for extra in (0, 3):
        wide = torch.nn.functional.pad(spread, (0, extra))
        args = (logits, alpha, wide, torch.ones(wide.shape), torch.tensor([7, 6]), spread_lengths)
        values.append(ottc_loss(*args))
    assert torch.equal(*values)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_an_hour_of_frames(dtype: torch.dtype) -> None:
    rng = torch.Generator().manual_seed(0)
    logits = torch.randn(1, 100_000, 4, generator=rng).to(dtype).requires_grad_()
    alpha = torch.randn(1, 100_000, generator=rng).softmax(-1).to(dtype)
    labels = torch.randint(0, 4, (1, 10_000), generator=rng)
    beta = torch.rand(1, 10_000, generator=rng).to(dtype) + 0.1
    n, m = torch.tensor([100_000]), torch.tensor([10_000])
    value = ottc_loss(logits, alpha, labels, beta, n, m)
    plan = couple(alpha.double(), beta.double())
    log_probs = logits.detach().double().log_softmax(-1)[0]
    expected = -(plan.mass * log_probs[plan.source, labels.gather(1, plan.target)]).sum(1)
    tolerance = 1e-6 if dtype == torch.float32 else 1e-12
    torch.testing.assert_close(value.double(), expected, rtol=tolerance, atol=0)
    value.sum().backward()
    assert logits.grad is not None
    # each frame's gradient sums to 0, and all of them move a mass of 1
    assert logits.grad.double().sum(-1).abs().max() < 1e-9
    exact = log_probs.exp() * (alpha.double() / alpha.double().sum())[0][:, None]
    exact.view(-1).index_add_(0, (plan.source * 4 + labels.gather(1, plan.target))[0], -plan.mass[0])
    torch.testing.assert_close(logits.grad[0].double(), exact, rtol=1e-4, atol=1e-10)
