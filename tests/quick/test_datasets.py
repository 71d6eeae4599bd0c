"""Data sets in, data sets with a column of words out."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
import soundfile

import isotone
from tests.tiny_models import save_character_model, save_noise

datasets = pytest.importorskip("datasets")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_character_model(tmp_path_factory.mktemp("model") / "m")


def test_every_row_gets_its_words(
    model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, c = (save_noise(tmp_path / f"{n}.wav", 1.5, seed=i) for i, n in enumerate("abc"))
    rows = {
        "audio": [str(a), str(b), str(c), str(tmp_path / "gone.wav")],
        "text": ["so it is", "on", "--", "gone"],
        "speaker": ["1", "2", "3", "4"],
    }
    given = datasets.Dataset.from_dict(rows).cast_column("audio", datasets.Audio())
    with caplog.at_level(logging.WARNING):
        found = isotone.align_dataset(given, model=model, batch_size=2)
    assert found.column_names == ["audio", "text", "speaker", "words"]
    assert found.features["audio"] == given.features["audio"]
    words = found["words"][:]
    assert [[w["word"] for w in row] if row else row for row in words] == [
        ["so", "it", "is"],
        ["on"],
        None,
        None,
    ]
    assert "gone" in caplog.text
    expected = isotone.align(a, "so it is", model=model).words
    assert [(w["start"], w["end"]) for w in words[0]] == [
        pytest.approx((s.start, s.end), abs=1e-6) for s in expected
    ]


def test_arrays_and_segments_with_times(model: Path) -> None:
    noise = np.random.default_rng(0).normal(0, 0.1, 64_000).astype(np.float32)
    segments = [
        {"start": 0.5, "end": 1.5, "text": "so it", "speaker": "A"},
        {"start": 2.5, "end": 3.5, "text": "is", "speaker": "B"},
    ]
    given = datasets.Dataset.from_dict(
        {"sound": [{"array": noise, "sampling_rate": 16_000}], "segments": [segments]}
    )
    found = isotone.align_dataset(given, audio="sound", text="segments", column="timed", model=model)
    (row,) = found["timed"][:]
    assert [(w["word"], w["speaker"]) for w in row] == [("so", "A"), ("it", "A"), ("is", "B")]
    assert row[2]["start"] >= 1.5


def test_rows_that_are_subtitles_are_without_what_they_describe_in_brackets(
    model: Path, tmp_path: Path
) -> None:
    speech, cues = save_noise(tmp_path / "a.wav", 4.0), tmp_path / "a.srt"
    cues.write_text("1\n00:00:00,500 --> 00:00:01,500\n[a dog barks]\nso it\n")
    given = datasets.Dataset.from_dict({"audio": [str(speech)], "text": [str(cues)]})
    given = given.with_transform(lambda rows: {**rows, "text": [Path(name) for name in rows["text"]]})

    def words(**options: bool) -> list[str]:
        (row,) = isotone.align_dataset(given, model=model, **options).with_format(None)["words"]
        return [word["word"] for word in row]

    assert words() == ["so", "it"]
    assert words(keep_markup=True) == ["[a", "dog", "barks]", "so", "it"]


@pytest.mark.parametrize("held", ["path", "bytes"])
def test_speakers_have_their_channels_as_in_single_recordings(model: Path, tmp_path: Path, held: str) -> None:
    noise = np.random.default_rng(0).normal(0, 0.1, (2, 32_000))
    soundfile.write(tmp_path / "two.wav", noise.T, 16_000)
    text = [{"start": 0.0, "end": 2.0, "text": "so it is", "speaker": name} for name in "AB"]
    given = datasets.Dataset.from_dict({"audio": [str(tmp_path / "two.wav")], "text": [text]})
    if held == "bytes":
        row = {"path": "two.wav", "bytes": (tmp_path / "two.wav").read_bytes()}
        given = datasets.Dataset.from_dict({"audio": [row], "text": [text]})

    def starts(way: str) -> dict[str, list[float]]:
        (words,) = isotone.align_dataset(given, model=model, channels=way)["words"]
        return {name: [w["start"] for w in words if w["speaker"] == name] for name in "AB"}

    alone = isotone.align(tmp_path / "two.wav", text, model=model, channels="order").alignment
    expected = {name: [s.start for s in alone.tier(f"{name} - words")] for name in "AB"}
    assert starts("order") == {name: pytest.approx(times, abs=1e-6) for name, times in expected.items()}
    assert starts("mix") != starts("order")


def test_columns_that_are_not_there_or_are_already(model: Path) -> None:
    given = datasets.Dataset.from_dict({"audio": ["a.wav"], "text": ["so"], "words": ["x"]})
    with pytest.raises(ValueError, match="no column 'transcript'; it has audio, text, words"):
        isotone.align_dataset(given, text="transcript", model=model)
    with pytest.raises(ValueError, match="a column 'words' already"):
        isotone.align_dataset(given, model=model)
