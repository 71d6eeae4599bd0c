"""The database of an output folder: one SQLite file, digests of inputs, and what each process is doing."""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import psutil

from isotone.files import digest_of

#: Name of the ledger in its folder.
NAME = ".isotone.sqlite"

# Version of the schema (SQLite's user_version).
_VERSION = 3
_SCHEMA = """
CREATE TABLE entries(id TEXT, command TEXT, entry TEXT, PRIMARY KEY(id, command));
CREATE TABLE outputs(name TEXT PRIMARY KEY, id TEXT, digest TEXT, previous TEXT, command TEXT);
CREATE TABLE digests(path TEXT PRIMARY KEY, stat TEXT, digest TEXT);
CREATE TABLE claims(id TEXT PRIMARY KEY, host TEXT, pid INTEGER, born REAL);
"""
# Version 2 did not know what other processes are about to write.
_FROM_2 = """
CREATE TABLE plans(name TEXT, what TEXT, host TEXT, pid INTEGER, born REAL, PRIMARY KEY(name, host, pid));
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
# Statements that bring a ledger of a version to this one; 0: a new one.
_STEPS = {0: _SCHEMA + _FROM_2, 1: _FROM_1 + _FROM_2, 2: _FROM_2}
# Seconds to wait for another process's transaction; each takes milliseconds.
_PATIENCE_S = 600.0


class LedgerError(OSError):
    """A ledger cannot be used; the message names it and gives advice."""


class OutputBusy(OSError):
    """Another process is writing the same files, of other options or inputs; the message names it."""


class Database:
    """The database of a folder, shared by processes; a context manager.

    A folder without one gets it with the first row that has to stay: until then it is in memory.

    Args:
        folder: Folder of the outputs; created if needed.

    Raises:
        LedgerError: the file is no ledger, is of a later version, or cannot be locked or written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._me = (socket.gethostname(), os.getpid(), psutil.Process().create_time())
        self._stored = self._is_there()
        self._connection = self._connected(str(folder / NAME) if self._stored else ":memory:")

    def _is_there(self) -> bool:
        return os.path.lexists(self.folder / NAME)

    @property
    def _db(self) -> sqlite3.Connection:
        # another process may have made the file meanwhile
        if not self._stored and self._is_there():
            self._store()
        return self._connection

    def _store(self) -> None:
        """Make the file, unless it is there, and take over the digests."""
        self.folder.mkdir(parents=True, exist_ok=True)
        draft, self._connection = self._connection, self._connected(str(self.folder / NAME))
        self._stored = True
        self._keep_digests(draft.execute("SELECT path, stat, digest FROM digests").fetchall())
        draft.close()

    def _connected(self, path: str) -> sqlite3.Connection:
        """Connect to a database, of any version until now."""
        db = sqlite3.connect(path, timeout=_PATIENCE_S, isolation_level=None)
        with self._transaction(db):
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version > _VERSION:
                raise LedgerError(
                    f"{self.folder / NAME} was written by another version of isotone (ledger {version}; this one "
                    f"reads up to {_VERSION}). Use that version, or another folder."
                )
            if version < _VERSION:
                for statement in _STEPS[version].split(";"):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {_VERSION}")
        # a process that is killed loses nothing; a machine that loses power may lose the last rows
        db.execute("PRAGMA synchronous = NORMAL")
        return db

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release all claims of this process, and close the file."""
        self.abandon()
        if self._stored:
            with self._writing():
                self._db.execute("DELETE FROM claims WHERE host = ? AND pid = ?", self._me[:2])
        self._connection.close()

    def abandon(self) -> None:
        """Roll back what an interrupt left open: other connections wait for its end."""
        _abandon(self._connection)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Open a transaction for rows that have to stay; other processes wait for its end."""
        if not self._stored:
            self._store()
        with self._transaction(self._db):
            yield

    @contextmanager
    def _transaction(self, db: sqlite3.Connection) -> Iterator[None]:
        try:
            try:
                # an interrupt can come right after it, while others wait for its end
                db.execute("BEGIN IMMEDIATE")
                yield
                db.execute("COMMIT")
            except BaseException:
                _abandon(db)
                raise
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
        self._keep_digests(found)

    def _keep_digests(self, rows: list[tuple[str, str, str]]) -> None:
        with self._transaction(self._db):
            self._db.executemany("INSERT OR REPLACE INTO digests VALUES (?, ?, ?)", rows)

    @contextmanager
    def planned(self, files: Mapping[str, str]) -> Iterator[None]:
        """Note the files of this process until the block ends: meanwhile no other writes them of anything else.

        Args:
            files: The files, by their paths below the folder, and of what they are made, as any text.

        Raises:
            OutputBusy: another process of this machine has one of them, of something else; nothing was noted.
        """
        mine = [(name, what, *self._me) for name, what in files.items()]
        with self._writing():
            for host, pid, born in self._db.execute("SELECT DISTINCT host, pid, born FROM plans").fetchall():
                if not self._lives(host, pid, born):
                    self._db.execute("DELETE FROM plans WHERE host = ? AND pid = ?", (host, pid))
            self._db.executemany("INSERT OR REPLACE INTO plans VALUES (?, ?, ?, ?, ?)", mine)
            self._check_planned()
        try:
            yield
        finally:
            with self._writing():
                self._db.execute("DELETE FROM plans WHERE host = ? AND pid = ?", self._me[:2])

    def _check_planned(self) -> None:
        query = (
            "SELECT other.name, other.pid FROM plans AS other JOIN plans AS mine USING (name) WHERE mine.host = ? "
            "AND mine.pid = ? AND other.what != mine.what ORDER BY other.name"
        )
        if busy := self._db.execute(query, self._me[:2]).fetchall():
            (name, pid), more = busy[0], f" and {len(busy) - 1} more" if busy[1:] else ""
            raise OutputBusy(
                f"Another run (process {pid}) is writing {self.folder / name}{more}, with other options, recordings or "
                "texts; this one has done nothing. Wait for its end, or choose another --out."
            )

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


def _abandon(db: sqlite3.Connection) -> None:
    """Roll back the open transaction, if there is one: a full disk has ended it."""
    if db.in_transaction:
        db.execute("ROLLBACK")
