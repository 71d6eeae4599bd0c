"""Models on disk: written, read back, damaged, and those of transformers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import Wav2Vec2ForCTC, Wav2Vec2Processor

from isotone.audio import load
from isotone.interfaces import Head
from isotone.model.encoder import SpeechEncoder
from isotone.model.model import CONFIG, WEIGHTS, DecodingConfig, Model, ModelError
from isotone.pipeline import Pipeline
from isotone.registries import heads
from isotone.text.tokenizer import PhoneTokenizer
from isotone.training.objective import Objective
from isotone.types import Emissions, Frames
from tests.tiny_models import (
    ENCODER,
    PHONES,
    save_character_model,
    save_noise,
    save_phone_model,
    save_transformers_model,
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    return {
        "characters": save_character_model(root / "characters"),
        "phones": save_phone_model(root / "phones"),
        "transformers": save_transformers_model(root / "transformers"),
    }


def batch(sizes: tuple[int, ...] = (12_000, 8000)) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(0)
    return torch.randn(len(sizes), max(sizes), generator=rng) * 0.1, torch.tensor(sizes)


def emissions(model: Model, *args: Any) -> dict[str, Emissions]:
    with torch.inference_mode():
        return model(*batch(), *args)


def damaged(folder: Path, copy: Path) -> Path:
    shutil.copytree(folder, copy)
    return copy


@pytest.mark.parametrize("kind", ["characters", "phones", "transformers"])
def test_round_trip(kind: str, folders: dict[str, Path], tmp_path: Path) -> None:
    model = Model.load(folders[kind])
    assert not model.training
    model.save(tmp_path / "again")
    again = Model.load(tmp_path / "again")
    assert not again.training
    assert again.decoding == model.decoding
    assert again.tokenizer.labels == model.tokenizer.labels
    mine, theirs = emissions(model), emissions(again)
    assert mine.keys() == theirs.keys()
    for name in mine:
        assert torch.equal(mine[name].logits, theirs[name].logits)
        assert mine[name].grid == theirs[name].grid
        assert mine[name].blank == theirs[name].blank
        if name == "ottc":
            assert torch.equal(mine[name].weights(), theirs[name].weights())
    assert not list(tmp_path.glob(".*"))  # nothing temporary is left


def test_half_precision_halves_the_file_and_is_loaded_in_full(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    model = Model.load(folders["phones"])
    model.save(tmp_path / "half", half=True)
    loaded = Model.load(tmp_path / "half")
    sizes = [(folder / WEIGHTS).stat().st_size for folder in (tmp_path / "half", folders["phones"])]
    assert sizes[0] < 0.6 * sizes[1]
    for name, value in model.state_dict().items():
        found = loaded.state_dict()[name]
        assert found.dtype == value.dtype
        assert torch.allclose(found, value, rtol=1e-3, atol=1e-6)


def test_saving_over_a_model_replaces_it(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = damaged(folders["phones"], tmp_path / "model")
    (folder / "README.md").write_text("its card")
    (folder / "notes.txt").write_text("mine")
    model = Model.load(folders["characters"])
    with pytest.raises(FileExistsError, match=r"other files \(notes\.txt\), which would be lost"):
        model.save(folder)
    assert (folder / "notes.txt").read_text() == "mine"
    (folder / "notes.txt").unlink()
    model.save(folder)
    assert (folder / "README.md").read_text() == "its card"
    assert Model.load(folder).tokenizer.unit == "characters"


def test_run_folder(folders: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(folders["phones"], tmp_path / "run" / "model")
    (tmp_path / "run" / "config.yaml").write_text("seed: 0\n")
    assert Model.load(tmp_path / "run").tokenizer.labels == PHONES
    assert Model.load(str(tmp_path / "run" / "model")).tokenizer.labels == PHONES


def test_only_the_heads_that_are_asked_for(folders: dict[str, Path]) -> None:
    model = Model.load(folders["characters"])
    assert set(emissions(model)) == {"ctc", "ottc"}
    assert set(emissions(model, {"ottc"})) == {"ottc"}
    both = emissions(model)
    assert torch.equal(emissions(model, {"ctc"})["ctc"].logits, both["ctc"].logits)


def test_further_heads_draw_random_numbers_of_their_own(folders: dict[str, Path]) -> None:
    model = Model.load(folders["characters"]).train()
    model.encoder.eval()
    model.heads["ctc"].eval()

    def logits(progress: float) -> torch.Tensor:
        model.heads["ottc"].progress = progress
        return emissions(model)["ottc"].logits

    torch.manual_seed(0)
    before = torch.get_rng_state()
    first = logits(0.1)
    assert torch.equal(torch.get_rng_state(), before)  # none was taken from the stream, and yet
    assert not torch.equal(logits(0.2), first)
    assert torch.equal(logits(0.1), first)
    torch.rand(1)
    assert not torch.equal(logits(0.1), first)


def test_damaged_folders(folders: dict[str, Path], tmp_path: Path) -> None:
    source = folders["phones"]

    def expect(message: str, folder: Path) -> None:
        with pytest.raises(ModelError, match=message):
            Model.load(folder)

    cut = damaged(source, tmp_path / "cut")
    (cut / WEIGHTS).write_bytes((source / WEIGHTS).read_bytes()[:-100])
    expect(rf"cut/{WEIGHTS} is damaged", cut)
    noise = damaged(source, tmp_path / "noise")
    (noise / WEIGHTS).write_bytes(b"no weights at all")
    expect("is damaged", noise)
    gone = damaged(source, tmp_path / "gone")
    (gone / WEIGHTS).unlink()
    expect(f"no weights: {WEIGHTS} is not there", gone)
    other = damaged(source, tmp_path / "other")
    shutil.copy(folders["characters"] / WEIGHTS, other / WEIGHTS)
    expect("does not fit the model's configuration", other)
    newer = damaged(source, tmp_path / "newer")
    config = json.loads((source / CONFIG).read_text())
    (newer / CONFIG).write_text(json.dumps(config | {"format": 2}))
    expect(r"format 2 is not one this version reads \(1\)", newer)
    (newer / CONFIG).write_text('{"format": 1, "hea')
    expect(f"{CONFIG} is damaged", newer)
    (newer / CONFIG).write_text("[1]")
    expect("not one this version reads", newer)
    (tmp_path / "empty").mkdir()
    expect(rf"holds no model: expected {CONFIG}", tmp_path / "empty")
    with pytest.raises(OSError, match="no/such/model"):
        Model.load(tmp_path / "no" / "such" / "model")


def test_readings_and_heads_that_are_not_there() -> None:
    encoder, tokenizer = SpeechEncoder(ENCODER), PhoneTokenizer(PHONES)
    with pytest.raises(ModelError, match=r"from a head 'otc'; the model has \['ctc'\]"):
        Model(encoder, {"ctc": {"name": "ctc"}}, tokenizer, DecodingConfig("ctc", {}, "otc"))
    with pytest.raises(ModelError, match="head 'ctc' needs a mapping with a 'name'"):
        Model(encoder, {"ctc": "ctc"}, tokenizer, DecodingConfig("ctc", {}))  # type: ignore[dict-item]
    with pytest.raises(LookupError, match="No head named 'ctcc'"):
        Model(encoder, {"ctc": {"name": "ctcc"}}, tokenizer, DecodingConfig("ctc", {}))


def test_a_head_that_always_reads_the_same(register: Callable[..., None]) -> None:
    """A head needs no option ``reads``: its class may have the attribute."""

    class Bands(Head):
        reads = "features"

        def __init__(self, input_size: int, vocab_size: int, blank: int = 0) -> None:
            super().__init__()
            self.blank = blank
            self.linear = torch.nn.Linear(input_size, vocab_size)

        def forward(self, frames: Frames) -> Emissions:
            return Emissions(self.linear(frames.values), frames.lengths, frames.grid, self.blank)

    register(heads, "test-bands", Bands)
    specs = {"bands": {"name": "test-bands"}}
    model = Model(SpeechEncoder(ENCODER), specs, PhoneTokenizer(PHONES), DecodingConfig("bands", {}))
    assert emissions(model)["bands"].logits.shape == (2, 36, len(PHONES))


def test_progress_reaches_the_heads_and_the_losses(folders: dict[str, Path]) -> None:
    model = Model.load(folders["characters"])
    terms = {name: {"head": name, "loss": {"name": "ctc"}, "weight": 1.0} for name in model.heads}
    objective = Objective(model, terms)
    assert all(head.progress == 1.0 for head in model.heads.values())
    objective.set_progress(0.25)
    assert all(head.progress == 0.25 for head in model.heads.values())
    assert all(loss.progress == 0.25 for loss in objective.losses.values())


# What others trained: Wav2Vec2ForCTC with its processor.


def test_a_model_of_transformers(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = folders["transformers"]
    path = save_noise(tmp_path / "noise.wav")
    samples = load(path, 16_000)
    model = Model.load(folder)
    processor, theirs = (
        Wav2Vec2Processor.from_pretrained(folder),
        Wav2Vec2ForCTC.from_pretrained(folder).eval(),
    )
    inputs = processor(samples, sampling_rate=16_000, return_tensors="pt")
    with torch.inference_mode():
        expected = theirs(inputs["input_values"]).logits
        ours = model(torch.from_numpy(samples)[None], torch.tensor([len(samples)]))["ctc"]
    torch.testing.assert_close(ours.logits, expected, rtol=1e-4, atol=1e-4)
    assert model.tokenizer.labels[model.tokenizer.blank] == "<pad>"

    pipeline = Pipeline(model)
    result = pipeline.transcribe("noise", samples)
    assert result.text == processor.batch_decode(expected.argmax(-1))[0]
    assert result.text
    assert [s.label for s in result.alignment.tier("words")] == result.text.split()
    aligned = pipeline.align("noise", samples, model.tokenizer.encode("Hello, world!")).alignment
    assert aligned.tier("words").labels == ["Hello,", "world!"]
    assert "".join(aligned.tier("characters").labels) == "HELLOWORLD"


def test_a_hub_id_from_the_local_cache(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model downloaded once loads without a network, with its tokenizer."""
    import huggingface_hub.constants

    repository = tmp_path / "models--somebody--tiny-ctc"
    shutil.copytree(folders["transformers"], repository / "snapshots" / "0123abcd")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0123abcd")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    model, local = Model.load("somebody/tiny-ctc"), Model.load(folders["transformers"])
    assert model.tokenizer.labels == local.tokenizer.labels
    assert torch.equal(emissions(model)["ctc"].logits, emissions(local)["ctc"].logits)


def test_vocabularies_of_other_sizes(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = damaged(folders["transformers"], tmp_path / "model")
    vocabulary = json.loads((folder / "vocab.json").read_text())
    last = max(vocabulary, key=vocabulary.__getitem__)
    (folder / "vocab.json").write_text(json.dumps({k: v for k, v in vocabulary.items() if k != last}))
    whole, cut = emissions(Model.load(folders["transformers"]))["ctc"], emissions(Model.load(folder))["ctc"]
    assert torch.equal(cut.logits, whole.logits[..., :-1])  # a label without a name is never said
    (folder / "vocab.json").write_text(json.dumps(vocabulary | {"ñ": len(vocabulary)}))
    with pytest.raises(ModelError, match=r"tokenizer has 33 labels, the model 32"):
        Model.load(folder)


def test_a_model_without_a_ctc_head_is_refused(tmp_path: Path) -> None:
    SpeechEncoder(ENCODER).model.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"'Wav2Vec2BertModel'.*ForCTC"):
        Model.load(tmp_path)
