"""Recordings to an index, one file after the other; an interrupted run goes on where it stood."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isotone import audio as sound
from isotone.batch import explain
from isotone.files import atomic_write
from isotone.inputs import find_audio, ids_of, place, readable
from isotone.interfaces import Searcher
from isotone.search import store
from isotone.search.windows import cut_windows, item_spans

log = logging.getLogger(__name__)

_SETTINGS, _DONE = "settings.json", "done.jsonl"
# Windows, or items of a model that sees them whole, that are embedded at once.
_WINDOWS, _ITEMS = 256, 16

Progress = Callable[[str, float], None]


@dataclass
class Built:
    """What came of indexing.

    Attributes:
        done: Files that are in the index.
        items: Its items.
        seconds: Of audio.
        errors: ``{"file", "error"}`` of each file that is not in it; also in its ``errors.jsonl``.
    """

    done: int = 0
    items: int = 0
    seconds: float = 0.0
    errors: list[dict[str, str]] = field(default_factory=list)


def build_index(
    paths: Sequence[Path],
    searcher: Searcher,
    out: Path,
    *,
    overwrite: bool = False,
    progress: Progress = lambda what, share: None,
) -> Built:
    """Index audio files.

    Until it is whole, the index lies in ``OUT.partial``; the same call goes on there, after what had been finished.
    Files that have changed since, and those that failed, are done again.

    Args:
        paths: Files or folders.
        searcher: What turns them into vectors.
        out: Folder of the index.
        overwrite: Replace an index that is there, once the new one is whole, and begin anew.
        progress: Told what is done and which share of it.

    Raises:
        FileExistsError: there is something at ``out``, and it is not to be replaced.
        ValueError: no file could be indexed, or the unfinished index is of another model.
        OSError: there is no audio.
    """
    if out.exists() and not overwrite:
        raise FileExistsError(
            f"{out} is there already: choose another --out, or replace it with --overwrite."
        )
    if out.exists() and not (out / store.METADATA).is_file():
        raise FileExistsError(f"{out} is no index, and will not be replaced: choose another --out.")
    found = find_audio(paths)
    folder = store.unfinished(out)
    settings = describe(searcher)
    if overwrite and (folder / _SETTINGS).is_file():
        shutil.rmtree(folder)
    writer = _Writer(folder, searcher, settings, found)
    built = Built()
    for number, (path, id) in enumerate(zip(found, ids_of(found))):
        progress(id, number / len(found))
        if writer.has(path):
            continue
        try:
            if readable(path) != str(path):
                raise ValueError("its name is not Unicode; rename it.")
            writer.add(path, id, sound.load(path, searcher.sample_rate))
        except Exception as error:  # whatever it is, the other files are not to suffer
            log.debug("%s", path, exc_info=True)
            built.errors.append({"file": readable(path), "error": explain(error, path)})
    writer.close()
    _write_errors(folder, built.errors)
    if not writer.rows:
        shutil.rmtree(folder)
        first = built.errors[0]
        raise ValueError(f"None of {len(found)} files could be indexed; {first['file']}: {first['error']}")
    recordings, items = writer.tables()
    shape = searcher.item_windows, searcher.size
    for share in store.finish(folder, settings, recordings, items, *shape):
        progress("codes", share)
    for name in (_SETTINGS, _DONE):
        (folder / name).unlink()
    if out.exists():
        shutil.rmtree(out)
    folder.rename(out)
    built.done, built.items = len(recordings), len(items)
    built.seconds = sum(r.duration for r in recordings)
    return built


def describe(searcher: Searcher) -> dict[str, Any]:
    """What an index says of the model that made it."""
    names = ("name", "source", "fingerprint", "sample_rate", "window_s", "hop_s")
    return {name: getattr(searcher, name) for name in names}


@torch.inference_mode()
def embed_items(searcher: Searcher, samples: NDArray[np.float32]) -> tuple[Tensor, list[tuple[int, int]]]:
    """The items of a recording: vectors ``(I, n, d)``, zero beyond each item's length, and their spans.

    Raises:
        ValueError: the model gave vectors that are not finite.
    """
    rate = searcher.sample_rate
    windows = cut_windows(samples, round(searcher.window_s * rate), round(searcher.hop_s * rate))
    n = searcher.item_windows
    spans = item_spans(len(windows), n)
    out = torch.zeros(len(spans), n, searcher.size)
    if searcher.contextual:
        for first in range(0, len(spans), _ITEMS):
            block = spans[first : first + _ITEMS]
            lengths = torch.tensor([length for _, length in block])
            padded = np.zeros((len(block), int(lengths.max()), windows.shape[1]), np.float32)
            for row, (start, length) in enumerate(block):
                padded[row, :length] = windows[start : start + length]
            vectors = searcher.vectors(torch.from_numpy(padded), lengths)
            out[first : first + len(block), : vectors.shape[1]] = vectors
    else:
        parts = [
            searcher.vectors(torch.from_numpy(windows[first : first + _WINDOWS].copy())[None])[0]
            for first in range(0, len(windows), _WINDOWS)
        ]
        each = torch.cat(parts)
        for row, (start, length) in enumerate(spans):
            out[row, :length] = each[start : start + length]
    if not torch.isfinite(out).all():
        raise ValueError("the model gave vectors that are not finite; its weights are damaged.")
    return out, spans


class _Writer:
    """Appends files to an unfinished index: first the vectors, then a line that says they are there."""

    def __init__(
        self, folder: Path, searcher: Searcher, settings: dict[str, Any], found: Sequence[Path]
    ) -> None:
        self.searcher = searcher
        self.item_bytes = 2 * searcher.item_windows * searcher.size
        folder.mkdir(parents=True, exist_ok=True)
        about = folder / _SETTINGS
        if about.is_file():
            if json.loads(about.read_text(encoding="utf-8")) != settings:
                raise ValueError(
                    f"{folder} was begun with another model or other settings: finish it with those, or give "
                    "--overwrite to begin anew."
                )
        else:
            with atomic_write(about) as file:
                file.write(json.dumps(settings))
        vectors, done = folder / store.VECTORS, folder / _DONE
        self.rows = self._recover(vectors, done, {str(place(path)) for path in found})
        self.known = {row["place"] for row in self.rows}
        self.vectors, self.done = vectors.open("ab"), done.open("a", encoding="utf-8")

    def _recover(self, vectors: Path, done: Path, wanted: set[str]) -> list[dict[str, Any]]:
        """The files that are whole on disk, unchanged and still wanted; what follows the first other one is cut."""
        rows: list[dict[str, Any]] = []
        whole, there = 0, vectors.stat().st_size if vectors.is_file() else 0
        for line in done.read_text(encoding="utf-8").splitlines() if done.is_file() else ():
            try:
                row = json.loads(line)
                need = whole + len(row["spans"]) * self.item_bytes
                same = row["stamp"] == _stamp(Path(row["place"]))
            except (ValueError, KeyError, OSError):
                break  # the line that was being written, or a file that is gone
            if need > there or not same or row["place"] not in wanted:
                break
            rows.append(row)
            whole = need
        with vectors.open("ab") as file:
            file.truncate(whole)
        with atomic_write(done) as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        return rows

    def has(self, path: Path) -> bool:
        return str(place(path)) in self.known

    def add(self, path: Path, id: str, samples: NDArray[np.float32]) -> None:
        """Embed a recording and write it."""
        stamp = _stamp(path)
        vectors, spans = embed_items(self.searcher, samples)
        self.vectors.write(vectors.half().numpy().tobytes())
        self.vectors.flush()
        row = {
            "place": str(place(path)), "stamp": stamp, "spans": spans,
            "recording": asdict(
                store.Recording(str(path), id, len(samples) / self.searcher.sample_rate, len(spans))
            ),
        }  # fmt: skip
        self.done.write(json.dumps(row, ensure_ascii=False) + "\n")
        self.done.flush()
        self.rows.append(row)
        self.known.add(row["place"])

    def close(self) -> None:
        self.vectors.close()
        self.done.close()

    def tables(self) -> tuple[list[store.Recording], NDArray[np.int32]]:
        recordings = [store.Recording(**row["recording"]) for row in self.rows]
        items = [(number, *span) for number, row in enumerate(self.rows) for span in row["spans"]]
        return recordings, np.array(items, np.int32).reshape(-1, 3)


def _stamp(path: Path) -> list[int]:
    """What changes with a file."""
    about = path.stat()
    return [about.st_size, about.st_mtime_ns]


def _write_errors(folder: Path, errors: Sequence[dict[str, str]]) -> None:
    (folder / store.ERRORS).unlink(missing_ok=True)
    if errors:
        with atomic_write(folder / store.ERRORS) as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in errors)
