"""Audio that libsndfile does not read (AAC, WMA, WebM, films ...), through ffmpeg's programs or torchcodec."""

from __future__ import annotations

import importlib.util
import json
import logging
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from isotone.audio.mixing import Mixer

log = logging.getLogger(__name__)

#: Advice for machines without a decoder.
INSTALL = (
    "install ffmpeg (apt install ffmpeg, brew install ffmpeg, winget install ffmpeg) or torchcodec to read it, "
    "or convert it elsewhere to WAV or FLAC"
)

#: Seconds after which a program without output is stopped.
PATIENCE_S = 60.0

# Sample frames per block.
_BLOCK = 1 << 18

# The sound of films may start late or have gaps. These become silence, so that times are the film's. Gaps below 0.1 s
# are a codec's delay, which its decoder removes.
_FILTER = "aresample=async=1:first_pts=0:min_comp=0.1"

# Least confidence of ffprobe in a file's format, of 100; it gives 1 to noise in a file named .aac.
_LEAST_SCORE = 25

# Containers whose headers declare a duration: exact to the sample in _EXACT, to a block in _DECLARING.
_EXACT, _DECLARING = ("mov",), ("mov", "matroska")


class DecodingError(ValueError):
    """A decoder cannot read the file; the message is the decoder's."""


@dataclass(frozen=True)
class Stream:
    """The first audio stream of a file.

    Attributes:
        path: The file.
        sample_rate: Hz.
        channels: Number of channels.
        declared: Samples per channel in the header; None if it does not declare them.
        exact: True where samples past ``declared`` are padding of the codec.
    """

    path: Path
    sample_rate: int
    channels: int
    declared: int | None = None
    exact: bool = False


def decoder() -> str | None:
    """Return the decoder that is installed: ``ffmpeg``, ``torchcodec`` or None."""
    if shutil.which("ffmpeg") and shutil.which("ffprobe"):
        return "ffmpeg"
    return "torchcodec" if importlib.util.find_spec("torchcodec") else None


def probe(path: Path) -> Stream:
    """Read the header of a file.

    Raises:
        DecodingError: not a media file, or one without an audio stream.
    """
    return _probe_ffmpeg(path) if decoder() == "ffmpeg" else _probe_torchcodec(path)


def blocks(stream: Stream, channel: int | None = None) -> Generator[NDArray[np.float32]]:
    """Decode a channel of a stream (None: their mix) from its beginning, in blocks of ``(n,)`` samples.

    Positions in a compressed stream are not exact, so decoding always starts at the beginning. Closing the iterator
    stops the decoder.

    Raises:
        DecodingError: the decoder stopped with an error, or had no output for a minute.
    """
    return (_blocks_ffmpeg if decoder() == "ffmpeg" else _blocks_torchcodec)(stream, channel)


def _probe_ffmpeg(path: Path) -> Stream:
    entries = (
        "stream=sample_rate,channels,duration,start_time:stream_tags=DURATION:format=format_name,probe_score"
    )
    command = ["ffprobe", "-v", "error", "-protocol_whitelist", "file", "-select_streams", "a:0"]
    command += ["-show_entries", entries, "-of", "json", f"file:{path}"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        raise DecodingError(f"ffprobe gave nothing for {PATIENCE_S:g} s") from None
    if done.returncode:
        raise DecodingError(_last_line(done.stderr, path))
    found = json.loads(done.stdout)
    streams = found.get("streams") or []
    if not streams:
        raise DecodingError("it has no audio stream")
    rate, channels = int(streams[0].get("sample_rate", 0)), int(streams[0].get("channels", 0))
    if rate <= 0 or channels <= 0:
        raise DecodingError("its audio stream cannot be decoded: no sample rate or no channels")
    if int(found["format"]["probe_score"]) < _LEAST_SCORE:
        raise DecodingError("nothing in it but its name is that of a media file")
    container = str(found["format"]["format_name"]).split(",")[0]
    seconds = _declared(streams[0]) if container in _DECLARING else None
    declared = None if seconds is None else round(seconds * rate)
    return Stream(path, rate, channels, declared, container in _EXACT)


def _declared(stream: dict[str, Any]) -> float | None:
    """Return the end of the stream in seconds from the beginning of the file; None if not declared."""
    try:
        if "duration" in stream:
            return max(0.0, float(stream.get("start_time", 0))) + float(stream["duration"])
        hours, minutes, seconds = stream["tags"]["DURATION"].split(":")
        return 3600 * int(hours) + 60 * int(minutes) + float(seconds)
    except (KeyError, ValueError):
        return None


def _blocks_ffmpeg(stream: Stream, channel: int | None) -> Generator[NDArray[np.float32]]:
    command = [
        "ffmpeg",
        "-v",
        "error",
        "-nostdin",
        "-protocol_whitelist",
        "file",
        "-i",
        f"file:{stream.path}",
    ]
    command += ["-map", "0:a:0", "-af", _FILTER, "-c:a", "pcm_f32le", "-f", "f32le"]
    command += ["-ar", str(stream.sample_rate), "-ac", str(stream.channels), "pipe:1"]
    size, mix = 4 * stream.channels, Mixer(stream.path, channel)
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)
        assert process.stdout is not None
        try:
            while data := _read(process, process.stdout, _BLOCK * size):
                samples = np.frombuffer(data, "<f4", len(data) // size * stream.channels)
                yield mix(samples.reshape(-1, stream.channels))
            code = process.wait(PATIENCE_S)
        finally:
            process.kill()
            process.stdout.close()
            process.wait()
        errors.seek(max(0, errors.seek(0, 2) - 4096))
        line = _last_line(errors.read(), stream.path)
    if code < 0:
        raise DecodingError(f"ffmpeg gave nothing for {PATIENCE_S:g} s and was stopped")
    if code:
        raise DecodingError(line)
    if line:
        log.warning("%s: decoded, though ffmpeg says: %s", stream.path, line)


def _read(process: subprocess.Popen[bytes], pipe: IO[bytes], count: int) -> bytes:
    """Read a number of bytes, or fewer at the end; a program that hangs is killed."""
    watch = threading.Timer(PATIENCE_S, process.kill)
    watch.daemon = True
    watch.start()
    try:
        return pipe.read(count)
    finally:
        watch.cancel()


def _last_line(output: bytes, path: Path) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].strip().removeprefix(f"file:{path}: ") if lines else ""


def _probe_torchcodec(path: Path) -> Stream:
    found = _open_torchcodec(path).metadata
    if not found.sample_rate or not found.num_channels:
        raise DecodingError("its audio stream cannot be decoded: no sample rate or no channels")
    return Stream(path, found.sample_rate, found.num_channels)


def _blocks_torchcodec(stream: Stream, channel: int | None) -> Generator[NDArray[np.float32]]:
    opened, second, mix = _open_torchcodec(stream.path), 0, Mixer(stream.path, channel)
    step = max(1, _BLOCK // stream.sample_rate)  # whole seconds, so that no sample is in two parts
    start = max(0.0, opened.metadata.begin_stream_seconds_from_header or 0.0)
    if start >= 0.1:
        yield np.zeros(round(start * stream.sample_rate), np.float32)
    try:
        while True:
            part = opened.get_samples_played_in_range(start + second, start + second + step).data
            yield mix(part.numpy().T)
            second += step
    except RuntimeError as error:
        if "No audio frames" not in str(error):  # this message means the end of the stream
            raise DecodingError(f"torchcodec: {str(error).strip().splitlines()[0]}") from None


def _open_torchcodec(path: Path) -> Any:
    try:
        from torchcodec.decoders import AudioDecoder  # type: ignore[import-not-found,import-untyped,unused-ignore]

        return AudioDecoder(path)
    except (RuntimeError, ValueError, OSError, ImportError) as error:
        raise DecodingError(f"torchcodec: {str(error).strip().splitlines()[0]}") from None
