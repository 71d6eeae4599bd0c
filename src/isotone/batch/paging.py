"""Pages of recordings that are aligned already: by isotone, by other tools, or by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from isotone.alignment import Alignment
from isotone.audio import is_audio
from isotone.batch.inputs import Recording, absolute
from isotone.batch.keys import result_key
from isotone.batch.ledger import NAME, Ledger
from isotone.batch.options import Target, Workers
from isotone.batch.outcome import Outcome
from isotone.batch.pages import PAGE, PAGE_SUFFIX, about, page_of
from isotone.batch.runs import run
from isotone.batch.systems import Further, System, add, recordings_in
from isotone.batch.work import Done, Inputs, Job, Own, Work

SAMPLE_RATE = 16_000


def page_files(
    paths: Sequence[Path],
    target: Target,
    *,
    beside: Sequence[Path] = (),
    workers: Workers = Workers(),  # noqa: B008 - frozen
) -> Outcome:
    """Write a page for every recording, and their index.

    Args:
        paths: Recordings, alignments, and folders of either. The alignment of a recording has its name; one file of
            each belong together whatever their names.
        target: The output folder. It is none of the alignments.
        beside: Files or folders of further alignments of the same recordings, such as a reference.
        workers: Processes that share the work.

    Raises:
        ValueError: alignments without a recording, or an output folder that has the alignments.
        OutputConflict: files that isotone did not write would be overwritten.
        OSError: a file or folder is missing.
    """
    target.check()
    workers.check()
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"No such file or folder: {path}.")
    _check_out(target.out)
    recordings = recordings_in(paths)
    own = _own(paths, recordings)
    begin = partial(Paging, tuple(recordings), tuple(own), Further(recordings, beside))
    return run(paths, target, begin, workers=workers, find=lambda _: recordings)


def _check_out(out: Path) -> None:
    """Refuse an output folder with the files of other commands, whose entries pages would replace."""
    if (out / NAME).is_file():
        with Ledger(out) as ledger:
            if other := next((e.command for e in ledger.entries() if e.command != Paging.command), None):
                raise ValueError(f"{out} has the files of isotone {other}: give pages another --out.")


def _own(paths: Sequence[Path], recordings: Sequence[Recording]) -> list[System]:
    """Return the places of the recordings' own alignments, in the order in which they are asked."""
    files = [path for path in paths if not path.is_dir() and not is_audio(path)]
    if len(recordings) == 1 and len(files) > 1:
        raise ValueError(
            f"{files[0]} and {files[1]} are two alignments of one recording: give one as --beside."
        )
    if stray := [f for f in files if len(recordings) > 1 and f.stem not in {r.path.stem for r in recordings}]:
        raise ValueError(f"{stray[0]} is named after none of the recordings: name it as one of them.")
    # a folder of recordings may hold their transcripts: one of alignments alone is asked first
    folders = sorted(
        (p for p in paths if p.is_dir()),
        key=lambda folder: any(folder.resolve() in absolute(r.path).parents for r in recordings),
    )
    parents = [path.parent for path in paths if not path.is_dir() and is_audio(path)]
    only = len(recordings) == 1
    return [System(p, only) for p in files] + [System(p) for p in dict.fromkeys((*folders, *parents))]


class Paging(Work):
    """Making of pages; see :func:`page_files`.

    Args:
        recordings: The recordings.
        own: Places of their alignments: the first that has a recording counts.
        further: Further alignments.
    """

    command = "page"
    sample_rate = SAMPLE_RATE
    suffixes: Mapping[str, str] = {PAGE: PAGE_SUFFIX}

    def __init__(self, recordings: Sequence[Recording], own: Sequence[System], further: Further) -> None:
        self.recordings = {absolute(recording.path): recording for recording in recordings}
        self.own, self.further = own, further

    def inputs(self, recording: Path, own: Own) -> Inputs:
        """Return the files of its alignments."""
        known = self.recordings[absolute(recording)]
        found = self._own_of(known)
        if found is None:
            places = ", ".join(str(system.path) for system in self.own)
            raise FileNotFoundError(
                f"no alignment: expected {recording.stem}.TextGrid, .json ... in {places}"
            )
        roles = {f"alignment {path.suffix}": path for path in found.files(known)}
        return Inputs(roles | self.further.inputs(recording))

    def _own_of(self, recording: Recording) -> System | None:
        """Return the place of a recording's own alignment."""
        return next((system for system in self.own if system.files(recording)), None)

    def key(self, digests: Mapping[str, str]) -> str:
        """See :meth:`Work.key`."""
        names = [*(system.name for system in self.own), *self.further.names]
        return result_key("", digests, {"page": names})

    def run(self, job: Job, samples: np.ndarray) -> Done:
        """Make the page of a recording."""
        known = self.recordings[absolute(job.path)]
        alignments: dict[str, Alignment] = {}
        if own := self._own_of(known):
            add(alignments, own, known)
        if not alignments:
            raise ValueError("its alignment has no tiers for it.")
        self.further.add_to(alignments, job.path)
        content = page_of(job.path, job.id, samples, self.sample_rate, alignments, ())
        return Done({PAGE: content}, analysis=about(next(iter(alignments.values()))))
