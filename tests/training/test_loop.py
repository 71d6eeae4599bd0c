"""The training loop: what a run leaves, and that a step is what it should be."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from accelerate.state import AcceleratorState
from omegaconf import OmegaConf
from torch import Tensor

import isotone.format
from isotone.corpus.timit import TimitCorpus
from isotone.interfaces import Loss
from isotone.model import DecodingConfig, Model
from isotone.model.encoder import SpeechEncoder
from isotone.registries import losses
from isotone.text.tokenizer import build_tokenizer
from isotone.training import checkpoint
from isotone.training.config import RecipeError, load_recipe
from isotone.training.data import Utterances
from isotone.training.loop import Trainer
from isotone.training.objective import Objective
from isotone.training.processes import _tell_deepspeed, _tell_fsdp, make_accelerator
from isotone.types import Emissions, Targets

Train = Callable[..., Path]


@pytest.fixture
def register() -> Iterator[Callable[[str, type[Loss]], None]]:
    """Register losses in this process, for one test."""
    names: list[str] = []

    def add(name: str, loss: type[Loss]) -> None:
        losses.register(name)(loss)
        names.append(name)

    yield add
    for name in names:
        losses._registered.pop(name)


@pytest.fixture(scope="module")
def finished(tiny_recipes: Path, train: Train, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with all that there is: two heads, accumulation, TensorBoard, several evaluations and checkpoints."""
    folder = tmp_path_factory.mktemp("runs") / "joint"
    return train(
        tiny_recipes / "joint.yaml", f"output={folder}", "train.steps=8", "train.accumulate=2", "train.batch_size=3",
        "train.trackers=[tensorboard]", "train.warmup_steps=4", "train.watch=2", "train.evaluate_limit=1",
    )  # fmt: skip


def metrics(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def steps_of(folder: Path) -> list[dict[str, Any]]:
    return [row for row in metrics(folder) if "loss" in row]


def test_what_a_run_leaves(finished: Path) -> None:
    names = {"config.yaml", "metrics.jsonl", "logs", "checkpoints", "snapshots", "model", "skipped.jsonl"}
    names |= {"alignments", "forced", "reference", "predictions.jsonl", "result.json"}
    names |= {"corpus.json", "manifests", "tokenizer"}
    assert {p.name for p in finished.iterdir()} == names
    assert [p.name for p in checkpoint.find(finished / "checkpoints")] == ["step-000006", "step-000008"]
    assert (finished / "skipped.jsonl").read_text() == ""
    config = OmegaConf.load(finished / "config.yaml")
    assert config.train.accumulate == 2
    assert config.output == str(finished)
    snapshots = sorted(p.name for p in (finished / "snapshots").iterdir())
    assert snapshots == [f"step-{s:06d}-{i}.npz" for s in (3, 6, 8) for i in (0, 1)]
    Model.load(finished)  # the run folder is a model's


def test_metrics_of_a_run(finished: Path) -> None:
    rows = steps_of(finished)
    assert [row["step"] for row in rows] == list(range(1, 9))
    assert [row["epoch"] for row in rows] == [0, 0, 1, 1, 2, 2, 3, 3]  # 4 batches of 3, 2 a step
    assert [row["lr"] for row in rows] == pytest.approx(
        [1e-3 * f for f in (0.25, 0.5, 0.75, 1, 1, 0.75, 0.5, 0.25)]
    )
    for row in rows:
        assert set(row) == {"step", "epoch", "loss", "ctc", "ottc", "grad_norm", "lr", "utterances_per_s"}
        assert row["loss"] == pytest.approx(row["ctc"] + row["ottc"], rel=1e-5)
        assert row["grad_norm"] > 0
        assert row["utterances_per_s"] > 0
    evaluated = [row for row in metrics(finished) if "loss" not in row]
    assert [row["step"] for row in evaluated] == [3, 6, 8]
    assert all(set(row) == {"step", "dev_error_rate"} and row["dev_error_rate"] >= 0 for row in evaluated)


def test_tensorboard(finished: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(finished / "logs"))
    events.Reload()
    scalars = {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
    assert scalars["loss"] == [
        (row["step"], pytest.approx(row["loss"], rel=1e-5)) for row in steps_of(finished)
    ]
    assert [step for step, _ in scalars["dev_error_rate"]] == [3, 6, 8]


def test_the_same_command_again_changes_nothing(
    finished: Path, tiny_recipes: Path, train: Train, tmp_path: Path
) -> None:
    """A finished run is finished, wherever its folder has been moved to."""
    again = tmp_path / "moved"
    shutil.copytree(finished, again)
    (again / "result.json").unlink()
    overrides = [
        "train.steps=8", "train.accumulate=2", "train.batch_size=3", "train.trackers=[tensorboard]",
        "train.warmup_steps=4", "train.watch=2", "train.evaluate_limit=1", f"output={again}",
    ]  # fmt: skip
    train(tiny_recipes / "joint.yaml", *overrides)
    assert metrics(again) == metrics(finished)
    weights = "model/model.safetensors"
    assert (again / weights).read_bytes() == (finished / weights).read_bytes()
    assert (again / "result.json").read_text() == (finished / "result.json").read_text()
    # a run from before there were these settings
    config = OmegaConf.load(again / "config.yaml")
    del config.train.clip_apart, config.reading.rescore, config.objective.ctc.weight
    OmegaConf.save(config, again / "config.yaml")
    train(tiny_recipes / "joint.yaml", *overrides)
    assert metrics(again) == metrics(finished)
    other = r"moved holds a run with other settings: seed is 0 there, 1 here; train\.lr is [\de.-]+ there, 3\.0 here\."
    with pytest.raises(RecipeError, match=other):
        train(tiny_recipes / "joint.yaml", *overrides, "seed=1", "train.lr=3.0")


def test_it_learns(tiny_recipes: Path, train: Train, tmp_path: Path) -> None:
    overrides = ["train.steps=60", "train.lr=1e-2", "train.evaluate_every=60", "train.save_every=60"]
    folder = train(tiny_recipes / "ctc.yaml", f"output={tmp_path / 'run'}", *overrides)
    loss = [row["loss"] for row in steps_of(folder)]
    assert sum(loss[-5:]) < 0.5 * sum(loss[:5])


# A step.


def parts(path: Path, *overrides: str, evaluate: Any = None) -> Trainer:
    """A trainer on the first four utterances, with nothing else of a run."""
    recipe = load_recipe(path, overrides)
    rows = TimitCorpus(recipe.data["root"]).load("train").select(range(4))
    tokenizer = build_tokenizer("phones", rows)
    torch.manual_seed(0)
    settings: Any = asdict(recipe)
    source = settings["encoder"]["source"]
    source.update(dict.fromkeys(("hidden_dropout", "activation_dropout", "conformer_conv_dropout"), 0.0))
    heads = {name: {**spec, "dropout": 0.0} for name, spec in settings["heads"].items()}
    model = Model(SpeechEncoder(source), heads, tokenizer, DecodingConfig(**settings["reading"]))
    folder = Path(recipe.output)
    folder.mkdir(parents=True)
    AcceleratorState._reset_state(reset_partial_state=True)
    accelerator = make_accelerator(recipe, folder)
    data = Utterances(rows, tokenizer, 16_000)
    return Trainer(Objective(model, settings["objective"]), data, recipe, folder, evaluate, accelerator)


def test_accumulated_batches_are_one_large_batch(tiny_recipes: Path, tmp_path: Path) -> None:
    """An epoch is one step either way: the same utterances, so the same loss, gradient and next loss."""
    rows = []
    for name, size, accumulate in (("large", 4, 1), ("small", 2, 2), ("single", 1, 4)):
        options = [f"train.batch_size={size}", f"train.accumulate={accumulate}", f"output={tmp_path / name}"]
        trainer = parts(tiny_recipes / "joint.yaml", *options, "train.epochs=3", "train.steps=0")
        assert trainer.steps == 3
        trainer.fit()
        rows.append(steps_of(tmp_path / name))
    for row, other, third in zip(*rows):
        for name in ("loss", "ctc", "ottc", "grad_norm"):
            assert row[name] == pytest.approx(other[name], rel=2e-3)
            assert row[name] == pytest.approx(third[name], rel=2e-3)
    assert rows[0][0]["loss"] != pytest.approx(rows[0][2]["loss"], rel=2e-3)


@pytest.mark.parametrize(
    ("size", "accumulate", "epochs", "steps"),
    [(4, 1, 3, 3), (1, 1, 3, 12), (1, 3, 6, 8), (2, 3, 3, 2), (4, 8, 3, 1)],
)
def test_steps_of_so_many_epochs(
    size: int, accumulate: int, epochs: int, steps: int, tiny_recipes: Path, tmp_path: Path
) -> None:
    options = [f"train.batch_size={size}", f"train.accumulate={accumulate}", f"train.epochs={epochs}"]
    trainer = parts(tiny_recipes / "ctc.yaml", *options, "train.steps=0", f"output={tmp_path / 'run'}")
    assert trainer.steps == steps


def types_of(trainer: Trainer) -> set[torch.dtype]:
    """The types of what the CTC head's layer gives from now on."""
    types: set[torch.dtype] = set()
    trainer.raw.model.heads["ctc"].lm_head.register_forward_hook(lambda _m, _i, out: types.add(out.dtype))
    return types


def test_half_precision(tiny_recipes: Path, tmp_path: Path) -> None:
    results = {}
    for precision in ("no", "bf16"):
        trainer = parts(
            tiny_recipes / "joint.yaml", f"train.precision={precision}", f"output={tmp_path / precision}"
        )
        types = types_of(trainer)
        trainer.fit()
        assert types == {torch.bfloat16 if precision == "bf16" else torch.float32}
        assert all(p.dtype == torch.float32 for p in trainer.raw.parameters())
        results[precision] = [row["loss"] for row in steps_of(tmp_path / precision)]
    assert results["bf16"] == pytest.approx(results["no"], rel=0.05)
    assert results["bf16"] != results["no"]


def test_processes_that_load_audio_change_nothing(tiny_recipes: Path, train: Train, tmp_path: Path) -> None:
    """Dropout draws the same numbers, batches come in the same order."""
    options = ["train.steps=6", "train.batch_size=5", "heads.ctc.dropout=0.3"]
    rows = []
    for workers in (0, 2):
        folder = tmp_path / str(workers)
        train(tiny_recipes / "ctc.yaml", *options, f"train.workers={workers}", f"output={folder}")
        rows.append([{k: v for k, v in row.items() if k != "utterances_per_s"} for row in metrics(folder)])
    assert rows[0] == rows[1]


def test_a_term_counts_by_its_weight(tiny_recipes: Path, tmp_path: Path) -> None:
    trainer = parts(tiny_recipes / "joint.yaml", "objective.ottc.weight=0.25", f"output={tmp_path / 'run'}")
    trainer.fit()
    for row in steps_of(tmp_path / "run"):
        assert row["loss"] == pytest.approx(row["ctc"] + 0.25 * row["ottc"], rel=1e-5)
    with pytest.raises(ValueError, match=r"term 'x' names a head 'otc'; the model has: ctc, ottc"):
        Objective(trainer.raw.model, {"x": {"head": "otc", "loss": {"name": "ctc"}, "weight": 1.0}})
    with pytest.raises(ValueError, match="a term whose weight is not 0"):
        Objective(trainer.raw.model, {"x": {"head": "ctc", "loss": {"name": "ctc"}, "weight": 0.0}})


def test_a_head_that_is_clipped_apart_is_nothing_to_the_others(tiny_recipes: Path, tmp_path: Path) -> None:
    """Bit for bit, with dropout, and however large its gradients are, if no parameter is shared."""

    def trained(name: str, recipe: str, *options: str) -> dict[str, Tensor]:
        steps = ["train.steps=4", "train.batch_size=2", f"output={tmp_path / name}"]
        trainer = parts(tiny_recipes / recipe, *steps, *options)
        trainer.fit()
        state = trainer.raw.model.state_dict()
        return {n: v for n, v in state.items() if n.startswith(("encoder.", "heads.ctc."))}

    loud = "objective.ottc.weight=1000"
    alone, mixed = trained("alone", "ctc.yaml"), trained("mixed", "joint.yaml", loud)
    apart = trained("apart", "joint.yaml", loud, "train.clip_apart=['heads.ottc.*']")
    assert all(torch.equal(apart[name], value) for name, value in alone.items())
    assert not all(torch.equal(mixed[name], value) for name, value in alone.items())


def test_frozen_for_a_while(tiny_recipes: Path, tmp_path: Path) -> None:
    seen: list[dict[str, Tensor]] = []

    def evaluate(step: int, _: Model) -> dict[str, float]:
        seen.append({n: p.detach().clone() for n, p in trainer.raw.model.named_parameters()})
        return {}

    freeze = "train.freeze=[{parameters: ['heads.ottc.weights.*', 'encoder.*'], start: 0.5}]"
    options = ["train.steps=8", "train.evaluate_every=1", "train.weight_decay=0.5", freeze]
    trainer = parts(tiny_recipes / "joint.yaml", *options, f"output={tmp_path / 'run'}", evaluate=evaluate)
    trainer.fit()
    assert len(seen) == 8
    for step in range(1, 8):
        moved = {n for n, p in seen[step].items() if not torch.equal(p, seen[step - 1][n])}
        rests = {n for n in seen[step] if n.startswith(("heads.ottc.weights.", "encoder."))}
        assert "heads.ctc.lm_head.weight" in moved
        if step >= 4:
            assert moved.isdisjoint(rests)
        else:
            assert {
                "heads.ottc.weights.3.weight",
                "encoder.model.feature_projection.projection.weight",
            } <= moved


def test_what_a_loss_is_told(
    tiny_recipes: Path, tmp_path: Path, register: Callable[[str, type[Loss]], None]
) -> None:
    """A loss of one's own, registered in code, trains from a recipe; it knows how far the training is."""
    told: list[float] = []

    class Wait(Loss):
        """Mean negative log-probability of the first token, once a part of the training is over."""

        def __init__(self, *, after: float = 0.5) -> None:
            super().__init__()
            self.after = after

        def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
            told.append(self.progress)
            first = emissions.log_probs().gather(
                2, targets.labels[:, None, :1].expand(-1, emissions.logits.shape[1], 1)
            )
            return -first[..., 0].mean(1) * (self.progress >= self.after)

    register("test-wait", Wait)
    trainer = parts(
        tiny_recipes / "ctc.yaml", "objective.ctc.loss={name: test-wait, after: 0.25}", f"output={tmp_path / 'run'}",
        "train.steps=4",
    )  # fmt: skip
    trainer.fit()
    assert told == [0.0, 0.25, 0.5, 0.75]
    rows = steps_of(tmp_path / "run")
    assert [row["loss"] > 0 for row in rows] == [False, True, True, True]
    assert rows[3]["loss"] < rows[1]["loss"]


def test_a_registered_loss_in_a_whole_run(
    tiny_recipes: Path, train: Train, tmp_path: Path, register: Callable[[str, type[Loss]], None]
) -> None:
    class Uniform(Loss):
        def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
            return -emissions.log_probs().mean((1, 2))

    register("test-uniform", Uniform)
    folder = train(
        tiny_recipes / "ctc.yaml", "objective.ctc.loss.name=test-uniform", f"output={tmp_path / 'run'}"
    )
    labels = len(Model.load(folder).tokenizer)
    assert all(math.log(labels) <= row["ctc"] < 2 * math.log(labels) for row in steps_of(folder))
    alignment = isotone.format.read(next((folder / "forced").glob("*.TextGrid")))
    assert alignment.has("phones")


@pytest.mark.parametrize("where", ["loss", "gradient"])
def test_what_is_not_finite_is_named(
    where: str, tiny_recipes: Path, tmp_path: Path, register: Callable[[str, type[Loss]], None]
) -> None:
    """Before the weights are touched, and before a checkpoint can hold them."""

    class Breaks(Loss):
        def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
            value = -emissions.log_probs().mean((1, 2))
            if self.progress < 0.5:
                return value
            worst = targets.lengths == targets.lengths.max()
            zero = (value * 0).clamp(min=0)
            return value + torch.where(worst, torch.nan if where == "loss" else zero.sqrt(), 0.0)

    register(f"test-breaks-{where}", Breaks)
    trainer = parts(
        tiny_recipes / "ctc.yaml", f"objective.ctc.loss.name=test-breaks-{where}", f"output={tmp_path / 'run'}",
        "train.steps=6", "train.save_every=1",
    )  # fmt: skip
    tokens = {e.id: len(e.transcript.tokens) for e in map(trainer.data.__getitem__, range(4))}
    with pytest.raises(FloatingPointError, match=rf"Step 4: the {where} is nan for ") as caught:
        trainer.fit()
    named = {name for name in tokens if name in str(caught.value)}
    broken = {name for name, n in tokens.items() if n == max(tokens.values())}
    assert broken < tokens.keys()
    assert named == (broken if where == "loss" else tokens.keys())
    assert all(torch.isfinite(p).all() for p in trainer.raw.parameters())
    assert [p.name for p in checkpoint.find(tmp_path / "run" / "checkpoints")] == [
        "step-000002",
        "step-000003",
    ]


def test_nothing_to_train_on(tiny_recipes: Path, train: Train, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"There are 0 utterances to train .*skipped\.jsonl"):
        train(tiny_recipes / "ctc.yaml", "train.max_seconds=0.01", f"output={tmp_path / 'run'}")
    rows = (tmp_path / "run" / "skipped.jsonl").read_text().splitlines()
    assert len(rows) == 12
    assert json.loads(rows[0])["reason"].endswith("longer than max_seconds=0.01")


def test_mistakes_are_found_before_the_training(tiny_recipes: Path, train: Train, tmp_path: Path) -> None:
    for number, (override, error, message) in enumerate(
        [
            ("reading.aligner={name: ctcc}", LookupError, "No aligner named 'ctcc'"),
            ("reading.decoder={name: ctc-greedy, blank: leave}", TypeError, "no option 'blank'"),
            ("reading.text=tcc", ValueError, "'tcc'"),
            ("objective.ctc.loss.name=tcc", LookupError, "No loss named 'tcc'"),
            ("train.freeze=[{parameters: ['heads.x.*']}]", ValueError, r"heads\.x"),
        ]
    ):
        folder = tmp_path / str(number)
        with pytest.raises(error, match=message):
            train(tiny_recipes / "ctc.yaml", override, f"output={folder}")
        assert not (folder / "metrics.jsonl").exists()


def test_damaged_files_of_a_corpus_are_listed(
    tiny_recipes: Path, timit_root: Path, train: Train, tmp_path: Path
) -> None:
    root = tmp_path / "TIMIT"
    shutil.copytree(timit_root, root)
    (root / "TRAIN/DR1/FAAA0/SX1.WAV").write_bytes(b"RIFF")
    folder = train(
        tiny_recipes / "ctc.yaml", f"data.root={root}", "train.steps=1", f"output={tmp_path / 'run'}"
    )
    (row,) = [json.loads(line) for line in (folder / "skipped.jsonl").read_text().splitlines()]
    assert row["id"] == "faaa0_sx1"
    assert "SX1.WAV" in row["reason"]


def test_training_goes_on_from_another_model(
    finished: Path, tiny_recipes: Path, train: Train, tmp_path: Path
) -> None:
    """Weights are copied wherever names and shapes agree; with no step to make, they are all that there is."""
    options = [f"init={finished}", "train.lr=0.0", "train.steps=1"]
    folder = train(tiny_recipes / "ctc.yaml", *options, f"output={tmp_path / 'run'}")
    theirs, ours = Model.load(finished).state_dict(), Model.load(folder).state_dict()
    assert set(ours) == {name for name in theirs if "ottc" not in name}
    assert all(torch.equal(value, theirs[name]) for name, value in ours.items())
    wide = "encoder.source.hidden_size=18"
    with pytest.raises(RecipeError, match="no weight of that model fits"):
        train(
            tiny_recipes / "ctc.yaml", *options, wide, "encoder.source.feature_projection_input_dim=80",
            "encoder.source.intermediate_size=20", f"output={tmp_path / 'wide'}",
            "encoder.source.conv_depthwise_kernel_size=5", "heads.ctc={name: ottc}", "objective.ctc.loss={name: ottc}",
        )  # fmt: skip


def test_a_model_is_evaluated_without_training(
    finished: Path, tiny_recipes: Path, timit_root: Path, train: Train, tmp_path: Path
) -> None:
    """As its own run was: the same words; with no training files, and with another decoder."""
    root = tmp_path / "TIMIT"
    shutil.copytree(timit_root / "TEST", root / "TEST")
    options = [f"data.root={root}", f"init={finished}", "train.epochs=0"]
    same = train(tiny_recipes / "joint.yaml", *options, f"output={tmp_path / 'same'}")
    assert (same / "predictions.jsonl").read_text().replace(str(root), str(timit_root)) == (
        finished / "predictions.jsonl"
    ).read_text()
    assert json.loads((same / "result.json").read_text()) == json.loads(
        (finished / "result.json").read_text()
    )
    assert not (same / "metrics.jsonl").exists()
    other = train(
        tiny_recipes / "joint.yaml",
        *options,
        "reading.decoder={name: ctc-beam, beam: 4}",
        f"output={tmp_path / 'other'}",
    )
    assert len((other / "predictions.jsonl").read_text().splitlines()) == len(
        (same / "predictions.jsonl").read_text().splitlines()
    )
    with pytest.raises(RecipeError, match="init=RUN"):
        train(tiny_recipes / "joint.yaml", "train.epochs=0", f"output={tmp_path / 'none'}")


@pytest.mark.parametrize(
    ("stage", "settings", "precision", "config", "message"),
    [
        (3, {}, "no", {}, "Stage 3 of DeepSpeed spreads the weights"),
        (2, {"freeze": [{"parameters": ["encoder.*"]}]}, "no", {}, "train.freeze takes gradients away"),
        (2, {"clip_apart": ["heads.ottc.*"]}, "no", {}, "DeepSpeed clips all gradients together"),
        (2, {}, "fp16", {}, "train.precision=bf16 or no"),
        (1, {}, "bf16", {"bf16": {"enabled": True}}, "its own configuration has neither"),
    ],
)
def test_what_deepspeed_does_not_do_here(
    stage: int, settings: dict[str, object], precision: str, config: dict[str, object], message: str
) -> None:
    plugin = SimpleNamespace(zero_stage=stage, deepspeed_config=config)
    chosen = SimpleNamespace(**{"freeze": [], "clip_apart": [], **settings})
    with pytest.raises(ValueError, match=message):
        _tell_deepspeed(plugin, chosen, precision)


def test_what_deepspeed_is_told() -> None:
    config = {"bf16": {"enabled": "auto"}, "gradient_clipping": "auto"}
    chosen = SimpleNamespace(freeze=[], clip_apart=[], batch_size=0, accumulate=2, clip=0.5)
    _tell_deepspeed(SimpleNamespace(zero_stage=2, deepspeed_config=config), chosen, "bf16")
    assert config["torch_autocast"] == {"enabled": True, "dtype": "bfloat16"}
    assert config["train_micro_batch_size_per_gpu"] == 1
    assert (config["gradient_accumulation_steps"], config["gradient_clipping"]) == (2, 0.5)


def test_fsdp_is_the_second_and_keeps_float32() -> None:
    with pytest.raises(ValueError, match="fsdp_version: 2"):
        _tell_fsdp(SimpleNamespace(fsdp_version=1))
    plugin = SimpleNamespace(fsdp_version=2, mixed_precision_policy="bf16")
    _tell_fsdp(plugin)
    assert plugin.mixed_precision_policy is None


def test_processes_that_do_not_know_of_each_other(
    tiny_recipes: Path, train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would all write to one folder."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(
        ValueError, match="one of 2 processes, and accelerate trains them as if each were alone"
    ):
        train(tiny_recipes / "ctc.yaml", f"output={tmp_path / 'run'}")
    assert not (tmp_path / "run" / "checkpoints").exists()
