"""The ledger of an output folder: the files that isotone wrote, their inputs, and their options.

It is one SQLite file beside the outputs. A row is written before the file that it describes. So even after a kill,
isotone's own files are known, and all others belong to somebody else.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

from isotone.batch.database import NAME, Database, LedgerError, OutputBusy
from isotone.files import digest_of, put, tidy

__all__ = ["NAME", "Entry", "Ledger", "LedgerError", "OutputBusy", "State"]


# In place of the digest of a file that is yet to be written.
_NONE = "none"


class State(Enum):
    """The state of a file of an output folder, by the ledger."""

    ABSENT = "not there"
    WRITTEN = "as isotone wrote it last"
    OLD = "as isotone wrote it before, of earlier inputs, or for a process that did not come to replacing it"
    CHANGED = "changed since isotone wrote it"
    FOREIGN = "not written by isotone"


@dataclass(frozen=True)
class Entry:
    """A recording in the ledger, as one command did it.

    Attributes:
        id: Name: path below the output folder, without ending.
        file: Path of the recording as the command named it.
        source: Path of the recording from the root.
        command: The command that did it, such as ``align``.
        audio: Digest of the recording.
        key: Digest of everything that the outputs depend on.
        error: The reason why there are no outputs of this key; empty if there are outputs.
        warnings: Warnings about the outputs.
        score, agreement: Fit of the text, see :class:`isotone.pipeline.result.Result`.
        doubt: The reason to doubt the text; empty if there is none.
        text: The recognised text.
        analysis: See :class:`isotone.batch.work.Done`.
        verdict: Verdict on the text, see :class:`isotone.alignment.Alignment`.
        formats: Names of the formats of its files, by the files' names: several have one ending.
    """

    id: str
    file: str
    source: str
    command: str
    audio: str = ""
    key: str = ""
    error: str = ""
    warnings: tuple[str, ...] = ()
    score: float | None = None
    agreement: float | None = None
    doubt: str = ""
    text: str = ""
    analysis: dict[str, Any] | None = None
    verdict: str = ""
    formats: Mapping[str, str] = field(default_factory=dict)


class Ledger(Database):
    """The ledger of a folder; a context manager.

    Args:
        folder: Folder of the outputs; created if needed.

    Raises:
        LedgerError: the file is no ledger, is of a later version, or cannot be locked or written.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        if not self._stored:
            return
        with self._writing():
            for id in self._abandoned():
                for (name,) in self._db.execute("SELECT name FROM outputs WHERE id = ?", (id,)).fetchall():
                    tidy(self.folder / name)

    # Recordings

    def entry(self, id: str, command: str) -> Entry | None:
        """Return a command's entry of a recording; None if there is none."""
        return next(self._entries("WHERE id = ? AND command = ?", id, command), None)

    def entries(self, *, analysis: bool = False) -> list[Entry]:
        """Return all entries, in order of their names; their ``analysis``, the largest part, only if it is wanted."""
        found = self._entries("ORDER BY id, command")
        return list(found) if analysis else [replace(entry, analysis=None) for entry in found]

    def _entries(self, clause: str, *values: str) -> Iterator[Entry]:
        for (row,) in self._db.execute(f"SELECT entry FROM entries {clause}", values):
            fields = json.loads(row)
            yield Entry(**{**fields, "warnings": tuple(fields["warnings"])})

    def note(self, *entries: Entry) -> None:
        """Write entries without outputs: of recordings that failed or moved."""
        with self._writing():
            for entry in entries:
                self._note(entry)

    def _note(self, entry: Entry) -> None:
        row = (entry.id, entry.command, json.dumps(asdict(entry), ensure_ascii=False))
        self._db.execute("INSERT OR REPLACE INTO entries VALUES (?, ?, ?)", row)

    # Files

    def state(self, name: str) -> State:
        """Determine the state of a file, given by its path below the folder."""
        path = self.folder / name
        if not os.path.lexists(path):
            return State.ABSENT
        row = self._row(name)
        if row is None:
            return State.FOREIGN
        # isotone writes plain files: a link or a folder of that name is somebody else's
        digest = digest_of(path) if path.is_file() and not path.is_symlink() else ""
        if digest == row["digest"]:
            return State.WRITTEN
        return State.OLD if digest == row["previous"] else State.CHANGED

    def is_current(self, name: str) -> bool:
        """Tell if a file is of the last inputs of its recording, as isotone wrote it or changed since."""
        row = self._row(name)
        current = row is not None and row["digest"] != _NONE
        return current and self.state(name) in (State.WRITTEN, State.CHANGED)

    def owner(self, name: str) -> tuple[str, str] | None:
        """Return the recording that a file was written for, and the command; None if isotone did not write it."""
        row = self._row(name)
        return None if row is None else (row["id"], row["command"])

    def other_command(self, name: str, command: str) -> str:
        """Return the command that wrote a file of a recording, if it is another than ``command``; else nothing."""
        _, writer = self.owner(name) or ("", "")
        return writer if command and writer != command else ""

    def names(self, entry: Entry) -> list[str]:
        """Return the files that the entry's command wrote for its recording."""
        query = "SELECT name FROM outputs WHERE id = ? AND command = ? ORDER BY name"
        return [name for (name,) in self._db.execute(query, (entry.id, entry.command))]

    def _row(self, name: str) -> dict[str, Any] | None:
        query = "SELECT id, command, digest, previous FROM outputs WHERE name = ?"
        row = self._db.execute(query, (name,)).fetchone()
        return None if row is None else dict(zip(("id", "command", "digest", "previous"), row))

    def write(self, entry: Entry, contents: Mapping[str, bytes], *, overwrite: bool = False) -> None:
        """Write the files of a recording, and its entry.

        Args:
            entry: The recording.
            contents: Contents by path below the folder.
            overwrite: Replace files that isotone did not write, that another command wrote, or that were changed since.

        Raises:
            FileExistsError: there is such a file, and ``overwrite`` is False.
            OSError: a file cannot be written.
        """
        with self._writing():
            before = self.entry(entry.id, entry.command)
            if before and (before.error or before.key != entry.key):
                self._outdate([name for name in self.names(entry) if name not in contents])
            self._intend(entry.id, entry.command, contents, overwrite)
            self._note(entry)
        self._put_recorded(contents, overwrite)

    def _outdate(self, names: Iterable[str]) -> None:
        """Record that files are of earlier inputs, such as a recording's files in formats that are not written now."""
        for name in names:
            # of the file as it is, or as it was before somebody changed or removed it
            last = "previous" if self.state(name) is State.OLD else "digest"
            self._db.execute(
                f"UPDATE outputs SET previous = {last}, digest = ? WHERE name = ? AND digest != ?",
                (_NONE, name, _NONE),
            )

    def write_report(self, name: str, content: bytes, *, overwrite: bool = False) -> None:
        """Write a file that belongs to no recording, or remove it if ``content`` is empty.

        One that was changed since isotone wrote it stays as it is, unless ``overwrite``.

        Raises:
            FileExistsError: there is such a file, and isotone did not write it.
        """
        state = self.state(name)
        if state is State.CHANGED and not overwrite:
            return
        if content:
            with self._writing():
                self._intend("", "", {name: content}, overwrite)
            self._put_recorded({name: content}, overwrite)
        elif state in (State.WRITTEN, State.OLD, State.CHANGED):
            self.forget([name])

    def _intend(self, id: str, command: str, contents: Mapping[str, bytes], overwrite: bool) -> None:
        """Record files that are about to be written: from now on they are isotone's, by this command."""
        for name, content in contents.items():
            state = self.state(name)
            if state in (State.FOREIGN, State.CHANGED) and not overwrite:
                raise FileExistsError(f"{self.folder / name} would be overwritten: it is {state.value}.")
            other = "" if state is State.ABSENT else self.other_command(name, command)
            if other and not overwrite:
                raise FileExistsError(f"{self.folder / name} would be overwritten: isotone {other} wrote it.")
            # a previous file of somebody else is not recorded: if the write fails, it is still theirs
            ours = state in (State.WRITTEN, State.OLD)
            previous = digest_of(self.folder / name) if ours else None
            row = (name, id, _digest(content), previous, command)
            self._db.execute("INSERT OR REPLACE INTO outputs VALUES (?, ?, ?, ?, ?)", row)

    def _put_recorded(self, contents: Mapping[str, bytes], overwrite: bool) -> None:
        """Write the recorded files; one process at a time, so that none finds another's unfinished file."""
        with self._writing():
            for name, content in contents.items():
                row, state = self._row(name), self.state(name)
                if row is None or row["digest"] != _digest(content):
                    continue  # another process has recorded newer contents
                ours = state in (State.WRITTEN, State.OLD)
                put(self.folder / name, content, replace=ours or overwrite)

    def forget(self, names: Iterable[str]) -> list[str]:
        """Remove files that isotone wrote and nobody changed, and folders that become empty.

        Returns:
            The files that stay because they were changed; the ledger no longer has them.
        """
        kept = []
        with self._writing():
            for name in names:
                path = self.folder / name
                if self.state(name) in (State.WRITTEN, State.OLD) or self.owner(name) == ("", ""):
                    path.unlink(missing_ok=True)
                    _remove_empty(path.parent, self.folder)
                elif path.exists():
                    kept.append(name)
                self._db.execute("DELETE FROM outputs WHERE name = ?", (name,))
        return kept

    def drop(self, entry: Entry) -> list[str]:
        """Remove an entry with its files; see :meth:`forget`."""
        kept = self.forget(self.names(entry))
        with self._writing():
            self._db.execute("DELETE FROM entries WHERE id = ? AND command = ?", (entry.id, entry.command))
        return kept


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _remove_empty(folder: Path, root: Path) -> None:
    """Remove empty folders upwards, except the root."""
    while folder != root and root in folder.parents:
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent
