"""The encoder without transformers is transformers' own, to the last digits."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from isotone.model.conformer import Conformer, read_settings
from isotone.model.encoder import SpeechEncoder
from tests.tiny_models import ENCODER, save_character_model, save_transformers_model

#: Changes to a small encoder that both compute.
VARIANTS: list[dict[str, Any]] = [
    {}, {"mask_time_prob": 0.0}, {"num_hidden_layers": 3, "conv_depthwise_kernel_size": 7}, {"lookahead_frames": 2},
]  # fmt: skip


def saved(folder: Path, **changes: Any) -> SpeechEncoder:
    """Save an encoder of transformers with random weights; it is in evaluation."""
    torch.manual_seed(0)
    encoder = SpeechEncoder({**ENCODER, **changes}).eval()
    encoder.save(folder)
    return encoder


def noise() -> tuple[Tensor, Tensor]:
    audio = 0.1 * torch.randn(3, 16_000, generator=torch.Generator().manual_seed(0))
    return audio, torch.tensor([16_000, 9_000, 4_000])


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_hidden_states_are_those_of_transformers(tmp_path: Path, changes: dict[str, Any]) -> None:
    theirs = saved(tmp_path, **changes)
    ours = SpeechEncoder.load(tmp_path).eval()
    assert isinstance(ours.model, Conformer)
    ours.load_state_dict(theirs.state_dict())  # the same names and shapes
    with torch.no_grad():
        found, expected = ours(*noise()), theirs(*noise())
    assert len(found.hidden) == len(expected.hidden)
    for a, b in zip((found.features, *found.hidden), (expected.features, *expected.hidden)):
        assert a.grid == b.grid
        for x, y, n in zip(a.values, b.values, a.lengths.tolist()):
            torch.testing.assert_close(x[:n], y[:n], rtol=1e-5, atol=1e-6)


def test_training_is_that_of_transformers(tmp_path: Path) -> None:
    """The same dropout from the same random numbers, and so the same gradients."""
    rates = (
        "hidden_dropout",
        "activation_dropout",
        "attention_dropout",
        "feat_proj_dropout",
        "conformer_conv_dropout",
    )
    theirs = saved(tmp_path, **dict.fromkeys(rates, 0.3))
    ours = SpeechEncoder.load(tmp_path)
    ours.load_state_dict(theirs.state_dict())
    grads = []
    for encoder in (ours, theirs):
        encoder.train()
        torch.manual_seed(1)
        encoder(*noise()).read("last").values[:, :10].square().sum().backward()
        grads.append({name: p.grad for name, p in encoder.named_parameters() if p.grad is not None})
    assert grads[0].keys() == grads[1].keys()
    for name, grad in grads[1].items():
        # sums in another order; gradients are up to 100
        torch.testing.assert_close(grads[0][name], grad, rtol=1e-4, atol=5e-5)


def test_it_saves_the_same_files(tmp_path: Path) -> None:
    saved(tmp_path / "theirs", lookahead_frames=2)
    SpeechEncoder.load(tmp_path / "theirs").save(tmp_path / "ours")
    for name in ("config.json", "preprocessor_config.json"):
        assert (tmp_path / "ours" / name).read_bytes() == (tmp_path / "theirs" / name).read_bytes()


@pytest.mark.parametrize(
    "changes",
    [
        {"position_embeddings_type": "relative"}, {"position_embeddings_type": "rotary"}, {"add_adapter": True},
        {"layerdrop": 0.1}, {"apply_spec_augment": True}, {"hidden_act": "gelu"},
        {"use_intermediate_ffn_before_adapter": True, "add_adapter": True},
    ],
    ids=str,
)  # fmt: skip
def test_other_encoders_are_left_to_transformers(tmp_path: Path, changes: dict[str, Any]) -> None:
    saved(tmp_path, **changes)
    assert read_settings(tmp_path) is None
    assert type(SpeechEncoder.load(tmp_path).model).__name__ == "Wav2Vec2BertModel"


@pytest.mark.parametrize("text", ["", "[]", "{", json.dumps({"model_type": "wav2vec2-bert"})])
def test_damaged_configurations_are_left_to_transformers(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    assert read_settings(tmp_path) is None
    assert read_settings(tmp_path / "nothing") is None


def test_wave_encoders_are_left_to_transformers(tmp_path: Path) -> None:
    assert read_settings(save_transformers_model(tmp_path / "wave")) is None


def test_a_model_loads_without_transformers(tmp_path: Path) -> None:
    """The import of transformers takes longer than the alignment of an utterance."""
    save_character_model(tmp_path / "model")
    code = f"""
import sys
from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.batch.keys import model_key
import numpy as np
pipeline = Pipeline(Model.load({str(tmp_path / "model")!r}))
pipeline.align("a", np.zeros(32_000, np.float32), pipeline.encode("so it is"))
model_key(pipeline.model)
late = ("transformers", "torchaudio", "accelerate", "datasets", "pandas", "matplotlib", "sklearn")
print([name for name in late if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n", done.stderr
