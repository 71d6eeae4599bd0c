"""Audio that libsndfile cannot read is decoded; a missing or broken decoder gives a helpful error."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile

from isotone.audio import AudioError, decoding, info, is_audio, load, without_copies
from isotone.batch.inputs import find_audio
from isotone.corpus.folder import FolderCorpus

HZ, SECONDS = 48_000, 3

needs_ffmpeg = pytest.mark.skipif(
    not (shutil.which("ffmpeg") and shutil.which("ffprobe")), reason="ffmpeg is not installed"
)


@pytest.fixture(scope="module")
def media(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``x.wav``: 3 s of stereo noise below 4 kHz; the right channel is half the left one."""
    folder = tmp_path_factory.mktemp("media")
    spectrum = np.fft.rfft(np.random.default_rng(0).normal(0, 0.1, HZ * SECONDS))
    spectrum[4000 * SECONDS :] = 0
    left = np.fft.irfft(spectrum)
    soundfile.write(folder / "x.wav", np.stack([left, left / 2], 1), HZ)
    return folder


def convert(media: Path, name: str, *options: str) -> Path:
    path = media / name
    if not path.exists():
        command = ["ffmpeg", "-v", "error", "-i", str(media / "x.wav"), *options, f"file:{path}"]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, timeout=60)
    return path


def film(media: Path, name: str, late_s: float = 0.0) -> Path:
    picture = ["-f", "lavfi", "-i", f"color=size=16x16:duration={SECONDS}"]
    return convert(media, name, "-itsoffset", str(late_s), "-i", str(media / "x.wav"), *picture,
                   "-map", "2:v", "-map", "1:a", "-map", "0:a")  # fmt: skip


def delay(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the delay of a signal in seconds, by cross-correlation."""
    size = 2 * max(len(found), len(expected))
    likeness = np.fft.irfft(np.fft.rfft(found, size) * np.conj(np.fft.rfft(expected, size)), size)
    best = int(np.argmax(likeness))
    return (best if best < size // 2 else best - size) / HZ


@needs_ffmpeg
@pytest.mark.parametrize(
    ("name", "most_late_s"), [("x.m4a", 0), ("x.webm", 0), ("x.mka", 0), ("x.aac", 0.03), ("x.wma", 0.05)]
)
def test_what_libsndfile_does_not_read_is_decoded(media: Path, name: str, most_late_s: float) -> None:
    path = convert(media, name)
    with pytest.raises(soundfile.LibsndfileError):
        soundfile.SoundFile(path)
    found, expected = load(path, HZ), load(media / "x.wav", HZ)
    assert found.dtype == np.float32
    assert info(path).sample_rate == HZ
    assert info(path).samples == len(found)
    assert len(found) == pytest.approx(len(expected), abs=0.05 * HZ)
    assert abs(delay(found, expected)) <= most_late_s
    if not most_late_s:
        size = min(len(found), len(expected))
        noise = found[:size] - expected[:size]
        assert noise.std() < 0.28 * expected.std(), "channels are averaged, not summed"


@needs_ffmpeg
def test_a_container_that_says_so_has_its_length_to_the_sample(media: Path) -> None:
    assert len(load(convert(media, "x.m4a"), HZ)) == HZ * SECONDS


@needs_ffmpeg
@pytest.mark.parametrize("name", ["x.m4a", "x.webm"])
def test_a_part_is_the_slice(media: Path, name: str) -> None:
    path = convert(media, name)
    whole = load(path, HZ)
    for start, end in ((0, 1), (1000, 70_000), (143_000, 144_000), (0, 999 * HZ), (100_000, None)):
        part = load(path, HZ, start / HZ, None if end is None else end / HZ)
        np.testing.assert_array_equal(part, whole[start:end])
    for start_s, end_s in ((5.0, None), (5.0, 6.0), (-1.0, None), (1.0, 1.0)):
        with pytest.raises(AudioError, match=rf"{name}: no samples between"):
            load(path, HZ, start_s, end_s)


@needs_ffmpeg
@pytest.mark.parametrize("name", ["film.mp4", "film.webm", "film.mkv"])
def test_the_first_sound_of_a_film_is_read_where_it_is_in_the_film(media: Path, name: str) -> None:
    """A sound that starts a second late keeps that delay, since times are the film's."""
    expected = load(media / "x.wav", HZ)
    assert delay(load(film(media, name), HZ), expected) == pytest.approx(0, abs=0.025)
    assert delay(load(film(media, f"late-{name}", 1.0), HZ), expected) == pytest.approx(1, abs=0.025)


@needs_ffmpeg
def test_a_film_without_sound_says_so(media: Path) -> None:
    path = convert(media, "mute.mp4", "-f", "lavfi", "-i", "color=size=16x16:duration=1", "-map", "1:v")
    for read in (load, info):
        with pytest.raises(AudioError, match=r"mute\.mp4: .*ffmpeg \(it has no audio stream\)"):
            read(path)


@needs_ffmpeg
@pytest.mark.parametrize(
    "name", ["-i.m4a", "%03d.m4a", "a:b?.m4a", "concat|x.m4a", "é '\"$(x);.m4a", "http:x.m4a"]
)
def test_no_name_is_taken_for_anything_else(
    media: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    shutil.copy(convert(media, "x.m4a"), tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert info(Path(name)).samples == HZ * SECONDS
    assert len(load(tmp_path / name, HZ)) == HZ * SECONDS


@needs_ffmpeg
@pytest.mark.parametrize("name", ["x.m4a", "x.webm"])
@pytest.mark.parametrize("keep", [0.01, 0.5])
def test_truncated(media: Path, tmp_path: Path, name: str, keep: float) -> None:
    data = convert(media, name).read_bytes()
    (tmp_path / name).write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(AudioError, match=rf"{name}: .*(cut short|damaged|not audio)"):
        load(tmp_path / name)


@needs_ffmpeg
@pytest.mark.parametrize("name", ["noise.aac", "noise.m4a", "noise.wav"])
def test_noise_is_no_audio_whatever_its_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(np.random.default_rng(0).bytes(300_000))
    with pytest.raises(
        AudioError, match=rf"{name}: not audio that libsndfile reads \(.*\), nor ffmpeg \(.*\)"
    ):
        load(tmp_path / name)


# Missing and broken decoders


def fake(
    folder: Path, monkeypatch: pytest.MonkeyPatch, decode: str, *, score: int = 100, **stream: object
) -> Path:
    """Put fake programs ffprobe and ffmpeg on the path: the one prints a header, the other runs a shell script."""
    found = {"streams": [{"sample_rate": "16000", "channels": 1, **stream}]}
    header = json.dumps({**found, "format": {"format_name": "mov,mp4", "probe_score": score}})
    folder.mkdir()
    for name, script in (("ffprobe", f"echo '{header}'"), ("ffmpeg", decode)):
        (folder / name).write_text(f"#!/bin/sh\nPATH=/bin:/usr/bin\n{script}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    path = folder.parent / "x.m4a"
    path.write_bytes(b"not for libsndfile")
    return path


def test_without_a_decoder_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "torchcodec", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    path = tmp_path / "x.m4a"
    path.write_bytes(b"\0" * 100)
    for read in (load, info):
        with pytest.raises(
            AudioError, match=r"x\.m4a: not audio that libsndfile reads .*: install ffmpeg \(apt"
        ):
            read(path)


def test_a_guess_by_the_name_alone_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fake(tmp_path / "bin", monkeypatch, "head -c 64000 /dev/zero", score=1)
    with pytest.raises(
        AudioError, match=r"nor ffmpeg \(nothing in it but its name is that of a media file\)"
    ):
        load(path)


def test_a_decoder_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fake(tmp_path / "bin", monkeypatch, "echo first >&2; echo 'the last line' >&2; exit 3")
    with pytest.raises(
        AudioError, match=r"x\.m4a: decoding stopped with the last line\. The file is damaged"
    ):
        load(path)


def test_a_decoder_that_complains_is_believed_and_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = fake(tmp_path / "bin", monkeypatch, "head -c 64000 /dev/zero; echo 'a bad packet' >&2")
    with caplog.at_level(logging.WARNING):
        assert len(load(path)) == 16_000
    assert "ffmpeg says: a bad packet" in caplog.text


@pytest.mark.parametrize("script", ["exec sleep 60", "head -c 64000 /dev/zero; exec sleep 60"])
def test_a_decoder_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    path = fake(tmp_path / "bin", monkeypatch, script)
    monkeypatch.setattr(decoding, "PATIENCE_S", 0.3)
    start = time.monotonic()
    with pytest.raises(AudioError, match=r"ffmpeg gave nothing for 0\.3 s and was stopped"):
        load(path)
    assert time.monotonic() - start < 20


def test_a_decoder_is_ended_when_enough_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The decoder is stopped after the requested part, and its process ends."""
    path = fake(
        tmp_path / "bin",
        monkeypatch,
        f"echo $$ > {tmp_path / 'pid'}; head -c 9000000 /dev/zero; exec sleep 60",
    )
    start = time.monotonic()
    assert len(load(path, start=1.0, end=30.0)) == 29 * 16_000
    assert time.monotonic() - start < 20
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize(
    ("declared", "decoded", "expected"),
    [
        (1.0, 16_000, 16_000), (1.0, 16_900, 16_000), (1.0, 16_001, 16_000), (1.0, 15_000, 15_000),
        (1.0, 600_000, 600_000), (20.0, 320_900, 320_000),
    ],
)  # fmt: skip
def test_padding_past_the_declared_end_is_cut_off_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, declared: float, decoded: int, expected: int
) -> None:
    path = fake(tmp_path / "bin", monkeypatch, f"head -c {4 * decoded} /dev/zero", duration=str(declared))
    assert len(load(path)) == info(path).samples == expected


def test_a_stream_that_ends_before_it_should_is_cut_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fake(tmp_path / "bin", monkeypatch, "head -c 40000 /dev/zero", duration="1.0")
    for read in (load, info):
        with pytest.raises(
            AudioError, match=r"x\.m4a: the file is cut short or damaged: 10000 of 16000 samples"
        ):
            read(path)
    assert len(load(path, end=0.5)) == 8000, "what is there can be read"


def test_an_empty_stream_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fake(tmp_path / "bin", monkeypatch, "true")
    for read in (load, info):
        with pytest.raises(AudioError, match=r"x\.m4a: .*no samples"):
            read(path)


def test_what_is_audio_by_its_name() -> None:
    assert [is_audio(Path(n)) for n in ("a.WAV", "b.m4a", "c.Mp4", "d.txt", "e")] == [
        True,
        True,
        True,
        False,
        False,
    ]
    paths = [Path(p) for p in ("s/a.mp4", "s/a.wav", "t/a.mp4", "b.m4a", "b.webm", "c.flac", "c.wav")]
    assert without_copies(paths) == [p for p in paths if p != Path("s/a.mp4")]


def test_folders_are_searched_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a decoder such files are still found, and each one is reported as an error."""
    soundfile.write(tmp_path / "a.wav", np.zeros(800), 16_000)
    for name in ("a.mp4", "b.m4a", "c.WebM"):
        (tmp_path / name).write_bytes(b"\0" * 100)
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.txt").write_text("text")
    assert [path.name for path in find_audio([tmp_path])] == ["a.wav", "b.m4a", "c.WebM"]
    monkeypatch.setattr(decoding, "decoder", lambda: None)
    corpus = FolderCorpus(tmp_path)
    assert corpus.load("all")["id"][:] == ["a"]
    assert [id for id, reason in corpus.skipped if "install ffmpeg" in reason] == ["b", "c"]


# torchcodec


@needs_ffmpeg
@pytest.mark.parametrize("name", ["x.m4a", "x.webm", "late-film.mp4"])
def test_torchcodec_gives_what_ffmpeg_gives(media: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    pytest.importorskip("torchcodec.decoders", reason="torchcodec is not installed")
    path = film(media, name, 1.0) if "film" in name else convert(media, name)
    expected = load(path, HZ)
    monkeypatch.setattr(decoding, "decoder", lambda: "torchcodec")
    found = load(path, HZ)
    assert len(found) == pytest.approx(len(expected), abs=0.05 * HZ)
    size = min(len(found), len(expected))
    np.testing.assert_allclose(found[:size], expected[:size], atol=1e-4)
    np.testing.assert_array_equal(load(path, HZ, 1.5, 2.5), found[round(1.5 * HZ) : round(2.5 * HZ)])
