"""Samples of a recording that lie on disk, so that a recording of hours takes no memory."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

_BYTES = 4
_BLOCK = 1 << 20


class Samples(Protocol):
    """Samples ``(N,)`` of a recording, in an array or on disk: a slice of them is an array."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> NDArray[np.float32]: ...


class Stored:
    """Samples in a temporary file, which goes with the object.

    Slices are read when they are asked for, and are arrays of their own.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="isotone-")  # noqa: SIM115 - open as long as the object is
        self._size = 0
        weakref.finalize(self, self._file.close)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice, /) -> NDArray[np.float32]:
        first, last, step = part.indices(self._size)
        if step != 1:
            raise ValueError(f"Stored samples expect a slice without a step; got one of {step}.")
        self._file.seek(_BYTES * first)
        return np.frombuffer(bytearray(self._file.read(_BYTES * max(0, last - first))), np.float32)

    def expect(self, samples: int) -> None:
        """Do nothing: a file grows by itself."""

    def append(self, block: NDArray[np.float32]) -> None:
        """Add samples at the end."""
        self._file.seek(_BYTES * self._size)
        self._file.write(np.ascontiguousarray(block, np.float32).tobytes())
        self._size += len(block)


def blocks(samples: Samples) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Iterate over samples in blocks of about a minute at 16 kHz: the first one's number, and the block."""
    for first in range(0, len(samples), _BLOCK):
        yield first, samples[first : first + _BLOCK]
