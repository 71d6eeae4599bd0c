"""Reading audio: any file that libsndfile or a decoder knows, as mono float32 at the requested rate."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soxr
from numpy.typing import NDArray

from isotone.audio.source import SLACK_S, AudioError, Source, cut_short, open_source, unusable
from isotone.audio.stored import Samples, Stored

#: Suffixes of audio that libsndfile reads, and of audio and films that need ffmpeg or torchcodec.
AUDIO_SUFFIXES = frozenset(
    {".wav", ".flac", ".ogg", ".opus", ".oga", ".mp3", ".aiff", ".aif", ".sph", ".au", ".w64", ".caf"}
)
DECODED_SUFFIXES = frozenset(
    {
        ".m4a", ".m4b", ".aac", ".wma", ".amr", ".3gp", ".ac3", ".ape", ".mka", ".weba", ".mp4", ".m4v", ".mov",
        ".webm", ".mkv", ".wmv", ".avi", ".mpg", ".mpeg",
    }
)  # fmt: skip


class AudioInfo(NamedTuple):
    """Properties of an audio file.

    Attributes:
        sample_rate: Hz.
        samples: Samples per channel.
        seconds: Duration.
    """

    sample_rate: int
    samples: int
    seconds: float


def is_audio(path: Path) -> bool:
    """Return whether a file has a suffix of audio or film, with or without a decoder for it."""
    return path.suffix.lower() in AUDIO_SUFFIXES | DECODED_SUFFIXES


def without_copies(paths: Iterable[Path]) -> list[Path]:
    """Leave out files that need a decoder and are beside plain audio of the same name: a film and its sound."""
    paths = list(paths)
    plain = {p.with_suffix("") for p in paths if p.suffix.lower() in AUDIO_SUFFIXES}
    return [p for p in paths if p.suffix.lower() not in DECODED_SUFFIXES or p.with_suffix("") not in plain]


def info(path: Path | str) -> AudioInfo:
    """Return sample rate and length of a file; files that libsndfile cannot read are decoded to count their samples.

    Raises:
        AudioError: the file is missing, unreadable, cut short or empty.
    """
    path = Path(path)
    with open_source(path) as source:
        rate = source.sample_rate
        samples = source.samples
        if samples is None:
            samples = sum(map(len, source.blocks(0, None, 0)))
    if not samples:
        raise AudioError(f"{path}: its audio stream has no samples. Record or convert it again.")
    return AudioInfo(rate, samples, samples / rate)


def channels_of(path: Path | str) -> int:
    """Return the number of channels of a file, by its header.

    Raises:
        AudioError: the file is missing, unreadable or empty.
    """
    with open_source(Path(path)) as source:
        return source.channels


def load(
    path: Path | str,
    sample_rate: int = 16000,
    start: float = 0.0,
    end: float | None = None,
    channel: int | None = None,
) -> NDArray[np.float32]:
    """Read audio, or a part of it, as mono at one sample rate.

    Files are decoded in blocks: besides the result (230 MB per hour at 16 kHz), memory does not depend on their length,
    rate or channels.

    Args:
        path: WAV, FLAC, OGG, MP3, AIFF, NIST SPHERE with plain samples ...; with ffmpeg or torchcodec also AAC, WMA,
            and the first audio stream of a film. The content decides, not the name.
        sample_rate: Hz to resample to (soxr, high quality).
        start: Seconds; earlier audio is decoded only if the decoder has to start at the beginning.
        end: Seconds; None, or a time past the end, reads to the end.
        channel: Number of the one channel to read, from 0 on. Default: their mix (:mod:`isotone.audio.mixing`).

    Returns:
        ``(N,)`` float32; full scale is [-1, 1].

    Raises:
        AudioError: the file is missing, unreadable or cut short, has no samples in that range, has samples that are
            not finite, or lacks the channel.
    """
    kept = _Buffer()
    _read(Path(path), sample_rate, start, end, kept, channel)
    return kept.whole()


def store(path: Path | str, sample_rate: int = 16000, memory_s: float = 0.0) -> Samples:
    """Read audio as :func:`load` does, and keep the samples in a temporary file: for recordings of hours.

    Args:
        path, sample_rate: See :func:`load`.
        memory_s: Seconds up to which recordings are kept in memory.

    Raises:
        AudioError: as :func:`load`.
        OSError: there is no room for 230 MB per hour at 16 kHz in the folder of temporary files.
    """
    kept = _Spilling(round(memory_s * sample_rate))
    _read(Path(path), sample_rate, 0.0, None, kept)
    return kept.whole()


def _read(
    path: Path,
    sample_rate: int,
    start: float,
    end: float | None,
    kept: _Buffer | _Spilling,
    channel: int | None = None,
) -> None:
    """Read a part of a file into a buffer; see :func:`load`."""
    with open_source(path) as source:
        rate = source.sample_rate
        if channel is not None and not 0 <= channel < source.channels:
            raise AudioError(f"{path}: no channel {channel + 1}; it has {source.channels}.")
        first = round(start * rate)
        last = source.samples if end is None else round(end * rate)
        if source.samples is not None and last is not None:
            last = min(source.samples, last)
        if first < 0 or (last is not None and last <= first):
            raise _no_samples(path, start, end, source)
        out = _Samples(path, rate, sample_rate, first, kept)
        if last is not None:
            kept.expect(-(-(last - first) * sample_rate // rate) + 1)
        for block in source.blocks(first, last, channel):
            out.add(block)
        if not out.read and source.samples is None:
            raise _no_samples(path, start, end, source)
    # for a stream of unknown length, ``end`` may be past its end
    if not out.read or (source.samples is not None and last and out.read < last - first - SLACK_S * rate):
        raise cut_short(path, out.read + first, last or 0)
    out.finish()


class _Buffer:
    """Samples in memory, which grow by blocks."""

    def __init__(self) -> None:
        self._out = np.empty(0, np.float32)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def expect(self, samples: int) -> None:
        """Make room for so many samples at once."""
        self._out = np.empty(samples, np.float32)

    def append(self, block: NDArray[np.float32]) -> None:
        """Add samples."""
        end = self._size + len(block)
        if end > len(self._out):  # the length was unknown
            self._out.resize(end + end // 2, refcheck=False)
        self._out[self._size : end] = block
        self._size = end

    def whole(self) -> NDArray[np.float32]:
        """Return all samples."""
        return self._out[: self._size]


class _Spilling:
    """Samples in memory as long as they are few, and else in a file."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: _Buffer | Stored = _Buffer() if most else Stored()

    def __len__(self) -> int:
        return len(self._kept)

    def expect(self, samples: int) -> None:
        """Choose the place for so many samples, and make room there."""
        if samples > self._most:
            self._kept = Stored()
        self._kept.expect(samples)

    def append(self, block: NDArray[np.float32]) -> None:
        """Add samples."""
        if isinstance(self._kept, _Buffer) and len(self._kept) + len(block) > self._most:
            before, self._kept = self._kept.whole(), Stored()
            self._kept.append(before)
        self._kept.append(block)

    def whole(self) -> Samples:
        """Return all samples."""
        return self._kept.whole() if isinstance(self._kept, _Buffer) else self._kept


class _Samples:
    """Resampling and checks of samples, block by block."""

    def __init__(
        self, path: Path, rate: int, sample_rate: int, first: int, kept: _Buffer | _Spilling
    ) -> None:
        self._path, self._rate, self._sample_rate, self._first = path, rate, sample_rate, first
        self._resampler = None
        if rate != sample_rate:
            self._resampler = soxr.ResampleStream(rate, sample_rate, 1, quality="HQ")
        self._kept = kept
        self._bad = self.read = 0
        self._first_bad = 0.0

    def add(self, block: NDArray[np.float32]) -> None:
        """Add the next samples, at the file's rate."""
        broken = unusable(block)
        if len(broken) and not self._bad:
            self._first_bad = (self._first + self.read + broken[0]) / self._rate
        self._bad += len(broken)
        self.read += len(block)
        self._kept.append(block if self._resampler is None else self._resampler.resample_chunk(block))

    def finish(self) -> None:
        """Add what the resampler still has.

        Raises:
            AudioError: some samples are not finite, or there are too few to resample.
        """
        if self._bad:
            raise AudioError(
                f"{self._path}: {self._bad} samples are not finite numbers of up to 1e15, the first at "
                f"{self._first_bad:.4f} s. Find what wrote them (a division by zero?) and write it again."
            )
        if self._resampler is not None:
            self._kept.append(self._resampler.resample_chunk(np.zeros(0, np.float32), last=True))
        if not len(self._kept):
            raise AudioError(
                f"{self._path}: {self.read} samples at {self._rate} Hz are too few to resample to "
                f"{self._sample_rate} Hz."
            )


def _no_samples(path: Path, start: float, end: float | None, source: Source) -> AudioError:
    length = source.samples
    lasts = "" if length is None else f"; the file lasts {length / source.sample_rate:.3f} s"
    return AudioError(
        f"{path}: no samples between {start} s and {'the end' if end is None else f'{end} s'}{lasts}."
    )
