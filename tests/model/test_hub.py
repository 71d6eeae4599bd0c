"""Export of models to plain transformers and to a hub, and loading them again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import AutoModelForCTC, AutoProcessor, pipeline

from isotone import audio
from isotone.interfaces import Encoder
from isotone.model.encoder import SpeechEncoder
from isotone.model.hub import card, export_transformers, push_to_hub
from isotone.model.model import CONFIG, DecodingConfig, Model, ModelError
from isotone.pipeline import Pipeline
from isotone.registries import encoders
from isotone.text.tokenizer import CharacterTokenizer, PhoneTokenizer, Tokenizer, train_pieces
from isotone.types import Encoded, Frames, Grid
from tests.registering import registered
from tests.tiny_models import ENCODER, PHONES, error_of, isotone, save_character_model, save_noise

WAVE = {
    "model_type": "wav2vec2", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
    "intermediate_size": 16, "conv_dim": [8] * 7, "do_stable_layer_norm": True, "feat_extract_norm": "layer",
    "conv_bias": True, "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2, "layerdrop": 0.0,
}  # fmt: skip
LETTERS = CharacterTokenizer(["<pad>", "<unk>", "|", *"abcdefgh"])
READING = DecodingConfig("ctc", {"name": "ctc-greedy"}, "ctc", {"name": "ctc"})


def model_of(encoder: dict[str, Any], tokenizer: Tokenizer, **head: Any) -> Model:
    torch.manual_seed(0)
    model = Model(SpeechEncoder(encoder), {"ctc": {"name": "ctc", **head}}, tokenizer, READING)
    with torch.no_grad():
        linear = model.heads["ctc"].get_submodule("lm_head")
        linear.weight.mul_(50.0)  # so that it says more than one label
        if "<unk>" in tokenizer.labels:
            linear.bias[tokenizer.labels.index("<unk>")] = -1e4  # which is never a target
    return model.eval()


@pytest.mark.parametrize("encoder", [WAVE, ENCODER], ids=["wav2vec2", "wav2vec2-bert"])
@pytest.mark.parametrize("tokenizer", [LETTERS, PhoneTokenizer(PHONES)], ids=["letters", "phones"])
def test_plain_transformers_says_the_same(
    encoder: dict[str, Any], tokenizer: Tokenizer, tmp_path: Path
) -> None:
    model = model_of(encoder, tokenizer)
    export_transformers(model, tmp_path / "theirs")
    assert not list(tmp_path.glob(".*"))
    path = save_noise(tmp_path / "noise.wav")
    samples = audio.load(path, 16_000)
    processor = AutoProcessor.from_pretrained(tmp_path / "theirs")
    theirs = AutoModelForCTC.from_pretrained(tmp_path / "theirs").eval()
    inputs = processor(samples, sampling_rate=16_000, return_tensors="pt")
    with torch.inference_mode():
        expected = theirs(**inputs).logits
        ours = model(torch.from_numpy(samples)[None], torch.tensor([len(samples)]))["ctc"].logits
    tolerance = 1e-4 if encoder is WAVE else 5e-2  # their log-mel front end computes in numpy, in other steps
    torch.testing.assert_close(ours, expected[:, : ours.shape[1]], rtol=tolerance, atol=tolerance)

    text = Pipeline(model).transcribe("noise", samples).text
    assert text
    if encoder is WAVE:
        recogniser = pipeline("automatic-speech-recognition", model=str(tmp_path / "theirs"))
        assert recogniser(samples)["text"] == text
    again = Model.load(tmp_path / "theirs")
    assert again.tokenizer.unit == tokenizer.unit
    assert again.tokenizer.labels == tokenizer.labels
    assert Pipeline(again).transcribe("noise", samples).text == text


def test_what_transformers_has_no_class_for(tmp_path: Path) -> None:
    def expect(message: str, model: Model, head: str = "") -> None:
        with pytest.raises(ModelError, match=message):
            export_transformers(model, tmp_path / "out", head)
        assert not list(tmp_path.iterdir())

    expect("looks 2 frames ahead", model_of(ENCODER | {"lookahead_frames": 2}, LETTERS))
    expect("reads 'features'.*not one linear layer over the last", model_of(WAVE, LETTERS, reads="features"))
    expect("no head 'otc' to export; the model has ctc", model_of(WAVE, LETTERS), "otc")
    pieces = train_pieces(["some words to cut into pieces", "more of these words"], 24)
    expect("no CTC tokenizer of SentencePiece", model_of(WAVE, pieces))


@pytest.mark.parametrize(
    "changes",
    [
        ["encoder.source=wav2vec2-tiny"],
        ["encoder.source=wav2vec2-bert-tiny", "encoder.config.lookahead_frames=0"],
    ],
    ids=["wav2vec2", "no lookahead"],
)
def test_what_the_error_advises_can_be_exported(
    changes: list[str], tiny_recipes: Path, train: Callable[..., Path], tmp_path: Path
) -> None:
    """The presets of the recipes: as they are the small one cannot be exported, trained as advised it can."""
    steps = ["train.steps=2", "train.evaluate_every=2", "train.save_every=2", "train.warmup_steps=1"]
    run = train(tiny_recipes / "ctc.yaml", f"output={tmp_path / 'run'}", *steps, *changes)
    message = error_of_ahead(tmp_path)
    assert all(change in message for change in changes[-1:])
    isotone("export", run, "--out", tmp_path / "theirs")
    theirs = AutoModelForCTC.from_pretrained(tmp_path / "theirs").eval()
    model = Model.load(run)
    assert isinstance(model.encoder, SpeechEncoder)
    samples, lengths = torch.randn(1, 16_000), torch.tensor([16_000])
    with torch.inference_mode():
        values, _ = model.encoder.front_end(samples, lengths)
        expected = theirs(values).logits
        ours = model(samples, lengths)["ctc"].logits
    torch.testing.assert_close(ours, expected[:, : ours.shape[1]], rtol=1e-4, atol=1e-4)


class Energy(Encoder):
    """A user's own encoder: a linear layer over one window of samples per frame."""

    name = "test-energy"
    sample_rate = 16_000

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.width = width
        self.linear = nn.Linear(320, width)

    def forward(self, audio: Tensor, lengths: Tensor, hidden: bool = True, statistics: Any = None) -> Encoded:
        frames = Frames(self.linear(audio.unfold(1, 320, 320)), lengths // 320, Grid(0.02))
        return Encoded(frames, (frames,))

    def size(self, source: str | int) -> int:
        return self.width

    def frames(self, samples: int) -> int:
        return samples // 320

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "width.json").write_text(json.dumps(self.width))

    @classmethod
    def load(cls, folder: Path) -> Energy:
        return cls(json.loads((folder / "width.json").read_text()))


def test_somebodys_encoder_comes_back(tmp_path: Path) -> None:
    with registered(encoders, "test-energy", Energy):
        model = Model(Energy(5), {"ctc": {"name": "ctc"}}, LETTERS, READING).eval()
        model.save_pretrained(tmp_path / "model")
        again = Model.from_pretrained(tmp_path / "model")
        samples = torch.randn(1, 6400)
        with torch.inference_mode():
            mine, theirs = (m(samples, torch.tensor([6400]))["ctc"].logits for m in (model, again))
        assert torch.equal(mine, theirs)
        with pytest.raises(ModelError, match="Energy is no encoder of transformers"):
            export_transformers(model, tmp_path / "out")
    with pytest.raises(LookupError, match="No encoder named 'test-energy'"):
        Model.load(tmp_path / "model")


RESULT = {
    "recognised": {
        "metrics": [
            {"metric": "per", "value": 6.5, "low": 5.0, "high": 8.0, "unit": "%"},
            {"metric": "idr", "value": 80.0, "low": None, "high": None, "unit": "%"},  # of one utterance
            {"metric": "peaky", "value": None, "low": None, "high": None, "unit": "%"},
            {"metric": "bias", "value": 1.0, "low": 0.0, "high": 2.0, "unit": "ms"},
        ]
    }
}
RUN = {
    "data": {"name": "timit", "root": "/home/somebody/TIMIT", "phones": 39},
    "tokens": {"unit": "phones"},
    "encoder": {"name": "transformers", "source": "wav2vec2-tiny"},
    "objective": {"ctc": {"head": "ctc", "weight": 1.0, "loss": {"name": "ctc"}}},
    "train": {"steps": 0, "epochs": 40, "batch_size": 8, "lr": 2e-4},
    "card": {"license": "apache-2.0", "description": "Phones of read speech."},
    "seed": 3,
}


def test_the_card_says_what_the_run_was() -> None:
    model = {"heads": {"ctc": {"name": "ctc"}}, "reading": {"text": "ctc", "times": "ctc", "decoder": {}}}
    text = card("joint", RUN, model, RESULT)
    header = text.split("---")[1]
    assert "library_name: isotone" in header
    assert "license: apache-2.0" in header
    assert "Phones of read speech." in text
    assert "timit (phones 39)" in text
    assert "somebody" not in text
    assert "40 epochs of 8 utterances, learning rate 0.0002, seed 3" in text
    assert "| recognised | per | 6.50 % | 5.00 to 8.00 |" in text
    assert "| recognised | idr | 80.00 % | - |" in text
    assert "bias" not in text
    assert "peaky" not in text
    assert "Error rate on the test split: 12.50 %" in card("joint", RUN, model, {"error_rate": 0.125})
    assert "no test split" in card("joint", RUN, model, {})


def test_upload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: dict[str, Any] = {}

    class Api:
        def __init__(self, token: str | None = None) -> None:
            sent["token"] = token

        def create_repo(self, repository: str, **options: Any) -> str:
            return f"https://hub.example/{repository}?{options['private']}"

        def upload_folder(self, **options: Any) -> None:
            sent.update(options)
            sent["files"] = {p.name for p in Path(options["folder_path"]).iterdir()}

    monkeypatch.setattr("huggingface_hub.HfApi", Api)
    run = tmp_path / "run"
    save_character_model(run / "model")
    (run / "model" / "README.md").write_text("the card")
    url = push_to_hub(run, "me/joint", private=True, token="secret")
    assert url == "https://hub.example/me/joint?True"
    assert sent["repo_id"] == "me/joint"
    assert sent["token"] == "secret"
    assert sent["files"] >= {CONFIG, "model.safetensors", "README.md"}
    with pytest.raises(ModelError, match="holds no model"):
        push_to_hub(tmp_path, "me/joint")

    def unreachable(*_: object, **__: object) -> str:
        raise TransportError("name or service not known")

    monkeypatch.setattr(Api, "create_repo", unreachable)
    message = error_of("export", run, "--push", "me/joint")
    assert "me/joint was not uploaded" in message
    assert "name or service not known" in message


class TransportError(Exception):
    """As the HTTP libraries have them: no OSError."""


def test_a_model_is_not_exported_over_other_files(tmp_path: Path) -> None:
    run = tmp_path / "run"
    model_of(WAVE, LETTERS).save(run / "model")
    (run / "config.yaml").write_text("seed: 1")
    assert "run holds other files" in error_of("export", run, "--out", run)
    assert sorted(p.name for p in run.iterdir()) == ["config.yaml", "model"]


def test_the_command(tmp_path: Path) -> None:
    model_of(WAVE, LETTERS).save(tmp_path / "run" / "model")
    (tmp_path / "run" / "model" / "README.md").write_text("the card")
    output = isotone("export", tmp_path / "run", "--out", tmp_path / "theirs").output
    assert "Model:" in output
    assert (tmp_path / "theirs" / "README.md").read_text() == "the card"
    assert AutoModelForCTC.from_pretrained(tmp_path / "theirs").config.vocab_size == len(LETTERS)
    assert "Nothing to do" in error_of("export", tmp_path / "run")
    assert "looks 1 frames ahead" in error_of_ahead(tmp_path)


def error_of_ahead(folder: Path) -> str:
    model_of(ENCODER | {"lookahead_frames": 1}, LETTERS).save(folder / "ahead")
    return error_of("export", folder / "ahead", "--out", folder / "none")


def test_silence_is_no_hindrance(tmp_path: Path) -> None:
    """Exported phone models give phones with spaces between them, also in transformers' pipeline."""
    export_transformers(model_of(WAVE, PhoneTokenizer(PHONES)), tmp_path / "theirs")
    tokenizer = AutoProcessor.from_pretrained(tmp_path / "theirs").tokenizer
    assert tokenizer.decode(np.array([1, 0, 2, 2, 3, 0])) == "sil aa iy"
