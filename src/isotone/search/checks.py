"""Checksums of an index's vectors, compared when items are read: a digest would need the whole file."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from isotone.search.folder import CorruptIndex


def checks_of(vectors: NDArray[np.float16]) -> NDArray[np.uint32]:
    """Return the CRC-32 of the vectors of every item ``(I, n, d)``: ``(I,)``."""
    return np.fromiter(map(zlib.crc32, np.ascontiguousarray(vectors)), np.uint32, len(vectors))


@dataclass(frozen=True)
class Checks:
    """Checksums that were saved with a file of vectors.

    Attributes:
        path: The file of vectors.
        values: ``(I,)`` from :func:`checks_of`.
    """

    path: Path
    values: NDArray[np.uint32]

    def compare(self, vectors: NDArray[np.float16], items: NDArray[np.int64] | slice) -> None:
        """Raise CorruptIndex for vectors of items that are not those that were saved."""
        if not np.array_equal(checks_of(vectors), self.values[items]):
            raise CorruptIndex(
                f"{self.path} is damaged: it holds other vectors than were saved. Build the index anew."
            )
