"""Runs over many recordings: each is read, worked on and written by itself, and its failure is its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from isotone.batch.crew import Begin, Crew, Here, key_of
from isotone.batch.inputs import Recording, find_recordings, is_written
from isotone.batch.ledger import Entry, Ledger, State
from isotone.batch.open_tasks import OpenTasks
from isotone.batch.options import Target, Workers
from isotone.batch.outcome import Outcome, list_names, outcome_of, write_lists
from isotone.batch.plan import Planner, check_conflicts, stale
from isotone.batch.progress import progress
from isotone.batch.schedule import Schedule
from isotone.batch.work import Work
from isotone.kernels import compiling

log = logging.getLogger(__name__)


def run(
    audio: Sequence[Path],
    target: Target,
    begin: Begin,
    keep: Callable[[Path], bool] = lambda path: True,
    workers: Workers = Workers(),  # noqa: B008 - frozen
    find: Callable[[Sequence[Path]], list[Recording]] = find_recordings,
) -> Outcome:
    """Do a command's work on recordings, write their files, and keep the ledger.

    Args:
        audio: Files or folders.
        target: The output folder.
        begin: Makes the work, and loads its model: called when there are recordings, here and by every worker.
        keep: Tells which of the recordings to do.
        workers: The workers, which this process gives recordings to. It alone writes files.
        find: Finds the recordings.

    Raises:
        OutputConflict: files that isotone did not write would be overwritten.
        OutputBusy: another process is writing the same files, of other options or inputs.
        OSError, ValueError, LookupError: the whole command is impossible; nothing was written.
    """
    recordings = [found for found in find(audio) if keep(found.path)]
    if not recordings:
        raise FileNotFoundError(f"None of the recordings in {', '.join(map(str, audio))} is one to do.")
    if texts := [path for path in audio if is_written(path)]:
        log.warning("Texts are no recordings, and are left out: %d, the first is %s.", len(texts), texts[0])
    compiling.announce()
    work = begin()
    with Ledger(target.out) as ledger:
        planner = Planner(ledger, target, work)
        plan = planner.plan(recordings)
        for name in () if target.overwrite else list_names(target, work):
            state = ledger.state(name)
            if state is State.FOREIGN:
                plan.conflicts[name] = state.value
            elif state is State.CHANGED:
                plan.kept.append(name)
        check_conflicts(plan, target.out)
        gone = stale(ledger, audio, plan, work.command)
        with ledger.planned(plan.files):
            try:
                there = [replace(e, doubt=work.doubt(e.score, e.agreement)) for e in plan.there]
                entries = [*there, *plan.failed]
                ledger.note(*entries)
                with (
                    _crew(workers, begin, work, len(plan.tasks)) as (crew, size),
                    progress(len(recordings), crew.watch, len(recordings) - len(plan.tasks)) as step,
                    OpenTasks(plan.tasks, planner, step, entries) as open_tasks,
                ):
                    for job, done in Schedule(crew, size, key_of(work)).run(open_tasks.jobs()):
                        open_tasks.end(job, done)
                places = {task.entry.id: place for place, task in enumerate(plan.tasks)}
                entries.sort(key=lambda entry: places.get(entry.id, -1))  # workers end in any order
            finally:
                pruned = _prune(ledger, gone) if target.prune else 0
                _forget_mended(ledger, entries, work.command)
                report = write_lists(ledger, target, work)
        return replace(
            outcome_of(entries, plan, len(gone), pruned, ledger), report=report, engine=work.engine
        )


@contextmanager
def _crew(workers: Workers, begin: Begin, work: Work, tasks: int) -> Iterator[tuple[Crew, int]]:
    """Make the crew that workers are asked of, and give the number of its workers."""
    crew: Crew
    tasks = max(1, tasks)
    size = min(workers.jobs or 1, tasks)
    if workers.cluster:
        from isotone.batch.cluster import Cluster  # Ray is an extra

        with Cluster(begin, workers.cluster, gpu=workers.gpu) as cluster:
            yield cluster, min(workers.jobs or cluster.size, tasks)
        return
    if size > 1:
        from isotone.batch.processes import Processes

        crew = Processes(begin)
    else:
        crew, size = Here(work), min(work.at_once, tasks)
    with crew:
        yield crew, size


def _prune(ledger: Ledger, gone: Iterable[Entry]) -> int:
    """Remove entries with their files, and count them."""
    count = 0
    for entry in gone:
        ledger.drop(entry)
        count += 1
    return count


def _forget_mended(ledger: Ledger, entries: Sequence[Entry], command: str) -> None:
    """Drop errors of files that are gone, or that this command processed under another name."""
    own, sources = {entry.id for entry in entries}, {entry.source for entry in entries}
    for entry in ledger.entries():
        mine = entry.command == command
        if not entry.error or (mine and entry.id in own):
            continue
        if (mine and entry.source in sources) or not Path(entry.source).exists():
            ledger.drop(entry)
