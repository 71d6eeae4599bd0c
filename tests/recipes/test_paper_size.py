"""The paper's experiment at its full size: two steps with random weights, a checkpoint, and the way on from it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from isotone.model import Model
from isotone.training.config import load_recipe
from tests.paths import RECIPES

#: The configuration of facebook/wav2vec2-large-lv60, without its weights; the masks are the recipe's own.
LARGE = (
    "{model_type: wav2vec2, hidden_size: 1024, num_hidden_layers: 24, num_attention_heads: 16, "
    "intermediate_size: 4096, do_stable_layer_norm: true, feat_extract_norm: layer, conv_bias: true, "
    "feat_proj_dropout: 0.1, hidden_dropout: 0.1, attention_dropout: 0.1}"
)

#: Parameters of Wav2Vec2ForCTC on this encoder, as its model card at the hub has them, less those of its 32 labels.
ENCODER_PARAMETERS = 315_471_520 - 32 * 1025

#: Weights, gradients and AdamW's two moments in float32, and as much again for activations, libraries and copies.
MOST_BYTES = 2 * 16 * ENCODER_PARAMETERS


def free_bytes() -> int:
    if not Path("/proc/meminfo").is_file():
        return 0
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return 1024 * int(lines["MemAvailable"].split()[0])


def run(folder: Path, root: Path) -> int:
    """Train for two steps, and return the most memory used, in bytes."""
    options = [
        f"data.root={root}", f"encoder.source={LARGE}", f"output={folder}", "train.steps=2", "train.batch_size=1",
        "train.save_every=1", "train.keep=0", "train.trackers=[none]", "splits.dev=",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, str(RECIPES / "timit" / "run.py"), "ottc", *options]
    with (folder.parent / "stderr").open("w+") as errors:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        assert process.returncode == 0, errors.read()[-2000:]
    return used.ru_maxrss * 1024


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(next((folder / "model").glob("*.safetensors")))


@pytest.mark.full_size
@pytest.mark.skipif(
    free_bytes() < MOST_BYTES,
    reason=f"{MOST_BYTES / 2**30:.0f} GiB of memory are not free for a full-size encoder",
)
def test_two_steps_of_the_papers_experiment(timit_root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    used = run(folder, timit_root)
    assert 16 * ENCODER_PARAMETERS < used < MOST_BYTES, f"{used / 2**30:.1f} GiB"

    # shapes
    model = Model.load(folder)
    assert sum(p.numel() for p in model.encoder.model.parameters()) == ENCODER_PARAMETERS
    with torch.inference_mode():
        out = model(torch.randn(1, 16_000), torch.tensor([16_000]))["ottc"]
    assert out.logits.shape == (1, 49, len(model.tokenizer.labels))  # 20 ms per frame, without the last 5 ms
    assert out.weight_logits is not None
    assert out.weight_logits.shape == (1, 49)
    assert model.heads["ottc"].state_dict()["labels.1.weight"].shape == (len(model.tokenizer.labels), 1024)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [1, 2]
    assert all(0 < row["ottc"] < 20 for row in rows)
    assert (folder / "result.json").is_file()
    recipe = load_recipe(RECIPES / "timit" / "ottc.yaml", ["data.root=x"])
    assert recipe.encoder["freeze_features"]

    # a run that was ended after its first step
    ended = tmp_path / "ended"
    shutil.copytree(
        folder, ended, ignore=shutil.ignore_patterns("model", "alignments", "forced", "result.json")
    )
    checkpoints = sorted((ended / "checkpoints").iterdir())
    assert len(checkpoints) == 2
    shutil.rmtree(checkpoints[1])
    shutil.rmtree(folder / "checkpoints")
    run(ended, timit_root)
    there, here = weights(folder), weights(ended)
    del model
    assert there.keys() == here.keys()
    assert all(torch.equal(value, here[name]) for name, value in there.items())
    assert (ended / "result.json").is_file()
