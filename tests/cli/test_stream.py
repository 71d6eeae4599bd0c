"""The command ``stream``: raw samples in, a line of JSON per word out."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from isotone.cli import app
from tests.quick.test_streaming import TEXT, noise
from tests.tiny_models import save_character_model

KEYS = ["number", "word", "start", "end", "score", "start_char", "end_char", "corrects"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_character_model(tmp_path_factory.mktemp("models") / "characters")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return path


def stream(text: Path, data: bytes, *options: object) -> Result:
    return CliRunner().invoke(app, ["stream", str(text), *map(str, options)], input=data)


def pcm(samples: np.ndarray) -> bytes:
    return np.round(samples * 32767).astype("<i2").tobytes()


def test_a_line_per_word(text: Path, model: Path) -> None:
    done = stream(text, pcm(noise(4)), "--model", model)
    assert done.exit_code == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert all([*row] == KEYS for row in rows)
    assert [row["word"] for row in rows if not row["corrects"]] == TEXT.split()


def test_kinds_of_samples_give_the_same(text: Path, model: Path) -> None:
    samples = np.round(noise(3) * 32767) / 32768
    shorts = (samples * 32768).astype("<i2")
    expected = stream(text, shorts.tobytes(), "-m", model).stdout
    assert expected
    assert stream(text, samples.astype("<f4").tobytes(), "-m", model, "--sample", "f32").stdout == expected
    both = np.repeat(shorts, 2).tobytes()
    assert stream(text, both, "-m", model, "--channels", 2).stdout == expected
    assert stream(text, shorts.tobytes() + b"\1", "-m", model).stdout == expected  # half a sample at the end


def test_texts_of_other_encodings_are_read(tmp_path: Path, model: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes("The café is here, où est le café.".encode("cp1252"))
    done = stream(path, b"", "-m", model)
    assert json.loads(done.stdout.splitlines()[1])["word"] == "café"
    assert "note: " in done.stderr


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "talk.srt",
            "1\n00:00:00,000 --> 00:00:02,500\nwell then,\n\n2\n00:00:02,500 --> 00:00:04,000\ngo on\n",
        ),
        (
            "talk.txt",
            "WEBVTT\n\n00:00.000 --> 00:02.500\nwell then,\n\n00:02.500 --> 00:04.000\ngo on [door slams]\n",
        ),
        ("talk.ctm", "a B 3.0 0.5 go\na B 3.5 0.5 on\na A 0.0 0.5 well\na A 0.5 0.5 then,\n"),
        ("talk.json", json.dumps([{"text": "well then,"}, {"text": "go on"}])),
    ],
)
def test_transcripts_of_any_kind_are_texts(tmp_path: Path, model: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    done = stream(path, b"", "-m", model)
    assert done.exit_code == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["word"] for row in rows] == TEXT.split()
    assert [(row["start_char"], row["end_char"]) for row in rows] == [(0, 4), (5, 10), (11, 13), (14, 16)]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "talk.ctm",
            "a A 0.0 0.5 well\nb A 0.5 0.5 then\n",
            "has the transcripts of 2 recordings: expected the text of",
        ),
        ("talk.docx", "PK\3\4", "expected a transcript in plain text or with times"),
        ("talk.txt", " \n", "is empty: expected a text"),
    ],
)
def test_what_is_no_text_is_refused(
    tmp_path: Path, model: Path, name: str, content: str, message: str
) -> None:
    path = tmp_path / name
    path.write_text(content)
    done = stream(path, b"", "-m", model)
    assert done.exit_code == 2
    assert str(path) in done.stderr
    assert message in done.stderr


def test_words_that_were_not_heard_are_said(text: Path, model: Path) -> None:
    done = stream(text, b"", "-m", model)
    assert done.exit_code == 0
    assert [json.loads(line)["start"] for line in done.stdout.splitlines()] == [None] * 4
    assert "4 words of the text were not heard." in done.stderr


def test_files_of_audio_and_wrong_options_are_refused(text: Path, model: Path, tmp_path: Path) -> None:
    file = io.BytesIO()
    with wave.open(file, "wb") as wav:
        wav.setparams((1, 2, 16_000, 0, "NONE", ""))
        wav.writeframes(pcm(noise(1)))
    done = stream(text, file.getvalue(), "-m", model)
    assert done.exit_code == 2
    assert "header of an audio file; expected raw ones" in done.stderr
    for wrong in (("--sample", "s24"), ("--channels", 0), ("--rate", 0)):
        assert "--sample is one of s16, f32" in stream(text, b"", "-m", model, *wrong).stderr
    assert "A sample rate is between" in stream(text, b"", "-m", model, "--rate", 16).stderr
    assert stream(tmp_path / "nowhere.txt", b"", "-m", model).exit_code == 2


def running(text: Path, model: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "isotone", "stream", str(text), "--model", str(model)]
    pipe = subprocess.PIPE
    # a shell's background jobs ignore SIGINT, and so would their children
    return subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip


def test_an_interrupted_stream_gives_the_rest(text: Path, model: Path) -> None:
    with running(text, model) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(pcm(noise(3)))
        process.stdin.flush()
        first = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        rest = [json.loads(line) for line in process.stdout.read().decode().splitlines()]
    assert process.returncode == 0
    assert [row["word"] for row in (first, *rest) if not row["corrects"]] == TEXT.split()


def test_a_word_is_printed_before_the_stream_is_over(text: Path, model: Path) -> None:
    with running(text, model) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(pcm(noise(6)))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["word"] == "well"
        process.stdin.close()
        rest = process.stdout.read().decode().splitlines()
    assert process.returncode == 0
    assert json.loads(rest[-1])["number"] <= 3


def test_a_reader_that_goes_away_ends_it_without_an_error(text: Path, model: Path) -> None:
    with running(text, model) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(pcm(noise(6)))
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        process.stdin.close()
        said = process.stderr.read().decode()
    assert "error" not in said.lower(), said
    assert process.returncode == 1
