"""Long audio in windows: the same frames as in one pass, wherever the model sees no further than the context."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import soundfile
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone import audio as sound
from isotone import format as files
from isotone.model import DecodingConfig, Model
from isotone.model.encoder import SpeechEncoder
from isotone.pipeline import Pipeline
from isotone.pipeline.windows import Windows, emit
from isotone.text.tokenizer import CharacterTokenizer
from isotone.types import Emissions
from tests.tiny_models import ENCODER, LETTERS, isotone, save_character_model, save_noise

TOKENIZER = CharacterTokenizer(["<pad>", "<unk>", "|", *LETTERS])
LOCAL = {"name": "ottc", "reads": "features", "layers": 2, "width": 8}
WAVE = {
    "model_type": "wav2vec2", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
    "intermediate_size": 16, "conv_dim": [8] * 7, "feat_extract_norm": "layer", "conv_bias": True,
    "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2, "layerdrop": 0.0,
}  # fmt: skip


def local_model(encoder: dict) -> Model:
    torch.manual_seed(0)
    reading = DecodingConfig("ottc", {"name": "ottc-greedy"}, "", {"name": "segmental"})
    return Model(SpeechEncoder(encoder), {"ottc": LOCAL}, TOKENIZER, reading).eval()


def adapted_model() -> Model:
    """Without layers that attend: what is left sees some frames, and the adapter makes one of eight."""
    torch.manual_seed(0)
    encoder = ENCODER | {
        "num_hidden_layers": 0, "add_adapter": True, "num_adapter_layers": 3, "output_hidden_size": 16,
    }  # fmt: skip
    heads = {"ctc": {"name": "ctc"}, "ottc": LOCAL}
    model = Model(
        SpeechEncoder(encoder),
        heads,
        TOKENIZER,
        DecodingConfig("ctc", {"name": "ctc-greedy"}, "", {"name": "ctc"}),
    )
    model.encoder.model.adapter.layers.apply(no_attention)
    return model.eval()


def no_attention(module: torch.nn.Module) -> None:
    if hasattr(module, "self_attn"):
        module.self_attn.linear_out.weight.data.zero_()
        module.self_attn.linear_out.bias.data.zero_()


MODELS = {"log-mel": local_model(ENCODER), "wave": local_model(WAVE), "adapter": adapted_model()}


def speechlike(samples: int, seed: int = 0) -> np.ndarray:
    """Noise that is louder here and quieter there, so that windows differ from the whole in mean and variance."""
    rng = np.random.default_rng(seed)
    loud = np.repeat(rng.uniform(0.001, 0.3, samples // 4000 + 1), 4000)[:samples]
    return (rng.normal(0.02, 1, samples) * loud).astype(np.float32)


def one_pass(model: Model, audio: np.ndarray) -> dict[str, Emissions]:
    with torch.inference_mode():
        return model(torch.from_numpy(audio)[None], torch.tensor([len(audio)]))


#: All that is heard counts for the normalisation, as in one pass. Hypothesis has no monkeypatch of its own.
all_is_lively = patch.multiple("isotone.pipeline.activity", _RANGE_DB=-1.0, _BELOW_DB=np.inf)


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=12, deadline=None)
@given(
    samples=st.integers(30_000, 90_000),
    window_s=st.floats(0.4, 2.0),
    context_s=st.floats(0.7, 1.2),
    seed=st.integers(0, 99),
)
def test_windows_give_what_one_pass_gives(
    name: str, samples: int, window_s: float, context_s: float, seed: int
) -> None:
    model, audio = MODELS[name], speechlike(samples, seed)
    shares: list[float] = []
    whole = one_pass(model, audio)
    with all_is_lively:
        joined = emit(model, audio, set(model.heads), Windows(window_s, context_s), shares.append)
    assert joined.keys() == whole.keys()
    for head, expected in whole.items():
        got = joined[head]
        assert got.logits.shape == expected.logits.shape
        assert torch.equal(got.lengths, expected.lengths)
        assert got.grid == expected.grid
        torch.testing.assert_close(got.logits, expected.logits, rtol=1e-3, atol=1e-3)
        if expected.weight_logits is not None:
            assert got.weight_logits is not None
            torch.testing.assert_close(got.weight_logits, expected.weight_logits, rtol=1e-3, atol=1e-3)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert all(0 < share <= 1 for share in shares)


def test_normalised_by_itself_a_window_differs() -> None:
    """So the test above would see statistics that are others."""
    model, audio = MODELS["log-mel"], speechlike(64_000)
    whole = one_pass(model, audio)["ottc"].logits[:, :50]
    assert (one_pass(model, audio[:20_000])["ottc"].logits[:, :50] - whole).abs().max() > 0.1


@pytest.mark.parametrize("name", ["log-mel", "wave"])
def test_statistics_of_a_recording_are_those_of_one_utterance(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isotone.model.frontend._BLOCK", 5_003)
    front_end, samples = MODELS[name].encoder.front_end, torch.from_numpy(speechlike(33_333))
    audio, lengths = samples[None], torch.tensor([len(samples)])
    found = front_end.statistics(samples)
    assert found is not None
    torch.testing.assert_close(
        front_end(audio, lengths, found)[0], front_end(audio, lengths)[0], rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("name", ["log-mel", "wave"])
@pytest.mark.parametrize("level", [0.0, 1e-6])
def test_silence_has_no_part_in_the_normalisation(name: str, level: float) -> None:
    """A muted start changes nothing in the speech after it, alone or in a batch."""
    model, speech = MODELS[name], speechlike(48_000)
    muted = np.random.default_rng(1).normal(0, level, 32_000).astype(np.float32)
    pipeline = Pipeline(model)
    alone = pipeline.emitter(["a"], [speech], {"ottc"})["ottc"].logits[0, 10:]
    after = pipeline.emitter(["a"], [np.concatenate([muted, speech])], {"ottc"})["ottc"].logits[0, 110:]
    torch.testing.assert_close(after[: len(alone)], alone, rtol=0.02, atol=0.02)
    one_way = one_pass(model, np.concatenate([muted, speech]))["ottc"].logits[0, 110:]
    assert (one_way[: len(alone)] - alone).abs().max() > 0.05
    text = pipeline.encode("so it is")
    both = [np.concatenate([muted, speech]), speech]
    batch = pipeline.align_batch(["a", "b"], both, [text, text])
    for found, samples in zip(batch, both):
        assert found.alignment == pipeline.align(found.alignment.id, samples, text).alignment


def test_no_frame_has_no_statistics() -> None:
    assert MODELS["log-mel"].encoder.statistics(torch.zeros(300)) is None


@pytest.mark.parametrize("name", ["log-mel", "wave"])
def test_what_is_far_away_has_no_part_in_the_normalisation(name: str) -> None:
    """Half a minute of silence, of steady noise, of somebody louder: the first windows stay as they were."""
    model, rng = MODELS[name], np.random.default_rng(1)
    near, far = speechlike(16_000 * 40), 16_000 * 30
    # ten loud seconds about the window, and eight more around these, are within the forty
    windows, kept = Windows(2.0, 1.0), round(3.5 / 0.02)

    def first(after: np.ndarray) -> torch.Tensor:
        audio = np.concatenate([near, after.astype(np.float32)])
        return emit(model, audio, {"ottc"}, windows)["ottc"].logits[:, :kept]

    alone = first(near[:0])
    for after in (np.zeros(far), rng.normal(0, 0.01, far), 5 * speechlike(far, 2) + 0.1):
        torch.testing.assert_close(first(after), alone, rtol=1e-4, atol=1e-4)
    whole = one_pass(model, np.concatenate([near, np.zeros(far, np.float32)]))["ottc"].logits[:, :kept]
    assert (whole - alone).abs().max() > 0.1


def test_what_cannot_be_cut() -> None:
    audio = speechlike(40_000)
    with pytest.raises(ValueError, match="more context"):
        emit(MODELS["log-mel"], audio, {"ottc"}, Windows(0.5, 0.0))
    with pytest.raises(ValueError, match="longer than a frame"):
        emit(MODELS["log-mel"], audio, {"ottc"}, Windows(0.01, 0.5))
    with pytest.raises(ValueError, match="0 or more"):
        Windows(-1.0)
    with pytest.raises(ValueError, match="0 or more"):
        Windows(30.0, float("nan"))
    assert [Windows(15).cut(s) for s in (29.9, 30.1)] == [False, True]
    assert not Windows(0).cut(1e9)


def test_a_pipeline_cuts_long_audio_alone_and_in_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isotone.pipeline.activity._RANGE_DB", -1.0)
    monkeypatch.setattr("isotone.pipeline.activity._BELOW_DB", np.inf)
    model = MODELS["log-mel"]
    whole = Pipeline(model, windows=Windows(0))
    shares: list[float] = []
    cut = Pipeline(model, windows=Windows(1.0, 0.5), on_window=shares.append)
    ids = ["long", "short"]
    audio = [speechlike(80_000), speechlike(16_000)]
    texts = [cut.encode("so it is said again"), cut.encode("yes")]
    for a, b in zip(whole.align_batch(ids, audio, texts), cut.align_batch(ids, audio, texts)):
        for x, y in zip(a.alignment.tiers, b.alignment.tiers):
            assert x.labels == y.labels
            np.testing.assert_allclose([s.start for s in x], [s.start for s in y], atol=1e-6)
        assert a.score == pytest.approx(b.score, abs=1e-3)
    assert len(shares) == 5, "the short one is not cut"
    assert [r.text for r in cut.transcribe_batch(ids, audio)] == [
        r.text for r in whole.transcribe_batch(ids, audio)
    ]


def test_full_attention_agrees_within_a_frame(
    tiny_recipes: Path,
    timit_root: Path,
    train: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A transformer sees only its window; after training, the times stay nearly the same."""
    monkeypatch.setattr("isotone.pipeline.activity._RANGE_DB", -1.0)
    monkeypatch.setattr("isotone.pipeline.windows._NORMALISED_S", 1e6)
    options = [f"output={tmp_path}", "train.steps=150", "train.lr=3.0e-3", "train.evaluate_every=150"]
    model = Model.load(train(tiny_recipes / "ctc.yaml", *options))
    clips = sorted(timit_root.rglob("*.WAV")) * 2
    audio = np.concatenate([sound.load(clip) for clip in clips])
    phones = [line.split()[2] for clip in clips for line in clip.with_suffix(".PHN").read_text().splitlines()]
    spoken = ["sil" if p == "h#" else p for p in phones if not p.endswith("cl")]  # closures are the stops'
    text = model.tokenizer.encode(" ".join(spoken))
    both = [Pipeline(model, windows=w).align("u", audio, text) for w in (Windows(0), Windows(4.0, 1.0))]
    whole, cut = (np.array([(s.start, s.end) for s in result.alignment.tier("phones")]) for result in both)
    assert len(audio) / 16_000 > 10
    moved = np.abs(whole - cut).max(1)
    assert (moved <= 0.0201).mean() > 0.95, moved


def test_the_command_line_cuts(tmp_path: Path) -> None:
    model = save_character_model(tmp_path / "model")
    save_noise(tmp_path / "u.wav", 5.0, text="it is quite long")
    found = {}
    for window in ("0", "1.5"):
        isotone(
            "align",
            tmp_path / "u.wav",
            "-m",
            model,
            "-f",
            "json",
            "-o",
            tmp_path / window,
            "--window",
            window,
        )
        found[window] = files.read(tmp_path / window / "u.json")
        isotone("transcribe", tmp_path / "u.wav", "-m", model, "-o", tmp_path / window, "--window", window)
    assert found["0"].tier("words").labels == found["1.5"].tier("words").labels
    np.testing.assert_allclose(
        *([s.end for s in found[w].tier("characters")] for w in ("0", "1.5")), atol=0.021
    )
    result = isotone("align", tmp_path / "u.wav", "-m", model, "-o", tmp_path, "--window", "-3", code=2)
    assert "seconds of 0 or more" in result.stderr


def test_audio_is_read_block_by_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks leave no trace: resampled or not, one channel or two, whole or in part."""
    rng = np.random.default_rng(0)
    for rate, channels in ((16_000, 1), (44_100, 2), (8_000, 1)):
        path = tmp_path / f"{rate}.wav"
        soundfile.write(path, rng.normal(0, 0.1, (rate * 2 + 7, channels)), rate)
        for part in ((0.0, None), (0.3, 1.7)):
            monkeypatch.setattr("isotone.audio.source._BLOCK", 1 << 30)
            whole = sound.load(path, 16_000, *part)
            monkeypatch.setattr("isotone.audio.source._BLOCK", 997)
            np.testing.assert_array_equal(sound.load(path, 16_000, *part), whole)


def test_windows_alone_are_normalised_by_themselves() -> None:
    """However loud the rest is: what is further away than the context changes nothing, as it else does."""
    model, quiet = MODELS["log-mel"], speechlike(64_000)
    loud = quiet.copy()
    loud[40_000:] = 100 * quiet[:24_000]
    for alone in (True, False):
        first, second = (
            emit(model, audio, {"ottc"}, Windows(0.5, 0.7, alone))["ottc"].logits[:, :50]
            for audio in (quiet, loud)
        )
        assert torch.equal(first, second) == alone
