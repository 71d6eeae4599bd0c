"""Indexing of recordings, into a new or an existing index; an interrupted run is resumed."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from filelock import Timeout

from isotone import audio as sound
from isotone.batch import explain
from isotone.batch.inputs import absolute, find_audio, ids_of, readable
from isotone.files import alone, atomic_write
from isotone.interfaces import Searcher
from isotone.registries import indexes
from isotone.search import saving, store
from isotone.search.candidates import DEFAULT, Spec
from isotone.search.embedding import embed_items
from isotone.search.threshold import measure
from isotone.search.unfinished import DONE, EMBEDDED, SETTINGS, Part, Unfinished, discard, parts_of, stamp

log = logging.getLogger(__name__)

Progress = Callable[[str, float], None]


def silent(what: str, share: float) -> None:
    """Tell nobody of the progress."""


@dataclass
class Built:
    """Result of indexing.

    Attributes:
        done: Files in the index.
        items: Items in the index.
        seconds: Seconds of audio.
        added, replaced, moved, removed: Numbers of new files, of changed files, of files with a new path, and of files
            that were taken out.
        copies: ``{"file", "of"}`` of each file that was left out because another one has the same content.
        errors: ``{"file", "error"}`` of each file that could not be read; also in the index's ``errors.jsonl``.
    """

    done: int = 0
    items: int = 0
    seconds: float = 0.0
    added: int = 0
    replaced: int = 0
    moved: int = 0
    removed: int = 0
    copies: list[dict[str, str]] = field(default_factory=list)
    errors: list[dict[str, str]] = field(default_factory=list)


def build_index(
    paths: Sequence[Path],
    searcher: Searcher,
    out: Path,
    *,
    index: Spec = DEFAULT,
    overwrite: bool = False,
    progress: Progress = silent,
) -> Built:
    """Index audio files. Of files with the same content only the first is indexed.

    Until it is complete, the index is in ``OUT.partial``, where the same call resumes an interrupted run. Files that
    failed or have changed in the meantime are indexed again.

    Args:
        paths: Files or folders.
        searcher: The model that makes the vectors.
        out: Folder of the index.
        index: Index of the first stage: a name of :data:`isotone.registries.indexes`, or a mapping with its options.
        overwrite: Start from the beginning, and replace an existing index when the new one is complete.
        progress: Callback with the current step and its share done, 0 to 1.

    Raises:
        FileExistsError: ``out`` exists and must not be replaced.
        ValueError: no file could be indexed, or the unfinished index is of another model.
        OSError: there is no audio, or another process builds the same index.
        LookupError, TypeError, ImportError: there is no such index, it lacks a package, or options are wrong.
    """
    indexes.create(index, size=searcher.size, fingerprint=searcher.fingerprint)  # fails before the work
    if out.exists() and not saving.is_index(out):
        raise FileExistsError(f"{out} is no index, and will not be replaced: choose another --out.")
    if out.exists() and not overwrite:
        raise FileExistsError(
            f"{out} is there already: choose another --out, replace it with --overwrite, or add to it with "
            "`isotone search add`."
        )
    found = find_audio(paths)
    with only_process(out):
        if overwrite and (store.unfinished(out) / SETTINGS).is_file():
            discard(store.unfinished(out))
        return Builder(found, searcher, out, None, index, progress).build()


def add_recordings(
    paths: Sequence[Path], searcher: Searcher, out: Path, *, progress: Progress = silent
) -> Built:
    """Add audio files to an index, with the same result as indexing everything at once.

    The old index stays complete until the new one replaces it. Files that are in the index already are skipped, changed
    files replace their old entries, and moved files keep their vectors.

    Args:
        paths: Files or folders; none to measure the missing threshold of an index.
        searcher: The model that made the index.
        out: Folder of the index.
        progress: Callback with the current step and its share done, 0 to 1.

    Raises:
        OSError: there is no index, no audio, or another process builds the same index.
        CorruptIndex, IndexMismatch: see :meth:`SearchIndex.open`.
        ValueError: the unfinished index is of another model.
    """
    with only_process(out):
        base = store.SearchIndex.open(out)
        base.check_model(searcher)
        found = find_audio(paths) if paths else []
        return Builder(found, searcher, out, base, base.spec, progress).build()


def describe(searcher: Searcher) -> dict[str, Any]:
    """Return the description of a model that its index stores."""
    names = ("name", "source", "fingerprint", "sample_rate", "window_s", "hop_s", "contextual")
    return {name: getattr(searcher, name) for name in names}


@contextmanager
def only_process(out: Path) -> Iterator[None]:
    """Be the only process that changes an index; OSError where there is another."""
    lock = alone(out)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise OSError(f"Another process is at work on {out}: wait for it to end, and try again.") from None
    try:
        yield
    finally:
        lock.release()


class Builder:
    """Builder of an index: embeds new files, and merges them with the parts of an existing index."""

    def __init__(
        self, found: Sequence[Path], searcher: Searcher, out: Path, base: store.SearchIndex | None, spec: Spec,
        progress: Progress,
    ) -> None:  # fmt: skip
        self.searcher, self.out, self.base, self.progress = searcher, out, base, progress
        self.spec = spec
        self.shape = searcher.item_windows, searcher.size
        self.folder = store.unfinished(out)
        # an index is in the order of absolute paths, whatever the order of its growth
        self.found = sorted(found, key=_absolute)
        self.before = {part.recording.place: part for part in _placed(base)}
        self.digests = {part.recording.sha256: part for part in self.before.values() if part.recording.sha256}
        self.gone: set[str] = set()
        self.moved: dict[str, Part] = {}
        self.built = Built()

    def build(self) -> Built:
        """Embed all files, and write and install the index."""
        requested = {_absolute(path) for path in self.found}
        with closing(Unfinished(self.folder, describe(self.searcher), self.shape, requested)) as self.new:
            for number, path in enumerate(self.found):
                self.progress(readable(path.stem), number / len(self.found))
                try:
                    self._take(path)
                except Exception as error:  # an error of any kind concerns this file alone
                    log.debug("%s", path, exc_info=True)
                    self.built.errors.append({"file": readable(path), "error": explain(error, path)})
        new = {part.recording.place: part for part in self.new.parts()}
        self.built.replaced = len(new.keys() & self.before.keys())
        self.built.added = len(new) - self.built.replaced
        self.built.moved = len(self.moved.keys() - self.before.keys())
        kept = {where: part for where, part in self.before.items() if where not in self.gone}
        parts = [part for _, part in sorted({**kept, **self.moved, **new}.items())]
        if not parts:
            discard(self.folder)
            first = self.built.errors[0]
            raise ValueError(
                f"None of {len(self.found)} files could be indexed; {first['file']}: {first['error']}"
            )
        if self.base is None or self.base.threshold is None or new or self.moved or self.gone:
            self._assemble(parts)
        else:
            discard(self.folder)
        if self.found:
            _write_errors(self.out, self.built.errors)
        self.built.done, self.built.items = len(parts), sum(len(part.spans) for part in parts)
        self.built.seconds = sum(part.recording.duration for part in parts)
        return self.built

    def _take(self, path: Path) -> None:
        """Add a file to the index unless it has the file, or another one with the same content."""
        if readable(path) != str(path):
            raise ValueError("its name is not Unicode; rename it.")
        where, known = _absolute(path), self.before.get(_absolute(path))
        if where in self.new.known:
            return
        now = stamp(path)
        if known is not None and known.recording.stamp == now:
            return
        digest = store.digest_of(path)
        old, fresh = self.digests.get(digest), self.new.digests.get(digest)
        if fresh is None and old is None:
            samples = sound.load(path, self.searcher.sample_rate)
            vectors, spans = embed_items(self.searcher, samples)
            seconds = len(samples) / self.searcher.sample_rate
            recording = store.Recording(str(path), "", seconds, len(spans), where, digest, now)
            self.new.add(recording, vectors, spans)
        elif old is not None and (old.recording.place == where or not _is_still(old.recording)):
            self.moved[where] = old.renamed(replace(old.recording, file=str(path), place=where, stamp=now))
            self.gone.add(old.recording.place)
            del self.digests[digest]
        else:
            twin = fresh or (old.recording if old is not None else None)
            self.built.copies.append({"file": str(path), "of": twin.file if twin else ""})
            if known is not None:
                self.gone.add(where)

    def _assemble(self, parts: Sequence[Part]) -> None:
        """Write the whole index, measure its threshold, and install it."""
        ids = ids_of([Path(part.recording.place) for part in parts])
        recordings = [replace(part.recording, id=id) for part, id in zip(parts, ids)]
        items = np.concatenate(
            [np.insert(part.spans, 0, number, axis=1) for number, part in enumerate(parts)]
        ).astype(np.int32)
        _gather(parts, self.folder / EMBEDDED, self.folder / store.VECTORS)
        model = describe(self.searcher)
        for share in saving.finish(self.folder, model, recordings, items, *self.shape, self.spec):
            self.progress("first stage", share)
        whole = store.SearchIndex.open(self.folder)
        for share, threshold in measure(whole, self.searcher):
            self.progress("threshold", share)
            measured = threshold
        saving.set_threshold(self.folder, measured)
        for name in (SETTINGS, DONE, EMBEDDED):
            (self.folder / name).unlink()
        saving.install(self.folder, self.out)
        discard(self.folder)


def _gather(parts: Sequence[Part], embedded: Path, out: Path) -> None:
    """Write the vectors of all recordings into one file, in order."""
    firsts = [part.first for part in parts]
    # if the embedded vectors are all of the index, in order, a link to them saves the copy
    one = all(part.vectors is parts[0].vectors for part in parts)
    whole = 2 * parts[0].vectors.size == embedded.stat().st_size
    if one and whole and firsts == sorted(firsts):
        try:
            os.link(embedded, out)
            return
        except OSError:  # a file system without links
            pass
    with out.open("wb") as file:
        for part in parts:
            for block in part.blocks():
                file.write(block.tobytes())


def _placed(base: store.SearchIndex | None) -> Iterator[Part]:
    """Iterate over the recordings of an index, with their absolute paths, which version 1 does not have."""
    for part in parts_of(base) if base is not None else ():
        recording = part.recording
        yield part.renamed(replace(recording, place=recording.place or _absolute(Path(recording.file))))


def _is_still(recording: store.Recording) -> bool:
    """Return whether a recording still exists with the same content."""
    path = Path(recording.place)
    try:
        return stamp(path) == recording.stamp or store.digest_of(path) == recording.sha256
    except OSError:
        return False


def _absolute(path: Path) -> str:
    return str(absolute(path))


def _write_errors(folder: Path, errors: Sequence[dict[str, str]]) -> None:
    (folder / store.ERRORS).unlink(missing_ok=True)
    if errors:
        with atomic_write(folder / store.ERRORS) as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in errors)
