"""An index of recordings on disk: memory-mapped vectors and codes, and ``index.json``, which says what they are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isotone.files import atomic_write
from isotone.interfaces import Searcher
from isotone.search.codes import encode, fit_centroids

#: Of the folder's layout; readers refuse others.
VERSION = 1
METADATA, VECTORS, CODES, ITEMS = "index.json", "vectors.f16", "codes.u16", "items.i32"
CENTROIDS, FILES, ERRORS = "centroids.f32", "files.jsonl", "errors.jsonl"

_MOST_CENTROIDS, _POINTS_PER_CENTROID = 2048, 16
_SAMPLE = 100_000
_BLOCK_ITEMS = 4096


class CorruptIndex(ValueError):
    """A saved index is damaged: a file is missing, cut short or changed."""


class IndexMismatch(ValueError):
    """An index is of another version or model than the one that is to be used with it."""


@dataclass(frozen=True)
class Recording:
    """A file that is indexed.

    Attributes:
        file: Its path, as it was given.
        id: What results call it.
        duration: Seconds.
        items: Number of its items.
    """

    file: str
    id: str
    duration: float
    items: int


@dataclass(frozen=True)
class SearchIndex:
    """An index that is open.

    Attributes:
        folder: Where it lies.
        model: What made it: ``name``, ``source``, ``fingerprint``, ``sample_rate``, ``window_s``, ``hop_s``.
        recordings: The files.
        items: ``(I, 3)`` int32: each item's recording, first window and number of windows.
        vectors: ``(I, n, d)`` float16, memory-mapped.
        codes: ``(I, n)`` uint16: numbers of the windows' centroids.
        lengths: ``(I,)`` uint16, windows.
        centroids: ``(K, d)`` float32.
    """

    folder: Path
    model: dict[str, Any]
    recordings: list[Recording]
    items: NDArray[np.int32]
    vectors: NDArray[np.float16]
    codes: NDArray[np.uint16]
    lengths: NDArray[np.uint16]
    centroids: Tensor

    def __len__(self) -> int:
        return len(self.items)

    def take(self, items: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Vectors ``(C, n, d)`` float32 and lengths ``(C,)`` int64 of some items, read from disk.

        Raises:
            CorruptIndex: vectors that are not finite.
        """
        vectors = torch.from_numpy(self.vectors[items]).float()
        if not torch.isfinite(vectors.sum()):  # of half precision: it does not overflow
            raise CorruptIndex(f"{self.folder / VECTORS} is damaged: it holds NaN. Build the index anew.")
        return vectors, torch.from_numpy(self.lengths[items].astype(np.int64))

    def check_model(self, searcher: Searcher) -> None:
        """Hold a model against the one that made the index.

        Raises:
            IndexMismatch: it is another.
        """
        if searcher.fingerprint != self.model["fingerprint"]:
            made = self.model["source"] or self.model["name"]
            raise IndexMismatch(
                f"{self.folder} was made with {made} ({self.model['fingerprint']}), and is to be searched with "
                f"{searcher.source or searcher.name} ({searcher.fingerprint}): their vectors cannot be compared. "
                "Search with the model that made it, or index the recordings anew."
            )

    @classmethod
    def open(cls, folder: Path | str) -> Self:
        """Open an index; the vectors stay on disk.

        All files' sizes are compared, and the SHA-256 of all but the vectors, which may be larger than memory.

        Raises:
            FileNotFoundError: there is no index, or it is not finished.
            CorruptIndex: a file is missing, cut short or changed.
            IndexMismatch: the index is of another version.
        """
        folder = Path(folder)
        about = _metadata(folder)
        try:
            count, n, d = (int(x) for x in about["shape"])
            model = dict(about["model"])
            if not {"name", "source", "fingerprint", "sample_rate"} <= set(model):
                raise ValueError(f"{METADATA} does not say which model made it")
            lines = (folder / FILES).read_text(encoding="utf-8").splitlines()
            recordings = [Recording(**row) for row in map(json.loads, lines)]
            items = np.fromfile(folder / ITEMS, np.int32).reshape(count, 3)
            codes = np.fromfile(folder / CODES, np.uint16).reshape(count, n)
            centroids = torch.from_numpy(np.fromfile(folder / CENTROIDS, np.float32).reshape(-1, d))
            vectors = np.memmap(folder / VECTORS, np.float16, "r", shape=(count, n, d))
        except (KeyError, TypeError, ValueError, OSError) as error:
            raise CorruptIndex(f"The index at {folder} is damaged: {error}. Build it anew.") from error
        lengths = items[:, 2].astype(np.uint16)
        return cls(folder, model, recordings, items, vectors, codes, lengths, centroids)


def _metadata(folder: Path) -> dict[str, Any]:
    path = folder / METADATA
    if not path.is_file():
        partial = unfinished(folder)
        more = f" {partial} is an unfinished one: give the command that began it again." * partial.is_dir()
        raise FileNotFoundError(f"No index at {folder} ({METADATA} is missing).{more}")
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        version, files = about["version"], dict(about["files"])
        known = {name: (int(of["bytes"]), of.get("sha256")) for name, of in files.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptIndex(f"{path} is damaged ({type(error).__name__}: {error}). Build it anew.") from error
    if version != VERSION:
        raise IndexMismatch(
            f"{path} has format version {version}; this isotone reads {VERSION}. Build it anew."
        )
    for name, (size, digest) in known.items():
        file = folder / name
        found = file.stat().st_size if file.is_file() else None
        if found != size:
            what = "is missing" if found is None else f"has {found} bytes of {size}"
            raise CorruptIndex(f"{file} {what}: the index is damaged. Build it anew.")
        if digest is not None and _digest(file) != digest:
            raise CorruptIndex(f"{file} is not what was saved: the index is damaged. Build it anew.")
    return dict(about)


def unfinished(folder: Path) -> Path:
    """Where an index is built, before it is whole."""
    return folder.with_name(f"{folder.name}.partial")


def finish(
    folder: Path, model: dict[str, Any], recordings: list[Recording], items: NDArray[np.int32], n: int, d: int
) -> Iterator[float]:
    """Write everything beside the vectors, which lie in the folder: centroids, codes, metadata.

    Args:
        folder: The folder.
        model: See :class:`SearchIndex`.
        recordings, items: See :class:`SearchIndex`.
        n, d: Windows of an item, and numbers of a vector.

    Yields:
        The share that is done, 0 to 1.
    """
    count = len(items)
    vectors = np.memmap(folder / VECTORS, np.float16, "r", shape=(count, n, d))
    sample = _sample(vectors)
    centroids = fit_centroids(sample, min(_MOST_CENTROIDS, max(1, len(sample) // _POINTS_PER_CENTROID)))
    centroids.numpy().tofile(folder / CENTROIDS)
    items.tofile(folder / ITEMS)
    with (folder / CODES).open("wb") as file:
        for first in range(0, count, _BLOCK_ITEMS):
            block = torch.from_numpy(np.array(vectors[first : first + _BLOCK_ITEMS]))
            encode(block, centroids).tofile(file)
            yield min(1.0, (first + _BLOCK_ITEMS) / count)
    with atomic_write(folder / FILES) as out:
        out.writelines(json.dumps(vars(r), ensure_ascii=False) + "\n" for r in recordings)
    files: dict[str, dict[str, Any]] = {}
    for name in (VECTORS, CODES, ITEMS, CENTROIDS, FILES):
        files[name] = {"bytes": (folder / name).stat().st_size}
        if name != VECTORS:
            files[name]["sha256"] = _digest(folder / name)
    about = {"version": VERSION, "model": model, "shape": [count, n, d], "files": files}
    with atomic_write(folder / METADATA) as out:
        out.write(json.dumps(about, indent=1, ensure_ascii=False) + "\n")


def _sample(vectors: NDArray[np.float16], seed: int = 0) -> Tensor:
    """Up to :data:`_SAMPLE` vectors of norm 1, from items drawn at random."""
    count, n, d = vectors.shape
    rng = np.random.default_rng(seed)
    drawn = np.sort(rng.permutation(count)[: max(1, -(-_SAMPLE // n))])
    flat = torch.from_numpy(vectors[drawn]).view(-1, d).float()
    heard = flat[flat.any(1)]
    return heard[:_SAMPLE] if len(heard) else flat[:1]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
