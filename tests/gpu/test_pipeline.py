"""Alignment and recognition with the model on a GPU: the same words, at the same times as on the CPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from isotone.alignment import Alignment
from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.pipeline.result import Result
from isotone.pipeline.windows import Windows
from isotone.warping.features import open_features
from tests.conftest import speak
from tests.paths import DATA, ROOT
from tests.tiny_models import save_character_model, save_phone_model, save_transformers_model

#: Seconds by which a time may be off.
CLOSE_S = 1e-3
WORDS = "she", "see", "bob", "tea", "spa"


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[np.ndarray, str]]:
    """Words of tones, with little noise: of four, three, five and forty words."""
    folder, rng = tmp_path_factory.mktemp("tones"), np.random.default_rng(0)
    found = []
    for number, count in enumerate((4, 3, 5, 40)):
        words = [str(word) for word in rng.choice(WORDS, count)]
        speak(folder, str(number), words, rng)
        samples, _ = soundfile.read(folder / f"{number}.WAV", dtype="float32")
        found.append((samples, " ".join(words)))
    return found


def check_same(found: Result, expected: Result) -> None:
    """Check tiers, scores and warnings."""
    same_tiers(found.alignment, expected.alignment)
    assert found.text == expected.text
    assert found.score == pytest.approx(expected.score, abs=1e-3)
    assert found.agreement == (
        None if expected.agreement is None else pytest.approx(expected.agreement, abs=1e-3)
    )
    assert found.frameless == pytest.approx(expected.frameless, abs=1e-6)
    assert found.warnings == expected.warnings
    assert found.frames == expected.frames


def same_tiers(found: Alignment, expected: Alignment) -> None:
    for tier, other in zip(found.tiers, expected.tiers, strict=True):
        assert [segment.label for segment in tier] == [segment.label for segment in other]
        for one, two in zip(tier, other):
            assert one.start == pytest.approx(two.start, abs=CLOSE_S)
            assert one.end == pytest.approx(two.end, abs=CLOSE_S)
            assert one.score == (None if two.score is None else pytest.approx(two.score, abs=1e-2))
            assert one.confidence == (
                None if two.confidence is None else pytest.approx(two.confidence, abs=1e-2)
            )


def align_all(pipeline: Pipeline, recordings: list[tuple[np.ndarray, str]]) -> list[Result]:
    texts = [pipeline.encode(text) for _, text in recordings]
    ids = [str(i) for i in range(len(texts))]
    return pipeline.align_batch(ids, [samples for samples, _ in recordings], texts)


def model_of(kind: str, folder: Path) -> Path:
    if kind == "transformers":
        return save_transformers_model(folder / kind)
    return save_character_model(folder / kind, guide="ctc" if kind == "guided" else "")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"aligner": "ctc-torchaudio"},
        {"aligner": "soft-dtw"},
        {"aligner": "opas"},
        {"aligner": "segmental"},
        {"aligner": {"name": "segmental", "silence": 0, "subframe": True}, "extra_speech": True},
        {"edges": False},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["transformers", "characters", "guided"])
def test_alignment(
    kind: str, options: dict, recordings: list[tuple[np.ndarray, str]], tmp_path: Path, device: str
) -> None:
    folder = model_of(kind, tmp_path)
    few = recordings[:3]
    expected = align_all(Pipeline(Model.load(folder), **options), few)
    pipeline = Pipeline(Model.load(folder), device=device, **options)
    assert next(pipeline.model.parameters()).device.type == device
    for found, other in zip(align_all(pipeline, few), expected, strict=True):
        check_same(found, other)


def test_alignment_of_given_phones(
    recordings: list[tuple[np.ndarray, str]], tmp_path: Path, device: str
) -> None:
    folder = save_phone_model(tmp_path / "phones")
    phones = [(samples, "s iy sil t aa") for samples, _ in recordings[:3]]
    expected = align_all(Pipeline(Model.load(folder)), phones)
    for found, other in zip(
        align_all(Pipeline(Model.load(folder), device=device), phones), expected, strict=True
    ):
        check_same(found, other)


@pytest.mark.parametrize("kind", ["transformers", "guided"])
def test_long_audio(kind: str, recordings: list[tuple[np.ndarray, str]], tmp_path: Path, device: str) -> None:
    folder, long = model_of(kind, tmp_path), recordings[3:]
    windows = Windows(1.0, 0.5)
    assert windows.cut(len(long[0][0]) / 16_000)
    expected = align_all(Pipeline(Model.load(folder), windows=windows), long)
    found = align_all(Pipeline(Model.load(folder), windows=windows, device=device), long)
    check_same(found[0], expected[0])


@pytest.mark.parametrize("decoder", ["ctc-greedy", "ctc-beam"])
@pytest.mark.parametrize("kind", ["transformers", "characters"])
def test_recognition(
    kind: str, decoder: str, recordings: list[tuple[np.ndarray, str]], tmp_path: Path, device: str
) -> None:
    folder = model_of(kind, tmp_path)
    audio = [samples for samples, _ in recordings[:3]]
    ids = [str(i) for i in range(len(audio))]
    results = [
        Pipeline(Model.load(folder), decoder=decoder, device=where).transcribe_batch(ids, audio)
        for where in ("cpu", device)
    ]
    for expected, found in zip(*results, strict=True):
        check_same(found, expected)


@pytest.mark.parametrize(
    "reading",
    [{"rescore": 0.2, "decoder": {"name": "ctc-beam"}}, {"beside": "ctc", "share": 0.3}],
    ids=["rescored", "mixed"],
)
def test_two_heads(
    reading: dict, recordings: list[tuple[np.ndarray, str]], tmp_path: Path, device: str
) -> None:
    folder = model_of("guided", tmp_path)
    few, results = recordings[:3], []
    for where in ("cpu", device):
        model = Model.load(folder)
        model.decoding = replace(model.decoding, **reading)
        pipeline = Pipeline(model, device=where)
        spoken = pipeline.transcribe_batch(["0", "1", "2"], [samples for samples, _ in few])
        results.append([*spoken, *align_all(pipeline, few)])
    for expected, found in zip(*results, strict=True):
        check_same(found, expected)


def test_emissions_stay_on_the_device(
    recordings: list[tuple[np.ndarray, str]], tmp_path: Path, device: str
) -> None:
    """Frames times labels are the bulk of what a model gives; the CPU gets the paths."""
    pipeline = Pipeline(Model.load(model_of("transformers", tmp_path)), device=device)
    for part in (recordings[:3], recordings[3:]):
        found = pipeline.emitter([""] * len(part), [samples for samples, _ in part], {"ctc"})
        assert found["ctc"].logits.device.type == device


def pack_recordings() -> list[tuple[np.ndarray, str]]:
    folder = DATA / "ljspeech"
    lines = (folder / "metadata.csv").read_text(encoding="utf-8").splitlines()[:3]
    rows = [line.split("|") for line in lines]
    found = [(soundfile.read(folder / f"{name}.flac", dtype="float32"), text) for name, text in rows]
    assert {rate for (_, rate), _ in found} == {16_000}
    return [(samples, text) for (samples, _), text in found]


@pytest.fixture(scope="module")
def english() -> Model:
    if not (ROOT / "plugins/isotone_english/model").is_dir():
        pytest.skip("the pack's weights are not built")
    return Model.load("english")


def test_english_pack(english: Model, recordings: list[tuple[np.ndarray, str]], device: str) -> None:
    """Tones are not speech, but words have readings, closures and pauses there too, and music has edges."""
    expected = align_all(Pipeline(english), recordings[:3])
    for found, other in zip(
        align_all(Pipeline(english, device=device), recordings[:3]), expected, strict=True
    ):
        check_same(found, other)


@pytest.mark.skipif(not (DATA / "ljspeech").is_dir(), reason=f"no speech in {DATA}")
@pytest.mark.parametrize("edges", [0.0, 8.0])
def test_english_pack_on_speech(english: Model, edges: float, device: str) -> None:
    """Real speech; then with other sounds around it, which stars at both ends take."""
    rng = np.random.default_rng(0)
    padding = (
        rng.normal(0, 0.1, round(edges * 16_000)) * np.sin(np.arange(round(edges * 16_000)) / 4000)
    ).astype(np.float32)
    speech = [(np.concatenate([padding, samples, padding]), text) for samples, text in pack_recordings()]
    for samples, text in speech:
        pipeline = Pipeline(english)
        expected = pipeline.align("", samples, pipeline.encode(text))
        pipeline = Pipeline(english, device=device)
        check_same(pipeline.align("", samples, pipeline.encode(text)), expected)


@pytest.mark.parametrize("name", ["phones", "layer:1", "log-mel+phones"])
def test_features_of_a_model(
    name: str, recordings: list[tuple[np.ndarray, str]], tmp_path: Path, device: str
) -> None:
    folder, samples = str(model_of("characters", tmp_path)), recordings[0][0]
    expected, found = (open_features(name, folder, where)(samples) for where in ("cpu", device))
    assert found.device.type == "cpu"  # warping is done there
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)
