"""Speech encoders against transformers itself: outputs, the grid of frames, and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import (
    AutoModel,
    BertConfig,
    HubertConfig,
    SeamlessM4TFeatureExtractor,
    Wav2Vec2BertConfig,
    Wav2Vec2Config,
    Wav2Vec2FeatureExtractor,
    WavLMConfig,
)

from isotone.model.encoder import SpeechEncoder
from isotone.model.sources import PRESETS
from isotone.types import Encoded

SMALL: dict[str, Any] = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24, "layerdrop": 0.0,
}  # fmt: skip
WAVE: dict[str, Any] = {
    **SMALL, "conv_dim": [8] * 7, "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2,
    "mask_time_prob": 0.0,
}  # fmt: skip
LAYER: dict[str, Any] = {
    **WAVE,
    "feat_extract_norm": "layer",
    "do_stable_layer_norm": True,
    "conv_bias": True,
}
BERT: dict[str, Any] = {**SMALL, "conv_depthwise_kernel_size": 3, "mask_time_prob": 0.0}
CONFIGS: dict[str, Any] = {
    "wav2vec2": Wav2Vec2Config(**LAYER),
    "hubert": HubertConfig(**LAYER),
    "wavlm": WavLMConfig(**LAYER),
    "wav2vec2-group": Wav2Vec2Config(**WAVE),
    "hubert-group": HubertConfig(**WAVE),
    "wavlm-group": WavLMConfig(**WAVE),
    "wav2vec2-bert": Wav2Vec2BertConfig(**BERT, position_embeddings_type="relative_key"),
}
EXACT = [name for name in CONFIGS if not name.endswith("group")]
SIZES = [8000, 5000, 6543]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model of every class, as transformers saves it with its feature extractor."""
    folders = {}
    for name, config in CONFIGS.items():
        torch.manual_seed(0)
        folders[name] = tmp_path_factory.mktemp(name)
        AutoModel.from_config(config).save_pretrained(folders[name])
        extractor(name).save_pretrained(folders[name])
    return folders


def extractor(name: str) -> Any:
    if name == "wav2vec2-bert":
        return SeamlessM4TFeatureExtractor()
    return Wav2Vec2FeatureExtractor(return_attention_mask=name in EXACT)


def noise(sizes: list[int] = SIZES) -> tuple[list[np.ndarray], Tensor, Tensor]:
    rng = np.random.default_rng(0)
    rows = [rng.normal(0, 0.1, n).astype(np.float32) for n in sizes]
    batch = torch.full((len(rows), max(sizes)), torch.nan)  # padding is never read
    for row, samples in zip(batch, rows):
        row[: len(samples)] = torch.from_numpy(samples)
    return rows, batch, torch.tensor(sizes)


def encode(encoder: SpeechEncoder, *batch: Tensor) -> Encoded:
    with torch.inference_mode():
        return encoder.eval()(*batch)


@pytest.mark.parametrize("name", CONFIGS)
def test_hidden_states_are_those_of_transformers(name: str, saved: dict[str, Path]) -> None:
    rows, *batch = noise()
    ours = encode(SpeechEncoder(str(saved[name])), *batch)
    model = AutoModel.from_pretrained(saved[name]).eval()
    options = {} if name == "wav2vec2-bert" else {"return_attention_mask": True}
    inputs = extractor(name)(rows, sampling_rate=16_000, padding=True, return_tensors="pt", **options)
    if name not in EXACT:
        del inputs["attention_mask"]  # they were trained without
    features: list[Tensor] = []
    if name != "wav2vec2-bert":
        model.feature_extractor.register_forward_hook(lambda _m, _i, out: features.append(out.mT))
    with torch.inference_mode():
        theirs = model(**inputs, output_hidden_states=True)
    features = features or [inputs["input_features"]]
    assert len(ours.hidden) == len(theirs.hidden_states) == 3
    pairs = [
        (ours.features, features[0]),
        (ours.hidden[0], theirs.hidden_states[0]),
        (ours.hidden[1], theirs.hidden_states[1]),
        (ours.read(2), theirs.last_hidden_state),
        (ours.read("last"), theirs.last_hidden_state),
    ]
    tolerance = 2e-3 if name == "wav2vec2-bert" else 1e-4  # log-mel bands of near silence differ by so much
    for mine, other in pairs:
        assert mine.lengths.tolist() == ([24, 14, 19] if name == "wav2vec2-bert" else [24, 15, 20])
        for row, n in enumerate(mine.lengths.tolist()):
            torch.testing.assert_close(mine.values[row, :n], other[row, :n], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", CONFIGS)
def test_alone_and_in_a_batch(name: str, saved: dict[str, Path]) -> None:
    rows, *batch = noise()
    encoder = SpeechEncoder(str(saved[name]))
    assert encoder.exact_padding == (name in EXACT)
    together = encode(encoder, *batch)
    apart = 0.0
    for row, samples in enumerate(rows):
        alone = encode(encoder, torch.from_numpy(samples)[None], torch.tensor([len(samples)]))
        for mine, other in zip((together.features, *together.hidden), (alone.features, *alone.hidden)):
            n = int(other.lengths)
            apart = max(apart, (mine.values[row, :n] - other.values[0, :n]).abs().max().item())
    # what group normalisation does to a padded batch is more than rounding
    assert apart < 1e-4 if encoder.exact_padding else apart > 1e-3


@pytest.mark.parametrize("name", ["wav2vec2", "hubert-group", "wav2vec2-bert"])
def test_features_alone(name: str, saved: dict[str, Path]) -> None:
    """Without hidden states the layers are not computed."""
    encoder = SpeechEncoder(str(saved[name])).eval()
    _, *batch = noise([8000, 399, 6543])
    whole = encode(encoder, *batch)
    encoder.model.encoder.register_forward_hook(lambda *_: pytest.fail("the layers ran"))
    with torch.inference_mode():
        alone = encoder(*batch, hidden=False)
    assert alone.hidden == ()
    assert torch.equal(alone.features.values, whole.features.values)
    assert alone.features.lengths.tolist() == whole.features.lengths.tolist()
    assert alone.features.grid == whole.features.grid


def test_frames_ahead(saved: dict[str, Path], tmp_path: Path) -> None:
    """Layers see features from some frames ahead; past the end of an utterance there is nothing, in any batch."""
    name = str(saved["wav2vec2-bert"])
    plain, ahead = SpeechEncoder(name).eval(), SpeechEncoder(name, config={"lookahead_frames": 3}).eval()
    rows, *batch = noise([8000, 700, 6543])  # 24, 1 and 19 frames
    together = encode(ahead, *batch)
    for row, samples in enumerate(rows):
        alone = encode(ahead, torch.from_numpy(samples)[None], torch.tensor([len(samples)]))
        features = alone.features.values
        advanced = torch.cat([features[:, 3:], torch.zeros(1, min(3, features.shape[1]), 160)], 1)
        with torch.inference_mode():
            expected = plain.model(advanced).last_hidden_state
        torch.testing.assert_close(alone.read("last").values, expected, rtol=1e-4, atol=1e-4)
        n = features.shape[1]
        torch.testing.assert_close(together.read("last").values[row, :n], expected[0], rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(together.features.values[row, :n], features[0], rtol=1e-4, atol=1e-4)
    assert together.read("last").grid == together.features.grid
    ahead.save(tmp_path)
    assert SpeechEncoder(str(tmp_path), pretrained=False).model.config.lookahead_frames == 3
    with pytest.raises(ValueError, match="no setting 'lookahead_frames'"):
        SpeechEncoder("wav2vec2-tiny", config={"lookahead_frames": 3})


@pytest.mark.parametrize("name", ["wav2vec2", "hubert", "wavlm"])
def test_frozen_features(name: str, saved: dict[str, Path]) -> None:
    encoder = SpeechEncoder(str(saved[name]), freeze_features=True).train()
    trained = {n for n, p in encoder.named_parameters() if p.requires_grad}
    resting = {n for n, p in encoder.named_parameters() if not p.requires_grad}
    assert resting == {n for n, _ in encoder.named_parameters() if n.startswith("model.feature_extractor.")}
    _, *batch = noise()
    out = encoder(*batch)
    assert not out.features.values.requires_grad
    out.read("last").values.square().sum().backward()
    assert {n for n, p in encoder.named_parameters() if p.grad is not None} <= trained
    assert all(p.requires_grad for p in SpeechEncoder(str(saved[name])).parameters())


def test_pretrained_or_not(saved: dict[str, Path]) -> None:
    folder = str(saved["wav2vec2"])
    weights = SpeechEncoder(folder).state_dict()
    theirs = AutoModel.from_pretrained(folder).state_dict()
    fresh = SpeechEncoder(folder, pretrained=False).state_dict()
    assert weights.keys() - fresh.keys() == set()
    name = "encoder.layers.0.attention.q_proj.weight"
    assert torch.equal(weights[f"model.{name}"], theirs[name])
    assert not torch.equal(fresh[f"model.{name}"], theirs[name])


@pytest.mark.parametrize(
    ("name", "size", "millions"), [("wav2vec2-bert-tiny", 160, 1.6), ("wav2vec2-tiny", 64, 1.0)]
)
def test_presets(name: str, size: int, millions: float) -> None:
    encoder = SpeechEncoder(name)
    assert encoder.size("features") == size
    assert encoder.size("last") == encoder.size(0) == 144
    assert sum(p.numel() for p in encoder.parameters()) / 1e6 == pytest.approx(millions, abs=0.15)
    out = encode(encoder, torch.zeros(1, 16_000), torch.tensor([16_000]))
    assert int(out.read("last").lengths) == 49
    assert len(out.hidden) == 5
    assert set(PRESETS) == {"wav2vec2-bert-tiny", "wav2vec2-tiny"}


@pytest.mark.parametrize("adapter", [False, True])
@pytest.mark.parametrize(
    "base", [{"model_type": "wav2vec2", **LAYER}, {"model_type": "wav2vec2-bert", **BERT}]
)
def test_frames_and_sizes_are_what_comes_out(base: dict[str, Any], adapter: bool) -> None:
    extra = {"add_adapter": True, "num_adapter_layers": 2, "output_hidden_size": 20} if adapter else {}
    encoder = SpeechEncoder({**base, **extra})
    sizes = [8000, 1, 399, 400, 719, 720, 1040, 3333]
    _, *batch = noise(sizes)
    out = encode(encoder, *batch)
    assert out.read("last").lengths.tolist() == [encoder.frames(n) for n in sizes]
    assert (out.read("last").lengths > 0).tolist() == [
        n >= 400 + 160 * (base["model_type"] != "wav2vec2") for n in sizes
    ]
    assert out.features.values.shape[2] == encoder.size("features")
    for layer, hidden in enumerate(out.hidden):
        assert hidden.values.shape[2] == encoder.size(layer)
    assert out.read("last").values.shape[2] == encoder.size("last") == (20 if adapter else 16)
    assert len(out.hidden) == (4 if adapter else 3)
    assert all(torch.isfinite(h.values).all() for h in out.hidden)


@pytest.mark.parametrize("kind", ["wav2vec2", "wav2vec2-bert"])
def test_adapter_is_that_of_transformers(kind: str, tmp_path: Path) -> None:
    settings = {**(LAYER if kind == "wav2vec2" else BERT), "add_adapter": True, "num_adapter_layers": 2}
    config = (Wav2Vec2Config if kind == "wav2vec2" else Wav2Vec2BertConfig)(**settings)
    model = AutoModel.from_config(config).eval()
    model.save_pretrained(tmp_path)
    extractor(kind).save_pretrained(tmp_path)
    rows, *batch = noise([8000])
    ours = encode(SpeechEncoder(str(tmp_path)), *batch).read("last")
    with torch.inference_mode():
        inputs = extractor(kind)(rows, sampling_rate=16_000, return_tensors="pt")
        theirs = model(**inputs).last_hidden_state
    torch.testing.assert_close(ours.values, theirs, rtol=2e-3, atol=2e-3)
    assert ours.lengths.tolist() == [theirs.shape[1]]
    assert ours.grid.hop_s == pytest.approx(0.08)


def seen(output: Tensor, source: Tensor) -> list[int]:
    """The positions of a source ``(1, N)`` or ``(1, N, D)`` that an output depends on."""
    (gradient,) = torch.autograd.grad(output.square().sum(), source, retain_graph=True)
    used = gradient[0].abs().reshape(source.shape[1], -1).sum(1) > 0
    return used.nonzero()[:, 0].tolist()


def test_grid_of_the_wave_front_end() -> None:
    """The middle of a frame is the middle of the samples that it depends on."""
    encoder = SpeechEncoder({"model_type": "wav2vec2", **LAYER}).eval()
    audio = torch.randn(1, 4000, requires_grad=True)
    encoder.front_end.normalize = False  # it would make every frame depend on every sample
    features = encoder(audio, torch.tensor([4000])).features
    assert features.grid.hop_s == 0.02
    assert features.grid.offset_s == 0.0025
    for frame in (0, 3, 10):
        samples = seen(features.values[0, frame], audio)
        middle = (samples[0] + samples[-1] + 1) / 2 / 16_000
        assert features.grid.seconds(frame + 0.5) == pytest.approx(middle, abs=1e-4)


def test_grid_of_an_adapter() -> None:
    """The middle of a frame is the middle of the frames that the adapter's convolutions see."""
    encoder = SpeechEncoder(
        {"model_type": "wav2vec2", **LAYER, "add_adapter": True, "num_adapter_layers": 2}
    ).eval()
    out = encoder(torch.randn(1, 16_000), torch.tensor([16_000]))
    source = torch.randn(1, 49, 16, requires_grad=True)
    adapted = encoder.model.adapter(source)
    last = out.read("last")
    assert adapted.shape == last.values.shape
    for frame in (3, 5, 8):
        frames = seen(adapted[0, frame], source)
        middle = out.features.grid.seconds((frames[0] + frames[-1] + 1) / 2)
        assert last.grid.seconds(frame + 0.5) == pytest.approx(middle, abs=1e-9)


def test_spec_augment_changes_training_only() -> None:
    config = {
        "mask_time_prob": 0.5,
        "mask_time_length": 2,
        "apply_spec_augment": True,
        "conformer_conv_dropout": 0.0,
    }
    encoder = SpeechEncoder({"model_type": "wav2vec2-bert", **BERT}, config=config)
    assert encoder.model.config.mask_time_prob == 0.5
    _, *batch = noise()
    for part in encoder.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    np.random.seed(0)  # noqa: NPY002 - transformers masks by numpy's global generator
    first = encoder.train()(*batch).read("last").values
    second = encoder(*batch).read("last").values
    assert not torch.allclose(first, second)
    still = encode(encoder, *batch).read("last").values
    assert torch.equal(still, encode(encoder, *batch).read("last").values)
    assert not torch.allclose(first, still)


@pytest.mark.parametrize(
    "base", [{"model_type": "wav2vec2", **LAYER}, {"model_type": "wav2vec2-bert", **BERT}]
)
def test_spec_augment_lets_short_batches_through(base: dict[str, Any]) -> None:
    """transformers refuses to mask less than one mask's length; in a batch of short utterances there is no mask."""
    encoder = SpeechEncoder({**base, "mask_time_prob": 0.5, "mask_time_length": 10}).train()
    _, *batch = noise([2000, 1500])
    out = encoder(*batch)
    assert out.read("last").values.shape[1] < 10
    assert encoder.model.config.apply_spec_augment is True


def test_saved_configuration_makes_the_same_encoder(saved: dict[str, Path], tmp_path: Path) -> None:
    for name in ("wav2vec2", "wav2vec2-bert", "hubert-group"):
        encoder = SpeechEncoder(str(saved[name]))
        encoder.front_end.normalize = False
        encoder.save(tmp_path / name)
        again = SpeechEncoder(str(tmp_path / name), pretrained=False)
        again.load_state_dict(encoder.state_dict())
        _, *batch = noise()
        assert torch.equal(encode(again, *batch).hidden[-1].values, encode(encoder, *batch).hidden[-1].values)
        assert again.exact_padding == encoder.exact_padding


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"wav2vec2 encoder has no setting 'mask_tim_prob'.*'mask_time_prob'"
    ):
        SpeechEncoder("wav2vec2-tiny", config={"mask_tim_prob": 0.1})
    with pytest.raises(ValueError, match=r"no setting 'hiden_size'. Did you mean 'hidden_size'"):
        SpeechEncoder({"model_type": "hubert", "hiden_size": 16})
    with pytest.raises(ValueError, match="needs a 'model_type'"):
        SpeechEncoder({"hidden_size": 16})
    BertConfig(hidden_size=16).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="'bert' is not a speech encoder"):
        SpeechEncoder(str(tmp_path))
    with pytest.raises(
        OSError, match=r"No encoder '.*/wav2vec2-bert-tini': not a preset \(wav2vec2-bert-tiny, "
    ):
        SpeechEncoder(str(tmp_path / "wav2vec2-bert-tini"))


def test_unknown_source_of_a_head() -> None:
    out = encode(SpeechEncoder({"model_type": "wav2vec2-bert", **BERT}), *noise()[1:])
    assert out.read("1") is out.hidden[1]
    for source in ("lsat", 3, "feature"):
        with pytest.raises(ValueError, match=rf"layer from 0 to 2; got '?{source}"):
            out.read(source)


@pytest.mark.parametrize("checkpointing", [False, True])
def test_the_gradient_of_the_audio_is_made_where_checkpointing_needs_it(checkpointing: bool) -> None:
    source = {"model_type": "wav2vec2", **LAYER}
    encoder = SpeechEncoder(source, gradient_checkpointing=checkpointing).train()
    requires_grad: list[bool] = []
    first = encoder.model.feature_extractor.conv_layers[0]
    first.conv.register_forward_pre_hook(lambda _, inputs: requires_grad.append(inputs[0].requires_grad))
    encoder(torch.randn(1, 4000), torch.tensor([4000])).hidden[-1].values.square().sum().backward()
    assert requires_grad[0] == checkpointing
    assert first.conv.weight.grad.abs().sum() > 0


def test_gradient_checkpointing_changes_no_gradient() -> None:
    """Half the memory's worth of work twice: the same gradients."""
    gradients = []
    for checkpointing in (False, True):
        torch.manual_seed(0)
        source = {**LAYER, "model_type": "wav2vec2", "hidden_dropout": 0.3}
        encoder = SpeechEncoder(source, gradient_checkpointing=checkpointing).train()
        counted = Mock(return_value=None)
        encoder.model.encoder.layers[0].attention.register_forward_hook(counted)
        torch.manual_seed(1)
        encoder(torch.randn(2, 8000), torch.tensor([8000, 6000])).hidden[-1].values.square().sum().backward()
        assert counted.call_count == (2 if checkpointing else 1)
        gradients.append([p.grad for p in encoder.parameters() if p.grad is not None])
    assert len(gradients[0]) == len(gradients[1]) > 10
    for plain, again in zip(*gradients):
        torch.testing.assert_close(plain, again)
