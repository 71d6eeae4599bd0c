"""Writing files so that nobody ever sees half of one."""

from __future__ import annotations

import getpass
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from filelock import FileLock


@contextmanager
def atomic_write(path: Path | str, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a temporary file beside ``path`` and rename it into place when the block ends without an error.

    Args:
        path: Where the file goes; its folder is made if need be.
        mode: ``"w"`` (UTF-8, newlines as they are) or ``"wb"``.

    Raises:
        ValueError: another mode.
        OSError: no file can be written there, see :func:`check_target`.
    """
    if mode not in ("w", "wb"):
        raise ValueError(f"A file is written whole, with mode 'w' or 'wb'; got {mode!r}.")
    path = Path(path)
    check_target(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.", suffix=".tmp")
    temporary = Path(name)
    try:
        text = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
        with os.fdopen(handle, mode, **text) as file:  # type: ignore[call-overload]
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def put(path: Path, content: bytes, *, replace: bool) -> None:
    """Write a file whole, through a temporary file that the next such call takes over if this one is killed.

    Two processes may not write the same file at once.

    Args:
        path: Where the file goes; its folder is made if need be.
        content: Of the file.
        replace: Replace a file that is there.

    Raises:
        FileExistsError: there is something at ``path``, and it is not to be replaced.
        OSError: no file can be written there, see :func:`check_target`.
    """
    check_target(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    key = hashlib.sha256(os.fsencode(path.name)).hexdigest()[:8]
    temporary = path.with_name(f".{path.name[:40]}.{key}.tmp")
    temporary.unlink(missing_ok=True)  # a killed process left it; whatever it is linked to stays as it is
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            temporary.replace(path)
        else:
            _link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _link(temporary: Path, path: Path) -> None:
    """Give a file its name, unless there is something of that name."""
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        raise FileExistsError(f"{path} would be overwritten: it has just appeared.") from None
    except OSError:  # a file system without links
        if os.path.lexists(path):
            raise FileExistsError(f"{path} would be overwritten: it has just appeared.") from None
        temporary.replace(path)


def alone(place: Path) -> FileLock:
    """A lock on what is made at ``place``, held by one thread of this user and machine at a time."""
    user = getattr(os, "getuid", getpass.getuser)()  # in a container a user may have no name
    key = hashlib.sha256(f"{user} {place.absolute()}".encode()).hexdigest()[:16]
    return FileLock(Path(tempfile.gettempdir(), f"isotone-{key}.lock"))


@contextmanager
def atomic_folder(path: Path | str) -> Iterator[Path]:
    """A temporary folder beside ``path`` that takes its place when the block ends without an error.

    A folder that was there before is replaced whole. One that has nothing in common with the new one is another's, and
    stays as it is.

    Raises:
        FileExistsError: there is a file at ``path``, or a folder with files of which the new one has none.
    """
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise FileExistsError(f"{path} is a file: a folder is to be written there. Choose another place.")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name[:40]}.", suffix=".tmp"))
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        old = None
        if path.exists():
            _check_replaceable(path, temporary)
            old = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name[:40]}.old.")) / path.name
            path.rename(old)
        try:
            temporary.rename(path)
        except BaseException:
            if old is not None:
                old.rename(path)
                old.parent.rmdir()
            raise
        if old is not None:
            shutil.rmtree(old.parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _check_replaceable(old: Path, new: Path) -> None:
    there = sorted(p.name for p in old.iterdir())
    if there and not {p.name for p in new.iterdir()} & set(there):
        some = ", ".join(there[:3]) + (" ..." if there[3:] else "")
        raise FileExistsError(
            f"{old} holds other files ({some}), which would be lost. Choose another folder, or an empty one."
        )


def check_target(path: Path | str) -> None:
    """See that a file can be written at ``path``: work whose result cannot be kept is better not begun.

    Raises:
        IsADirectoryError: it is a folder.
        NotADirectoryError: what should be its folder is a file.
        PermissionError: its folder, or the one that this would be made in, is read-only.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: expected the name of a file to write.")
    check_folder(path.parent)


def check_folder(folder: Path | str) -> None:
    """See that files can be written to a folder, which need not be there yet.

    Raises:
        NotADirectoryError: it, or a folder that it would be made in, is a file.
        PermissionError: it, or the folder that it would be made in, is read-only.
    """
    folder = Path(folder)
    there = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not there.is_dir():
        raise NotADirectoryError(f"{folder} cannot be made: {there} is a file. Choose another place.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(
            f"{there} is read-only: nothing can be written to {folder}. Choose another place."
        )


def digest_of(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def safe_name(name: str) -> str:
    """A file name made from an id that comes from data: it never leaves the folder it is written to.

    Path separators, control characters and characters that some systems refuse become ``_``; names of dots
    only and empty names become ``_``; names longer than 200 bytes of UTF-8 are cut. Ids that are safe already
    come back unchanged.
    """
    cleaned = re.sub(r'[\x00-\x1f\x7f/\\:*?"<>|\ud800-\udfff]', "_", name).strip(" ")
    if not cleaned.strip("."):
        return "_"
    cleaned = re.sub(r"^\.+", lambda dots: "_" * len(dots[0]), cleaned)
    # file systems count bytes
    return cleaned.encode()[:200].decode(errors="ignore").rstrip(" ")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
