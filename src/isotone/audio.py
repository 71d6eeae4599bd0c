"""Reading audio: any file that libsndfile knows, as mono float32 at the rate that is asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

#: Seconds by which a header may overstate a file: writers are often a block wrong.
SLACK_S = 0.1

# Sample frames that are decoded at once: what bounds memory beside the result.
_BLOCK = 1 << 20


class AudioError(ValueError):
    """A file holds no usable audio; the message names the file, the reason and what to do."""


class AudioInfo(NamedTuple):
    """What a file's header says.

    Attributes:
        sample_rate: Hz.
        samples: Samples of one channel, at that rate.
        seconds: Duration.
    """

    sample_rate: int
    samples: int
    seconds: float


def info(path: Path | str) -> AudioInfo:
    """Sample rate, length and duration of a file, without decoding it.

    Raises:
        AudioError: the file is missing, unreadable, cut short or empty.
    """
    with _open(Path(path)) as file:
        return AudioInfo(file.samplerate, file.frames, file.frames / file.samplerate)


def load(
    path: Path | str, sample_rate: int = 16000, start: float = 0.0, end: float | None = None
) -> NDArray[np.float32]:
    """Read audio, or a part of it, as mono at one sample rate.

    Files are decoded block by block: beside the result (230 MB for an hour at 16 kHz) memory does not grow with
    their length, rate or channels.

    Args:
        path: WAV, FLAC, OGG, MP3, AIFF, NIST SPHERE with plain samples ... The content decides, not the name.
        sample_rate: Hz to resample to (soxr, high quality).
        start: Seconds; only what is asked for is decoded.
        end: Seconds; None, or a time past the end, reads to the end.

    Returns:
        ``(N,)`` float32; full scale is [-1, 1], channels are averaged.

    Raises:
        AudioError: the file is missing, unreadable, cut short, has no samples in that range, or has samples
            that are not finite numbers.
    """
    path = Path(path)
    with _open(path) as file:
        rate = file.samplerate
        first = round(start * rate)
        last = file.frames if end is None else min(file.frames, round(end * rate))
        if not 0 <= first < last:
            raise AudioError(
                f"{path}: no samples between {start} s and {'the end' if end is None else f'{end} s'}; "
                f"the file lasts {file.frames / rate:.3f} s."
            )
        out = np.empty(-(-(last - first) * sample_rate // rate) + 1, np.float32)
        resampler = None if rate == sample_rate else soxr.ResampleStream(rate, sample_rate, 1, quality="HQ")
        read = size = bad = 0
        first_bad = 0.0
        for block in _blocks(file, path, first, last):
            broken = np.flatnonzero(~np.isfinite(block))
            if len(broken) and not bad:
                first_bad = (first + read + broken[0]) / rate
            bad += len(broken)
            read += len(block)
            if resampler is not None:
                block = resampler.resample_chunk(block)
            out[size : size + len(block)] = block
            size += len(block)
    if not read or read < last - first - SLACK_S * rate:
        raise _cut_short(path, read + first, last)
    if bad:
        raise AudioError(
            f"{path}: {bad} samples are not finite numbers, the first at {first_bad:.4f} s. "
            f"Find what wrote them (a division by zero?) and write it again."
        )
    if resampler is not None:
        rest = resampler.resample_chunk(np.zeros(0, np.float32), last=True)
        out[size : size + len(rest)] = rest
        size += len(rest)
    if not size:
        raise AudioError(
            f"{path}: {last - first} samples at {rate} Hz are too few to resample to {sample_rate} Hz."
        )
    return out[:size]


def _blocks(file: soundfile.SoundFile, path: Path, first: int, last: int) -> Iterator[NDArray[np.float32]]:
    """The samples of a part of a file, channels averaged, some at a time; fewer where the file ends early."""
    try:
        file.seek(first)
        while first < last:
            block = file.read(min(_BLOCK, last - first), dtype="float32", always_2d=True)
            if not len(block):
                return
            first += len(block)
            yield block.mean(axis=1) if block.shape[1] > 1 else np.ascontiguousarray(block[:, 0])
    except (soundfile.LibsndfileError, RuntimeError) as error:
        raise AudioError(
            f"{path}: decoding stopped with {error}. The file is damaged: get it again."
        ) from None


def _open(path: Path) -> soundfile.SoundFile:
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        if path.exists() and not path.is_dir():
            what = "is a pipe or a device, which cannot be read from twice"
        raise AudioError(f"{path}: {what}; an audio file was expected. Check the path.")
    size = path.stat().st_size
    if not size:
        raise AudioError(f"{path}: the file is empty (0 bytes). Get it again.")
    with path.open("rb") as handle:
        head = handle.read(4096)
    if head.startswith(b"NIST_1A") and b"shorten" in head[:1024]:
        raise AudioError(
            f"{path}: SPHERE audio compressed with shorten, which libsndfile does not decode. "
            f"Decompress it first: sph2pipe -f wav IN OUT."
        )
    try:
        file = soundfile.SoundFile(path)
    except (soundfile.LibsndfileError, RuntimeError, TypeError) as error:
        reason = getattr(error, "error_string", None) or str(error)
        raise AudioError(
            f"{path}: not audio that libsndfile reads ({reason.rstrip('.')}). "
            f"Expected WAV, FLAC, OGG, MP3 or SPHERE: convert it, for example with ffmpeg -i IN OUT.wav."
        ) from None
    declared = _declared_samples(head, file)
    frames = file.frames
    if declared is not None and declared > frames + SLACK_S * file.samplerate:
        file.close()
        raise _cut_short(path, frames, declared)
    if not frames:
        file.close()
        raise AudioError(f"{path}: the file has a header and no samples. Record or convert it again.")
    return file


def _declared_samples(head: bytes, file: soundfile.SoundFile) -> int | None:
    """Samples that the header promises, where libsndfile quietly takes fewer; None where it does not say."""
    if head.startswith(b"NIST_1A"):
        found = re.search(rb"^sample_count -i (\d+)", head[:1024], re.MULTILINE)
        return int(found[1]) if found else None
    if not head.startswith(b"RIFF"):
        return None
    place = 12
    while place + 8 <= len(head):
        name, size = head[place : place + 4], int.from_bytes(head[place + 4 : place + 8], "little")
        if name == b"data":
            # programs that write to a pipe leave a size near 2 or 4 GB, or zero
            block = int.from_bytes(head[32:34], "little") if head[12:16] == b"fmt " else 0
            plain = file.subtype.startswith("PCM") or file.subtype in ("FLOAT", "DOUBLE", "ULAW", "ALAW")
            return size // block if plain and block and size < 0x7FF00000 else None
        place += 8 + size + size % 2
    return None


def _cut_short(path: Path, found: int, declared: int) -> AudioError:
    return AudioError(
        f"{path}: the file is cut short, {found} of {declared} samples are there. Get it again."
    )
