"""Learned codes: affinities of every task, the losses of TALR's competitors, and every recipe in miniature."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from isotone.training.loader import RecipeError
from tests.paths import DATA, RECIPES

RECIPE = RECIPES / "hashing"
with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(RECIPE))
    from learned_codes import data, objectives, shallow
    from learned_codes.experiment import evaluate, run
    from learned_codes.settings import load_experiment

EXPERIMENTS = sorted(path.stem for path in RECIPE.glob("*.yaml") if path.stem != "base")


def codes(seed: int = 0, size: int = 6, bits: int = 4) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.tanh(torch.randn(size, bits, generator=generator, dtype=torch.float64))


AFFINITY = torch.tensor(
    [[9, 1, 0, 0, 2, 0], [1, 9, 0, 0, 1, 0], [0, 0, 9, 1, 0, 0], [0, 0, 1, 9, 0, 0], [2, 1, 0, 0, 9, 0],
     [0, 0, 0, 0, 0, 9]]
)  # fmt: skip


def test_pairs_and_triplets_are_those_of_the_papers() -> None:
    u = codes()
    theta = 0.5 * u @ u.T
    rounding = float((u - u.sign()).square().mean())
    pairs = [(i, j) for i, j in itertools.product(range(6), repeat=2) if i != j]
    likelihood = [
        float(torch.log1p(theta[i, j].exp())) - bool(AFFINITY[i, j]) * float(theta[i, j]) for i, j in pairs
    ]
    assert objectives.dpsh(quantisation=0.5)(u, AFFINITY).item() == pytest.approx(
        np.mean(likelihood) + 0.5 * rounding
    )
    triplets = [
        float(torch.log1p((-(theta[q, p] - theta[q, n] - 1.0)).exp()))
        for q, p, n in itertools.product(range(6), repeat=3)
        if q not in (p, n) and AFFINITY[q, p] > 0 and AFFINITY[q, n] == 0
    ]
    assert objectives.dtsh(margin=0.25, quantisation=0.0)(u, AFFINITY).item() == pytest.approx(
        np.mean(triplets)
    )
    weighted = {True: [], False: []}
    for i, j in pairs:
        x = 10 * float(u[i] @ u[j]) / 4
        weighted[bool(AFFINITY[i, j])].append(np.log1p(np.exp(x)) - bool(AFFINITY[i, j]) * x)
    expected = (np.mean(weighted[True]) + np.mean(weighted[False])) / 2
    assert objectives.hashnet()(u, AFFINITY).item() == pytest.approx(expected)


def test_mutual_information_of_whole_codes() -> None:
    """Against the definition, on signs, where soft counts are counts."""
    u = codes(1).sign()
    found = []
    for q in range(6):
        others = [i for i in range(6) if i != q]
        distance = [int((u[q] != u[i]).sum()) for i in others]
        similar = [bool(AFFINITY[q, i]) for i in others]
        joint = np.zeros((5, 2))
        for d, s in zip(distance, similar):
            joint[d, int(s)] += 1 / 5
        outer = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
        there = joint > 0
        found.append((joint[there] * np.log(joint[there] / outer[there])).sum())
    assert objectives.mihash()(u, AFFINITY).item() == pytest.approx(-np.mean(found), abs=1e-9)


@pytest.mark.parametrize("kind", list(objectives.OBJECTIVES))
def test_descent_groups_similar_items(kind: str) -> None:
    torch.manual_seed(0)
    x = (0.5 * torch.randn(12, 8)).requires_grad_()
    classes = torch.arange(12) % 3
    affinity = (classes[:, None] == classes).long()
    loss = objectives.build({"kind": kind})
    optimiser = torch.optim.Adam([x], lr=0.05)
    for _ in range(200):
        optimiser.zero_grad()
        loss(torch.tanh(x), affinity).backward()
        optimiser.step()
    bits = x.detach() > 0
    # information does not say that similar items are the near ones: MIHash ends in local optima of few items
    assert evaluate(bits, bits, affinity, 1)["ap"] > (0.6 if kind == "mihash" else 0.95)


def test_itq_loses_less_than_random_hyperplanes() -> None:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(300, 4, generator=generator) @ torch.randn(4, 16, generator=generator)
    near = torch.cdist(features, features).argsort(1)[:, 1:11]
    affinity = torch.zeros(300, 300, dtype=torch.long).scatter_(1, near, 1)
    found = {}
    for kind, make in shallow.CODERS.items():
        bits = make(features, 24, torch.Generator().manual_seed(1))(features)
        assert bits.shape == (300, 24)
        found[kind] = evaluate(bits, bits, affinity, 1)["ap"]
    assert min(found.values()) > 3 * affinity.double().mean()
    four = shallow.itq(features, 4, torch.Generator().manual_seed(1))(features)
    assert four.double().mean(0).sub(0.5).abs().max() < 0.2


def test_ties_are_averaged() -> None:
    queries, database = (
        torch.tensor([[True, True]]),
        torch.tensor([[True, True], [True, True], [False, False]]),
    )
    scores = evaluate(queries, database, torch.tensor([[1, 0, 0]]), 1)
    assert scores["ap_low"] == pytest.approx(0.5)
    assert scores["ap_high"] == pytest.approx(1.0)
    assert scores["ap"] == pytest.approx(0.75)
    assert scores["ndcg"] == pytest.approx((1 + 1 / np.log2(3)) / 2)


def disjoint(task: data.Task) -> None:
    """Check that no query is in the database, and that training items are."""
    kept = {sample.tobytes() for sample in task.database.samples}
    assert not kept & {sample.tobytes() for sample in task.queries.samples}
    assert {sample.tobytes() for sample in task.train.samples} <= kept
    assert len(task.train.samples) < len(task.database.samples)


@pytest.mark.parametrize("by", ["word", "speaker"])
def test_spoken_words(by: str) -> None:
    pytest.importorskip("espeakng_loader", reason="espeak-ng is not installed")
    task = data.spoken(by=by, words=8, voices=8)
    disjoint(task)
    affinity = task.affinity(task.queries.traits, task.database.traits)
    assert set(affinity.unique().tolist()) == {0, 1, 2}
    assert (
        (affinity == 2).sum(1).eq(6).all()
    )  # the word by six other voices, or the voice with six other words
    with pytest.raises(ValueError, match="word or speaker"):
        data.spoken(by="pitch")


def test_tunes() -> None:
    task = data.tunes(families=2, variants=2, takes=8)
    disjoint(task)
    affinity = task.affinity(task.queries.traits, task.database.traits)
    assert affinity.shape == (8, 24)
    assert (affinity == 2).sum(1).eq(6).all()
    assert (affinity == 1).sum(1).eq(6).all()


def test_images_and_their_distances() -> None:
    pytest.importorskip("sklearn")
    task = data.images(queries=100, train=200)
    assert len(task.database.samples) == 1697
    affinity = task.affinity(task.queries.traits, task.database.traits)
    assert affinity.max() == 1
    assert affinity.double().mean().item() == pytest.approx(0.1, abs=0.01)
    task = data.distances(queries=100, train=400)
    affinity = task.affinity(task.train.traits, task.train.traits).fill_diagonal_(0)
    assert set(affinity.unique().tolist()) == {0, 1, 2, 5, 10}
    assert (affinity >= 1).double().mean().item() == pytest.approx(0.05, abs=0.005)
    assert (affinity >= 5).double().mean().item() == pytest.approx(0.002, abs=0.0005)


def test_numbers_share_digits() -> None:
    root = DATA / "fsdd"
    if not (root / "recordings").is_dir():
        pytest.skip(f"no Free Spoken Digit Dataset in {root}; set ISOTONE_TEST_DATA")
    task = data.numbers(root=root, items=40)
    disjoint(task)
    affinity = task.affinity(task.queries.traits, task.database.traits)
    assert affinity.max() <= 3
    first, second = task.queries.traits[0], task.database.traits[5]
    assert affinity[0, 5] == len({*first.nonzero()[:, 0].tolist()} & {*second.nonzero()[:, 0].tolist()})


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_recipe_loads(name: str) -> None:
    loaded = load_experiment(RECIPE / f"{name}.yaml", ["data.root=somewhere"] if name == "numbers" else [])
    assert {"LSH", "ITQ", "TALR-AP", "TALR-NDCG"} <= {*loaded.systems}
    for system in loaded.systems.values():
        if system["kind"] in objectives.OBJECTIVES:
            assert torch.isfinite(objectives.build(system)(codes(), AFFINITY.clamp(max=2)))


SMALL = {
    "images": ["data.queries=40", "data.train=80", "encoder.width=8"],
    "distances": ["data.queries=40", "data.train=80"],
    "tunes": [
        "data.families=2",
        "data.variants=2",
        "data.takes=8",
        "encoder={name: conv, width: 8, layers: 2}",
    ],
}


@pytest.mark.parametrize("name", SMALL)
def test_a_recipe_runs_and_goes_on(name: str, tmp_path: Path) -> None:
    if name != "tunes":
        pytest.importorskip("sklearn")
    options: list[str] = [
        *SMALL[name], "train.steps=2", "train.batch_size=8", "bits=[4,8]", "seeds=[0]", f"output={tmp_path / name}",
    ]  # fmt: skip
    folder = run(load_experiment(RECIPE / f"{name}.yaml", options))
    rows: list[dict[str, Any]] = [
        json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()
    ]
    assert len(rows) == 2 * len({row["system"] for row in rows})
    assert all(row["ap_low"] <= row["ap"] <= row["ap_high"] for row in rows)
    assert all(0 < row["ndcg"] <= 1 for row in rows)
    table = (folder / "table.md").read_text()
    assert "| AP_T | 4 bits | 8 bits |" in table
    assert "worst order of ties" in table
    assert (folder / "ties.png").read_bytes().startswith(b"\x89PNG")
    stamp = (folder / "rows.jsonl").stat().st_mtime_ns
    run(load_experiment(RECIPE / f"{name}.yaml", options))
    assert (folder / "rows.jsonl").stat().st_mtime_ns == stamp
    with pytest.raises(RecipeError, match="another configuration"):
        run(load_experiment(RECIPE / f"{name}.yaml", [*options, "train.lr=1.0"]))


@pytest.mark.parametrize(
    "overrides, message",
    [
        (["data.name=cats"], "data.name among"),
        (["systems.LSH.kind=magic"], "'LSH' expects a kind among lsh"),
        (["bits=[]"], "one length of codes"),
    ],
)
def test_configurations_that_cannot_be(overrides: list[str], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        load_experiment(RECIPE / "images.yaml", overrides)
