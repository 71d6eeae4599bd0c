from __future__ import annotations

import pytest
import torch
from isotone_opas.aggregate import DeepSets, SetTransformer, aggregation_loss
from torch import nn

from tests.plugins.opas.parts import unit

MODELS = {"deep sets": lambda: DeepSets(size=6, width=16, out=5), "set transformer": lambda: SetTransformer(
    size=6, width=8, out=5, heads=2, inducing=3)}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_sets_have_no_order_and_no_padding(name: str) -> None:
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    rng = torch.Generator().manual_seed(0)
    x = unit(rng, 3, 7, 6)
    lengths = torch.tensor([7, 4, 1])
    out = model(x, lengths)
    assert out.shape == (3, 5)
    torch.testing.assert_close(model(x[:1, torch.randperm(7, generator=rng)]), out[:1], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(model(x[1:2, :4]), out[1:2], rtol=1e-4, atol=1e-5)
    x[1, 4:], x[2, 1:] = torch.nan, torch.nan
    torch.testing.assert_close(model(x, lengths), out, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(out[0], out[1])


def test_theorem_2_random_features_bound_the_distance_from_below() -> None:
    """E ||G(X_q) - G(X_c)|| >= c ||X_q - P* X_c||^2 with one c for near and far sets of a size; 0 for equal ones."""
    rng = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    q = unit(rng, 60, 4, 6)
    scale = torch.logspace(-2, 1, 60)[:, None, None]
    c = nn.functional.normalize(q + scale * torch.randn(q.shape, generator=rng), dim=-1)
    # the best order of all 24: at most the distance of the given one
    orders = torch.cartesian_prod(*[torch.arange(4)] * 4)
    orders = orders[[len(set(o)) == 4 for o in orders.tolist()]]
    distance = torch.stack([(q - c[:, o]).square().sum((1, 2)) for o in orders]).amin(0)
    with torch.no_grad():
        apart = torch.stack(
            [(g(q) - g(c)).norm(dim=1) for g in (DeepSets(size=6, width=64, out=None) for _ in range(30))]
        ).mean(0)
        g = DeepSets(size=6, width=64, out=None)
        same = (g(q) - g(q[:, [2, 0, 3, 1]])).norm(dim=1)
    assert (apart / distance).min() > 0.2
    assert same.max() < 1e-4


def test_random_features_are_those_of_the_theorem() -> None:
    model = DeepSets(size=5, width=4000)
    torch.testing.assert_close(model.features.weight.norm(dim=1), torch.ones(4000))
    assert model.features.bias.abs().max() <= 1
    assert abs(float(model.features.bias.detach().mean())) < 0.05


def test_losses() -> None:
    h = torch.zeros(3, 2), torch.tensor([[3.0, 4.0], [0.0, 2.0], [0.0, 0.0]])
    fit = torch.tensor([-9.0, -9.0, 0.0])
    torch.testing.assert_close(aggregation_loss(*h, fit), torch.tensor([4.0, 1.0, 0.0]))
    torch.testing.assert_close(aggregation_loss(*h, fit, kind="bound"), torch.tensor([16.0, 49.0, 0.0]))
    with pytest.raises(ValueError, match="'regression' or 'bound'"):
        aggregation_loss(*h, fit, kind="other")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", MODELS)
def test_training_brings_distances_to_those_of_the_selection(name: str) -> None:
    torch.manual_seed(0)
    rng = torch.Generator().manual_seed(0)
    q, c = unit(rng, 40, 3, 6), unit(rng, 40, 7, 6)
    c[:20, ::2][:, :3] = q[:20]
    fit = -(c[:, ::2][:, :3] - q).square().sum((1, 2))
    model = MODELS[name]()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    losses = []
    for _ in range(60):
        loss = aggregation_loss(model(q), model(c), fit).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]
