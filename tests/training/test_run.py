"""A training run from a recipe: the files it leaves, its metrics, and mistakes found before it starts."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
from omegaconf import OmegaConf
from torch import Tensor

import isotone.format
from isotone.interfaces import Loss
from isotone.model import Model
from isotone.registries import losses
from isotone.training import checkpoint
from isotone.training.config import RecipeError, load_recipe
from isotone.training.run import run
from isotone.types import Emissions, Targets
from tests.training.parts import Train, metrics, steps_of


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


def moved(finished: Path, folder: Path) -> tuple[Path, list[str]]:
    """Copy the finished run; return its folder, and the overrides of its command."""
    again = folder / "moved"
    shutil.copytree(finished, again)
    overrides = [
        "train.steps=8", "train.accumulate=2", "train.batch_size=3", "train.trackers=[tensorboard]",
        "train.warmup_steps=4", "train.watch=2", "train.evaluate_limit=1", f"output={again}",
    ]  # fmt: skip
    return again, overrides


def test_the_same_command_again_changes_nothing(
    finished: Path, tiny_recipes: Path, train: Train, tmp_path: Path
) -> None:
    """A finished run is finished, wherever its folder has been moved to."""
    again, overrides = moved(finished, tmp_path)
    (again / "result.json").unlink()
    train(tiny_recipes / "joint.yaml", *overrides)
    assert metrics(again) == metrics(finished)
    weights = "model/model.safetensors"
    assert (again / weights).read_bytes() == (finished / weights).read_bytes()
    assert (again / "result.json").read_text() == (finished / "result.json").read_text()


def test_a_run_of_a_version_without_some_settings_is_the_same(
    finished: Path, tiny_recipes: Path, train: Train, tmp_path: Path
) -> None:
    again, overrides = moved(finished, tmp_path)
    config = OmegaConf.load(again / "config.yaml")
    del config.train.clip_apart, config.reading.rescore, config.objective.ctc.weight
    OmegaConf.save(config, again / "config.yaml")
    train(tiny_recipes / "joint.yaml", *overrides)
    assert metrics(again) == metrics(finished)


def test_other_settings_are_another_run(
    finished: Path, tiny_recipes: Path, train: Train, tmp_path: Path
) -> None:
    _, overrides = moved(finished, tmp_path)
    other = r"moved holds a run with other settings: seed is 0 there, 1 here; train\.lr is [\de.-]+ there, 3\.0 here\."
    with pytest.raises(RecipeError, match=other):
        train(tiny_recipes / "joint.yaml", *overrides, "seed=1", "train.lr=3.0")


@pytest.mark.parametrize("name", ["config.yaml", "result.json", "model", "alignments", "tokenizer"])
def test_what_no_run_wrote_is_never_replaced(
    name: str, tiny_recipes: Path, train: Train, tmp_path: Path
) -> None:
    """Found before the training: a folder is a run's by its configuration."""
    folder = tmp_path / "mine"
    note = folder / name / "note.txt" if "." not in name else folder / name
    note.parent.mkdir(parents=True)
    note.write_text("key: value\n")
    before = sorted(folder.rglob("*"))
    with pytest.raises(
        FileExistsError, match=rf"mine is no run's folder and holds {name}, which a run would"
    ):
        train(tiny_recipes / "ctc.yaml", "train.steps=1", f"output={folder}")
    assert note.read_text() == "key: value\n"
    assert sorted(folder.rglob("*")) == before


def test_a_recipe_that_was_changed_in_a_notebook_is_checked(tiny_recipes: Path, tmp_path: Path) -> None:
    recipe = load_recipe(tiny_recipes / "ctc.yaml", [f"output={tmp_path / 'run'}"])
    recipe.train.clip = 0.0
    with pytest.raises(RecipeError, match=r"train\.clip expects a norm above 0"):
        run(recipe)
    assert not (tmp_path / "run").exists()


def test_other_files_beside_a_run_stay(tiny_recipes: Path, train: Train, tmp_path: Path) -> None:
    note = tmp_path / "mine" / "README.md"
    note.parent.mkdir()
    note.write_text("notes")
    train(tiny_recipes / "ctc.yaml", "train.steps=1", f"output={note.parent}")
    assert note.read_text() == "notes"
    with pytest.raises(FileExistsError, match=r"README\.md is a file: a run needs a folder"):
        train(tiny_recipes / "ctc.yaml", "train.steps=1", f"output={note}")


def test_it_learns(tiny_recipes: Path, train: Train, tmp_path: Path) -> None:
    overrides = ["train.steps=60", "train.lr=1e-2", "train.evaluate_every=60", "train.save_every=60"]
    folder = train(tiny_recipes / "ctc.yaml", f"output={tmp_path / 'run'}", *overrides)
    loss = [row["loss"] for row in steps_of(folder)]
    assert sum(loss[-5:]) < 0.5 * sum(loss[:5])


def test_processes_that_load_audio_change_nothing(tiny_recipes: Path, train: Train, tmp_path: Path) -> None:
    """Dropout draws the same numbers, batches come in the same order."""
    options = ["train.steps=6", "train.batch_size=5", "heads.ctc.dropout=0.3"]
    rows = []
    for workers in (0, 2):
        folder = tmp_path / str(workers)
        train(tiny_recipes / "ctc.yaml", *options, f"train.workers={workers}", f"output={folder}")
        rows.append([{k: v for k, v in row.items() if k != "utterances_per_s"} for row in metrics(folder)])
    assert rows[0] == rows[1]


def test_a_registered_loss_in_a_whole_run(
    tiny_recipes: Path, train: Train, tmp_path: Path, register: Callable[..., None]
) -> None:
    class Uniform(Loss):
        def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
            return -emissions.log_probs().mean((1, 2))

    register(losses, "test-uniform", Uniform)
    folder = train(
        tiny_recipes / "ctc.yaml", "objective.ctc.loss.name=test-uniform", f"output={tmp_path / 'run'}"
    )
    labels = len(Model.load(folder).tokenizer)
    assert all(math.log(labels) <= row["ctc"] < 2 * math.log(labels) for row in steps_of(folder))
    alignment = isotone.format.read(next((folder / "forced").glob("*.TextGrid")))
    assert alignment.has("phones")


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


def test_damage_that_only_reading_finds_stops_nothing(
    tiny_recipes: Path, timit_root: Path, train: Train, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Headers are read before the training, samples in it: others stand in, and both splits' files are listed."""
    root = tmp_path / "TIMIT"
    shutil.copytree(timit_root, root)
    damaged = [sorted((root / split).rglob("*.WAV"))[0] for split in ("TRAIN", "TEST")]
    for path in damaged:
        soundfile.write(path, np.full(40_000, np.nan, np.float32), 16_000, subtype="FLOAT", format="WAV")
    options = [f"data.root={root}", "train.steps=6", "train.batch_size=3", f"output={tmp_path / 'run'}"]
    folder = train(tiny_recipes / "ctc.yaml", *options)
    assert len(steps_of(folder)) == 6
    found = [json.loads(line) for line in (folder / "skipped.jsonl").read_text().splitlines()]
    assert [Path(row["reason"].partition(":")[0]) for row in found] == damaged
    assert all("are not finite numbers" in row["reason"] for row in found)
    scored = [json.loads(line)["id"] for line in (folder / "predictions.jsonl").read_text().splitlines()]
    assert scored
    assert found[1]["id"] not in scored
    told = [r.getMessage() for r in caplog.records if "not finite" in r.getMessage()]
    assert len(told) == 2, "once each, although there were several epochs"
