"""Audio files of all kinds give the same signal; damaged files give helpful errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.audio import AudioError, AudioInfo, info, load


def tone(rate: int, seconds: float = 0.5, hz: float = 440.0, amplitude: float = 0.5) -> np.ndarray:
    return amplitude * np.sin(2 * np.pi * hz * np.arange(round(rate * seconds)) / rate)


def sphere(
    samples: np.ndarray, rate: int, *, order: str = "01", coding: str = "pcm", channels: int = 1
) -> bytes:
    """Write a NIST SPHERE file as the LDC does: 1024 bytes of header, then 16-bit samples."""
    fields = [
        "NIST_1A",
        "   1024",
        "database_id -s5 TIMIT",
        f"channel_count -i {channels}",
        f"sample_count -i {len(samples)}",
        f"sample_rate -i {rate}",
        "sample_n_bytes -i 2",
        f"sample_byte_format -s2 {order}",
        "sample_sig_bits -i 16",
        f"sample_coding -s{len(coding)} {coding}",
        "end_head\n",
    ]
    header = "\n".join(fields).encode().ljust(1024)
    return header + np.round(samples * 32767).astype("<i2" if order == "01" else ">i2").tobytes()


def middle_error(a: np.ndarray, b: np.ndarray) -> float:
    """Return the largest difference except at the edges, where the resampler's filter exceeds the signal."""
    cut = len(a) // 10
    return float(np.abs(a[cut:-cut] - b[cut:-cut]).max())


@pytest.mark.parametrize(
    ("name", "subtype", "tolerance"),
    [
        ("x.wav", "PCM_16", 5e-5),
        ("x.wav", "PCM_24", 1e-6),
        ("x.wav", "PCM_32", 1e-6),
        ("x.wav", "PCM_U8", 1e-2),
        ("x.wav", "FLOAT", 1e-7),
        ("x.wav", "DOUBLE", 1e-7),
        ("x.flac", "PCM_24", 1e-6),
        ("x.aiff", "PCM_16", 5e-5),
        ("x.ogg", "VORBIS", 3e-2),  # lossy
        ("x.mp3", None, 3e-2),  # lossy
    ],
)
def test_formats(tmp_path: Path, name: str, subtype: str | None, tolerance: float) -> None:
    x = tone(16000)
    soundfile.write(tmp_path / name, x, 16000, subtype=subtype)
    y = load(tmp_path / name)
    assert y.dtype == np.float32
    assert y.shape == (8000,)
    assert middle_error(x, y) < tolerance
    assert info(tmp_path / name) == AudioInfo(16000, 8000, 0.5)


@pytest.mark.parametrize("rate", [8000, 11025, 22050, 44100, 48000])
def test_resampling_keeps_the_tone(tmp_path: Path, rate: int) -> None:
    soundfile.write(tmp_path / "x.wav", tone(rate), rate, subtype="PCM_24")
    y = load(tmp_path / "x.wav")
    assert len(y) == round(round(rate / 2) / rate * 16000)
    assert middle_error(tone(16000)[: len(y)], y) < 1e-3
    assert info(tmp_path / "x.wav").seconds == pytest.approx(0.5, abs=1 / rate)


def test_resampling_does_not_alias(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "x.wav", tone(44100, hz=12000), 44100, subtype="FLOAT")
    assert middle_error(load(tmp_path / "x.wav"), np.zeros(8000)) < 1e-3


def test_channels_are_averaged(tmp_path: Path) -> None:
    x, y = tone(16000), tone(16000, hz=1000.0)
    soundfile.write(tmp_path / "x.wav", np.stack([x, y], 1), 16000, subtype="FLOAT")
    np.testing.assert_allclose(load(tmp_path / "x.wav"), (x + y) / 2, atol=1e-6)


@pytest.mark.parametrize("order", ["01", "10"])
def test_sphere(tmp_path: Path, order: str) -> None:
    x = tone(16000)
    (tmp_path / "SA1.WAV").write_bytes(sphere(x, 16000, order=order))
    np.testing.assert_allclose(load(tmp_path / "SA1.WAV"), x, atol=5e-5)
    assert info(tmp_path / "SA1.WAV") == AudioInfo(16000, 8000, 0.5)


@settings(max_examples=30, deadline=None)
@given(start=st.integers(0, 7999), length=st.integers(1, 9000))
def test_a_part_is_the_slice(tmp_path_factory: pytest.TempPathFactory, start: int, length: int) -> None:
    path = tmp_path_factory.getbasetemp() / "part.flac"
    if not path.exists():
        soundfile.write(path, tone(16000), 16000)
    whole = load(path)
    part = load(path, start=start / 16000, end=(start + length) / 16000)
    np.testing.assert_array_equal(part, whole[start : start + length])


def test_a_part_at_another_rate(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "x.wav", tone(44100, 2.0), 44100, subtype="PCM_24")
    part = load(tmp_path / "x.wav", start=0.5, end=1.5)
    assert len(part) == 16000
    assert middle_error(tone(16000, 2.0)[8000:24000], part) < 1e-3


@pytest.mark.parametrize(("start", "end"), [(-0.1, None), (0.5, None), (0.3, 0.3), (0.4, 0.2), (7.0, 9.0)])
def test_a_part_that_is_not_there(tmp_path: Path, start: float, end: float | None) -> None:
    soundfile.write(tmp_path / "x.wav", tone(16000), 16000)
    with pytest.raises(AudioError, match=r"x\.wav: no samples between .* lasts 0\.500 s"):
        load(tmp_path / "x.wav", start=start, end=end)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_samples_that_are_not_finite(tmp_path: Path, bad: float) -> None:
    x = tone(16000)
    x[4000] = bad
    soundfile.write(tmp_path / "x.wav", x, 16000, subtype="FLOAT")
    with pytest.raises(AudioError, match=r"x\.wav: 1 samples are not finite .* 0\.2500 s"):
        load(tmp_path / "x.wav")
    assert len(load(tmp_path / "x.wav", end=0.25)) == 4000


@pytest.mark.parametrize(("name", "keep"), [("x.wav", 0.5), ("x.wav", 0.01), ("x.flac", 0.5), ("x.mp3", 0.5)])
def test_truncated(tmp_path: Path, name: str, keep: float) -> None:
    soundfile.write(tmp_path / "whole", tone(16000, 3.0), 16000, format=name[2:].upper())
    data = (tmp_path / "whole").read_bytes()
    (tmp_path / name).write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(AudioError, match=rf"{name}: .*(cut short|damaged)"):
        load(tmp_path / name)


def test_truncated_sphere(tmp_path: Path) -> None:
    data = sphere(tone(16000), 16000)
    for size, reason in (
        (10000, "cut short or damaged: 4488 of 8000"),
        (1024, "cut short or damaged: 0 of 8000"),
        (300, "not audio"),
    ):
        (tmp_path / "SA1.WAV").write_bytes(data[:size])
        with pytest.raises(AudioError, match=rf"SA1\.WAV: .*{reason}"):
            info(tmp_path / "SA1.WAV")


def test_wav_from_a_pipe_has_no_length(tmp_path: Path) -> None:
    """Programs that cannot seek leave the largest size in the header; the actual samples count."""
    x = tone(16000)
    soundfile.write(tmp_path / "x.wav", x, 16000, subtype="PCM_16")
    data = bytearray((tmp_path / "x.wav").read_bytes())
    place = data.index(b"data") + 4
    data[place : place + 4] = b"\xff\xff\xff\xff"
    (tmp_path / "x.wav").write_bytes(data)
    np.testing.assert_allclose(load(tmp_path / "x.wav"), x, atol=5e-5)


def test_unusable_files(tmp_path: Path) -> None:
    (tmp_path / "empty.wav").touch()
    (tmp_path / "text.wav").write_text("not audio at all")
    soundfile.write(tmp_path / "none.wav", np.zeros(0), 16000)
    (tmp_path / "short.wav").write_bytes(sphere(tone(16000), 16000, coding="pcm,embedded-shorten-v2.00"))
    for name, reason in (
        ("absent.wav", "does not exist"),
        (".", "is a folder"),
        ("empty.wav", "0 bytes"),
        ("text.wav", "not audio .* convert it"),
        ("none.wav", "no samples"),
        ("short.wav", "shorten.* sph2pipe -f wav"),
    ):
        for read in (load, info):
            with pytest.raises(AudioError, match=reason) as caught:
                read(tmp_path / name)
            assert str(tmp_path / name) in str(caught.value)
