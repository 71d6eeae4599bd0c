"""The database of an output folder: one SQLite file, digests of inputs, and what each process is doing."""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import psutil

from isotone.files import digest_of

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


class Database:
    """The database of a folder, shared by processes; a context manager.

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
