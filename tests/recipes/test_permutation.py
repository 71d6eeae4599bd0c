"""OT4P's experiments at miniature sizes, and their objectives against the sums that the paper writes."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from omegaconf import OmegaConf

from tests.paths import RECIPES

RECIPE = RECIPES / "permutation"
MODULES = (
    "run",
    "baselines",
    "boundary",
    "figures",
    "instances",
    "memory",
    "method",
    "results",
    "settings",
    "methods",
    "networks",
    "neuron_identities",
    "synchronisation",
    "mode_connectivity",
)


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Import the recipe's modules, which lie beside its run.py."""
    monkeypatch.syspath_prepend(str(RECIPE))
    before = {name: sys.modules.pop(name, None) for name in MODULES}
    yield importlib.import_module
    for name, old in before.items():
        sys.modules.pop(name, None)
        if old is not None:
            sys.modules[name] = old


def results_of(folder: Path, *figures: str) -> list[dict[str, Any]]:
    assert {path.name for path in folder.iterdir()} == {
        "config.yaml",
        "results.json",
        "results.md",
        "results.png",
        *figures,
    }
    rows: list[dict[str, Any]] = json.loads((folder / "results.json").read_text())
    return rows


def precision(rows: list[dict[str, Any]], method: str) -> list[float]:
    return [row["precision"] for row in rows if row["method"] == method]


def test_neurons_are_found(module: Callable[[str], ModuleType], tmp_path: Path) -> None:
    sizes = ["neurons=30", "steps=1500", "known=[0.4]", "seeds=[0]", "samples=2", "iterations=150"]
    sizes.append("methods=[OT4P (0.5),Naive]")
    module("run").main(["neuron_identities", *sizes, f"output={tmp_path}/x"])
    rows = results_of(tmp_path / "x")
    assert len(rows) == 2
    assert {row["setting"] for row in rows} == {"40% known"}
    assert precision(rows, "OT4P (0.5)") == [100.0]
    for row in rows:
        assert row["hamming"] == pytest.approx(2 * 30 * (1 - row["precision"] / 100))
        assert row["precision"] < 100 or row["log_likelihood"] == pytest.approx(-15, abs=1)
    table = (tmp_path / "x" / "results.md").read_text().splitlines()
    assert table[4:6] == ["", "| Hamming distance | 40% known |"]
    assert table[0] == "| method | 40% known | seeds | seconds |"


def test_the_likelihood_is_that_of_the_residuals(module: Callable[[str], ModuleType]) -> None:
    experiment = module("neuron_identities")
    config = OmegaConf.create({"neurons": 8, "density": 0.5, "radius": 0.8, "steps": 400, "noise": 0.1})
    recording = experiment.record(config, torch.Generator().manual_seed(0))
    # the same draws again, this time with the recording kept
    generator = torch.Generator().manual_seed(0)
    torch.rand(8, 8, generator=generator), torch.randn(8, 8, generator=generator)
    columns = torch.randperm(8, generator=generator)
    assert torch.equal(columns, recording.columns)
    true = torch.eye(8)[columns]
    activity = [torch.zeros(8)]
    for _ in range(400):
        activity.append(
            true @ recording.dynamics @ true.T @ activity[-1] + 0.1 * torch.randn(8, generator=generator)
        )
    y = torch.stack(activity)
    for soft in (true, torch.softmax(torch.randn(8, 8, generator=generator), 1)):
        left = y[1:] - y[:-1] @ (soft @ recording.dynamics @ soft.T).T
        expected = -left.square().sum() / (2 * 0.1**2 * 400)
        torch.testing.assert_close(recording.log_likelihood(soft[None])[0], expected, rtol=1e-4, atol=1e-4)
    assert recording.explains(true[None])
    assert not recording.explains(true.roll(1, 0)[None])


def test_known_pairs_leave_the_truth_allowed(module: Callable[[str], ModuleType]) -> None:
    columns = torch.randperm(20, generator=torch.Generator().manual_seed(0))
    allowed = module("neuron_identities").allowed_pairs(columns, 0.25, torch.Generator().manual_seed(1))
    assert allowed[torch.arange(20), columns].all()
    assert sorted(allowed.sum(0).tolist()) == [1] * 5 + [15] * 15 == sorted(allowed.sum(1).tolist())


def test_matchings_are_synchronised(module: Callable[[str], ModuleType], tmp_path: Path) -> None:
    sizes = ["points=8", "objects=[12]", "outliers=0.3", "iterations=5", "seeds=[0]"]
    module("run").main(["synchronisation", *sizes, f"output={tmp_path}/x"])
    rows = results_of(tmp_path / "x", "cost.png")
    assert len(rows) == 11
    assert len({row["method"] for row in rows}) == 11
    assert precision(rows, "Spectral") > precision(rows, "Pairwise")
    assert 100 > precision(rows, "Pairwise")[0] > 70
    # farther from permutations at a higher temperature (table 6)
    distances = [
        next(row["l1"] for row in rows if row["method"] == f"OT4P ({tau})") for tau in (0.3, 0.5, 0.7)
    ]
    assert distances == sorted(distances)


def test_descriptors_are_matched_with_correlated_outliers(
    module: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    sizes = ["points=6", "objects=[9]", "iterations=3", "seeds=[0]"]
    module("run").main(["optimisers", *sizes, f"output={tmp_path}/x"])
    rows = results_of(tmp_path / "x", "cost.png", "matching.png")
    assert len({row["method"] for row in rows}) == 18
    given = module("instances").matched(9, 6, 0.0, torch.Generator().manual_seed(0))
    blocks = given.pairs.reshape(9, 6, 9, 6)
    true = torch.einsum("iab,jcb->iajc", given.true, given.true)
    assert torch.equal(blocks, blocks.permute(2, 3, 0, 1))
    assert float((blocks * true).sum()) > 0.95 * 9 * 9 * 6
    for i, j in ((0, 1), (2, 7)):
        assert blocks[i, :, j].sum(0).eq(1).all()
    # neighbours are matched well, the ends less so
    noisy = module("instances").matched(9, 6, 0.8, torch.Generator().manual_seed(0))
    right = (noisy.pairs.reshape(9, 6, 9, 6) * torch.einsum("iab,jcb->iajc", noisy.true, noisy.true)).sum(
        (1, 3)
    )
    assert right.diagonal(1).sum() / 8 > right.diagonal(6).sum() / 3


def test_tangents_of_doubly_stochastic_matrices(module: Callable[[str], ModuleType]) -> None:
    baselines = module("baselines")
    generator = torch.Generator().manual_seed(0)
    point = baselines.balanced(torch.randn(3, 5, 5, generator=generator))
    torch.testing.assert_close(point.sum(1), torch.ones(3, 5), rtol=0, atol=1e-3)
    direction = torch.randn(3, 5, 5, generator=generator)
    moved = baselines.tangent(point, direction)
    torch.testing.assert_close(moved.sum(1), torch.zeros(3, 5), rtol=0, atol=1e-4)
    torch.testing.assert_close(moved.sum(2), torch.zeros(3, 5), rtol=0, atol=1e-4)
    # what was taken off is orthogonal to every tangent in the Fisher metric
    other = baselines.tangent(point, torch.randn(3, 5, 5, generator=generator))
    left = ((direction - moved) * other / point).sum((1, 2))
    torch.testing.assert_close(left, torch.zeros(3), rtol=0, atol=1e-3)


@pytest.mark.parametrize("kind", ["reg", "orth-reg"])
def test_penalties_are_0_at_permutations(module: Callable[[str], ModuleType], kind: str) -> None:
    method = module("methods").build({"kind": kind, "start": 1.0}, (2, 4), torch.Generator().manual_seed(0))
    assert method.penalty().item() > 0.01
    with torch.no_grad():
        method.values.copy_(200 * torch.eye(4) if kind == "reg" else torch.zeros(4, 4))
    assert method.penalty().item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("options", [{}, {"optimiser": "sgd"}])
def test_the_birkhoff_polytope_is_not_left(
    module: Callable[[str], ModuleType], options: dict[str, Any]
) -> None:
    method = module("methods").build({"kind": "birkhoff"}, (2, 4), torch.Generator().manual_seed(0))
    target = torch.eye(4)[[2, 0, 3, 1]]
    optimiser = method.optimiser(options.get("optimiser", "adam"), 0.1)
    for _ in range(60):
        optimiser.zero_grad()
        (method.draw(1) - target).square().sum().backward()
        optimiser.step()
    torch.testing.assert_close(method.values.detach().sum(1), torch.ones(2, 4), rtol=0, atol=1e-3)
    assert method.values.min() > 0
    assert torch.equal(method.permutation(), target.expand(2, 4, 4))


def test_permutations_at_the_boundary(module: Callable[[str], ModuleType], tmp_path: Path) -> None:
    """Table 3: of the six permutations of three items, as rotations, one has the eigenvalue -1."""
    module("run").main(["boundary", "sizes=[3,10]", "draws=600", "seeds=[0]", f"output={tmp_path}/x"])
    rows = results_of(tmp_path / "x", "tau.png")
    plain, moved = precision(rows, "P"), precision(rows, "B^T P")
    assert plain[0] == pytest.approx(100 / 6, abs=5)
    assert plain[1] == pytest.approx(51, abs=8)
    assert moved[1] < plain[1] / 3


@pytest.mark.parametrize("kind", ["ot4p", "sinkhorn", "naive"])
def test_gradients_bring_matchings_together(module: Callable[[str], ModuleType], kind: str) -> None:
    experiment, methods = module("synchronisation"), module("methods")
    pairs, _true = module("instances").shuffled(5, 8, 0.0, torch.Generator().manual_seed(0))[:2]
    method = methods.build({"kind": kind, "temperature": 0.5}, (5, 8), torch.Generator().manual_seed(0))
    before = experiment.disagreement(pairs, method.permutation())
    found = experiment.optimise(pairs, method, {"lr": 0.1}, 60)
    assert (found.sum(1) == 1).all()
    assert (found.sum(2) == 1).all()
    assert experiment.disagreement(pairs, found) < 0.5 * before


def test_the_disagreement_is_the_papers_sum(module: Callable[[str], ModuleType]) -> None:
    experiment = module("synchronisation")
    generator = torch.Generator().manual_seed(0)
    pairs, true = module("instances").shuffled(4, 5, 0.6, generator)[:2]
    blocks = pairs.reshape(4, 5, 4, 5).transpose(1, 2)
    assert (blocks.sum(-1) == 1).all()
    assert (blocks.sum(-2) == 1).all()
    assert torch.equal(pairs, pairs.T)
    soft = torch.softmax(torch.randn(4, 5, 5, generator=generator), 2)
    # squares of permutations are constant, so that the sum is quadratic in P_i P_j^T alone
    expected = sum((blocks[i, j] - soft[i] @ soft[j].T).square().sum() for i in range(4) for j in range(4))
    torch.testing.assert_close(experiment.disagreement(pairs, soft), expected / (16 * 5))
    clean, true = module("instances").shuffled(4, 5, 0.0, generator)[:2]
    assert float(experiment.disagreement(clean, true)) == pytest.approx(0, abs=1e-6)
    assert experiment.f_score(true, true) == 100
    turned = true @ torch.eye(5)[torch.randperm(5, generator=generator)]
    assert experiment.f_score(turned, true) == pytest.approx(100), "a common relabelling is no mistake"
    for found in (experiment.spectral(clean, 4), experiment.coordinate_descent(clean, 4, 20, generator)):
        assert experiment.f_score(found, true) == pytest.approx(100)


def test_hidden_units_are_matched(module: Callable[[str], ModuleType], tmp_path: Path) -> None:
    sizes = ["networks=[VGG11,ResNet18]", "width=0.03", "kernel=2", "iterations=3", "seeds=[0]"]
    module("run").main(["mode_connectivity", *sizes, f"output={tmp_path}/x"])
    rows = results_of(tmp_path / "x")
    assert [row["setting"] for row in rows[::5]] == ["VGG11", "ResNet18"]
    assert precision(rows, "Weight matching") == [100.0] * 2
    for row in rows:
        assert (row["precision"] == 100) == (row["l1"] == 0)


def test_gradients_find_the_units_of_a_small_network(module: Callable[[str], ModuleType]) -> None:
    experiment = module("mode_connectivity")
    network = module("networks").build("VGG11", 0.04, 3)
    generator = torch.Generator().manual_seed(0)
    source = network.weights(generator)
    true = [torch.eye(n)[torch.randperm(n, generator=generator)] for n in network.groups]
    target = network.permuted(source, true)
    groups = experiment.Groups({"kind": "ot4p", "temperature": 0.5}, network.groups, generator)
    found, steps = experiment.optimise(network, target, source, groups, 0.1, 150)
    assert steps < 150
    assert all(torch.equal(a, b) for a, b in zip(found, true))


def test_networks_have_the_papers_units(module: Callable[[str], ModuleType]) -> None:
    build = module("networks").build
    assert [sum(build(name, 1.0, 3).groups) for name in ("MLP5", "VGG11", "ResNet18")] == [40, 2752, 2880]
    with pytest.raises(ValueError, match="got 'VGG19'"):
        build("VGG19", 1.0, 3)


def test_permuted_units_compute_the_same(module: Callable[[str], ModuleType]) -> None:
    """The multilayer perceptron's output, and a residual block's, do not see the order of hidden units."""
    networks = module("networks")
    generator = torch.Generator().manual_seed(0)
    network = networks.build("MLP5", 1.0, 1)
    weights = network.weights(generator)
    order = [torch.eye(n)[torch.randperm(n, generator=generator)] for n in network.groups]
    x = torch.randn(7, 1, generator=generator)

    def forward(w: list[torch.Tensor]) -> torch.Tensor:
        hidden = x
        for layer in range(4):
            hidden = torch.tanh(hidden @ w[layer][:, :, 0].T + w[5 + layer][:, 0, 0])
        return hidden @ w[4][:, :, 0].T

    torch.testing.assert_close(forward(network.permuted(weights, order)), forward(weights))

    network = networks.build("ResNet18", 0.1, 1)
    weights = network.weights(generator)
    order = [torch.eye(n)[torch.randperm(n, generator=generator)] for n in network.groups]
    image = torch.randn(7, 3, generator=generator)

    def residual(w: list[torch.Tensor]) -> torch.Tensor:
        taps = [m.sum(2) for m in w]
        stream, at = torch.relu(image @ taps[0].T), 1
        for block in range(8):
            skip = stream
            if block in (2, 4, 6):
                skip, at = stream @ taps[at].T, at + 1
            stream = torch.relu(skip + torch.relu(stream @ taps[at].T) @ taps[at + 1].T)
            at += 2
        return stream @ taps[at].T

    torch.testing.assert_close(
        residual(network.permuted(weights, order)), residual(weights), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["ctc"], r"No recipe .*ctc\.yaml\. There is: boundary, house, matching, mode_connectivity"),
        (["synchronization"], r"No recipe .*synchronization\.yaml\. Did you mean 'synchronisation'\?"),
        (["synchronisation", "point=3"], "point"),
        (["synchronisation", "methods=[Oracle]"], "Oracle"),
    ],
)
def test_mistakes_on_the_command_line(
    module: Callable[[str], ModuleType], arguments: list[str], message: str
) -> None:
    with pytest.raises((FileNotFoundError, ValueError), match=message):
        module("run").main(arguments)


def test_some_of_the_methods(module: Callable[[str], ModuleType]) -> None:
    config = module("settings").load_settings(
        "synchronisation", ["methods=[OT4P (0.3),Naive]", "methods.Naive.lr=0.5"]
    )
    assert list(config.methods) == ["OT4P (0.3)", "Naive"]
    assert config.methods["Naive"]["lr"] == 0.5
    assert config.output == "runs/permutation/synchronisation"
    with pytest.raises(ValueError, match="kind"):
        module("methods").build({"kind": "other"}, (1, 2), torch.Generator())
    with pytest.raises(ValueError, match="noise"):
        module("methods").build({"kind": "naive", "noise": 1.0}, (1, 2), torch.Generator())
