"""Saving of an index: the first stage and metadata beside the vectors, and replacing an old index."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.files import atomic_write
from isotone.search.candidates import DEFAULT, Spec, build_stage
from isotone.search.checks import checks_of
from isotone.search.store import (
    CHECKS,
    ERRORS,
    FILES,
    FILES_OF,
    ITEMS,
    METADATA,
    PARTS,
    STAGE,
    VECTORS,
    VERSION,
    Recording,
    Threshold,
    digest_of,
    named,
    read_metadata,
)


def finish(
    folder: Path,
    model: dict[str, Any],
    recordings: list[Recording],
    items: NDArray[np.int32],
    n: int,
    d: int,
    spec: Spec = DEFAULT,
) -> Iterator[float]:
    """Write the first stage and metadata into a folder that has the vectors already.

    Args:
        folder: The folder.
        model: See :class:`SearchIndex`.
        recordings, items: See :class:`SearchIndex`.
        n, d: Windows per item, and numbers per vector.
        spec: Name of the first stage's index, or a mapping with its options.

    Yields:
        The share done, 0 to 1.

    Raises:
        LookupError, TypeError, ImportError, ValueError: as :func:`isotone.search.candidates.build_stage`.
    """
    count = len(items)
    vectors = np.memmap(folder / VECTORS, np.float16, "r", shape=(count, n, d))
    items.tofile(folder / ITEMS)
    checks_of(vectors).tofile(folder / CHECKS)
    contextual = model.get("contextual", True)
    for share, built in build_stage(
        spec, vectors, items, contextual=contextual, fingerprint=model["fingerprint"]
    ):
        stage = built
        yield share
    stage.save(folder / STAGE)
    with atomic_write(folder / FILES) as out:
        out.writelines(json.dumps(vars(r), ensure_ascii=False) + "\n" for r in recordings)
    files: dict[str, dict[str, Any]] = {}
    for name in FILES_OF:
        files[name] = {"bytes": (folder / name).stat().st_size}
        if name != VECTORS:
            files[name]["sha256"] = digest_of(folder / name)
    about = {"version": VERSION, "model": model, "shape": [count, n, d], "stage": spec, "files": files}
    about["stage_sha256"] = digest_of(folder / STAGE / METADATA)
    _write_metadata(folder, about)


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
    for name in PARTS:
        if (folder / name).exists():
            target = out / named(name, generation)
            if target.is_dir():  # left by a killed process; a folder is not replaced like a file
                remove(target)
            (folder / name).replace(target)
    _write_metadata(out, about)
    for old in range(1, generation):
        for name in PARTS:
            remove(out / named(name, old))
    for path in list(out.iterdir()):
        if is_temporary(path, (METADATA, ERRORS)):
            path.unlink()


def remove(part: Path) -> None:
    """Remove a file or a folder of an index, if it is there."""
    if part.is_dir():
        shutil.rmtree(part)
    else:
        part.unlink(missing_ok=True)


def is_temporary(path: Path, names: Sequence[str]) -> bool:
    """Return whether a killed process left a file while it wrote one of these names."""
    return path.suffix == ".tmp" and any(path.name.startswith(f".{name}.") for name in names)
