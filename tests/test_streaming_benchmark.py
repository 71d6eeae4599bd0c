"""``python -m benchmarks.streaming``: its table, on noise with a small model, and how recordings are joined."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from benchmarks import streaming
from tests.quick.test_streaming import TEXT, noise
from tests.tiny_models import save_character_model

RATE = 16_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a/1", "a/2", "a/3", "b/1"):
        path = tmp_path / "speech" / f"{name}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, noise(2), RATE)
        path.with_suffix(".txt").write_text(TEXT)
    return tmp_path / "speech"


def measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: object
) -> list[str]:
    monkeypatch.setattr("sys.argv", ["streaming", *map(str, words)])
    streaming.main()
    return capsys.readouterr().out.splitlines()


def test_recordings_of_one_folder_are_joined(folder: Path) -> None:
    found = [(len(samples) / RATE, text) for samples, text in streaming.joined(folder, 4.0)]
    assert found == [(4.0, f"{TEXT} {TEXT}"), (2.0, TEXT), (2.0, TEXT)]


def test_the_table(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = save_character_model(tmp_path / "model")
    head, _, row = measured(monkeypatch, capsys, folder, "--model", model, "--most", 3)
    cells = dict(zip((c.strip() for c in head.split("|")[2:-1]), (c.strip() for c in row.split("|")[2:-1])))
    assert (cells["recordings"], cells["min"], cells["words"]) == ("3", "0.1", "12")
    assert 0 < float(cells["s per s"]) < 10
    (line,) = measured(monkeypatch, capsys, folder, "--model", model, "--hours", 5 / 3600)
    assert line.startswith("5 s: ")


def test_errors_are_against_the_whole() -> None:
    from isotone.alignment import Segment
    from isotone.pipeline.live.stream import Spoken

    word = Spoken(0, "well", 0, 4, Segment("well", 1.0, 1.5))
    assert streaming._errors(word, 1.25, 1.25) == (-0.25, 0.25)
    assert streaming._errors(Spoken(0, "well", 0, 4, None), 1.0, 1.5) == (np.inf, np.inf)
