"""Plans of commands: the files to write, known before the first recording is processed."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from isotone.batch.inputs import Recording, absolute, readable
from isotone.batch.ledger import Entry, Ledger, State
from isotone.batch.options import Target
from isotone.batch.work import Inputs, Work, explain
from isotone.format import file_name

_INPUT = "it is an input"


@dataclass(frozen=True)
class Task:
    """A recording to do.

    Attributes:
        recording: The recording.
        entry: Its entry in the ledger, without the result.
        names: The files to write, below the output folder, by the name of their format.
        inputs: Its inputs.
    """

    recording: Recording
    entry: Entry
    names: Mapping[str, str]
    inputs: Inputs


@dataclass
class Plan:
    """The plan of a command.

    Attributes:
        tasks: Recordings to do.
        there: Recordings that earlier runs have done.
        failed: Recordings that cannot be done, with the reason.
        left: Recordings of which nothing is written: all that would be is among ``edited``.
        kept: Files that were changed since isotone wrote them, and are not replaced.
        edited: Those of them that this command would have replaced: they are of other options or inputs.
        conflicts: Files that must not be overwritten, with the reason.
        files: The files of all recordings, but for those that are kept, and of what they are made.
    """

    tasks: list[Task] = field(default_factory=list)
    there: list[Entry] = field(default_factory=list)
    failed: list[Entry] = field(default_factory=list)
    left: list[Entry] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    edited: list[str] = field(default_factory=list)
    conflicts: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


class OutputConflict(FileExistsError):
    """Files that isotone did not write would be overwritten; the message lists them all."""


class Planner:
    """Decide which recordings to do, and the names of their files.

    Args:
        ledger: Ledger of the output folder.
        target: The output folder and its options.
        work: The command's work, which knows a recording's inputs and its files.
    """

    def __init__(self, ledger: Ledger, target: Target, work: Work) -> None:
        self.ledger = ledger
        self.target = target
        self.work = work

    def plan(self, recordings: Sequence[Recording]) -> Plan:
        """Plan a command, and change nothing."""
        plan = Plan()
        inputs: dict[Recording, Inputs] = {}
        for recording, twins in self._clashes(recordings).items():
            try:
                if twins:
                    raise ValueError(_clash(recording, twins))
                if readable(recording.path) != str(recording.path):
                    raise ValueError("its name is not Unicode; rename it.")
                # a missing recording is reported as such, even if its transcript is missing too
                there = recording.path.is_file()
                inputs[recording] = self.work.inputs(recording.path, self.own) if there else Inputs()
            except (OSError, ValueError) as error:
                plan.failed.append(self._entry(recording, twins, explain(error, recording.path)))
        sources = {recording: {"audio": recording.path, **one.files} for recording, one in inputs.items()}
        digests = dict(self.ledger.digests({p for files in sources.values() for p in files.values()}))
        # both a link's own path and its target are inputs
        own = {x for files in sources.values() for p in files.values() for x in (absolute(p), p.resolve())}
        for recording, files in sources.items():
            found = {role: digests[path] for role, path in files.items()}
            entry = replace(self._entry(recording), audio=found["audio"], key=self.work.key(found))
            self._add(plan, Task(recording, entry, self.names(recording.id), inputs[recording]), own)
        return plan

    def own(self, path: Path) -> bool:
        """Tell if a file is a result of this command, which nobody changed since."""
        return is_result(self.ledger, self.work.command, path)

    def names(self, id: str) -> dict[str, str]:
        """Return the files of a recording, below the output folder, by format; they depend only on its name."""
        stem = stem_of(id)
        return {format: stem + suffix for format, suffix in self.work.suffixes.items()}

    def missing(self, task: Task, before: Entry | None) -> dict[str, str]:
        """Return the files of a task that are missing, or of another format, other options or earlier inputs.

        Args:
            task: The task.
            before: The recording's entry in the ledger.
        """
        if before is None or before.error or before.key != task.entry.key or self.target.redo:
            return dict(task.names)
        own, ledger = (before.id, before.command), self.ledger
        return {
            f: n
            for f, n in task.names.items()
            if not ledger.is_current(n) or ledger.owner(n) != own or before.formats.get(n, f) != f
        }

    def _add(self, plan: Plan, task: Task, inputs: set[Path]) -> None:
        before = self.ledger.entry(task.entry.id, self.work.command)
        missing = self.missing(task, before)
        edited: set[str] = set()
        for format, name in task.names.items():
            state = self.ledger.state(name)
            if state is State.CHANGED and (self.target.keep_edited or name not in missing.values()):
                plan.kept.append(name)
                edited |= {name} & set(missing.values())
                continue
            plan.files[name] = f"{self.work.command} {task.entry.key} {format}"
            if name in missing.values() and (reason := self._conflict(task, name, state, inputs)):
                plan.conflicts[name] = reason
        plan.edited += sorted(edited)
        names = {format: name for format, name in missing.items() if name not in edited}
        if names:
            there = before.formats if before and before.key == task.entry.key else {}
            made = {name: format for format, name in task.names.items() if name not in edited}
            entry = replace(task.entry, formats={**there, **made})
            plan.tasks.append(replace(task, names=names, entry=entry))
        elif edited:
            plan.left.append(task.entry)
        else:
            assert before is not None
            plan.there.append(replace(before, file=task.entry.file, source=task.entry.source))

    def _conflict(self, task: Task, name: str, state: State, inputs: set[Path]) -> str:
        """Return the reason why a file must not be written; empty if it may."""
        path = self.ledger.folder / name
        if state is State.ABSENT:
            return ""
        if absolute(path) in inputs:
            return f"{_INPUT}, and {state.value}" if state is State.CHANGED else _INPUT
        if self.target.overwrite:
            return ""
        if state in (State.FOREIGN, State.CHANGED):
            return state.value
        if other := self.ledger.other_command(name, self.work.command):
            return f"it was written by isotone {other}"
        before = self.ledger.entry(*(self.ledger.owner(name) or ("", "")))
        if before is None or (before.id == task.entry.id and before.error):
            return ""
        if before.source != task.entry.source and before.audio != task.entry.audio:
            return f"it belongs to {before.source}"
        return ""

    def _clashes(self, recordings: Sequence[Recording]) -> dict[Recording, list[Path]]:
        """Map every recording to the others whose files would have the same names."""
        groups: dict[tuple[Path, str], list[Recording]] = defaultdict(list)
        for recording in recordings:
            *folders, stem = (file_name(part) for part in recording.id.split("/"))
            # file systems may ignore case and composition of letters; a link may make two folders one
            folder = Path(self.ledger.folder, *folders).resolve()
            groups[folder, _plain(stem)].append(recording)
        return {
            recording: [r.path for r in group if r is not recording]
            for group in groups.values()
            for recording in group
        }

    def _entry(self, recording: Recording, twins: Sequence[Path] = (), error: str = "") -> Entry:
        # recordings of the same name need an entry each
        id = f"{recording.id}{recording.path.suffix} {absolute(recording.path)}" if twins else recording.id
        file, source = readable(recording.path), readable(absolute(recording.path))
        return Entry(readable(id), file, source, self.work.command, error=error)


def is_result(ledger: Ledger, command: str, path: Path) -> bool:
    """Tell if a file of a ledger's folder is a command's result, or a list, which nobody changed since."""
    folder = ledger.folder.resolve()
    if folder not in (file := absolute(path)).parents:
        return False
    name = readable(file.relative_to(folder).as_posix())
    owner = ledger.owner(name)
    return (
        owner is not None and owner[1] in ("", command) and ledger.state(name) in (State.WRITTEN, State.OLD)
    )


def stem_of(id: str) -> str:
    """Return the path below an output folder, without ending, that a recording's name gives its files."""
    return "/".join(file_name(part) for part in id.split("/"))


def check_conflicts(plan: Plan, folder: Path) -> None:
    """Refuse a plan that would overwrite files of others.

    Raises:
        OutputConflict: the plan would; the message lists every file, with the reason.
    """
    if not plan.conflicts:
        return
    count = len(plan.conflicts)
    lines = [f"{folder / name}: {reason}" for name, reason in sorted(plan.conflicts.items())]
    what = "1 file would be overwritten" if count == 1 else f"{count} files would be overwritten"
    reasons = plan.conflicts.values()
    ways = ["Choose another --out"]
    if any(reason.endswith(State.CHANGED.value) for reason in reasons):
        ways.append("say --keep-edited to keep what was changed and do the rest")
    if not any(reason.startswith(_INPUT) for reason in reasons):
        ways.append("say --overwrite")
    raise OutputConflict("\n  ".join([f"{what}; nothing was done. {', or '.join(ways)}.", *lines]))


def stale(ledger: Ledger, folders: Iterable[Path], plan: Plan, command: str) -> list[Entry]:
    """Find a command's entries of recordings that were in these folders and no longer are, or have another name now."""
    roots = [folder.resolve() for folder in folders if folder.is_dir()]
    now = {e.id for e in (*plan.there, *plan.failed, *plan.left)} | {task.entry.id for task in plan.tasks}
    return [
        entry
        for entry in ledger.entries()
        if entry.command == command
        and entry.id not in now
        and any(root in Path(entry.source).parents for root in roots)
    ]


def _plain(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _clash(recording: Recording, twins: Sequence[Path]) -> str:
    others = ", ".join(readable(path) for path in twins)
    where = "rename one" if any(p.parent == recording.path.parent for p in twins) else (
        "give the folder that holds both, or another --out to each"
    )  # fmt: skip
    return f"its outputs would have the names of those of {others}: {where}."


__all__ = ["OutputConflict", "Plan", "Planner", "Task", "check_conflicts", "is_result", "stale", "stem_of"]
