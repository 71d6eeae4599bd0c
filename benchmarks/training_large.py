"""A training step of Wav2Vec2-large on a GPU: the contenders of :mod:`benchmarks.training`, without their set-up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.harness import Bench, Peer, Size
from benchmarks.training import Trained, Work, check, inputs, same, train, transformers_steps


def wav2vec2(dims: Mapping[str, int]) -> dict[str, Any]:
    """Return the configuration of Wav2Vec2 with so many layers and features; of 24 and 1024 that of the large one."""
    return {
        "model_type": "wav2vec2", "hidden_size": dims["width"], "num_hidden_layers": dims["layers"],
        "num_attention_heads": dims["width"] // 64, "intermediate_size": 4 * dims["width"],
        "do_stable_layer_norm": True, "feat_extract_norm": "layer", "conv_bias": True, "apply_spec_augment": False,
    }  # fmt: skip


def inputs_of_size(dims: Mapping[str, int]) -> Work:
    """Write the same for an encoder of so many layers and features, trained in bfloat16."""
    return inputs(dims)._replace(encoder=wav2vec2(dims), precision="bf16")


def our_steps(work: Work) -> Trained:
    return train(work, "ctc", saves=False)


def our_ottc_steps(work: Work) -> Trained:
    return train(work, "ottc", saves=False)


def check_steps(work: Work, trained: Trained) -> None:
    check(work, trained.loss)


def same_steps(work: Work, mine: Trained, theirs: Trained) -> None:
    same(work, mine.loss, theirs.loss)


def hours(dims: Mapping[str, int]) -> float:
    """Return the hours of audio of one step."""
    return dims["B"] * dims["seconds"] / 3600


def _sizes_of_large() -> list[Size]:
    def size(batch: int, seconds: int, layers: int, width: int, steps: int, **options: Any) -> Size:
        dims = {"B": batch, "seconds": seconds, "V": 29, "layers": layers, "width": width, "steps": steps}
        return Size(dims, **options)

    return [size(2, 1, 1, 128, 2, quick=True), size(16, 10, 24, 1024, 16)]


BENCHES = [
    Bench(
        name="training-large",
        about="a training step of Wav2Vec2-large with CTC in bfloat16, files included",
        inputs=inputs_of_size,
        ours=our_steps,
        check=check_steps,
        peers=[
            Peer("transformers Trainer", transformers_steps, same_steps, devices=("cpu", "cuda")),
            Peer("ours with OTTC", our_ottc_steps, yardstick=True, devices=("cpu", "cuda")),
        ],
        sizes=[],
        gpu_sizes=_sizes_of_large(),
        axis="seconds",
        hours=hours,
    ),
]
