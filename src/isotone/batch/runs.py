"""Runs over many recordings: each is read, worked on and written by itself, and its failure is its own."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from isotone import audio as sound
from isotone.batch.inputs import find_recordings
from isotone.batch.ledger import Entry, Ledger, State
from isotone.batch.options import Target
from isotone.batch.outcome import ERRORS, TRANSCRIPTS, WARNINGS, Outcome, outcome_of, write_lists
from isotone.batch.plan import Planner, Task, check_conflicts, stale
from isotone.batch.progress import progress
from isotone.batch.work import Work, explain
from isotone.kernels import compiling

log = logging.getLogger(__name__)

# Seconds between two attempts to claim a recording that another process has.
_LOOK_S = 0.2


def run(
    audio: Sequence[Path],
    target: Target,
    begin: Callable[[], Work],
    keep: Callable[[Path], bool] = lambda path: True,
) -> Outcome:
    """Do a command's work on recordings, write their files, and keep the ledger.

    Args:
        audio: Files or folders.
        target: The output folder.
        begin: Makes the work, and loads its model: called when there are recordings.
        keep: Tells which of the recordings to do.

    Raises:
        OutputConflict: files that isotone did not write would be overwritten.
        OSError, ValueError, LookupError: the whole command is impossible; nothing was written.
    """
    recordings = [found for found in find_recordings(audio) if keep(found.path)]
    if not recordings:
        raise FileNotFoundError(f"None of the recordings in {', '.join(map(str, audio))} is one to do.")
    compiling.announce()
    work = begin()
    with Ledger(target.out) as ledger:
        planner = Planner(ledger, target, work)
        plan = planner.plan(recordings)
        for name in (ERRORS, WARNINGS, *((TRANSCRIPTS,) if work.lists_texts else ())):
            if ledger.state(name) is State.FOREIGN and not target.overwrite:
                plan.conflicts[name] = State.FOREIGN.value
        check_conflicts(plan, target.out)
        gone = stale(ledger, audio, plan)
        try:
            there = [replace(e, doubt=work.doubt(e.score, e.agreement)) for e in plan.there]
            entries = [*there, *plan.failed]
            ledger.note(*entries)
            with progress(len(recordings), work.watch, len(plan.there)) as step:
                for task in _claimed(plan.tasks, ledger, step):
                    entries.append(_one(task, planner, work))
        finally:
            pruned = _prune(ledger, gone) if target.prune else 0
            _forget_mended(ledger, entries)
            write_lists(ledger, target.overwrite, texts=work.lists_texts)
    return outcome_of(entries, plan, len(gone), pruned)


def _claimed(tasks: Iterable[Task], ledger: Ledger, step: Callable[[str | None], None]) -> Iterator[Task]:
    """Yield tasks, each while this process has claimed it; those that others have claimed come last."""
    waiting = deque(tasks)
    busy = 0  # tasks in a row that other processes have claimed
    while waiting:
        task = waiting.popleft()
        if not ledger.claim(task.entry.id):
            waiting.append(task)
            busy += 1
            if busy >= len(waiting):
                time.sleep(_LOOK_S)
                busy = 0
            continue
        busy = 0
        try:
            step(task.entry.id)
            yield task
            step(None)
        finally:
            ledger.release(task.entry.id)


def _one(task: Task, planner: Planner, work: Work) -> Entry:
    """Do one recording and return its entry, with the error if it failed."""
    ledger, path = planner.ledger, task.recording.path
    names = planner.missing(task)
    before = ledger.entry(task.entry.id)
    if before is not None and not names:  # another process has done it meanwhile
        return before
    try:
        done = work.run(path, task.entry.id, sound.load(path, work.sample_rate), names.keys())
        entry = replace(
            task.entry, warnings=done.warnings, score=done.score, text=done.text, agreement=done.agreement,
            verdict=done.verdict, doubt=work.doubt(done.score, done.agreement),
        )  # fmt: skip
        contents = {name: done.contents[format] for format, name in names.items()}
        ledger.write(entry, contents, overwrite=planner.target.overwrite)
    except Exception as error:  # of any kind: the other files go on
        log.debug("%s", path, exc_info=True)
        entry = replace(task.entry, error=explain(error, path))
        ledger.note(entry)
    return entry


def _prune(ledger: Ledger, gone: Iterable[Entry]) -> int:
    """Remove entries with their files, and count them."""
    count = 0
    for entry in gone:
        ledger.drop(entry.id)
        count += 1
    return count


def _forget_mended(ledger: Ledger, entries: Sequence[Entry]) -> None:
    """Drop errors of files that are gone, or that this command processed under another name."""
    own, sources = {entry.id for entry in entries}, {entry.source for entry in entries}
    for entry in ledger.entries():
        if (
            entry.error
            and entry.id not in own
            and (entry.source in sources or not Path(entry.source).exists())
        ):
            ledger.drop(entry.id)
