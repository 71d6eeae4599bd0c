"""Updates of parameters: groups, decay, schedule, and frozen parameters."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from isotone.training.config import Freeze, Group, Training
from isotone.training.optim import Average, Frozen, clip_groups, make_optimizer, make_schedule


def module() -> nn.ModuleDict:
    torch.manual_seed(0)
    model = nn.ModuleDict({"encoder": nn.Linear(3, 3), "head": nn.Linear(3, 2), "norm": nn.LayerNorm(3)})
    return nn.ModuleDict({"model": model})


def settings_of(module_: nn.Module, settings: Training) -> dict[str, tuple[float, float]]:
    """Learning rate and weight decay of every parameter by name."""
    names = {id(p): n for n, p in module_.named_parameters()}
    groups = make_optimizer(module_, settings).param_groups
    return {names[id(p)]: (g["lr"], g["weight_decay"]) for g in groups for p in g["params"]}


def test_gradients_that_are_clipped_apart() -> None:
    whole = module()
    whole["model"]["norm"].weight.requires_grad_(False)
    names = {id(p): n.removeprefix("model.") for n, p in whole.named_parameters()}

    def groups(*patterns: str) -> list[list[str]]:
        return [[names[id(p)] for p in group] for group in clip_groups(whole, patterns)]

    everything = ["encoder.weight", "encoder.bias", "head.weight", "head.bias", "norm.bias"]
    assert groups() == [everything]
    assert groups("head.*") == [[*everything[:2], "norm.bias"], ["head.weight", "head.bias"]]
    assert groups("head.*", "*") == [["head.weight", "head.bias"], [*everything[:2], "norm.bias"]]
    with pytest.raises(ValueError, match=r"'hed\.\*' of train\.clip_apart"):
        groups("hed.*")


def test_groups_and_decay() -> None:
    settings = Training(
        lr=0.1,
        weight_decay=0.3,
        groups=[
            Group(["encoder.*"], lr_scale=0.5, weight_decay=0.0),  # without the outer name too
            Group(["model.head.weight", "encoder.weight"], lr_scale=2.0),  # the first that matches counts
        ],
    )
    assert settings_of(module(), settings) == {
        "model.encoder.weight": (pytest.approx(0.05), 0.0),
        "model.encoder.bias": (pytest.approx(0.05), 0.0),
        "model.head.weight": (pytest.approx(0.2), 0.3),
        "model.head.bias": (pytest.approx(0.1), 0.0),  # vectors are never decayed
        "model.norm.weight": (pytest.approx(0.1), 0.0),
        "model.norm.bias": (pytest.approx(0.1), 0.0),
    }
    with pytest.raises(ValueError, match=r"No trained parameter matches 'heads\.\*'"):
        make_optimizer(module(), Training(groups=[Group(["heads.*"])]))
    resting = module()
    for parameter in resting["model"]["encoder"].parameters():
        parameter.requires_grad = False
    assert set(settings_of(resting, Training())) == {
        n for n in settings_of(module(), Training()) if "enc" not in n
    }


def rates(settings: Training, steps: int) -> list[float]:
    optimizer = make_optimizer(module(), settings)
    schedule = make_schedule(optimizer, settings, steps)
    out = []
    for _ in range(steps):
        out.append(optimizer.param_groups[0]["lr"] / settings.lr)
        optimizer.step()
        schedule.step()
    assert optimizer.param_groups[0]["lr"] == 0.0
    return out


def test_warm_up_and_decay() -> None:
    expected = [0.25, 0.5, 0.75, 1.0, 1.0, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6]
    assert rates(Training(lr=2e-4, warmup_steps=4), 10) == pytest.approx(expected)
    assert rates(Training(lr=2e-4, warmup_share=0.4), 10) == pytest.approx(expected)
    assert rates(Training(lr=2e-4, warmup_steps=4, warmup_share=0.9), 10) == pytest.approx(expected)
    assert rates(Training(lr=2e-4), 4) == pytest.approx([1.0, 1.0, 2 / 3, 1 / 3])
    assert rates(Training(lr=2e-4, warmup_steps=500), 3) == pytest.approx(
        [0.5, 1.0, 1.0]
    )  # shorter than its warm-up
    assert rates(Training(lr=2e-4, warmup_steps=500), 1) == pytest.approx([1.0])


def test_resting_parameters_do_not_move() -> None:
    """Not by the gradient, not by the weight decay, not by what the optimiser remembers of earlier steps."""
    model = module()
    settings = Training(lr=0.1, weight_decay=0.5)
    optimizer = make_optimizer(model, settings)
    frozen = Frozen(model, [Freeze(["head.*"], start=0.5, end=0.75), Freeze(["model.norm.weight"])])
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    moved: dict[str, list[bool]] = {n: [] for n in before}
    for step in range(8):
        sum(p.square().sum() + p.sum() for p in model.parameters()).backward()
        frozen.apply(step / 8)
        optimizer.step()
        optimizer.zero_grad()
        for name, parameter in model.named_parameters():
            moved[name].append(not torch.equal(parameter, before[name]))
            before[name] = parameter.detach().clone()
    rests = [True] * 4 + [False] * 2 + [True] * 2
    assert moved["model.head.weight"] == moved["model.head.bias"] == rests
    assert moved["model.norm.weight"] == [False] * 8
    assert moved["model.encoder.weight"] == moved["model.norm.bias"] == [True] * 8
    with pytest.raises(ValueError, match=r"No parameter matches 'haed\.\*' of train\.freeze"):
        Frozen(model, [Freeze(["haed.*"])])


def test_the_average_is_that_of_the_formula() -> None:
    model = nn.Linear(2, 1, bias=False)
    model.weight.data.fill_(1.0)
    average = Average(model, 0.5)
    expected = 1.0
    for step in range(1, 40):
        model.weight.data.fill_(float(step))
        average.update()
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * step
        torch.testing.assert_close(average.values[0], torch.full((1, 2), expected))
    with average.applied():
        torch.testing.assert_close(model.weight.data, torch.full((1, 2), expected))
    assert (model.weight == 39).all()
    again = Average(nn.Linear(2, 1, bias=False), 0.5)
    again.load_state_dict(average.state_dict())
    assert again.steps == 39
    torch.testing.assert_close(again.values, average.values, rtol=0, atol=0)
    with pytest.raises(ValueError, match="from 0 to below 1; got 1"):
        Average(model, 1.0)
