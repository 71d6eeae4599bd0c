"""A resumed run equals one that was never interrupted, bit for bit."""

from __future__ import annotations

import json
import resource
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from accelerate import Accelerator
from safetensors.torch import load_file

from isotone.training import checkpoint
from tests.scripts import Script, ranks

Train = Callable[..., Path]

# Dropout, SpecAugment and changed recordings, so that torch's and numpy's random states count; batches of several
# epochs, so that the data's place does; a second head, for optimiser states of all kinds.
OPTIONS = [
    "train.steps=20", "train.save_every=6", "train.evaluate_every=5", "train.batch_size=5", "train.accumulate=2",
    "encoder.source.hidden_dropout=0.1", "encoder.source.mask_time_prob=0.3", "encoder.source.mask_time_length=3",
    "heads.ctc.dropout=0.2", "train.average=0.9", "train.freeze=[{parameters: ['heads.ottc.weights.*'], start: 0.75}]",
    "train.augment=[{name: speed}, {name: noise, probability: 0.5}]",
]  # fmt: skip

CHILD = """
import os, sys, time
from accelerate import state

# accelerate has these for accelerators alone; torch and DeepSpeed have them for the CPU as well
if "ACCELERATE_USE_DEEPSPEED" in os.environ:
    state.PartialState._prepare_backend = lambda self, *_: ("gloo", state.DistributedType.MULTI_CPU)
if "ACCELERATE_USE_FSDP" in os.environ:
    init = state.AcceleratorState.__init__

    def spread(self, *args, fsdp_plugin=None, **options):
        init(self, *args, fsdp_plugin=fsdp_plugin, **options)
        if fsdp_plugin is not None:
            self.distributed_type, self.fsdp_plugin = state.DistributedType.FSDP, fsdp_plugin
            state.PartialState._shared_state["distributed_type"] = self.distributed_type

    state.AcceleratorState.__init__ = spread

from isotone import audio
from isotone.training.config import load_recipe
from isotone.training.run import run

load = audio.load

def slowly(*args, **options):
    time.sleep(0.01)  # a step takes a tenth of a second: time enough to be ended in the middle
    return load(*args, **options)

audio.load = slowly
run(load_recipe(sys.argv[1], sys.argv[2:]))
"""


#: Ways to share the work, and a file by which a checkpoint shows which it was.
SHARED = {
    "whole weights": {},
    "FSDP": {
        "ACCELERATE_USE_FSDP": "true",
        "FSDP_VERSION": "2",
        "FSDP_RESHARD_AFTER_FORWARD": "true",
        "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
        "FSDP_TRANSFORMER_CLS_TO_WRAP": "Wav2Vec2BertEncoderLayer",
    },
    "DeepSpeed": {
        "DS_ACCELERATOR": "cpu",
        "ACCELERATE_USE_DEEPSPEED": "true",
        "ACCELERATE_DEEPSPEED_ZERO_STAGE": "2",
    },
}
MARK = {"whole weights": "model.safetensors", "FSDP": "pytorch_model_fsdp_0", "DeepSpeed": "zero_to_fp32.py"}


def start(
    recipe: Path, folder: Path, options: list[str] = OPTIONS, variables: dict[str, str] | None = None
) -> Script:
    return Script(CHILD, recipe, *options, f"output={folder}", variables=variables)


def rows(folder: Path) -> list[dict[str, float]]:
    """Read the recorded metrics, without the speed."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if k != "utterances_per_s"} for line in lines]


def wait_for_step(process: Script, folder: Path, step: int) -> None:
    """Wait until a number of steps is recorded; the last line may be incomplete."""
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        path = folder / "metrics.jsonl"
        if path.exists() and path.read_text().count('"loss"') >= step:
            return
        assert process.code is None, process.stderr
        time.sleep(0.005)
    raise AssertionError(f"{folder}: no step {step} within four minutes")


@pytest.fixture(scope="module")
def ended(tiny_recipes: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, int, str]]:
    """Runs of another process that were ended: their folder, exit code and last words."""
    folder = tmp_path_factory.mktemp("ended")
    found = {}
    for name in (
        "SIGKILL",
        "SIGTERM",
    ):  # one after the other: a run that waits for its signal would end meanwhile
        process = start(tiny_recipes / "joint.yaml", folder / name)
        try:
            wait_for_step(process, folder / name, 9)
            process.signal(signal.Signals[name])
        finally:
            code = process.wait()
        found[name] = (folder / name, code, process.stderr)
    return found


@pytest.fixture(scope="module")
def unbroken(tiny_recipes: Path, train: Train, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unbroken") / "run"
    return train(tiny_recipes / "joint.yaml", *OPTIONS, f"output={folder}")


def check_same(folder: Path, unbroken: Path) -> None:
    assert rows(folder) == rows(unbroken)
    for name in ("model/model.safetensors", "checkpoints/step-000020/model.safetensors", "predictions.jsonl"):
        assert (folder / name).read_bytes() == (unbroken / name).read_bytes(), name
    snapshots = sorted(p.name for p in (unbroken / "snapshots").iterdir())
    assert sorted(p.name for p in (folder / "snapshots").iterdir()) == snapshots


def test_killed(
    ended: dict[str, tuple[Path, int, str]], unbroken: Path, tiny_recipes: Path, train: Train
) -> None:
    folder, code, _ = ended["SIGKILL"]
    assert code == -signal.SIGKILL
    assert len(rows_of_steps(folder)) >= 9
    assert not (folder / "model").exists()
    (last,) = checkpoint.find(folder / "checkpoints")[-1:]
    assert json.loads((last / checkpoint.STATE).read_text())["step"] < len(rows_of_steps(folder))
    # what else a killed run can leave: a checkpoint half written, one half removed, half a line
    half = folder / "checkpoints" / ".step-000018.tmp"
    shutil.copytree(last, half)
    (half / "optimizer.bin").write_bytes(b"half")
    shutil.copytree(half, folder / "checkpoints" / "step-000019")
    (folder / "checkpoints" / "step-000019" / checkpoint.STATE).unlink()
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"step": 17, "epo')
    train(tiny_recipes / "joint.yaml", *OPTIONS, f"output={folder}")
    check_same(folder, unbroken)


def rows_of_steps(folder: Path) -> list[str]:
    return [line for line in (folder / "metrics.jsonl").read_text().splitlines() if '"loss"' in line]


def test_terminated(
    ended: dict[str, tuple[Path, int, str]], unbroken: Path, tiny_recipes: Path, train: Train
) -> None:
    folder, code, words = ended["SIGTERM"]
    assert code == 128 + signal.SIGTERM
    step = len(rows_of_steps(folder))
    assert 9 <= step < 20
    assert f"Stopped at step {step} of 20; the same command goes on from there." in words
    (last,) = checkpoint.find(folder / "checkpoints")[-1:]
    assert last.name == f"step-{step:06d}"  # nothing is lost
    assert not (folder / "model").exists()
    train(tiny_recipes / "joint.yaml", *OPTIONS, f"output={folder}")
    check_same(folder, unbroken)


def test_the_randomness_matters(unbroken: Path, tiny_recipes: Path, train: Train, tmp_path: Path) -> None:
    """The comparison above is one: without the random states of the checkpoint the run is another."""
    folder = tmp_path / "run"
    shutil.copytree(
        unbroken, folder, ignore=shutil.ignore_patterns("step-000020", "model", "alignments", "forced")
    )
    (last,) = checkpoint.find(folder / "checkpoints")
    assert last.name == "step-000018"
    states = torch.load(last / "random_states_0.pkl", weights_only=False)
    states["torch_manual_seed"] = torch.Generator().manual_seed(99).get_state()
    torch.save(states, last / "random_states_0.pkl")
    train(tiny_recipes / "joint.yaml", *OPTIONS, f"output={folder}")
    assert [r for r in rows(folder) if r["step"] <= 18] == [r for r in rows(unbroken) if r["step"] <= 18]
    assert [r for r in rows(folder) if r["step"] > 18] != [r for r in rows(unbroken) if r["step"] > 18]


def test_checkpoints_are_found_in_order(tmp_path: Path) -> None:
    for name in ("step-1000000", "step-999999", "step-000012", ".step-2000000.tmp"):
        (tmp_path / name).mkdir()
        (tmp_path / name / checkpoint.STATE).write_text("{}")
    (tmp_path / "step-3000000").mkdir()
    assert [p.name for p in checkpoint.find(tmp_path)] == ["step-000012", "step-999999", "step-1000000"]
    assert checkpoint.find(tmp_path / "none") == []


def test_a_full_disk_leaves_the_checkpoint_before(tmp_path: Path) -> None:
    accelerator = Accelerator(cpu=True)
    model = accelerator.prepare(torch.nn.Linear(300, 300))
    kept = model.weight.detach().clone()
    checkpoint.save(accelerator, tmp_path, {"step": 1, "epoch": 0, "batch": 1}, keep=1)
    torch.nn.init.zeros_(model.weight)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))  # no file can grow beyond that
    try:
        with pytest.raises(
            OSError, match=r"checkpoint of step 2 .* MB are free: .* the same command goes on"
        ):
            checkpoint.save(accelerator, tmp_path, {"step": 2, "epoch": 0, "batch": 2}, keep=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert checkpoint.load(accelerator, tmp_path) == {"step": 1, "epoch": 0, "batch": 1}
    assert torch.equal(model.weight, kept)
    checkpoint.save(accelerator, tmp_path, {"step": 3, "epoch": 0, "batch": 3}, keep=1)
    assert [p.name for p in tmp_path.iterdir()] == ["step-000003"]  # and nothing half written


@pytest.mark.parametrize("way", SHARED)
def test_two_processes(tiny_recipes: Path, train: Train, tmp_path: Path, way: str) -> None:
    """Each takes a half of every batch, together they make the steps of one that takes all; both stop if one must."""
    options = [
        "train.steps=6",
        "train.batch_size=2",
        "train.average=0.9",
        "train.freeze=[{parameters: ['heads.ottc.weights.*'], start: 0.75}]",
        "train.clip_apart=['heads.ottc.*']",
        "heads.ctc.dropout=0",
        "heads.ottc.dropout=0",
        "heads.ottc.track_prior=true",
        "encoder.source.conformer_conv_dropout=0",
        "objective.consistency={head: ctc, weight: 0.2, loss: {name: consistency}}",
        "objective.ottc.loss={name: ottc, beta: self, prior: 0.5}",
        "realign={after: [0.5], head: ottc, aligner: {name: segmental}}",
    ]
    if way == "DeepSpeed":
        pytest.importorskip("deepspeed")
        options = [option for option in options if "train.freeze" not in option and "apart" not in option]
    folder, alone = tmp_path / "two", tmp_path / "one"

    def pair() -> list[Script]:
        of_all = [{**rank, **SHARED[way]} for rank in ranks(2)]
        return [start(tiny_recipes / "joint.yaml", folder, options, variables) for variables in of_all]

    for ends in (True, False):
        processes = pair()
        try:
            if ends:
                wait_for_step(processes[0], folder, 2)
                processes[1].signal(signal.SIGTERM)
        finally:
            codes = [process.wait() for process in processes]
        assert codes == [128 + signal.SIGTERM if ends else 0] * 2, [process.stderr for process in processes]
        assert (folder / "result.json").is_file() is not ends
    kinds = {path.name for path in (folder / "checkpoints").glob("*/*")}
    assert kinds & {"model.safetensors", "pytorch_model_fsdp_0", "zero_to_fp32.py"} == {MARK[way]}
    train(tiny_recipes / "joint.yaml", *options, "train.batch_size=4", f"output={alone}")
    assert [(r["step"], r.get("epoch")) for r in rows(folder)] == [
        (r["step"], r.get("epoch")) for r in rows(alone)
    ]
    for two, one in zip(rows(folder), rows(alone)):
        for name in {"loss", "grad_norm", "lr", "dev_error_rate"} & one.keys():
            assert one[name] == pytest.approx(two[name], rel=1e-4)
    weights = [load_file(run / "model" / "model.safetensors") for run in (folder, alone)]
    assert weights[0].keys() == weights[1].keys()
    weights[0].pop("heads.ottc.weights.3.bias")  # added to all frames alike: its gradient is rounding alone
    for name, value in weights[0].items():
        torch.testing.assert_close(value, weights[1][name], rtol=1e-3, atol=1e-4)
