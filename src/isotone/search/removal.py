"""Removal of recordings from an index."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from isotone.batch.inputs import absolute
from isotone.interfaces import Searcher
from isotone.search import store
from isotone.search.build import Builder, Built, Progress, only_process, silent
from isotone.search.unfinished import DONE


def remove_recordings(
    paths: Sequence[Path],
    searcher: Searcher,
    out: Path,
    *,
    missing: bool = False,
    progress: Progress = silent,
) -> Built:
    """Remove recordings from an index, with the same result as indexing the others alone.

    The old index stays complete until the new one replaces it. Files of audio are not touched.

    Args:
        paths: Files of the index, or folders of such; they need not exist any more.
        searcher: The model that made the index.
        out: Folder of the index.
        missing: Remove all recordings whose files no longer exist, too.
        progress: Callback with the current step and its share done, 0 to 1.

    Raises:
        OSError: there is no index, or another process is at work on it.
        CorruptIndex, IndexMismatch: see :meth:`isotone.search.store.SearchIndex.open`.
        ValueError: a path without recordings in the index, nothing to remove or all of it, or an unfinished addition;
            nothing is removed.
    """
    if not paths and not missing:
        raise ValueError("Nothing to remove: name files or folders of the index, or give --missing.")
    with only_process(out):
        base = store.SearchIndex.open(out)
        base.check_model(searcher)
        partial = store.unfinished(out)
        if (partial / DONE).is_file():
            raise ValueError(
                f"{partial} is an unfinished addition: give the command that began it again first."
            )
        builder = Builder([], searcher, out, base, base.spec, progress)
        gone = {where for path in paths for where in _within(path, builder.before)}
        if missing:
            gone |= {where for where in builder.before if not Path(where).is_file()}
        if len(gone) == len(builder.before):
            raise ValueError(f"No recording would be left in {out}: delete that folder instead.")
        builder.gone = gone
        built = builder.build()
    built.removed = len(gone)
    return built


def _within(path: Path, places: Collection[str]) -> list[str]:
    """Return the absolute paths that are a path or lie in it."""
    whole = absolute(path)
    found = [place for place in places if whole == Path(place) or whole in Path(place).parents]
    if not found:
        raise ValueError(f"{path} is not in the index, nor is anything in it; nothing was removed.")
    return found
