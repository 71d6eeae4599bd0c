"""Two views of a batch in the objective, and resumed runs with two views."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from isotone.interfaces import Loss
from isotone.model import DecodingConfig, Model
from isotone.model.encoder import SpeechEncoder
from isotone.registries import losses
from isotone.text.tokenizer import PhoneTokenizer
from isotone.training import checkpoint
from isotone.training.objective import Objective
from isotone.types import Emissions, FramePath, Grid, Targets

Train = Callable[..., Path]

ENCODER = {
    "model_type": "wav2vec2-bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
    "intermediate_size": 16, "conv_depthwise_kernel_size": 3, "position_embeddings_type": None, "layerdrop": 0.0,
    "apply_spec_augment": False,
}  # fmt: skip
CTC = {"head": "ctc", "loss": {"name": "ctc"}, "weight": 1.0}
OTTC = {"head": "ottc", "loss": {"name": "ottc", "beta": "durations"}, "weight": 0.5}
PATH = {"head": "ctc", "loss": {"name": "single-path"}, "weight": 2.0}
CONSISTENCY = {"head": "ctc", "loss": {"name": "consistency"}, "weight": 0.2}

seen: list[tuple[Emissions, Targets]] = []


class Spy(Loss):
    """A loss that records its inputs, and has no gradient."""

    def __init__(self, *, views: int = 2) -> None:
        super().__init__()
        self.views = views

    def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
        seen.append((emissions, targets))
        return 0 * self.split_views(emissions.logits.sum((1, 2)))[0]


@pytest.fixture(autouse=True)
def _spy(register: Callable[..., None]) -> None:
    register(losses, "test-spy", Spy)
    seen.clear()


def spied(views: int = 2) -> dict[str, Any]:
    return {"head": "ctc", "loss": {"name": "test-spy", "views": views}, "weight": 1.0}


def objective(terms: dict[str, Any], dropout: float = 0.0, **encoder: Any) -> Objective:
    torch.manual_seed(0)
    settings = {
        **ENCODER, **dict.fromkeys(("hidden_dropout", "activation_dropout", "conformer_conv_dropout"), 0.0),
        "feat_proj_dropout": 0.0, "attention_dropout": 0.0,
    }  # fmt: skip
    heads = {
        "ctc": {"name": "ctc", "dropout": dropout},
        "ottc": {"name": "ottc", "reads": "features", "layers": 1, "width": 8, "dropout": dropout},
    }
    tokenizer = PhoneTokenizer(["<pad>", "aa", "iy", "s", "t"], None, None)
    model = Model(
        SpeechEncoder(settings, **encoder), heads, tokenizer, DecodingConfig("ctc", {"name": "ctc-greedy"})
    )
    return Objective(model, terms).train()


def batch() -> tuple[Tensor, Tensor, Targets]:
    rng = torch.Generator().manual_seed(0)
    targets = Targets.from_lists([[1, 2, 3], [4, 4], [2]], durations=torch.rand(3, 3, generator=rng) + 0.1)
    frames = (24, 15, 11)
    paths = [torch.randint(-1, len(row), (n,), generator=rng) for row, n in zip(targets.tolist(), frames)]
    paths = nn.utils.rnn.pad_sequence(paths, batch_first=True, padding_value=-2)  # type: ignore[assignment]
    audio = 0.1 * torch.randn(3, 8000, generator=rng)
    return audio, torch.tensor([8000, 5200, 4000]), Targets(
        targets.labels, targets.lengths, targets.durations, FramePath(paths)  # type: ignore[arg-type]
    )  # fmt: skip


def test_views_without_randomness_change_nothing() -> None:
    """Values and gradients of all terms are those of one view: nothing is counted twice."""
    terms = {"ctc": CTC, "ottc": OTTC, "path": PATH}
    one, two = objective(terms), objective({**terms, "spy": spied()})
    assert (one.views, two.views) == (1, 2)
    values = []
    for part in (one, two):
        total, parts = part(*batch())
        assert total.shape == (3,)
        total.mean().backward()
        values.append((total.detach(), {name: parts[name] for name in terms}))
    torch.testing.assert_close(values[1], values[0], rtol=1e-4, atol=1e-5)
    assert all(value.shape == (3,) and (value > 0).all() for value in values[0][1].values())
    for (name, p), q in zip(one.named_parameters(), two.parameters()):
        if p.grad is None:
            assert q.grad is None, name
        else:
            torch.testing.assert_close(q.grad, p.grad, rtol=1e-3, atol=1e-5, msg=name)


class Recorded(nn.Module):
    """Give these emissions in place of a model's, in turn for every row."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.heads = nn.ModuleDict({"ctc": nn.Identity(), "ottc": nn.Identity()})
        self.logits = logits

    def forward(self, audio: Tensor, lengths: Tensor, only: set[str]) -> dict[str, Emissions]:
        weights = self.logits[: len(audio), :, 0]
        emissions = Emissions(self.logits[: len(audio)], lengths, Grid(0.02), 0, weights)
        return dict.fromkeys(only, emissions)


def test_averages_are_those_of_two_forwards() -> None:
    """Two views that differ: each term is the mean of what either view alone gives."""
    logits = torch.randn(6, 24, 5, generator=torch.Generator().manual_seed(3))
    audio, _, targets = batch()
    lengths = torch.tensor([24, 15, 11])
    terms = {"ctc": CTC, "ottc": OTTC, "path": PATH}
    views = []
    for part in logits.chunk(2):
        model: Any = Recorded(part)
        views.append(Objective(model, terms)(audio, lengths, targets))
    model = Recorded(logits)
    total, parts = Objective(model, {**terms, "consistency": CONSISTENCY})(audio, lengths, targets)
    for name in terms:
        mean = (views[0][1][name] + views[1][1][name]) / 2
        torch.testing.assert_close(parts[name], mean)
        assert (views[0][1][name] - views[1][1][name]).abs().max() > 0.01
    assert (parts["consistency"] > 0.1).all()
    expected = (views[0][0] + views[1][0]) / 2 + 0.2 * parts["consistency"]
    torch.testing.assert_close(total, expected)


@pytest.mark.parametrize("views", [2, 3])
def test_what_a_loss_of_several_views_gets(views: int) -> None:
    """Every utterance so often, view after view, under masks and dropout of its own; all of its targets."""
    audio, lengths, targets = batch()
    part = objective({"spy": spied(views)}, dropout=0.3, spec_augment={"frequency_width": 20})
    part(audio, lengths, targets)
    ((emissions, repeated),) = seen
    assert emissions.logits.shape[0] == 3 * views
    by_view = emissions.logits.unflatten(0, (views, 3))
    assert emissions.lengths.unflatten(0, (views, 3)).unique(dim=0).shape == (1, 3)
    assert not any(torch.equal(by_view[0, row], by_view[1, row]) for row in range(3))
    assert repeated.tolist() == targets.tolist() * views
    for name in ("labels", "lengths", "durations", "paths"):
        value, of_one = getattr(repeated, name), getattr(targets, name)
        if isinstance(value, FramePath):
            value, of_one = value.tokens, of_one.tokens
        assert torch.equal(value, torch.cat([of_one] * views))
    assert repeated.optional is None


def test_views_that_differ_only_by_chance() -> None:
    """Without masks and dropout two views are one, and consistent."""
    for dropout, masks, agree in (
        (0.0, None, True),
        (0.3, None, False),
        (0.0, {"frequency_width": 20}, False),
    ):
        _, parts = objective({"c": CONSISTENCY}, dropout, spec_augment=masks)(*batch())
        assert bool((parts["c"] < 1e-6).all()) is agree


def test_numbers_of_views_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"one number of views, or one; got \{'ctc': 1, 'a': 2, 'b': 3\}"):
        objective({"ctc": CTC, "a": spied(2), "b": spied(3)})


# Runs.

OPTIONS = [
    "train.steps=9", "train.batch_size=5", "train.save_every=4", "train.evaluate_every=9", "heads.ctc.dropout=0.2",
    "encoder.spec_augment={time_share: 0.375, frequency_width: 20}",
    "objective.consistency={head: ctc, weight: 0.2, loss: {name: consistency, normalize: tokens}}",
    "objective.times={head: ottc, weight: 0.2, loss: {name: consistency, ot_weights: 1.0}}",
    "heads.projection={name: projection, size: 8}",
    "objective.contrastive={head: projection, weight: 0.1, loss: {name: contrastive, qare: {beta: 0.5}}}",
    "objective.talr={head: projection, weight: 0.1, loss: {name: talr}}",
]  # fmt: skip


@pytest.fixture(scope="module")
def unbroken(tiny_recipes: Path, train: Train, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("views") / "run"
    return train(tiny_recipes / "joint.yaml", *OPTIONS, f"output={folder}")


def rows(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if k != "utterances_per_s"} for line in lines]


def test_metrics_name_the_terms(unbroken: Path) -> None:
    steps = [row for row in rows(unbroken) if "loss" in row]
    assert len(steps) == 9
    for row in steps:
        expected = row["ctc"] + row["ottc"] + 0.2 * (row["consistency"] + row["times"])
        assert row["loss"] == pytest.approx(expected + 0.1 * (row["contrastive"] + row["talr"]), rel=1e-5)
        assert min(row["consistency"], row["times"], row["contrastive"], row["talr"]) > 0


def test_a_run_with_views_goes_on_where_it_stood(
    unbroken: Path, tiny_recipes: Path, train: Train, tmp_path: Path
) -> None:
    """Masks of both views are drawn from the states that checkpoints hold: bit for bit the same run."""
    folder = tmp_path / "run"
    shutil.copytree(unbroken, folder, ignore=shutil.ignore_patterns("step-000009", "model", "alignments"))
    assert checkpoint.find(folder / "checkpoints")[-1].name == "step-000008"
    shutil.rmtree(folder / "checkpoints" / "step-000008")
    train(tiny_recipes / "joint.yaml", *OPTIONS, f"output={folder}")
    assert rows(folder) == rows(unbroken)
    weights = "model/model.safetensors"
    assert (folder / weights).read_bytes() == (unbroken / weights).read_bytes()


def test_a_model_trained_on_views_is_a_model_like_any(unbroken: Path) -> None:
    """SpecAugment is no part of the saved model."""
    model = Model.load(unbroken)
    assert set(model.heads) == {"ctc", "ottc", "projection"}
    audio, lengths, _ = batch()
    first, second = (model(audio, lengths)["ctc"].logits for _ in range(2))
    assert torch.equal(first, second)
    assert len(first) == 3
