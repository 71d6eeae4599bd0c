"""Audio of every kind works, and audio that cannot be used is explained."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from isotone import audio
from isotone import format as files
from tests.batch.parts import echo, say
from tests.tiny_models import error_of, isotone, lines_of, names_in, save_noise


@pytest.mark.parametrize(
    ("name", "rate", "channels", "subtype"),
    [
        ("u.wav", 16_000, 2, "PCM_16"),
        ("u.wav", 8_000, 1, "PCM_16"),
        ("u.wav", 44_100, 2, "PCM_24"),
        ("u.flac", 48_000, 1, "PCM_24"),
        ("u.wav", 22_050, 1, "FLOAT"),
        ("u.mp3", 44_100, 2, None),
        ("u.ogg", 16_000, 1, "VORBIS"),
        ("u.ogg", 48_000, 1, "OPUS"),
        ("u.aiff", 16_000, 1, "PCM_16"),
    ],
)
def test_audio_of_every_kind_works(
    model: Path, tmp_path: Path, name: str, rate: int, channels: int, subtype: str | None
) -> None:
    noise = np.random.default_rng(0).normal(0, 0.1, (2 * rate, channels))
    soundfile.write(tmp_path / name, noise, rate, subtype=subtype)
    (tmp_path / "u.txt").write_text("any sound")
    for command in ("align", "transcribe"):
        isotone(command, tmp_path / name, "-m", model, "-f", "json", "-o", tmp_path / command)
        assert files.read(tmp_path / command / "u.json").duration == pytest.approx(2.0, abs=0.06)
    assert files.read(tmp_path / "align/u.json").tier("words").labels == ["any", "sound"]


def empty(path: Path) -> None:
    path.touch()


def no_samples(path: Path) -> None:
    soundfile.write(path, np.zeros(0), 16_000)


def far_too_loud(path: Path) -> None:
    soundfile.write(path, np.full(16_000, 1e20, np.float32), 16_000, subtype="FLOAT")


def not_numbers(path: Path) -> None:
    samples = np.full(16_000, 0.1, np.float32)
    samples[8_000:8_003] = np.nan, np.inf, -np.inf
    soundfile.write(path, samples, 16_000, subtype="FLOAT")


def no_audio(path: Path) -> None:
    path.write_text("RIFF is what I say")


def shorter_than_a_frame(path: Path) -> None:
    soundfile.write(path, np.zeros(100), 16_000)


@pytest.mark.parametrize("command", [("align",), ("transcribe",), ("score-check",), ("search", "index")])
def test_an_empty_argument_is_not_the_current_folder(
    model: Path, tmp_path: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unset shell variable must not align everything in the current folder."""
    save_noise(tmp_path / "a.wav", text="so")
    monkeypatch.chdir(tmp_path)
    result = isotone(*command, "", "-m", model, code=2)
    assert "an empty argument" in result.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.txt", "a.wav"]


@pytest.mark.parametrize("command", ["align", "transcribe"])
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (empty, "empty (0 bytes)"),
        (no_samples, "no samples"),
        (not_numbers, "3 samples are not finite numbers of up to 1e15, the first at 0.5000 s"),
        (far_too_loud, "16000 samples are not finite numbers of up to 1e15, the first at 0.0000 s"),
        (no_audio, "not audio that "),
        (shorter_than_a_frame, "0.006 s of audio is too short"),
    ],
)
def test_audio_that_cannot_be_used_is_explained(
    model: Path, tmp_path: Path, command: str, make: Callable[[Path], None], message: str
) -> None:
    bad = tmp_path / "bad.wav"
    good = save_noise(tmp_path / "good.wav", text="so")
    bad.with_suffix(".txt").write_text("so")
    make(bad)
    result = isotone(command, bad, good, "-m", model, "-o", tmp_path / "out", code=1)
    assert message in result.stderr
    assert result.stderr.count(str(bad)) == 1, "the file is named once"
    (row,) = lines_of(tmp_path / "out/errors.jsonl")
    assert row["file"] == str(bad)
    assert message in row["error"]
    assert (tmp_path / "out/good.TextGrid").is_file()


@pytest.mark.parametrize("command", ["align", "transcribe"])
def test_a_folder_is_searched_whatever_its_name(model: Path, tmp_path: Path, command: str) -> None:
    folder, good = tmp_path / "bad.wav", save_noise(tmp_path / "good.wav", text="so")
    save_noise(folder / "inside.wav", text="so")
    isotone(command, folder, good, "-m", model, "-o", tmp_path / "out")
    found = [Path(n).stem for n in names_in(tmp_path / "out") if not n.endswith(".jsonl")]
    assert found == ["good", "inside"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_named_as_what_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "u.wav")
    with pytest.raises(audio.AudioError, match="is a pipe or a device"):
        audio.load(tmp_path / "u.wav")


def test_silence_is_aligned_with_a_warning(model: Path, tmp_path: Path) -> None:
    speech, silent = save_noise(tmp_path / "u.wav", text="so"), tmp_path / "silent.wav"
    soundfile.write(silent, np.zeros(16_000), 16_000)
    silent.with_suffix(".txt").write_text("so")
    isotone("align", speech, silent, "-m", model, "-o", tmp_path / "out")
    warnings = {row["file"]: row["warning"] for row in lines_of(tmp_path / "out/warnings.jsonl")}
    assert "its audio is silent" in warnings[str(silent)]
    assert "its audio is silent" not in warnings.get(str(speech), "")


def test_a_link_to_nothing_in_a_folder_is_an_error(model: Path, tmp_path: Path) -> None:
    save_noise(tmp_path / "in" / "good.wav", text="so")
    (tmp_path / "in" / "lost.wav").symlink_to(tmp_path / "gone.wav")
    isotone("align", tmp_path / "in", "-m", model, "-o", tmp_path / "out", code=1)
    (row,) = lines_of(tmp_path / "out/errors.jsonl")
    assert row["file"].endswith("lost.wav")
    assert "does not exist" in row["error"]
    assert (tmp_path / "out/good.TextGrid").is_file()


def test_a_file_that_is_not_there(model: Path, tmp_path: Path) -> None:
    good, gone = save_noise(tmp_path / "good.wav", text="so"), tmp_path / "gone.wav"
    assert f"No such file or folder: {gone}" in error_of("align", gone, "-m", model, "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert "does not exist" in error_of("align", gone, good, "-m", model, "-o", tmp_path / "out", code=1)
    assert (tmp_path / "out/good.TextGrid").is_file()


def test_a_folder_without_audio(model: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    assert "No audio (" in error_of("transcribe", tmp_path, "-m", model, "-o", tmp_path / "out")


@pytest.mark.parametrize("command", ["align", "transcribe"])
def test_texts_among_the_recordings_are_none(model: Path, tmp_path: Path, command: str) -> None:
    """A folder leaves them out, and so does a pattern, with a note."""
    good = save_noise(tmp_path / "in/good.wav", text="so")
    (tmp_path / "in/README.md").write_text("about these recordings")
    folder = isotone(command, tmp_path / "in", "-m", model, "-o", tmp_path / "folder")
    assert "README" not in folder.stderr
    done = isotone(command, *sorted((tmp_path / "in").iterdir()), "-m", model, "-o", tmp_path / "files")
    assert "1 of 1 files written" in done.stdout
    assert not (tmp_path / "files/errors.jsonl").exists()
    # one that is not there is told
    gone = isotone(command, tmp_path / "gone.md", good, "-m", model, "-o", tmp_path / "gone", code=1)
    assert "does not exist" in gone.stderr


def test_texts_that_are_left_out_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    say(tmp_path / "a.wav", "a")
    echo(sorted(tmp_path.iterdir()), tmp_path / "out")
    assert f"are left out: 1, the first is {tmp_path / 'a.txt'}" in caplog.text


def test_damaged_mp3s_are_explained_and_the_others_are_done(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    noise = np.random.default_rng(0).normal(0, 0.1, 4 * 16_000)
    for name in ("cut", "damaged", "good", "text"):
        soundfile.write(folder / f"{name}.mp3", noise, 16_000)
        (folder / f"{name}.txt").write_text("so")
    whole = (folder / "good.mp3").read_bytes()
    half, junk = len(whole) // 2, np.random.default_rng(1).bytes(4000)
    (folder / "cut.mp3").write_bytes(whole[:half])
    (folder / "damaged.mp3").write_bytes(whole[:half] + junk + whole[half + 4000 :])
    (folder / "text.mp3").write_text("just some words\n" * 40)
    isotone("align", folder, "-m", model, "-o", tmp_path / "out", code=1)
    errors = {Path(row["file"]).stem: row["error"] for row in lines_of(tmp_path / "out/errors.jsonl")}
    assert all("\n" not in error for error in errors.values())
    assert "cut short or damaged" in errors.pop("cut")
    assert "does not exist" not in errors["text"]
    assert "Format not recognised" in errors.pop("text")
    assert set(errors) <= {"damaged"}  # decoders may find their way
    assert (tmp_path / "out/good.TextGrid").is_file()
