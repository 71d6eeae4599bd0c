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

# Version of the schema (SQLite's user_version).
_VERSION = 2
_SCHEMA = """
CREATE TABLE entries(id TEXT, command TEXT, entry TEXT, PRIMARY KEY(id, command));
CREATE TABLE outputs(name TEXT PRIMARY KEY, id TEXT, digest TEXT, previous TEXT, command TEXT);
CREATE TABLE digests(path TEXT PRIMARY KEY, stat TEXT, digest TEXT);
CREATE TABLE claims(id TEXT PRIMARY KEY, host TEXT, pid INTEGER, born REAL);
"""
# Version 1 had one entry per recording: the file of another command counted as the last one's.
_FROM_1 = """
ALTER TABLE outputs ADD COLUMN command TEXT;
UPDATE outputs SET command = COALESCE(
    (SELECT json_extract(entry, '$.command') FROM entries WHERE entries.id = outputs.id), '');
ALTER TABLE entries RENAME TO entries_1;
CREATE TABLE entries(id TEXT, command TEXT, entry TEXT, PRIMARY KEY(id, command));
INSERT INTO entries SELECT id, json_extract(entry, '$.command'), entry FROM entries_1;
DROP TABLE entries_1;
"""
# Seconds to wait for another process's transaction; each takes milliseconds.
_PATIENCE_S = 600.0


class LedgerError(OSError):
    """A ledger cannot be used; the message names it and gives advice."""


class Database:
    """The database of a folder, shared by processes; a context manager.

    Args:
        folder: Folder of the outputs; created if needed.

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
            if version > _VERSION:
                raise LedgerError(
                    f"{folder / NAME} was written by another version of isotone (ledger {version}; this one reads "
                    f"up to {_VERSION}). Use that version, or another folder."
                )
            if version < _VERSION:
                for statement in (_FROM_1 if version else _SCHEMA).split(";"):
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA user_version = {_VERSION}")
        # a process that is killed loses nothing; a machine that loses power may lose the last rows
        self._db.execute("PRAGMA synchronous = NORMAL")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release all claims of this process, and close the file."""
        with self._writing():
            self._db.execute("DELETE FROM claims WHERE host = ? AND pid = ?", self._me[:2])
        self._db.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Open a transaction; other processes wait for its end."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                if self._db.in_transaction:  # a full disk has ended it
                    self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            full = getattr(error, "sqlite_errorcode", None) in (
                sqlite3.SQLITE_FULL,
                sqlite3.SQLITE_IOERR_WRITE,
            )
            advice = (
                "Make room, and run the same command again: it goes on from here."
                if full
                else "Choose another folder; or move the ledger away, and isotone takes what lies there for "
                "somebody else's."
            )
            raise LedgerError(f"The ledger {self.folder / NAME} cannot be used: {error}. {advice}") from error

    def digests(self, paths: Iterable[Path]) -> Iterator[tuple[Path, str]]:
        """Compute digests of files; they are stored until size, times or inode of a file change.

        Yields:
            Each path with its digest, which is empty for a file that cannot be read.
        """
        found: list[tuple[str, str, str]] = []
        for path in paths:
            # SQLite's text is Unicode; names of files can be any bytes
            key = os.fsencode(path.absolute()).decode("utf-8", "backslashreplace")
            try:
                stat = path.stat()
                seen = f"{stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns} {stat.st_ino}"
                query = "SELECT digest FROM digests WHERE path = ? AND stat = ?"
                row = self._db.execute(query, (key, seen)).fetchone()
                digest = row[0] if row else digest_of(path)
            except OSError:
                digest = ""
            else:
                if row is None:
                    found.append((key, seen, digest))
            yield path, digest
        with self._writing():
            self._db.executemany("INSERT OR REPLACE INTO digests VALUES (?, ?, ?)", found)

    def claim(self, *ids: str, ended: Iterable[str] = ()) -> list[str]:
        """Claim recordings for this process; return those that no other process of this machine has.

        Args:
            ids: The recordings.
            ended: Claims of this process to release in the same transaction, which is the dearest part of both.
        """
        with self._writing():
            self._release(ended)
            free = [id for id in ids if self._free(id)]
            self._db.executemany(
                "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?)", [(i, *self._me) for i in free]
            )
        return free

    def _free(self, id: str) -> bool:
        row = self._db.execute("SELECT host, pid, born FROM claims WHERE id = ?", (id,)).fetchone()
        return row is None or row[:2] == self._me[:2] or not self._lives(*row)

    def _abandoned(self) -> list[str]:
        """Remove the claims of processes of this machine that were killed, and return the recordings."""
        rows = self._db.execute(
            "SELECT id, host, pid, born FROM claims WHERE host = ?", self._me[:1]
        ).fetchall()
        found = [(id,) for id, *owner in rows if not self._lives(*owner)]
        self._db.executemany("DELETE FROM claims WHERE id = ?", found)
        return [id for (id,) in found]

    def release(self, *ids: str) -> None:
        """Release the claims of recordings."""
        with self._writing():
            self._release(ids)

    def _release(self, ids: Iterable[str]) -> None:
        rows = [(id, *self._me[:2]) for id in ids]
        self._db.executemany("DELETE FROM claims WHERE id = ? AND host = ? AND pid = ?", rows)

    def _lives(self, host: str, pid: int, born: float) -> bool:
        """Tell if a process still runs; one of another machine cannot be checked and counts as ended."""
        try:
            # process numbers are used again: the start time must match too
            return host == self._me[0] and abs(psutil.Process(pid).create_time() - born) < 2.0
        except psutil.Error:
            return False
