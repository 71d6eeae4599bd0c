"""Open audio files, by libsndfile or else by a decoder, and read their samples in blocks."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Protocol

import numpy as np
import soundfile
from numpy.typing import NDArray

from isotone.audio import decoding
from isotone.audio.mixing import Mixer

#: Seconds by which a header may overstate the length of a file: writers are often wrong by a block.
SLACK_S = 0.1

# Sums of the powers of so large samples are still held by single precision; full scale is 1, or 2e9 of plain integers.
_LOUDEST = 1e15

# Sample frames per block, which bounds the memory besides the result.
_BLOCK = 1 << 20


class AudioError(ValueError):
    """A file has no usable audio; the message names the file, the reason and the remedy."""


def unusable(samples: NDArray[np.floating]) -> NDArray[np.int64]:
    """Return the numbers of samples that are not finite, or whose power single precision does not hold."""
    return np.flatnonzero(~(np.abs(samples) <= _LOUDEST))


class Source(Protocol):
    """An open file.

    Attributes:
        sample_rate: Hz.
        samples: Samples per channel; None if only decoding can tell.
        channels: Number of channels.
    """

    sample_rate: int
    samples: int | None
    channels: int

    def blocks(
        self, first: int, last: int | None, channel: int | None = None
    ) -> Iterator[NDArray[np.float32]]:
        """Read samples ``first`` to ``last`` (None: the end) of a channel (None: their mix) in blocks ``(n,)``.

        There are fewer if the file ends early.

        Raises:
            AudioError: the file is damaged.
        """
        ...

    def close(self) -> None:
        """Close the file."""


class _SoundFile:
    """Source that libsndfile reads."""

    def __init__(self, path: Path, file: soundfile.SoundFile) -> None:
        self._path, self._file = path, file
        self.sample_rate: int = file.samplerate
        self.samples: int | None = file.frames
        self.channels: int = file.channels

    def close(self) -> None:
        self._file.close()

    def blocks(
        self, first: int, last: int | None, channel: int | None = None
    ) -> Iterator[NDArray[np.float32]]:
        last, mix = self._file.frames if last is None else last, Mixer(self._path, channel)
        try:
            self._file.seek(first)
            while first < last:
                block = self._file.read(min(_BLOCK, last - first), dtype="float32", always_2d=True)
                if not len(block):
                    return
                first += len(block)
                yield mix(block)
        except (soundfile.LibsndfileError, RuntimeError) as error:
            raise AudioError(
                f"{self._path}: decoding stopped with {error}. The file is damaged: get it again."
            ) from None


class _Decoded:
    """Source that a decoder reads, from the beginning of the file to the end of the requested part."""

    samples: int | None = None

    def __init__(self, stream: decoding.Stream) -> None:
        self._stream = stream
        self.sample_rate = stream.sample_rate
        self.channels = stream.channels

    def close(self) -> None:
        """Do nothing: no file stays open between two calls of :meth:`blocks`."""

    def blocks(
        self, first: int, last: int | None, channel: int | None = None
    ) -> Iterator[NDArray[np.float32]]:
        position = 0
        try:
            with closing(self._without_padding(channel)) as source:
                for block in source:
                    part = block[max(0, first - position) : None if last is None else max(0, last - position)]
                    position += len(block)
                    if len(part):
                        yield part
                    if last is not None and position >= last:
                        return
        except decoding.DecodingError as error:
            raise AudioError(
                f"{self._stream.path}: decoding stopped with {error}. The file is damaged: get it again."
            ) from None
        declared = self._stream.declared
        if declared is not None and position < declared - SLACK_S * self.sample_rate:
            raise cut_short(self._stream.path, position, declared)

    def _without_padding(self, channel: int | None) -> Generator[NDArray[np.float32]]:
        """Iterate over the blocks, without up to 0.1 s that a codec adds past the declared end."""
        declared = self._stream.declared if self._stream.exact else None
        position, past = 0, np.zeros(0, np.float32)
        with closing(decoding.blocks(self._stream, channel)) as source:
            for block in source:
                cut = len(block) if declared is None else min(len(block), max(0, declared - position))
                position += len(block)
                if cut:
                    yield block[:cut]
                past = np.concatenate([past, block[cut:]])
                if len(past) > SLACK_S * self.sample_rate:  # more than padding: the header is wrong
                    yield past
                    past = past[:0]
                    declared = None


def open_source(path: Path) -> AbstractContextManager[Source]:
    """Open a file by libsndfile, or else by a decoder.

    Raises:
        AudioError: the file is missing, empty or cut short, or nothing can read it.
    """
    head = _head(path)
    try:
        file = soundfile.SoundFile(path)
    except (soundfile.LibsndfileError, RuntimeError, TypeError) as error:
        reason = str(getattr(error, "error_string", None) or error).rstrip(".")
        if reason.startswith("File does not exist"):  # so it says of what is named .mp3 and is none
            reason = "Format not recognised"
        if head.startswith(b"NIST_1A"):  # ffmpeg would accept half a header
            raise AudioError(f"{path}: not audio that libsndfile reads ({reason}). Get it again.") from None
        return closing(_Decoded(_probe(path, reason)))
    declared = _declared_samples(head, file)
    frames = file.frames
    if declared is not None and declared > frames + SLACK_S * file.samplerate:
        file.close()
        raise cut_short(path, frames, declared)
    if not frames:
        file.close()
        raise AudioError(f"{path}: the file has a header and no samples. Record or convert it again.")
    return closing(_SoundFile(path, file))


def _probe(path: Path, reason: str) -> decoding.Stream:
    name = decoding.decoder()
    if name is None:
        raise AudioError(f"{path}: not audio that libsndfile reads ({reason}): {decoding.INSTALL}.")
    try:
        return decoding.probe(path)
    except decoding.DecodingError as error:
        raise AudioError(
            f"{path}: not audio that libsndfile reads ({reason}), nor {name} ({error}). Expected a recording or a film "
            f"with sound: get it again, or convert it to WAV or FLAC."
        ) from None


def _head(path: Path) -> bytes:
    """Read the first bytes of a file, after checking that it is one."""
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
    return head


def _declared_samples(head: bytes, file: soundfile.SoundFile) -> int | None:
    """Return the samples declared by a header, of which libsndfile may silently read fewer; None if not declared."""
    if head.startswith(b"NIST_1A"):
        found = re.search(rb"^sample_count -i (\d+)", head[:1024], re.MULTILINE)
        return int(found[1]) if found else None
    if not head.startswith(b"RIFF"):
        return None
    offset = 12
    while offset + 8 <= len(head):
        name, size = head[offset : offset + 4], int.from_bytes(head[offset + 4 : offset + 8], "little")
        if name == b"data":
            # programs that write into a pipe leave a size near 2 or 4 GB, or zero
            block = int.from_bytes(head[32:34], "little") if head[12:16] == b"fmt " else 0
            plain = file.subtype.startswith("PCM") or file.subtype in ("FLOAT", "DOUBLE", "ULAW", "ALAW")
            return size // block if plain and block and size < 0x7FF00000 else None
        offset += 8 + size + size % 2
    return None


def cut_short(path: Path, found: int, declared: int) -> AudioError:
    """Return the error for a file with fewer samples than declared."""
    return AudioError(
        f"{path}: the file is cut short or damaged: {found} of {declared} samples can be read. Get it again."
    )
