"""``align --book``: recordings of a book with its whole text, and the report on its chapters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from isotone import format as files
from isotone.text.espeak import SAMPLE_RATE, Engine
from tests.paths import ROOT
from tests.tiny_models import error_of, isotone, lines_of, save_noise

CHAPTERS = (
    "The old house stood at the end of a long lane, where nobody had walked for years. Its windows were broken, and "
    "ivy grew over the door. On winter nights the wind sang in the chimney, and the children of the village said that "
    "somebody was singing there.",
    "Doctor Manning bought it in the spring. He mended the roof, painted every wall, and planted seven apple trees. "
    "People came to look at him over the fence, and he gave them tea and cake. By the end of summer he had more "
    "friends than anybody in the county.",
    "Then came a stranger with a heavy brown bag. She asked for a room, paid in gold, and never told her name. Every "
    "morning she went down to the river with a map, and every evening she came back with mud on her shoes and nothing "
    "to say.",
)
TITLES = ("The House", "The Doctor", "The Stranger")
INTRO = "This is a public recording. It was made by people who like to read to others."
OTHER = (
    "Put the flour into a bowl and add two eggs with a little milk. Stir until there are no lumps, and let it rest for "
    "half an hour. Heat some butter in a pan, and bake thin cakes on both sides."
)


def book() -> str:
    text = "*** START OF THE BOOK ***\n\nCONTENTS\n\n"
    text += "".join(f"CHAPTER {n}. {title}\n" for n, title in enumerate(TITLES, 1))
    for n, (title, words) in enumerate(zip(TITLES, CHAPTERS), 1):
        text += f"\n\nCHAPTER {n}. {title}\n\n{words}\n\n       *       *       *\n"
    return text + "\n*** END OF THE BOOK ***\n\nYou may copy this book and give it to whom you like.\n"


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two chapters with a stranger's introduction, and a recording of something else."""
    if not (ROOT / "plugins/isotone_english/model").is_dir():
        pytest.skip("the pack's weights are not built")
    pytest.importorskip("espeakng_loader", reason="espeak-ng is an extra")
    folder, engine = tmp_path_factory.mktemp("audiobook"), Engine()
    intro = engine.say(INTRO, voice="en-us+m3").samples
    said = {"a/one": CHAPTERS[0], "b/three": CHAPTERS[2], "cakes": OTHER}
    for name, words in said.items():
        (folder / name).parent.mkdir(exist_ok=True)
        pause = np.zeros(SAMPLE_RATE // 4, np.int16)
        samples = np.concatenate([intro, pause, engine.say(words, voice="en-us+f2").samples])
        soundfile.write(folder / f"{name}.wav", samples, SAMPLE_RATE)
    return folder


def words_of(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text())["tiers"][0]["segments"]


def test_each_recording_has_its_part_of_the_book(recordings: Path, tmp_path: Path) -> None:
    text = book()
    (tmp_path / "book.txt").write_text(text)
    out = tmp_path / "out"
    command = ("align", recordings, "--book", tmp_path / "book.txt", "-f", "json", "-o", out)
    printed = isotone(*command, code=1).output
    begins = soundfile.info(recordings / "cakes.wav").duration  # of nothing: the introduction is shorter
    for name, chapter in (("a/one", CHAPTERS[0]), ("b/three", CHAPTERS[2])):
        words = words_of(out / f"{name}.json")
        assert [w["text"] for w in words] == chapter.split()
        assert all(text[w["start_char"] : w["end_char"]] == w["text"] for w in words)
        assert words[0]["start_char"] == text.index(chapter)
        assert 4 < words[0]["start"] < begins
    report = json.loads((out / "book.json").read_text())
    shown = [(c["title"], c["read"] == 1, c["recordings"]) for c in report["chapters"]]
    assert shown == [
        ("CHAPTER 1. The House", True, ["a/one"]), ("CHAPTER 2. The Doctor", False, []),
        ("CHAPTER 3. The Stranger", True, ["b/three"]),
    ]  # fmt: skip
    by_id = {row["id"]: row for row in report["recordings"]}
    assert by_id["a/one"]["parts"][0]["chapters"] == ["CHAPTER 1. The House"]
    assert by_id["a/one"]["other_speech"][0]["end"] < by_id["a/one"]["parts"][0]["start"] + 0.5
    assert [row["id"] for row in report["failed"]] == ["cakes"]
    assert "no recording of this book" in lines_of(out / "errors.jsonl")[0]["error"]
    assert "No recording: CHAPTER 2. The Doctor" in printed
    assert "Chapters: 2 of 3 are read to the end" in printed
    _again(recordings, tmp_path, command)


def _again(recordings: Path, tmp_path: Path, command: tuple[str | Path, ...]) -> None:
    """What is done is not done again, until the book is another."""
    out, path = tmp_path / "out", tmp_path / "book.txt"
    before = (out / "book.json").read_bytes()
    assert "2 of them there before" in isotone(*command, code=1).output
    assert (out / "book.json").read_bytes() == before
    path.write_text("A new first line.\n\n" + book())
    assert "there before" not in isotone(*command, code=1).output
    words = words_of(out / "a/one.json")
    assert words[0]["start_char"] == path.read_text().index(CHAPTERS[0])


def test_wrong_uses_are_refused_before_a_model_is_loaded(model: Path, tmp_path: Path) -> None:
    speech = save_noise(tmp_path / "talk.wav", 2.0)
    text = tmp_path / "book.txt"
    text.write_text("So it is.")
    (tmp_path / "talk.srt").write_text("1\n00:00:00,000 --> 00:00:01,000\nSo it is.\n")
    (tmp_path / "empty.txt").write_text(" \n")
    common = ("align", speech, "-m", model, "-o", tmp_path / "out", "--book")
    assert "No book" in error_of(*common, tmp_path / "none.txt")
    assert "the text of all recordings" in error_of(*common, text, "--text", text)
    assert "the text of all recordings" in error_of(*common, text, "--text-dir", tmp_path)
    assert "the text of all recordings" in error_of("align", speech, text, *common[2:], text)
    assert "no plain text" in error_of(*common, tmp_path / "talk.srt")
    assert "is empty" in error_of(*common, tmp_path / "empty.txt")
    assert not (tmp_path / "out").exists()


def test_noise_is_no_recording_of_a_book(model: Path, tmp_path: Path) -> None:
    save_noise(tmp_path / "in/noise.wav", 3.0)
    save_noise(tmp_path / "in/short.wav", 0.001)
    (tmp_path / "book.txt").write_text(book())
    isotone(
        "align", tmp_path / "in", "--book", tmp_path / "book.txt", "-m", model, "-o", tmp_path / "out", code=1
    )
    errors = {Path(row["file"]).stem: row["error"] for row in lines_of(tmp_path / "out/errors.jsonl")}
    assert "no recording of this book" in errors["noise"]
    assert "too short" in errors["short"]
    report = json.loads((tmp_path / "out/book.json").read_text())
    assert [chapter["read"] for chapter in report["chapters"]] == [0.0] * 3


def test_pages_and_tables_of_a_book(recordings: Path, tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text(CHAPTERS[0])
    command = ("align", recordings / "a/one.wav", "--book", tmp_path / "book.txt", "--page", "--analysis")
    isotone(*command, "-o", tmp_path / "out")
    assert (tmp_path / "out/one.page.html").stat().st_size > 100_000
    assert "\none,0.0," in (tmp_path / "out/alignment_analysis.csv").read_text()
    assert files.read(tmp_path / "out/one.TextGrid").tier("words").labels == CHAPTERS[0].split()
    assert json.loads((tmp_path / "out/book.json").read_text())["chapters"] == []
