"""Manifests: the rows of a corpus, written once and memory-mapped from then on."""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotone import __version__
from isotone.files import alone, atomic_folder, atomic_write, safe_name
from isotone.interfaces import Corpus
from isotone.registries import corpora

if TYPE_CHECKING:
    from datasets import Dataset

log = logging.getLogger(__name__)

#: Contents of a manifest's folder: the rows, saved by ``datasets.Dataset.save_to_disk``, and a description.
ROWS = "rows"
HEAD = "manifest.json"


class DamagedManifest(ValueError):
    """A manifest is damaged; the message says how."""


@dataclass(frozen=True)
class Prepared:
    """A split of a corpus.

    Attributes:
        rows: Rows with the columns of :data:`isotone.corpus.COLUMNS`, memory-mapped.
        skipped: (id, reason) of the utterances that were left out.
        counts: Counts of the corpus's rules for texts, by name.
    """

    rows: Dataset
    skipped: list[tuple[str, str]]
    counts: dict[str, int]


def load_splits(
    data: str | Mapping[str, Any], splits: Mapping[str, str | None], folder: Path
) -> dict[str, Prepared]:
    """Load the splits of a recipe, from manifests if they are current.

    Args:
        data: Name and options of the corpus. The option ``manifest`` is the folder of the manifests, which several runs
            may share.
        splits: The corpus's split for every name (``train``, ``dev``, ``test``); names with None are left out.
        folder: The run's folder. Manifests are in its folder ``manifests`` unless ``data`` names another; its file
            ``corpus.json`` gets a :func:`summary` of every split.

    Raises:
        FileNotFoundError: the corpus was not found.
        ValueError: no such split.
    """
    settings: dict[str, Any] = {"name": data} if isinstance(data, str) else {**data}
    manifests = Path(settings.pop("manifest", None) or folder / "manifests").expanduser()
    found = {name: prepare(settings, split, manifests) for name, split in splits.items() if split}
    with atomic_write(folder / "corpus.json") as file:
        json.dump({name: summary(split) for name, split in found.items()}, file, indent=1)
    return found


def summary(split: Prepared) -> dict[str, Any]:
    """Summarise a split: numbers of utterances, hours and speakers, utterances left out, and counts of text rules."""
    columns = split.rows.with_format("numpy")
    hours = float((columns["end"][:] - columns["start"][:]).sum()) / 3600
    return {
        "utterances": len(split.rows),
        "hours": round(hours, 3),
        "speakers": len(split.rows.unique("speaker")),
        "left_out": len(split.skipped),
        "texts": split.counts,
    }


def prepare(spec: Mapping[str, Any], split: str, folder: Path) -> Prepared:
    """Load a split of a corpus, and write it to a manifest the first time.

    A manifest is current until one of these changes: the corpus's name and options, the split, the source file of its
    class, this package's version, and the names, sizes and modification times of the files it is read from. These are
    below the corpus's ``sources(split)``, or below its attribute ``root`` if it has no such method. A damaged manifest
    is made again, with a warning.

    Args:
        spec: Name and options of the corpus.
        split: The split.
        folder: Folder of the manifests, each in a folder of its own.

    Raises:
        FileNotFoundError: the corpus was not found.
        ValueError: no such split.
    """
    from datasets import load_from_disk

    corpus = corpora.create(spec)
    options = json.dumps(dict(spec), sort_keys=True, default=str)
    key = hashlib.sha256(f"{options} {split}".encode()).hexdigest()[:12]
    manifest = folder / f"{safe_name(str(spec['name']))}-{safe_name(split)}-{key}"
    with alone(manifest):  # of runs that begin together one prepares; the others wait and find it
        if head := _current(manifest, _fingerprint(corpus, split, folder)):
            skipped = [(id, reason) for id, reason in head["skipped"]]
            return Prepared(load_from_disk(str(manifest / ROWS)), skipped, head["counts"])
        rows = corpus.load(split)
        skipped, counts = list(getattr(corpus, "skipped", [])), dict(getattr(corpus, "counts", {}))
        head = {"fingerprint": _fingerprint(corpus, split, folder), "counts": counts, "skipped": skipped}
        _write(manifest, rows, head)
        return Prepared(load_from_disk(str(manifest / ROWS)), skipped, counts)


def _write(manifest: Path, rows: Dataset, head: Mapping[str, Any]) -> None:
    with atomic_folder(manifest) as temporary:
        with _quiet():
            rows.save_to_disk(str(temporary / ROWS))
        text = json.dumps({**head, "files": _digests(temporary / ROWS)}, indent=1) + "\n"
        (temporary / HEAD).write_text(text, "utf-8")


def _current(manifest: Path, fingerprint: str) -> dict[str, Any] | None:
    """Read the head of a manifest; None if there is no manifest, or it is out of date."""
    if not manifest.exists():
        return None
    try:
        head = _head(manifest)
    except (DamagedManifest, OSError) as error:
        log.warning("The manifest %s is damaged and made again: %s", manifest, error)
        return None
    if head["fingerprint"] != fingerprint:
        log.info("The corpus changed since the manifest %s was made: it is made again.", manifest)
        return None
    return head


def _head(manifest: Path) -> dict[str, Any]:
    """Read and check the head of a manifest."""
    try:
        head = json.loads((manifest / HEAD).read_text("utf-8"))
        files, counts = dict(head["files"]), dict(head["counts"])
        fields = {"fingerprint": str(head["fingerprint"]), "skipped": [(i, r) for i, r in head["skipped"]]}
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedManifest(f"{HEAD} is not what was written ({type(error).__name__}: {error}).") from None
    found = _digests(manifest / ROWS)
    if wrong := sorted(name for name in {*files, *found} if files.get(name) != found.get(name)):
        raise DamagedManifest(f"{', '.join(wrong)} in it changed, or went away.")
    return {**fields, "counts": counts}


def _digests(folder: Path) -> dict[str, str]:
    """Return the digests of the files of a folder, by name."""
    found = {}
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            found[path.name] = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    return found


def _fingerprint(corpus: Corpus, split: str, leave_out: Path) -> str:
    """Digest everything that a manifest depends on, except the options of its corpus."""
    digest = hashlib.blake2b(digest_size=16)
    try:
        code = Path(inspect.getfile(type(corpus))).read_bytes()
    except (TypeError, OSError):  # a class from a notebook
        code = b""
    digest.update(f"{__version__} {type(corpus).__qualname__} {hashlib.sha256(code).hexdigest()}".encode())
    for source in _sources(corpus, split):
        path = source.absolute()
        digest.update(f"\n{path}\n".encode(errors="surrogateescape"))
        if path.is_file():
            digest.update(_line("", path.stat()).encode())
        elif path.is_dir():
            for line in _listing(path, str(leave_out.absolute())):
                digest.update(line.encode(errors="surrogateescape"))
    return digest.hexdigest()


def _sources(corpus: Corpus, split: str) -> Sequence[Path]:
    if sources := getattr(corpus, "sources", None):
        return list(sources(split))
    root = getattr(corpus, "root", None)
    return [Path(root)] if isinstance(root, str | Path) else []


def _listing(folder: Path | str, leave_out: str) -> Iterator[str]:
    """Iterate over the name, size and modification time of every file below a folder, except hidden files."""
    with os.scandir(folder) as found:
        entries = sorted((e for e in found if not e.name.startswith(".")), key=lambda e: e.name)
    for entry in entries:
        if not entry.is_dir(follow_symlinks=False):  # links may lead in circles, or nowhere
            yield _line(entry.name, entry.stat(follow_symlinks=entry.is_file()))
        elif entry.path != leave_out:
            yield f"{entry.name}/\n"
            yield from _listing(entry.path, leave_out)


def _line(name: str, stat: os.stat_result) -> str:
    return f"{name} {stat.st_size} {stat.st_mtime_ns}\n"


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the progress bars of ``datasets``, since writing takes a second."""
    from datasets import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    if are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()
