"""Realignment: the model in training aligns its own training split, and these alignments stay until the next round."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from isotone.corpus.timit import TimitCorpus
from isotone.model import Model
from isotone.training.config import RecipeError
from isotone.training.data import Utterances
from isotone.training.teacher import Realignment, aligned_paths, teacher_paths

Train = Callable[..., Path]

OPTIONS = [
    "train.lr=1e-2", "train.keep=0", "splits.dev=", "heads.ottc.dropout=0.2", "heads.ottc.detach_after=0.75",
    "objective.ottc.loss.beta=aligned", "realign.after=[0.8,0.5]",
]  # fmt: skip


@pytest.fixture(scope="module")
def run_folder(tiny_recipes: Path, train: Train, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six steps; rounds before steps 4 and 6, a checkpoint after step 3."""
    folder = tmp_path_factory.mktemp("realigned") / "run"
    folder.mkdir()
    (folder / "realigned-0.5000.npz").write_bytes(b"of a run that left no checkpoint")
    return train(tiny_recipes / "joint.yaml", f"output={folder}", *OPTIONS)


@pytest.fixture(scope="module")
def split(run_folder: Path, timit_root: Path) -> Utterances:
    return Utterances(TimitCorpus(timit_root).load("train"), Model.load(run_folder).tokenizer, 16_000)


def values(folder: Path) -> list[float]:
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [row["ottc"] for row in rows if "ottc" in row]


def stored(path: Path) -> dict[int, np.ndarray]:
    with np.load(path) as file:
        return {int(k): file[k] for k in file.files}


def same(a: dict[int, np.ndarray], b: dict[int, np.ndarray]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


def test_a_round_is_what_the_model_then_says(run_folder: Path, split: Utterances, tmp_path: Path) -> None:
    model = Model.load(run_folder)
    weights = load_file(run_folder / "checkpoints" / "step-000003" / "model.safetensors")
    model.load_state_dict({k.removeprefix("model."): v for k, v in weights.items() if k.startswith("model.")})
    expected = aligned_paths(model.train(), split, tmp_path / "paths.npz")
    assert model.training
    found = stored(run_folder / "realigned-0.5000.npz")
    assert same(found, expected)
    assert not same(found, stored(run_folder / "realigned-0.8000.npz"))
    for number, path in found.items():
        example = split[number]
        assert len(path) == model.encoder.frames(len(example.audio))
        kept = path[path >= 0]
        assert (np.diff(kept) >= 0).all()
        assert set(kept.tolist()) == set(range(len(example.transcript.tokens)))
    assert (run_folder / "model" / "isotone.json").is_file()
    assert sorted(p.name for p in run_folder.glob("*.npz")) == [
        "realigned-0.5000.npz",
        "realigned-0.8000.npz",
    ]


def test_until_the_first_round_weights_are_uniform(
    run_folder: Path, tiny_recipes: Path, train: Train, tmp_path: Path
) -> None:
    options = [o for o in OPTIONS if "realign" not in o and "beta" not in o]
    uniform = train(tiny_recipes / "joint.yaml", f"output={tmp_path / 'run'}", *options)
    ours, theirs = values(run_folder), values(uniform)
    assert ours[:3] == theirs[:3]
    assert all(a != b for a, b in zip(ours[3:], theirs[3:]))


@pytest.mark.parametrize("cached", [True, False])
def test_a_run_that_goes_on_has_the_same_rounds(
    run_folder: Path, tiny_recipes: Path, train: Train, tmp_path: Path, cached: bool
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(run_folder, folder)
    shutil.rmtree(folder / "checkpoints" / "step-000006")
    if not cached:
        (folder / "realigned-0.5000.npz").unlink()
    (folder / "realigned-0.8000.npz").unlink()
    train(tiny_recipes / "joint.yaml", f"output={folder}", *OPTIONS)
    assert values(folder) == values(run_folder)
    assert same(*(stored(f / "realigned-0.8000.npz") for f in (folder, run_folder)))
    ours, theirs = (load_file(f / "model" / "model.safetensors") for f in (folder, run_folder))
    assert all(torch.equal(ours[k], theirs[k]) for k in theirs)


def test_workers_that_load_ahead_have_the_new_alignments(
    run_folder: Path, tiny_recipes: Path, train: Train, tmp_path: Path
) -> None:
    folder = train(tiny_recipes / "joint.yaml", f"output={tmp_path / 'run'}", *OPTIONS, "train.workers=1")
    assert values(folder) == values(run_folder)


def test_another_head_and_aligner(run_folder: Path, split: Utterances, tmp_path: Path) -> None:
    """Of a teacher's CTC head, peaks with blanks between, or these divided between their neighbours."""
    options = {"name": "ctc", "blanks": "split"}
    filled = teacher_paths(run_folder, split, tmp_path / "a.npz", "cpu", "ctc", options)
    peaks = teacher_paths(run_folder, split, tmp_path / "b.npz", "cpu", "ctc", {"name": "ctc"})
    assert filled.keys() == peaks.keys() == set(range(len(split)))
    for number, path in filled.items():
        assert path.min() == 0
        carried = peaks[number] >= 0
        assert np.array_equal(path[carried], peaks[number][carried])
    assert any((path == -1).any() for path in peaks.values())
    with pytest.raises(ValueError, match=r"No head 'otc' to align\. Did you mean 'ottc'\? .*: ctc, ottc"):
        teacher_paths(run_folder, split, tmp_path / "c.npz", "cpu", "otc")


def test_when_rounds_are_due(run_folder: Path, split: Utterances, tmp_path: Path) -> None:
    model = Model.load(run_folder)
    split.paths = {}
    rounds = Realignment(model, split, [0.6, 0.3], tmp_path)
    assert all(len(path) == 0 for path in split.paths.values())
    assert split.collate([split[0], split[1]]).targets.paths.tokens.shape == (2, 0)  # type: ignore[union-attr]
    seen = []
    for step in range(10):
        if rounds.due(step / 10):
            rounds.align(step / 10, model)
            seen.append(step)
    assert seen == [3, 6]
    late = Realignment(model, split, [0.6, 0.3], tmp_path)
    late.align(0.9, None)  # gone on with: the latest round alone counts
    assert not late.due(1.0)
    rounds.forget()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(
        ValueError, match=r"realign\.after expects shares of training from 0 to 1; got \[30\]"
    ):
        Realignment(model, split, [30], tmp_path)
    with pytest.raises(ValueError, match="No head 'times'"):
        Realignment(model, split, [0.3], tmp_path, "times")


def test_recordings_keep_their_length_where_alignments_are_given(
    tiny_recipes: Path, train: Train, tmp_path: Path
) -> None:
    with pytest.raises(RecipeError, match=r"train\.augment makes recordings longer or shorter"):
        train(
            tiny_recipes / "joint.yaml", f"output={tmp_path}/run", *OPTIONS, "train.augment=[{name: speed}]"
        )
