"""Recordings to an index, or into one that is there; an interrupted run goes on where it stood."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from filelock import Timeout

from isotone import audio as sound
from isotone.batch import explain
from isotone.batch.inputs import find_audio, ids_of, place, readable
from isotone.files import alone, atomic_write
from isotone.interfaces import Searcher
from isotone.search import saving, store
from isotone.search.embedding import embed_items
from isotone.search.threshold import measure
from isotone.search.unfinished import DONE, EMBEDDED, SETTINGS, Part, Unfinished, discard, parts_of, stamp

log = logging.getLogger(__name__)

# Items that are copied at once.
_BLOCK_ITEMS = 4096

Progress = Callable[[str, float], None]


def _silent(what: str, share: float) -> None:
    pass


@dataclass
class Built:
    """What came of indexing.

    Attributes:
        done: Files that are in the index.
        items: Its items.
        seconds: Of audio.
        added, replaced, moved: Files that were not in it, that had changed, and that have another path now.
        copies: ``{"file", "of"}`` of each file that was left out because another one has the same content.
        errors: ``{"file", "error"}`` of each file that could not be read; also in its ``errors.jsonl``.
    """

    done: int = 0
    items: int = 0
    seconds: float = 0.0
    added: int = 0
    replaced: int = 0
    moved: int = 0
    copies: list[dict[str, str]] = field(default_factory=list)
    errors: list[dict[str, str]] = field(default_factory=list)


def build_index(
    paths: Sequence[Path],
    searcher: Searcher,
    out: Path,
    *,
    overwrite: bool = False,
    progress: Progress = _silent,
) -> Built:
    """Index audio files. Of files with the same content the first is taken.

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
        OSError: there is no audio, or another process builds the same index.
    """
    if out.exists() and not saving.is_index(out):
        raise FileExistsError(f"{out} is no index, and will not be replaced: choose another --out.")
    if out.exists() and not overwrite:
        raise FileExistsError(
            f"{out} is there already: choose another --out, replace it with --overwrite, or add to it with "
            "`isotone search add`."
        )
    found = find_audio(paths)
    with _only_process(out):
        if overwrite and (store.unfinished(out) / SETTINGS).is_file():
            discard(store.unfinished(out))
        return _Builder(found, searcher, out, None, progress).build()


def add_recordings(
    paths: Sequence[Path], searcher: Searcher, out: Path, *, progress: Progress = _silent
) -> Built:
    """Add audio files to an index: what comes of it is what comes of indexing everything at once.

    The index that is there is whole until the new one takes its place. Files that it has are left out; those whose
    content has changed take the place of their older selves, and those that have moved keep their vectors.

    Args:
        paths: Files or folders; none to measure the threshold of an index that has none.
        searcher: The model that made the index.
        out: Folder of the index.
        progress: Told what is done and which share of it.

    Raises:
        OSError: there is no index, no audio, or another process builds the same index.
        CorruptIndex, IndexMismatch: see :meth:`SearchIndex.open`.
        ValueError: the unfinished index is of another model.
    """
    with _only_process(out):
        base = store.SearchIndex.open(out)
        base.check_model(searcher)
        return _Builder(find_audio(paths) if paths else [], searcher, out, base, progress).build()


def describe(searcher: Searcher) -> dict[str, Any]:
    """What an index says of the model that made it."""
    names = ("name", "source", "fingerprint", "sample_rate", "window_s", "hop_s")
    return {name: getattr(searcher, name) for name in names}


@contextmanager
def _only_process(out: Path) -> Iterator[None]:
    lock = alone(out)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise OSError(f"Another process is at work on {out}: wait for it to end, and try again.") from None
    try:
        yield
    finally:
        lock.release()


class _Builder:
    """Embeds what is new, and puts it together with what an index has."""

    def __init__(
        self, found: Sequence[Path], searcher: Searcher, out: Path, base: store.SearchIndex | None,
        progress: Progress,
    ) -> None:  # fmt: skip
        self.searcher, self.out, self.base, self.progress = searcher, out, base, progress
        self.shape = searcher.item_windows, searcher.size
        self.folder = store.unfinished(out)
        # the order of an index is that of its places, however it has grown
        self.found = sorted(found, key=_where)
        self.before = {part.recording.place: part for part in _placed(base)}
        self.digests = {part.recording.sha256: part for part in self.before.values() if part.recording.sha256}
        self.gone: set[str] = set()
        self.moved: dict[str, Part] = {}
        self.built = Built()

    def build(self) -> Built:
        wanted = {_where(path) for path in self.found}
        self.new = Unfinished(self.folder, describe(self.searcher), self.shape, wanted)
        for number, path in enumerate(self.found):
            self.progress(readable(path.stem), number / len(self.found))
            try:
                self._take(path)
            except Exception as error:  # whatever it is, the other files are not to suffer
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
        _write_errors(self.out, self.built.errors)
        self.built.done, self.built.items = len(parts), sum(len(part.spans) for part in parts)
        self.built.seconds = sum(part.recording.duration for part in parts)
        return self.built

    def _take(self, path: Path) -> None:
        """See to it that a file is in the index, once."""
        if readable(path) != str(path):
            raise ValueError("its name is not Unicode; rename it.")
        where, known = _where(path), self.before.get(_where(path))
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
        """Write the whole index, and put it in its place."""
        ids = ids_of([Path(part.recording.place) for part in parts])
        recordings = [replace(part.recording, id=id) for part, id in zip(parts, ids)]
        items = np.concatenate(
            [np.insert(part.spans, 0, number, axis=1) for number, part in enumerate(parts)]
        ).astype(np.int32)
        _gather(parts, self.folder / EMBEDDED, self.folder / store.VECTORS)
        model = describe(self.searcher)
        for share in saving.finish(self.folder, model, recordings, items, *self.shape):
            self.progress("codes", share)
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
    """Bring the vectors of all recordings into one file, in order."""
    firsts = [part.first for part in parts]
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
            end = part.first + len(part.spans)
            for first in range(part.first, end, _BLOCK_ITEMS):
                file.write(part.vectors[first : min(first + _BLOCK_ITEMS, end)].tobytes())


def _placed(base: store.SearchIndex | None) -> Iterator[Part]:
    """The recordings of an index, with their places, which version 1 has not."""
    for part in parts_of(base) if base is not None else ():
        recording = part.recording
        yield part.renamed(replace(recording, place=recording.place or _where(Path(recording.file))))


def _is_still(recording: store.Recording) -> bool:
    """See that a file is there and has the content that it had."""
    path = Path(recording.place)
    try:
        return stamp(path) == recording.stamp or store.digest_of(path) == recording.sha256
    except OSError:
        return False


def _where(path: Path) -> str:
    return str(place(path))


def _write_errors(folder: Path, errors: Sequence[dict[str, str]]) -> None:
    (folder / store.ERRORS).unlink(missing_ok=True)
    if errors:
        with atomic_write(folder / store.ERRORS) as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in errors)
