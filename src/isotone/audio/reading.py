"""Reading audio: any file that libsndfile or a decoder knows, as mono float32 at the rate that is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soxr
from numpy.typing import NDArray

from isotone.audio.source import SLACK_S, AudioError, Source, cut_short, open_source

#: Suffixes of audio that is read always, and of audio and films that are read where ffmpeg or torchcodec is.
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
    """What a file's header says.

    Attributes:
        sample_rate: Hz.
        samples: Samples of one channel, at that rate.
        seconds: Duration.
    """

    sample_rate: int
    samples: int
    seconds: float


def is_audio(path: Path) -> bool:
    """Whether a file's suffix is one of audio or film, be there a decoder for it or not."""
    return path.suffix.lower() in AUDIO_SUFFIXES | DECODED_SUFFIXES


def without_copies(paths: Iterable[Path]) -> list[Path]:
    """The files without those that need a decoder and lie beside plain audio of their name: a film, and its sound."""
    paths = list(paths)
    plain = {p.with_suffix("") for p in paths if p.suffix.lower() in AUDIO_SUFFIXES}
    return [p for p in paths if p.suffix.lower() not in DECODED_SUFFIXES or p.with_suffix("") not in plain]


def info(path: Path | str) -> AudioInfo:
    """Sample rate, length and duration of a file; one that libsndfile does not read is decoded to count its samples.

    Raises:
        AudioError: the file is missing, unreadable, cut short or empty.
    """
    path = Path(path)
    with open_source(path) as source:
        rate = source.sample_rate
        samples = source.samples
        if samples is None:
            samples = sum(map(len, source.blocks(0, None)))
    if not samples:
        raise AudioError(f"{path}: its audio stream has no samples. Record or convert it again.")
    return AudioInfo(rate, samples, samples / rate)


def load(
    path: Path | str, sample_rate: int = 16000, start: float = 0.0, end: float | None = None
) -> NDArray[np.float32]:
    """Read audio, or a part of it, as mono at one sample rate.

    Files are decoded block by block: beside the result (230 MB for an hour at 16 kHz) memory does not grow with
    their length, rate or channels.

    Args:
        path: WAV, FLAC, OGG, MP3, AIFF, NIST SPHERE with plain samples ...; where ffmpeg or torchcodec is installed
            also AAC, WMA, and the first audio stream of a film. The content decides, not the name.
        sample_rate: Hz to resample to (soxr, high quality).
        start: Seconds; what lies before is decoded only where a decoder has to begin at the beginning.
        end: Seconds; None, or a time past the end, reads to the end.

    Returns:
        ``(N,)`` float32; full scale is [-1, 1], channels are averaged.

    Raises:
        AudioError: the file is missing, unreadable, cut short, has no samples in that range, or has samples
            that are not finite numbers.
    """
    path = Path(path)
    with open_source(path) as source:
        rate = source.sample_rate
        first = round(start * rate)
        last = source.samples if end is None else round(end * rate)
        if source.samples is not None and last is not None:
            last = min(source.samples, last)
        if first < 0 or (last is not None and last <= first):
            raise _no_samples(path, start, end, source)
        out = _Samples(path, rate, sample_rate, first, None if last is None else last - first)
        for block in source.blocks(first, last):
            out.add(block)
        if not out.read and source.samples is None:
            raise _no_samples(path, start, end, source)
    # of a stream without a length the end may lie past its own
    if not out.read or (source.samples is not None and last and out.read < last - first - SLACK_S * rate):
        raise cut_short(path, out.read + first, last or 0)
    return out.whole()


class _Samples:
    """What is read, resampled and checked block by block."""

    def __init__(self, path: Path, rate: int, sample_rate: int, first: int, expected: int | None) -> None:
        self._path, self._rate, self._sample_rate, self._first = path, rate, sample_rate, first
        self._resampler = None
        if rate != sample_rate:
            self._resampler = soxr.ResampleStream(rate, sample_rate, 1, quality="HQ")
        self._out = np.empty(-(-(expected or rate) * sample_rate // rate) + 1, np.float32)
        self._size = self._bad = self.read = 0
        self._first_bad = 0.0

    def add(self, block: NDArray[np.float32]) -> None:
        """Take the next samples at the file's rate."""
        broken = np.flatnonzero(~np.isfinite(block))
        if len(broken) and not self._bad:
            self._first_bad = (self._first + self.read + broken[0]) / self._rate
        self._bad += len(broken)
        self.read += len(block)
        self._append(block if self._resampler is None else self._resampler.resample_chunk(block))

    def _append(self, block: NDArray[np.float32]) -> None:
        end = self._size + len(block)
        if end > len(self._out):  # the length was not known
            self._out.resize(end + end // 2, refcheck=False)
        self._out[self._size : end] = block
        self._size = end

    def whole(self) -> NDArray[np.float32]:
        """All samples.

        Raises:
            AudioError: some are not finite, or there are too few to resample.
        """
        if self._bad:
            raise AudioError(
                f"{self._path}: {self._bad} samples are not finite numbers, the first at {self._first_bad:.4f} s. "
                f"Find what wrote them (a division by zero?) and write it again."
            )
        if self._resampler is not None:
            self._append(self._resampler.resample_chunk(np.zeros(0, np.float32), last=True))
        if not self._size:
            raise AudioError(
                f"{self._path}: {self.read} samples at {self._rate} Hz are too few to resample to "
                f"{self._sample_rate} Hz."
            )
        return self._out[: self._size]


def _no_samples(path: Path, start: float, end: float | None, source: Source) -> AudioError:
    length = source.samples
    lasts = "" if length is None else f"; the file lasts {length / source.sample_rate:.3f} s"
    return AudioError(
        f"{path}: no samples between {start} s and {'the end' if end is None else f'{end} s'}{lasts}."
    )
