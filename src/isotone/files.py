"""Writing files and folders atomically, and safe names for them."""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from filelock import FileLock


@contextmanager
def atomic_write(path: Path | str, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a temporary file beside ``path`` and rename it into place when the block ends without an error.

    Args:
        path: The file; its folder is created if necessary.
        mode: ``"w"`` (UTF-8, newlines unchanged) or ``"wb"``.

    Raises:
        ValueError: another mode.
        OSError: the file cannot be written, see :func:`check_target`.
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
    """Write a whole file through a temporary file; the next call or :func:`tidy` removes it if this one is killed.

    Two processes must not write the same file at once.

    Args:
        path: The file; its folder is created if necessary.
        content: Content of the file.
        replace: Replace an existing file.

    Raises:
        FileExistsError: ``path`` exists and must not be replaced.
        OSError: the file cannot be written, see :func:`check_target`.
    """
    check_target(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = tidy(path)
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


def tidy(path: Path) -> Path:
    """Remove the temporary file of a :func:`put` that was killed, and return its path.

    The file itself may be whole: it is linked to the temporary file before that is removed.
    """
    key = hashlib.sha256(os.fsencode(path.name)).hexdigest()[:8]
    temporary = path.with_name(f".{path.name[:40]}.{key}.tmp")
    temporary.unlink(missing_ok=True)
    return temporary


def _link(temporary: Path, path: Path) -> None:
    """Give a file its name, unless the name exists."""
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        raise FileExistsError(f"{path} would be overwritten: it has just appeared.") from None
    except OSError:  # a file system without links
        if os.path.lexists(path):
            raise FileExistsError(f"{path} would be overwritten: it has just appeared.") from None
        temporary.replace(path)


def alone(path: Path) -> FileLock:
    """Return a lock for creating ``path``, held by one thread of this user and machine at a time."""
    user = getattr(os, "getuid", getpass.getuser)()  # in a container the user may have no name
    key = hashlib.sha256(f"{user} {path.absolute()}".encode()).hexdigest()[:16]
    return FileLock(Path(tempfile.gettempdir(), f"isotone-{key}.lock"))


@contextmanager
def atomic_folder(path: Path | str, keep: Collection[str] = (), drop: Collection[str] = ()) -> Iterator[Path]:
    """Create a temporary folder beside ``path`` and rename it into place when the block ends without an error.

    An existing folder is replaced as a whole, unless it holds a file or folder that the new one does not have.

    Args:
        path: The folder.
        keep: Names of files of the existing folder that the new one takes over where it has none of that name.
        drop: Names of files of the existing folder that were made of it, and go with it.

    Raises:
        FileExistsError: ``path`` is a file, or a folder with something else in it.
    """
    path = Path(path)
    if not path.is_dir():
        check_replaceable(path, ())
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name[:40]}.", suffix=".tmp"))
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        _share(temporary)
        old = None
        if path.exists():
            for kept in (path / name for name in keep):
                if kept.is_file() and not (temporary / kept.name).exists():
                    shutil.copy2(kept, temporary / kept.name)
            check_replaceable(path, [*drop, *(new.name for new in temporary.iterdir())])
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


def _share(folder: Path) -> None:
    """Give files that nobody else may read the usual rights: safetensors writes them so."""
    for path in folder.rglob("*"):
        if path.is_file() and stat.S_IMODE(path.stat().st_mode) == 0o600:
            path.chmod(0o666 & ~_umask())


def check_replaceable(folder: Path, names: Collection[str]) -> None:
    """Check that a folder, if there is one, has nothing but files and folders of these names.

    Raises:
        FileExistsError: it has something else, or is a file.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise FileExistsError(f"{folder} is a file: a folder is to be written there. Choose another place.")
    others = sorted({p.name for p in folder.iterdir()} - set(names))
    if others:
        some = ", ".join(others[:3]) + (" ..." if others[3:] else "")
        raise FileExistsError(
            f"{folder} holds other files ({some}), which would be lost. Choose another folder, or move them away."
        )


def check_target(path: Path | str, ours: Callable[[bytes], bool] = lambda content: True) -> None:
    """Check that a file can be written at ``path``, before the work for its content begins.

    Args:
        path: The file.
        ours: Tells of the content of an existing file if it may be replaced: it looks like what is to be written.

    Raises:
        FileExistsError: there is a file with other content.
        IsADirectoryError: ``path`` is a folder.
        NotADirectoryError: its parent is a file.
        PermissionError: its folder, or the nearest existing parent, is read-only.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: expected the name of a file to write.")
    if path.is_file() and (content := path.read_bytes()) and not ours(content):
        raise FileExistsError(
            f"{path} exists and holds something else, which would be lost. Choose another name."
        )
    check_folder(path.parent)


def json_with(*names: str) -> Callable[[bytes], bool]:
    """Make the test of :func:`check_target` for a JSON object that has these names, or whose first value has them."""

    def ours(content: bytes) -> bool:
        try:
            found = json.loads(content)
        except ValueError:
            return False
        first = next(iter(found.values()), None) if isinstance(found, dict) else None
        return any(isinstance(one, dict) and set(names) <= one.keys() for one in (found, first))

    return ours


def check_folder(folder: Path | str) -> None:
    """Check that files can be written to a folder, which need not exist yet.

    Raises:
        NotADirectoryError: the folder or one of its parents is a file.
        PermissionError: the folder, or the nearest existing parent, is read-only.
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
    """Return the SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def safe_name(name: str) -> str:
    """Return a file name for an id from data, which never leads out of its folder.

    Path separators, control characters and characters that some systems refuse become ``_``, as do empty names and
    names of dots only. Names longer than 200 bytes of UTF-8 are cut. Safe ids are returned unchanged.
    """
    cleaned = re.sub(r'[\x00-\x1f\x7f/\\:*?"<>|\ud800-\udfff]', "_", name).strip(" ")
    if not cleaned.strip("."):
        return "_"
    cleaned = re.sub(r"^\.+", lambda dots: "_" * len(dots[0]), cleaned)
    # file systems count bytes
    return cleaned.encode()[:200].decode(errors="ignore").rstrip(" ")


def _umask() -> int:
    """Return the permissions that new files lack."""
    with suppress(OSError, StopIteration):
        # setting it, even for a moment, would change the files of other threads
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return int(next(line for line in lines if line.startswith("Umask:")).split()[1], 8)
    mask = os.umask(0)
    os.umask(mask)
    return mask
