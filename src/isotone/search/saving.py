"""Saving of an index: centroids, codes and metadata beside the vectors, and replacing an old index."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isotone.files import atomic_write
from isotone.search.codes import encode, fit_centroids
from isotone.search.store import (
    CENTROIDS,
    CODES,
    ERRORS,
    FILES,
    FILES_OF,
    ITEMS,
    METADATA,
    VECTORS,
    VERSION,
    Recording,
    Threshold,
    digest_of,
    named,
    read_metadata,
)

_MOST_CENTROIDS, _POINTS_PER_CENTROID = 2048, 16
_SAMPLE = 100_000
_BLOCK_ITEMS = 4096


def finish(
    folder: Path, model: dict[str, Any], recordings: list[Recording], items: NDArray[np.int32], n: int, d: int
) -> Iterator[float]:
    """Write centroids, codes and metadata into a folder that has the vectors already.

    Args:
        folder: The folder.
        model: See :class:`SearchIndex`.
        recordings, items: See :class:`SearchIndex`.
        n, d: Windows per item, and numbers per vector.

    Yields:
        The share done, 0 to 1.
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
    for name in FILES_OF:
        files[name] = {"bytes": (folder / name).stat().st_size}
        if name != VECTORS:
            files[name]["sha256"] = digest_of(folder / name)
    _write_metadata(folder, {"version": VERSION, "model": model, "shape": [count, n, d], "files": files})


def set_threshold(folder: Path, threshold: Threshold) -> None:
    """Store the threshold of an index in its metadata."""
    _write_metadata(folder, {**read_metadata(folder), "threshold": asdict(threshold)})


def _write_metadata(folder: Path, about: dict[str, Any]) -> None:
    with atomic_write(folder / METADATA) as out:
        out.write(json.dumps(about, indent=1, ensure_ascii=False) + "\n")


def is_index(folder: Path) -> bool:
    """Return whether a folder holds an index, complete or damaged; other folders must not be changed."""
    return (folder / METADATA).is_file() and any(folder.glob("vectors*.f16"))


def install(folder: Path, out: Path) -> None:
    """Install a complete index. At any moment, either the old index or the new one is complete.

    The new files have other names than the old ones, so both can be in the folder until the new :data:`METADATA`
    replaces the old one. Other files in the folder stay.
    """
    if not out.exists():
        folder.rename(out)
        return
    try:
        generation = int(json.loads((out / METADATA).read_text(encoding="utf-8")).get("generation", 1)) + 1
    except (OSError, ValueError, TypeError, AttributeError):
        generation = 2  # the old index is damaged
    about = {**read_metadata(folder), "generation": generation}
    (folder / METADATA).unlink()  # if this is killed, the rest in this folder is no complete index
    for name in FILES_OF:
        (folder / name).replace(out / named(name, generation))
    _write_metadata(out, about)
    for old in range(1, generation):
        for name in FILES_OF:
            (out / named(name, old)).unlink(missing_ok=True)
    for path in list(out.iterdir()):
        if is_temporary(path, (METADATA, ERRORS)):
            path.unlink()


def is_temporary(path: Path, names: Sequence[str]) -> bool:
    """Return whether a killed process left a file while it wrote one of these names."""
    return path.suffix == ".tmp" and any(path.name.startswith(f".{name}.") for name in names)


def _sample(vectors: NDArray[np.float16], seed: int = 0) -> Tensor:
    """Sample up to :data:`_SAMPLE` vectors of norm 1, from items drawn at random."""
    count, n, d = vectors.shape
    rng = np.random.default_rng(seed)
    drawn = np.sort(rng.permutation(count)[: max(1, -(-_SAMPLE // n))])
    flat = torch.from_numpy(vectors[drawn]).view(-1, d).float()
    audible = flat[flat.any(1)]
    return audible[:_SAMPLE] if len(audible) else flat[:1]
