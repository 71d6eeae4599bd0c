"""Runs over many recordings: each is read, worked on and written by itself, and its failure is its own."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from isotone import audio as sound
from isotone.batch.inputs import find_recordings
from isotone.batch.keys import model_key, result_key
from isotone.batch.ledger import Entry, Ledger, State
from isotone.batch.options import Options, Target
from isotone.batch.outcome import ERRORS, TRANSCRIPTS, WARNINGS, Outcome, outcome_of, write_lists
from isotone.batch.plan import Planner, Task, check_conflicts, stale
from isotone.batch.progress import progress
from isotone.batch.work import Work, explain
from isotone.interfaces import Format
from isotone.pipeline import Pipeline
from isotone.registries import formats

log = logging.getLogger(__name__)

# Seconds between two attempts to claim a recording that another process has.
_LOOK_S = 0.2


def run(audio: Sequence[Path], options: Options, target: Target, work: Work) -> Outcome:
    """Do a command's work on recordings, write their files, and keep the ledger.

    Raises:
        OutputConflict: files that isotone did not write would be overwritten.
        OSError, ValueError, LookupError: the whole command is impossible; nothing was written.
    """
    recordings = find_recordings(audio)
    pipeline = options.pipeline()
    writers = writers_for(target.formats, pipeline.tokenizer.tiers(work.given_text))
    key = partial(result_key, model_key(pipeline.model), options.values())
    with Ledger(target.out) as ledger:
        planner = Planner(ledger, target, writers, work, key)
        plan = planner.plan(recordings)
        for name in (ERRORS, WARNINGS, *(() if work.given_text else (TRANSCRIPTS,))):
            if ledger.state(name) is State.FOREIGN and not target.overwrite:
                plan.conflicts[name] = State.FOREIGN.value
        check_conflicts(plan, target.out)
        gone = stale(ledger, audio, plan)
        try:
            there = [replace(e, doubt=work.doubt(pipeline, e.score, e.agreement)) for e in plan.there]
            entries = [*there, *plan.failed]
            ledger.note(*entries)
            with progress(len(recordings), pipeline, len(plan.there)) as step:
                for task in _claimed(plan.tasks, ledger, step):
                    entries.append(_one(task, planner, pipeline, work))
        finally:
            pruned = _prune(ledger, gone) if target.prune else 0
            _forget_mended(ledger, entries)
            write_lists(ledger, target.overwrite, texts=not work.given_text)
    return outcome_of(entries, plan, len(gone), pruned)


def writers_for(names: Iterable[str], tiers: Sequence[str]) -> dict[str, Format]:
    """Make formats by name; those of a single tier get a tier of the model.

    Raises:
        ValueError: two of the formats write the same file.
    """
    writers: dict[str, Format] = {}
    for name in names:
        writer = formats.build(name)
        tier = getattr(writer, "tier", None)
        if isinstance(tier, str) and tier not in tiers:
            writer = formats.build(name, tier=tiers[0])
        twin = next((n for n, w in writers.items() if n != name and w.suffix == writer.suffix), None)
        if twin is not None:
            raise ValueError(f"The formats {twin!r} and {name!r} both write {writer.suffix} files: give one.")
        writers[name] = writer
    return writers


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


def _one(task: Task, planner: Planner, pipeline: Pipeline, work: Work) -> Entry:
    """Do one recording and return its entry, with the error if it failed."""
    ledger, path = planner.ledger, task.recording.path
    names = planner.missing(task)
    before = ledger.entry(task.entry.id)
    if before is not None and not names:  # another process has done it meanwhile
        return before
    try:
        samples = sound.load(path, pipeline.model.encoder.sample_rate)
        result, warnings = work.run(pipeline, path, task.entry.id, samples)
        alignment = replace(result.alignment, audio=path)
        contents = {n: planner.writers[f].dumps(alignment).encode() for f, n in names.items()}
        entry = replace(
            task.entry, warnings=(*warnings, *result.warnings), score=result.score, text=result.text,
            agreement=result.agreement,
            doubt=work.doubt(pipeline, result.score, result.agreement),
        )  # fmt: skip
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
