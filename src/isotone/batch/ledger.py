"""The ledger of an output folder: what isotone wrote there, from what, and with what.

One SQLite file beside the outputs. A row is written before the file that it describes appears. So whenever a process is
killed, every file of isotone's is known afterwards, and any other file is somebody else's.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Self

import psutil

from isotone.files import put

#: Name of the ledger in its folder.
NAME = ".isotone.sqlite"

# What this version reads and writes (SQLite's user_version).
_VERSION = 1
_SCHEMA = """
CREATE TABLE entries(id TEXT PRIMARY KEY, entry TEXT);
CREATE TABLE outputs(name TEXT PRIMARY KEY, id TEXT, digest TEXT, previous TEXT);
CREATE TABLE digests(path TEXT PRIMARY KEY, stat TEXT, digest TEXT);
CREATE TABLE claims(id TEXT PRIMARY KEY, host TEXT, pid INTEGER, born REAL);
"""
# Seconds to wait for another process that writes; each writes for milliseconds.
_PATIENCE_S = 600.0


class LedgerError(OSError):
    """A ledger cannot be used; the message names it and says what to do."""


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
        score, agreement: How well the text fits, see :class:`isotone.result.Result`; what is doubted by.
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


class Ledger:
    """The ledger of a folder; a context manager.

    Args:
        folder: Of the outputs; made if need be.

    Raises:
        LedgerError: the file is no ledger, is of a later version, or cannot be locked or written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._me = (socket.gethostname(), os.getpid(), psutil.Process().create_time())
        self._db = sqlite3.connect(folder / NAME, timeout=_PATIENCE_S, isolation_level=None)
        with self._writing():
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if version == 0:
                for statement in _SCHEMA.split(";"):
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA user_version = {_VERSION}")
            elif version != _VERSION:
                raise LedgerError(
                    f"{folder / NAME} was written by another version of isotone (ledger {version}; this one reads "
                    f"{_VERSION}). Use that version, or another folder."
                )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give back what this process has claimed, and close the file."""
        with self._writing():
            self._db.execute("DELETE FROM claims WHERE host = ? AND pid = ?", self._me[:2])
        self._db.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A transaction; processes take turns."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise LedgerError(
                f"The ledger {self.folder / NAME} cannot be used: {error}. Choose another folder; or move the ledger "
                "away, and isotone takes what lies there for somebody else's."
            ) from error

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

    # Inputs

    def digests(self, paths: Iterable[Path]) -> Iterator[tuple[Path, str]]:
        """The digests of files, remembered for as long as the file system says that a file is the same.

        Yields:
            Each path with its digest; of a file that cannot be read, an empty one.
        """
        found: list[tuple[str, str, str]] = []
        for path in paths:
            place = os.fsencode(path.absolute()).decode("utf-8", "backslashreplace")
            try:
                stat = path.stat()
                seen = f"{stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns} {stat.st_ino}"
                query = "SELECT digest FROM digests WHERE path = ? AND stat = ?"
                row = self._db.execute(query, (place, seen)).fetchone()
                digest = row[0] if row else digest_of(path)
            except OSError:
                digest = ""
            else:
                if row is None:
                    found.append((place, seen, digest))
            yield path, digest
        with self._writing():
            self._db.executemany("INSERT OR REPLACE INTO digests VALUES (?, ?, ?)", found)

    # Processes

    def claim(self, id: str) -> bool:
        """Take a recording for this process; false while another process of this machine has it."""
        with self._writing():
            row = self._db.execute("SELECT host, pid, born FROM claims WHERE id = ?", (id,)).fetchone()
            if row is not None and row[:2] != self._me[:2] and self._lives(*row):
                return False
            self._db.execute("INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?)", (id, *self._me))
        return True

    def release(self, id: str) -> None:
        """Give a recording back."""
        with self._writing():
            self._db.execute("DELETE FROM claims WHERE id = ? AND host = ? AND pid = ?", (id, *self._me[:2]))

    def _lives(self, host: str, pid: int, born: float) -> bool:
        """Tell whether a process still runs; one of another machine is taken for dead, as nobody can ask it."""
        try:
            # numbers of processes are used again
            return host == self._me[0] and abs(psutil.Process(pid).create_time() - born) < 2.0
        except psutil.Error:
            return False


def digest_of(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
