"""The ledger of an output folder: what isotone wrote there, from what, and with what.

One SQLite file beside the outputs. A row is written before the file that it describes appears. So whenever a process is
killed, every file of isotone's is known afterwards, and any other file is somebody else's.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from isotone.batch.database import NAME, Database, LedgerError
from isotone.files import digest_of, put

__all__ = ["NAME", "Entry", "Ledger", "LedgerError", "State"]


class State(Enum):
    """A file of an output folder, as the ledger sees it."""

    ABSENT = "not there"
    WRITTEN = "as isotone wrote it last"
    OLD = "as isotone wrote it before; the process that was to replace it did not come to it"
    CHANGED = "changed since isotone wrote it"
    FOREIGN = "not written by isotone"


@dataclass(frozen=True)
class Entry:
    """A recording in the ledger.

    Attributes:
        id: Its name: path below the output folder, without ending.
        file: The recording as the command named it.
        source: The same, from the root.
        command: ``align`` or ``transcribe``.
        audio: Digest of the recording.
        key: Digest of everything that the outputs depend on.
        error: The reason why there are no outputs of this key; empty where there are.
        warnings: What one should know of the outputs.
        score, agreement: How well the text fits, see :class:`isotone.pipeline.result.Result`; what is doubted by.
        doubt: The reason why the text is doubted; empty where it is not.
        text: The recognised text.
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


class Ledger(Database):
    """The ledger of a folder; a context manager.

    Args:
        folder: Of the outputs; made if need be.

    Raises:
        LedgerError: the file is no ledger, is of a later version, or cannot be locked or written.
    """

    # Recordings

    def entry(self, id: str) -> Entry | None:
        """The entry of a recording, where there is one."""
        return next(self._entries("WHERE id = ?", id), None)

    def entries(self) -> list[Entry]:
        """All entries, in order of their names."""
        return list(self._entries("ORDER BY id"))

    def _entries(self, clause: str, *values: str) -> Iterator[Entry]:
        for (row,) in self._db.execute(f"SELECT entry FROM entries {clause}", values):
            fields = json.loads(row)
            yield Entry(**{**fields, "warnings": tuple(fields["warnings"])})

    def note(self, *entries: Entry) -> None:
        """Write entries whose outputs stay as they are: of recordings that failed, or that have moved."""
        with self._writing():
            for entry in entries:
                self._note(entry)

    def _note(self, entry: Entry) -> None:
        row = (entry.id, json.dumps(asdict(entry), ensure_ascii=False))
        self._db.execute("INSERT OR REPLACE INTO entries VALUES (?, ?)", row)

    # Files

    def state(self, name: str) -> State:
        """The state of a file, by its path below the folder."""
        path = self.folder / name
        if not os.path.lexists(path):
            return State.ABSENT
        row = self._row(name)
        if row is None:
            return State.FOREIGN
        # isotone writes plain files: a link or a folder in the place of one is somebody's
        digest = digest_of(path) if path.is_file() and not path.is_symlink() else ""
        if digest == row["digest"]:
            return State.WRITTEN
        return State.OLD if digest == row["previous"] else State.CHANGED

    def owner(self, name: str) -> str | None:
        """The recording that a file was written for; None where isotone did not write it."""
        row = self._row(name)
        return None if row is None else row["id"]

    def names(self, id: str) -> list[str]:
        """The files that were written for a recording."""
        rows = self._db.execute("SELECT name FROM outputs WHERE id = ? ORDER BY name", (id,))
        return [name for (name,) in rows]

    def _row(self, name: str) -> dict[str, Any] | None:
        row = self._db.execute("SELECT id, digest, previous FROM outputs WHERE name = ?", (name,)).fetchone()
        return None if row is None else dict(zip(("id", "digest", "previous"), row))

    def write(self, entry: Entry, contents: Mapping[str, bytes], *, overwrite: bool = False) -> None:
        """Write the files of a recording, and its entry.

        Args:
            entry: The recording.
            contents: What to write, by path below the folder.
            overwrite: Replace files that are not isotone's, or no longer.

        Raises:
            FileExistsError: such a file is there.
            OSError: a file cannot be written.
        """
        with self._writing():
            self._intend(entry.id, contents, overwrite)
            self._note(entry)
        self._place(contents, overwrite)

    def write_report(self, name: str, content: bytes, *, overwrite: bool = False) -> None:
        """Write a file that belongs to no recording, or remove it where there is nothing to write.

        Raises:
            FileExistsError: there is such a file, and isotone did not write it.
        """
        state = self.state(name)
        if content:
            with self._writing():
                self._intend("", {name: content}, overwrite or state is State.CHANGED)
            self._place({name: content}, overwrite or state is State.CHANGED)
        elif state in (State.WRITTEN, State.OLD, State.CHANGED):
            self.forget([name])

    def _intend(self, id: str, contents: Mapping[str, bytes], overwrite: bool) -> None:
        """Note what is about to be written: from now on it is isotone's."""
        for name, content in contents.items():
            state = self.state(name)
            if state in (State.FOREIGN, State.CHANGED) and not overwrite:
                raise FileExistsError(f"{self.folder / name} would be overwritten: it is {state.value}.")
            # of a file that is not isotone's nothing is noted: should the write not come about, it still is not
            ours = state in (State.WRITTEN, State.OLD)
            previous = digest_of(self.folder / name) if ours else None
            row = (name, id, _digest(content), previous)
            self._db.execute("INSERT OR REPLACE INTO outputs VALUES (?, ?, ?, ?)", row)

    def _place(self, contents: Mapping[str, bytes], overwrite: bool) -> None:
        """Put files where they are noted to be; one process at a time, so that none meets another's half file."""
        with self._writing():
            for name, content in contents.items():
                row, state = self._row(name), self.state(name)
                if row is None or row["digest"] != _digest(content):
                    continue  # another process has noted something newer
                ours = state in (State.WRITTEN, State.OLD)
                put(self.folder / name, content, replace=ours or overwrite)

    def forget(self, names: Iterable[str]) -> list[str]:
        """Remove files that isotone wrote and that nobody changed, and folders that this leaves empty.

        Returns:
            The files that stay because they were changed; they are no longer isotone's.
        """
        kept = []
        with self._writing():
            for name in names:
                path = self.folder / name
                if self.state(name) in (State.WRITTEN, State.OLD) or self.owner(name) == "":
                    path.unlink(missing_ok=True)
                    _remove_empty(path.parent, self.folder)
                elif path.exists():
                    kept.append(name)
                self._db.execute("DELETE FROM outputs WHERE name = ?", (name,))
        return kept

    def drop(self, id: str) -> list[str]:
        """Remove a recording with its files; see :meth:`forget`."""
        kept = self.forget(self.names(id))
        with self._writing():
            self._db.execute("DELETE FROM entries WHERE id = ?", (id,))
        return kept


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _remove_empty(folder: Path, root: Path) -> None:
    """Remove folders that have become empty, up to the root, which stays."""
    while folder != root and root in folder.parents:
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent
