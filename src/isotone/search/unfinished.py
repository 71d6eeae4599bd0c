"""Recordings that are embedded, of an index that is not whole yet."""

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

#: Files of an unfinished index, beside those of a whole one.
SETTINGS, DONE, EMBEDDED = "search-settings.json", "done.jsonl", "embedded.f16"
_OURS = (SETTINGS, DONE, EMBEDDED, store.METADATA, *store.FILES_OF)


@dataclass(frozen=True)
class Part:
    """A recording, its items, and their vectors in an array of several recordings'.

    Attributes:
        recording: The recording.
        spans: ``(I, 2)`` int32: first window and number of windows of each item.
        vectors: ``(N, n, d)`` float16.
        first: Row of the first item.
    """

    recording: store.Recording
    spans: NDArray[np.int32]
    vectors: NDArray[np.float16]
    first: int

    def renamed(self, recording: store.Recording) -> Part:
        """The same under another name."""
        return replace(self, recording=recording)


def parts_of(index: store.SearchIndex) -> Iterator[Part]:
    """The recordings of an index."""
    first = 0
    for recording in index.recordings:
        yield Part(recording, index.items[first : first + recording.items, 1:], index.vectors, first)
        first += recording.items


class Unfinished:
    """Appends recordings: first the vectors, then a line that says they are there.

    Recordings that are there already, unchanged and still wanted, stay; what follows the first other one is cut.

    Args:
        folder: Where they are kept.
        settings: Of the model.
        shape: Windows of an item, and numbers of a vector.
        wanted: Places of the recordings that are to be indexed.

    Raises:
        FileExistsError: the folder holds other files.
        ValueError: it was begun with another model.
    """

    def __init__(
        self, folder: Path, settings: dict[str, Any], shape: tuple[int, int], wanted: set[str]
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
        for name in (store.METADATA, *store.FILES_OF):  # of a run that was killed when it was nearly done
            (folder / name).unlink(missing_ok=True)
        self.folder, self.shape = folder, shape
        self.rows = self._recover(wanted)
        self.known = {recording.place for recording, _ in self.rows}
        self.digests = {recording.sha256: recording for recording, _ in self.rows}
        self._vectors = (folder / EMBEDDED).open("ab")
        self._done = (folder / DONE).open("a", encoding="utf-8")

    def _recover(self, wanted: set[str]) -> list[tuple[store.Recording, list[list[int]]]]:
        vectors, done = self.folder / EMBEDDED, self.folder / DONE
        rows: list[tuple[store.Recording, list[list[int]]]] = []
        whole, there = 0, vectors.stat().st_size if vectors.is_file() else 0
        for line in done.read_text(encoding="utf-8").split("\n") if done.is_file() else ():
            try:
                row = json.loads(line)
                recording = store.recording_of(row["recording"])
                need = whole + len(row["spans"]) * 2 * self.shape[0] * self.shape[1]
                same = recording.stamp == stamp(Path(recording.place))
            except (ValueError, KeyError, TypeError, OSError):
                break  # the line that was being written, or a file that is gone
            if need > there or not same or recording.place not in wanted:
                break
            rows.append((recording, row["spans"]))
            whole = need
        with vectors.open("ab") as file:
            file.truncate(whole)
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
        """What is there; nothing can be added after it."""
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
            path.unlink()
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def stamp(path: Path) -> tuple[int, int]:
    """Size and time of change of a file: what changes with it."""
    about = path.stat()
    return about.st_size, about.st_mtime_ns


def _is_ours(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    there = {path.name for path in folder.iterdir() if not saving.is_temporary(path, _OURS)}
    # without settings: what a run that was killed while it put the index in its place has left
    return SETTINGS in there or (there <= set(_OURS) and there != {store.METADATA})


def _line(recording: store.Recording, spans: list[tuple[int, int]] | list[list[int]]) -> str:
    return json.dumps({"recording": asdict(recording), "spans": spans}, ensure_ascii=False) + "\n"
