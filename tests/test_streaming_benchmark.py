"""``python -m benchmarks.streaming``: its table, on noise with a small model, and how recordings are joined."""

from __future__ import annotations

from pathlib import Path

import pytest
import soundfile

from benchmarks import streaming
from isotone.alignment import Segment
from isotone.pipeline.live.stream import Spoken
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
    assert cells["moved ms"].isdigit()


def test_one_long_recording(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = save_character_model(tmp_path / "model")
    options = ("--model", model, "--hours", 5 / 3600, "--every", 2)
    head, _, *rows = measured(monkeypatch, capsys, folder, *options)
    names = [cell.strip() for cell in head.split("|")]
    states = [dict(zip(names, (cell.strip() for cell in row.split("|")))) for row in rows]
    # folders are joined as well; after 2, 4 and 6 s, and when it is over
    assert [state["recordings"] for state in states] == ["1"] * 4
    assert [state["min"] for state in states] == ["0.0", "0.1", "0.1", "0.1"]
    assert states[-1]["words"] == "12"
    assert all(float(state["MiB"]) > 50 for state in states)


def test_words_are_followed_from_when_they_are_given() -> None:
    def given(*times: float) -> Spoken:
        return Spoken(0, "well", 0, 4, Segment("well", times[0], times[1]) if times else None)

    word = streaming.Followed((1.0, 1.5), (1.25, 1.5), 2.0)
    for now_s, times in ((2.0, (1.25, 1.5)), (3.0, (1.25, 2.0)), (4.0, ()), (5.0, (1.0, 1.5))):
        word.take(given(*times), now_s)
    assert (word.last, word.last_s, word.moved_s) == ((1.0, 1.5), 5.0, 0.5)
    found = streaming.Found(1, 60.0, 6.0, [word, streaming.Followed((2.0, 2.5), None, 3.0, None, 3.0)])
    expected = "1 1.0 2 0.0 50.0 50.0 50.0 50.0 500 3.0 1 500 500 0.10"
    assert found.row() == expected.split()
