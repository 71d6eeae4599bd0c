"""Embedded recordings of an unfinished index."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from isotone.files import atomic_write
from isotone.search import saving, store
from isotone.search.checks import Checks

#: Files of an unfinished index, besides those of a complete one.
SETTINGS, DONE, EMBEDDED = "search-settings.json", "done.jsonl", "embedded.f16"
_OURS = (SETTINGS, DONE, EMBEDDED, store.METADATA, *store.PARTS)

# Items per block when copying.
_BLOCK_ITEMS = 4096


@dataclass(frozen=True)
class Part:
    """A recording, its items, and their vectors in an array of several recordings.

    Attributes:
        recording: The recording.
        spans: ``(I, 2)`` int32: first window and number of windows of each item.
        vectors: ``(N, n, d)`` float16.
        first: Row of the first item.
        checks: Checksums of the vectors, where they have any.
    """

    recording: store.Recording
    spans: NDArray[np.int32]
    vectors: NDArray[np.float16]
    first: int
    checks: Checks | None = None

    def renamed(self, recording: store.Recording) -> Part:
        """Return the part with another description of the recording."""
        return replace(self, recording=recording)

    def blocks(self) -> Iterator[NDArray[np.float16]]:
        """Iterate over the vectors of its items, some of them at a time; CorruptIndex where they are damaged."""
        end = self.first + len(self.spans)
        for first in range(self.first, end, _BLOCK_ITEMS):
            rows = slice(first, min(first + _BLOCK_ITEMS, end))
            if self.checks is not None:
                self.checks.compare(self.vectors[rows], rows)
            yield self.vectors[rows]


def parts_of(index: store.SearchIndex) -> Iterator[Part]:
    """Iterate over the recordings of an index."""
    first = 0
    for recording in index.recordings:
        spans = index.items[first : first + recording.items, 1:]
        yield Part(recording, spans, index.vectors, first, index.checks)
        first += recording.items


class Unfinished:
    """Log of embedded recordings: first their vectors are appended to a file, then a line to a list.

    Recordings from an interrupted run are kept up to the first one that has changed or is not requested any more.

    Args:
        folder: Folder of the unfinished index.
        settings: Description of the model.
        shape: Windows per item, and numbers per vector.
        requested: Absolute paths of the recordings to be indexed.

    Raises:
        FileExistsError: the folder holds other files.
        ValueError: the index was begun with another model.
    """

    def __init__(
        self, folder: Path, settings: dict[str, Any], shape: tuple[int, int], requested: set[str]
    ) -> None:
        if folder.exists() and not _is_ours(folder):
            raise FileExistsError(
                f"{folder}, where the index is to be built, holds other files: move them, or choose another --out."
            )
        folder.mkdir(parents=True, exist_ok=True)
        about = folder / SETTINGS
        if about.is_file():
            if json.loads(about.read_text(encoding="utf-8")) != settings:
                raise ValueError(
                    f"{folder} was begun with another model or other settings: finish it with those, or give "
                    "--overwrite to begin anew."
                )
        else:
            with atomic_write(about) as file:
                file.write(json.dumps(settings))
        for name in (store.METADATA, *store.PARTS):  # left by a run that was killed while it finished
            saving.remove(folder / name)
        self.folder, self.shape = folder, shape
        self.rows = self._recover(requested)
        self.known = {recording.place for recording, _ in self.rows}
        self.digests = {recording.sha256: recording for recording, _ in self.rows}
        self._vectors = (folder / EMBEDDED).open("ab")
        self._done = (folder / DONE).open("a", encoding="utf-8")

    def _recover(self, requested: set[str]) -> list[tuple[store.Recording, list[list[int]]]]:
        """Read the valid recordings of an interrupted run, and cut both files after them."""
        vectors, done = self.folder / EMBEDDED, self.folder / DONE
        rows: list[tuple[store.Recording, list[list[int]]]] = []
        valid, available = 0, vectors.stat().st_size if vectors.is_file() else 0  # bytes
        for line in done.read_text(encoding="utf-8").split("\n") if done.is_file() else ():
            try:
                row = json.loads(line)
                recording = store.recording_of(row["recording"])
                end = valid + len(row["spans"]) * 2 * self.shape[0] * self.shape[1]
                same = recording.stamp == stamp(Path(recording.place))
            except (ValueError, KeyError, TypeError, OSError):
                break  # a line that was cut off, or a file that is gone
            if end > available or not same or recording.place not in requested:
                break
            rows.append((recording, row["spans"]))
            valid = end
        with vectors.open("ab") as file:
            file.truncate(valid)
        with atomic_write(done) as file:
            file.writelines(_line(recording, spans) for recording, spans in rows)
        return rows

    def add(self, recording: store.Recording, vectors: Tensor, spans: list[tuple[int, int]]) -> None:
        """Append a recording and the vectors ``(I, n, d)`` of its items."""
        self._vectors.write(vectors.half().numpy().tobytes())
        self._vectors.flush()
        self._done.write(_line(recording, spans))
        self._done.flush()
        self.rows.append((recording, [list(span) for span in spans]))
        self.known.add(recording.place)
        self.digests[recording.sha256] = recording

    def parts(self) -> Iterator[Part]:
        """Close the files, and iterate over all recordings."""
        self.close()
        if not self.rows:
            return
        vectors = np.memmap(self.folder / EMBEDDED, np.float16, "r").reshape(-1, *self.shape)
        first = 0
        for recording, spans in self.rows:
            yield Part(recording, np.array(spans, np.int32), vectors, first)
            first += len(spans)

    def close(self) -> None:
        """Close the files."""
        self._vectors.close()
        self._done.close()


def discard(folder: Path) -> None:
    """Remove an unfinished index, and nothing else."""
    for path in list(folder.iterdir()) if folder.is_dir() else ():
        if path.name in _OURS or saving.is_temporary(path, _OURS):
            saving.remove(path)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def stamp(path: Path) -> tuple[int, int]:
    """Return the size and the modification time of a file, to detect changes."""
    about = path.stat()
    return about.st_size, about.st_mtime_ns


def _is_ours(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    there = {path.name for path in folder.iterdir() if not saving.is_temporary(path, _OURS)}
    # without settings: left by a run that was killed while it installed the index
    return SETTINGS in there or (there <= set(_OURS) and there != {store.METADATA})


def _line(recording: store.Recording, spans: list[tuple[int, int]] | list[list[int]]) -> str:
    return json.dumps({"recording": asdict(recording), "spans": spans}, ensure_ascii=False) + "\n"
