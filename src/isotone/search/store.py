"""Index of recordings on disk: memory-mapped vectors, the first stage, and ``index.json``, which describes them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isotone.files import digest_of
from isotone.interfaces import Index, Searcher
from isotone.registries import indexes
from isotone.search.candidates import DEFAULT, Candidates, Spec
from isotone.search.centroids import CentroidIndex
from isotone.search.checks import Checks
from isotone.search.folder import CorruptIndex, IndexMismatch

#: Version of the layout, and versions that can be read. Version 1 has no threshold, and no digests of recordings; 1 and
#: 2 have codes and centroids in files of their own.
VERSION = 3
READ = (1, 2, 3)
METADATA, VECTORS, ITEMS = "index.json", "vectors.f16", "items.i32"
FILES, ERRORS = "files.jsonl", "errors.jsonl"
#: Checksums of the vectors, item by item; indexes made before there were any have none.
CHECKS = "checks.u32"
#: Folder of the first stage, an index of :data:`isotone.registries.indexes`.
STAGE = "stage"
#: Files whose sizes and digests are in :data:`METADATA`, and everything that a new generation replaces.
FILES_OF = (VECTORS, ITEMS, FILES, CHECKS)
CODES, CENTROIDS = "codes.u16", "centroids.f32"
PARTS = (*FILES_OF, STAGE, CODES, CENTROIDS)

# Times that an index is opened again if it is replaced just then.
_OPENINGS = 20


@dataclass(frozen=True)
class Recording:
    """An indexed file.

    Attributes:
        file: Path as it was given.
        id: Id in results.
        duration: Seconds.
        items: Number of items.
        place: Absolute path; empty in indexes of version 1.
        sha256: Digest of the content, in hexadecimal; empty in indexes of version 1.
        stamp: Size in bytes, and time of the last change in nanoseconds.
    """

    file: str
    id: str
    duration: float
    items: int
    place: str = ""
    sha256: str = ""
    stamp: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Threshold:
    """Margin by which a score must exceed a clip's level, by the clip's length.

    It is measured by :func:`isotone.search.threshold.measure`.

    Attributes:
        rate: Share of clips outside the index that may reach the margin.
        windows: Measured lengths, ascending; empty for an index that is too small.
        margins: Margin of each length.
        clips: Number of measured clips of each length.
    """

    rate: float
    windows: tuple[int, ...] = ()
    margins: tuple[float, ...] = ()
    clips: tuple[int, ...] = ()

    def extended(self, windows: int, margin: float, clips: int) -> Self:
        """Return the threshold with one more length."""
        return type(self)(self.rate, (*self.windows, windows), (*self.margins, margin), (*self.clips, clips))

    def margin(self, windows: int) -> float:
        """Return the margin of clips of a length in windows: linear between measured lengths, constant beyond."""
        return float(np.interp(windows, self.windows, self.margins))

    def rate_of(self, windows: int) -> float:
        """Return the rate that n measured clips guarantee: ``rate``, or 1 / (n + 1) if that is more."""
        return max(self.rate, 1 / (1 + float(np.interp(windows, self.windows, self.clips))))


@dataclass(frozen=True)
class SearchIndex:
    """An open index.

    Attributes:
        folder: Folder of the index.
        model: Model that made it: ``name``, ``source``, ``fingerprint``, ``sample_rate``, ``window_s``, ``hop_s``.
        recordings: The indexed files.
        items: ``(I, 3)`` int32: recording, first window and number of windows of each item.
        vectors: ``(I, n, d)`` float16, memory-mapped.
        lengths: ``(I,)`` uint16, windows.
        spec: Name of the first stage's index, or a mapping with its options.
        candidates: The first stage.
        threshold: Threshold of matches; None in indexes of version 1.
        checks: Checksums of the vectors; None in indexes that were made before there were any.
    """

    folder: Path
    model: dict[str, Any]
    recordings: list[Recording]
    items: NDArray[np.int32]
    vectors: NDArray[np.float16]
    lengths: NDArray[np.uint16]
    spec: Spec
    candidates: Candidates
    threshold: Threshold | None = None
    checks: Checks | None = None

    def __len__(self) -> int:
        return len(self.items)

    def take(self, items: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Read vectors ``(C, n, d)`` float32 and lengths ``(C,)`` int64 of items from disk.

        Raises:
            CorruptIndex: vectors that are not those that were saved, or not finite.
        """
        read = self.vectors[items]
        if self.checks is not None:
            self.checks.compare(read, items)
        vectors = torch.from_numpy(read).float()
        if not torch.isfinite(vectors.sum()):  # one sum for all: numbers of half precision cannot overflow it
            raise CorruptIndex(f"{self.folder / VECTORS} is damaged: it holds NaN. Build the index anew.")
        return vectors, torch.from_numpy(self.lengths[items].astype(np.int64))

    def check_model(self, searcher: Searcher) -> None:
        """Check that a model is the one that made the index.

        Raises:
            IndexMismatch: it is another model.
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

        The sizes of all files are checked, and the SHA-256 of all but the vectors, which may be larger than memory:
        those have a checksum per item, for :meth:`take`. If another process replaces the index meanwhile, the new one
        is opened.

        Raises:
            FileNotFoundError: there is no index, or it is not finished.
            CorruptIndex: a file is missing, cut short or changed.
            IndexMismatch: the index is of another version.
            LookupError, ImportError: the plugin of its first stage is not installed.
        """
        folder = Path(folder)
        for _ in range(_OPENINGS):
            described = _description(folder)
            try:
                return cls._open(folder)
            except (CorruptIndex, FileNotFoundError):
                if _description(folder) == described:
                    raise
        return cls._open(folder)

    @classmethod
    def _open(cls, folder: Path) -> Self:
        about = read_metadata(folder)
        try:
            count, n, d = (int(x) for x in about["shape"])
            model = dict(about["model"])
            if not {"name", "source", "fingerprint", "sample_rate"} <= set(model):
                raise ValueError(f"{METADATA} does not say which model made it")
            paths = {name: folder / named(name, about["generation"]) for name in PARTS}
            # not splitlines: names may contain line separators other than \n
            lines = paths[FILES].read_text(encoding="utf-8").split("\n")
            recordings = [recording_of(json.loads(line)) for line in lines if line]
            items = np.fromfile(paths[ITEMS], np.int32).reshape(count, 3)
            vectors = np.memmap(paths[VECTORS], np.float16, "r", shape=(count, n, d))
            checks = None
            if CHECKS in about["files"]:
                checks = Checks(paths[VECTORS], np.fromfile(paths[CHECKS], np.uint32).reshape(count))
            threshold = _threshold_of(about.get("threshold"))
        except (KeyError, TypeError, ValueError, OverflowError, OSError) as error:
            raise CorruptIndex(f"The index at {folder} is damaged: {error}. Build it anew.") from error
        lengths = items[:, 2].astype(np.uint16)
        spec = about.get("stage", DEFAULT)
        stage = _stage(paths, spec, about.get("stage_sha256"), model["fingerprint"], (count, n, d), lengths)
        candidates = Candidates(stage, items, model.get("contextual", True))
        return cls(folder, model, recordings, items, vectors, lengths, spec, candidates, threshold, checks)


def _stage(
    paths: dict[str, Path],
    spec: Spec,
    digest: str | None,
    fingerprint: str,
    shape: tuple[int, int, int],
    lengths: NDArray[np.uint16],
) -> Index:
    """Open the first stage, also of the versions that have files of codes.

    Its own description has the digests of its other files; ``digest`` is that of the description.
    """
    if paths[CODES].is_file():
        codes = np.fromfile(paths[CODES], np.uint16).reshape(shape[:2])
        centroids = torch.from_numpy(np.fromfile(paths[CENTROIDS], np.float32).reshape(-1, shape[2]))
        return CentroidIndex.of_codes(centroids, codes, lengths, fingerprint)
    kind: Any = indexes.get(spec if isinstance(spec, str) else spec["name"])
    try:
        if digest is not None and digest_of(paths[STAGE] / METADATA) != digest:
            raise CorruptIndex(f"{paths[STAGE] / METADATA} is not what was saved.")
        stage: Index = kind.load(paths[STAGE], fingerprint=fingerprint, memory_map=True)
    except (ValueError, OSError) as error:
        raise CorruptIndex(
            f"The first stage of the index is damaged: {error} Build the index anew."
        ) from error
    return stage


def recording_of(row: dict[str, Any]) -> Recording:
    """Build a recording from its JSON object."""
    return Recording(**{**row, "stamp": tuple(row.get("stamp", (0, 0)))})


def _threshold_of(row: dict[str, Any] | None) -> Threshold | None:
    if row is None:
        return None
    return Threshold(row["rate"], *(tuple(row[name]) for name in ("windows", "margins", "clips")))


def named(name: str, generation: int) -> str:
    """Return the name of an index's part in a generation; each replacement or addition starts a new one."""
    stem, dot, suffix = name.partition(".")
    return name if generation == 1 else f"{stem}-{generation}{dot}{suffix}"


def read_metadata(folder: Path) -> dict[str, Any]:
    """Read :data:`METADATA`; :meth:`SearchIndex.open` lists the checks and errors."""
    path = folder / METADATA
    if not path.is_file():
        partial = unfinished(folder)
        more = f" {partial} is an unfinished one: give the command that began it again." * partial.is_dir()
        raise FileNotFoundError(f"No index at {folder} ({METADATA} is missing).{more}")
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        version, files = about["version"], dict(about["files"])
        about["generation"] = int(about.get("generation", 1))
        known = {name: (int(of["bytes"]), of.get("sha256")) for name, of in files.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptIndex(f"{path} is damaged ({type(error).__name__}: {error}). Build it anew.") from error
    if version not in READ:
        raise IndexMismatch(
            f"{path} has format version {version}; this isotone reads {READ[0]} to {READ[-1]}. Build it anew."
        )
    for name, (size, digest) in known.items():
        file = folder / named(name, about["generation"])
        found = file.stat().st_size if file.is_file() else None
        if found != size:
            what = "is missing" if found is None else f"has {found} bytes of {size}"
            raise CorruptIndex(f"{file} {what}: the index is damaged. Build it anew.")
        if digest is not None and digest_of(file) != digest:
            raise CorruptIndex(f"{file} is not what was saved: the index is damaged. Build it anew.")
    return dict(about)


def _description(folder: Path) -> bytes:
    """Return the bytes of :data:`METADATA`, which are others once an index is replaced; none without an index."""
    try:
        return (folder / METADATA).read_bytes()
    except OSError:
        return b""


def unfinished(folder: Path) -> Path:
    """Return the folder in which an index is built until it is complete."""
    return folder.with_name(f"{folder.name}.partial")
