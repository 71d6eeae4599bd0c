"""Many recordings, one after the other: each is read, worked on and written by itself, and harms no other."""

from __future__ import annotations

import json
import logging
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from isotone import audio as sound
from isotone.batch.inputs import find_recordings, readable
from isotone.batch.keys import model_key, result_key
from isotone.batch.ledger import Entry, Ledger, State
from isotone.batch.options import Options, Target
from isotone.batch.plan import OutputConflict, Plan, Planner, Task, check_conflicts, stale
from isotone.batch.progress import progress
from isotone.interfaces import Format
from isotone.pipeline import Pipeline
from isotone.pipeline.result import Result
from isotone.registries import formats

log = logging.getLogger(__name__)

#: Lists of an output folder, beside the files of its recordings.
ERRORS, WARNINGS, TRANSCRIPTS = "errors.jsonl", "warnings.jsonl", "transcripts.jsonl"

# Seconds between two looks at a recording that another process has.
_LOOK_S = 0.2


@dataclass
class Outcome:
    """What came of many files.

    Attributes:
        done: How many came out well, those that were there before counted in.
        there: How many were there before.
        errors: ``{"file", "error"}`` of each that did not come out well.
        warnings: ``{"file", "warning"}`` of each that did, but for something one should know.
        doubtful: Files whose text is likely not what is said; they are among the warnings.
        texts: The recognised texts by file.
        kept: Files that were changed since isotone wrote them, and stay.
        stale: Recordings of the output folder that are no longer in the input folders.
        pruned: How many of these were removed.
    """

    done: int = 0
    there: int = 0
    errors: list[dict[str, str]] = field(default_factory=list)
    warnings: list[dict[str, str]] = field(default_factory=list)
    doubtful: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)
    stale: int = 0
    pruned: int = 0


class Work(ABC):
    """What a command does with one recording.

    Attributes:
        command: Its name on the command line.
        given_text: Whether texts are given to it; otherwise it recognises and lists them.
    """

    command: ClassVar[str]
    given_text: ClassVar[bool]

    @abstractmethod
    def inputs(self, recording: Path) -> Mapping[str, Path]:
        """The files beside the recording that the result depends on, by their roles.

        Raises:
            OSError: one of them is missing.
        """

    @abstractmethod
    def run(
        self, pipeline: Pipeline, path: Path, id: str, samples: np.ndarray
    ) -> tuple[Result, Sequence[str]]:
        """The result of a recording, and warnings."""

    def doubt(self, pipeline: Pipeline, score: float | None, agreement: float | None) -> str:
        """The reason to doubt the text of a result; empty where there is none."""
        return ""


def run(audio: Sequence[Path], options: Options, target: Target, work: Work) -> Outcome:
    """Do a command's work on recordings, write their files, and keep the ledger.

    Raises:
        OutputConflict: files that isotone did not write would be overwritten.
        OSError, ValueError, LookupError: the command as a whole cannot be done; nothing was.
    """
    recordings = find_recordings(audio)
    pipeline = options.pipeline()
    writers = writers_for(target.formats, pipeline.tokenizer.tiers(work.given_text))
    model, values = model_key(pipeline.model), options.values()

    def key(digests: Mapping[str, str]) -> str:
        return result_key(model, digests, values)

    with Ledger(target.out) as ledger:
        planner = Planner(ledger, target, writers, work.command, work.inputs, key, explain)
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
            _list(ledger, target.overwrite, texts=not work.given_text)
    return _outcome(entries, plan, len(gone), pruned)


def writers_for(names: Iterable[str], tiers: Sequence[str]) -> dict[str, Format]:
    """The formats by name; those of a single tier take one that there is.

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
    """The tasks, each while it belongs to this process; what other processes are doing comes last."""
    waiting = deque(tasks)
    busy = 0  # that were looked at in a row and that others have
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
    """Do one recording; its entry says what came of it."""
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
    except Exception as error:  # whatever it is, the other files are not to suffer
        log.debug("%s", path, exc_info=True)
        entry = replace(task.entry, error=explain(error, path))
        ledger.note(entry)
    return entry


def _prune(ledger: Ledger, gone: Iterable[Entry]) -> int:
    """Remove entries with their files; how many there were."""
    count = 0
    for entry in gone:
        ledger.drop(entry.id)
        count += 1
    return count


def _forget_mended(ledger: Ledger, entries: Sequence[Entry]) -> None:
    """Drop errors that no longer are: of files that are gone, or that this command took under another name."""
    own, sources = {entry.id for entry in entries}, {entry.source for entry in entries}
    for entry in ledger.entries():
        if (
            entry.error
            and entry.id not in own
            and (entry.source in sources or not Path(entry.source).exists())
        ):
            ledger.drop(entry.id)


def _list(ledger: Ledger, overwrite: bool, *, texts: bool) -> None:
    """Write the folder's lists of errors, of warnings, and perhaps of texts."""
    entries = ledger.entries()
    done = [e for e in entries if not e.error]
    lists: dict[str, list[dict[str, str]]] = {
        ERRORS: [{"file": e.file, "error": e.error} for e in entries if e.error],
        WARNINGS: warnings_of(done),
    }
    if texts:
        lists[TRANSCRIPTS] = [{"file": e.file, "text": e.text} for e in done if e.command == "transcribe"]
    for name, rows in lists.items():
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        ledger.write_report(name, lines.encode(), overwrite=overwrite)


def warnings_of(entries: Iterable[Entry]) -> list[dict[str, str]]:
    """Warnings by file, each in a line; a doubt is one."""
    found = ((e.file, [*e.warnings, *([e.doubt] if e.doubt else [])]) for e in entries)
    return [{"file": file, "warning": "; ".join(warnings)} for file, warnings in found if warnings]


def _outcome(entries: Sequence[Entry], plan: Plan, gone: int, pruned: int) -> Outcome:
    done = [e for e in entries if not e.error]
    return Outcome(
        len(done),
        len(plan.there),
        [{"file": e.file, "error": e.error} for e in entries if e.error],
        warnings_of(done),
        [e.file for e in done if e.doubt],
        {e.file: e.text for e in done},
        plan.kept,
        gone - pruned,
        pruned,
    )


def explain(error: Exception, path: Path) -> str:
    """An error of a file in one line."""
    text = str(error.args[0] if isinstance(error, KeyError) and error.args else error)
    if not isinstance(error, (OSError, ValueError, LookupError, ImportError)):
        text = f"{type(error).__name__}: {text}"
    return readable(text.removeprefix(f"{path}: ") or type(error).__name__)


__all__ = ["Outcome", "OutputConflict", "Work", "explain", "run", "writers_for"]
