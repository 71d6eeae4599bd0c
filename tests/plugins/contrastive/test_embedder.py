"""Embedders: vectors of recordings, and the encoders that they leave."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from isotone_contrastive.embedder import Embedder, LogMelConv, WaveBody, pad, save_encoder

from isotone.model.encoder import SpeechEncoder

TINY = {
    "model_type": "wav2vec2-bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
    "intermediate_size": 16, "conv_depthwise_kernel_size": 3, "feature_projection_input_dim": 160,
    "position_embeddings_type": None, "layerdrop": 0.0, "mask_time_prob": 0.0,
}  # fmt: skip


def recordings(count: int) -> list[np.ndarray]:
    """Tones of different pitch and length with a little noise."""
    rng = np.random.default_rng(0)
    waves = []
    for hz in 200 * 2 ** rng.uniform(0, 3, count):
        time = np.arange(int(rng.integers(4800, 6400))) / 16_000
        waves.append(
            (0.3 * np.sin(2 * np.pi * hz * time) + rng.normal(0, 0.003, len(time))).astype(np.float32)
        )
    return waves


def conv(seed: int = 0, **options: int) -> Embedder:
    torch.manual_seed(seed)
    return Embedder(LogMelConv(width=24, **options), size=16)


@pytest.mark.parametrize("kind", ["conv", "wave"])
def test_a_vector_does_not_depend_on_the_batch(kind: str) -> None:
    torch.manual_seed(0)
    embedder = conv() if kind == "conv" else Embedder(WaveBody(SpeechEncoder(TINY)), size=16, hidden=8)
    inputs = embedder.body.inputs(recordings(12))
    together = embedder.embed(inputs)
    torch.testing.assert_close(together.norm(dim=1), torch.ones(12))
    for i in (0, 5, 11):
        torch.testing.assert_close(embedder.embed([inputs[i]])[0], together[i], rtol=1e-4, atol=1e-5)
    values, lengths = pad(inputs)
    mask = torch.arange(values.shape[1]) < lengths[:, None]
    noisy = torch.where(mask[..., None], values, 7.0)  # padding is never read
    if kind == "wave":
        torch.testing.assert_close(embedder.eval()(noisy, lengths), together, rtol=1e-4, atol=1e-5)
    assert embedder.embed(inputs, features=True).shape == (12, 4 * embedder.body.size)


def test_very_short_recordings_have_a_vector() -> None:
    embedder = conv()
    found = embedder.embed(embedder.body.inputs([np.zeros(10, np.float32), np.ones(500, np.float32)]))
    assert torch.isfinite(found).all()


def test_saved_weights_are_those_of_the_encoder(tmp_path: Path) -> None:
    torch.manual_seed(3)
    embedder = Embedder(WaveBody(SpeechEncoder(TINY)), size=4)
    save_encoder(embedder, tmp_path)
    wave, length = torch.randn(1, 4000), torch.tensor([4000])
    loaded = SpeechEncoder(str(tmp_path)).eval()
    expected = embedder.body.eval().encoder(wave, length).hidden[-1].values
    torch.testing.assert_close(loaded(wave, length).hidden[-1].values, expected)
