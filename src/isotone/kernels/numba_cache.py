"""Folders that compiled kernels are kept in."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path

VARIABLE = "NUMBA_CACHE_DIR"


def ensure_cache() -> None:
    """Give numba a folder for what it compiles where it would find none, and refuse to compile.

    numba looks beside the source and in the user's cache folder. Both are read-only in a container whose user is a bare
    number and whose packages root installed. The folder is then one of this user's in the system's temporary folder.
    ``NUMBA_CACHE_DIR`` is respected where it names a folder that can be made and written to. Where a folder is made
    here it is set, for later processes too.
    """
    given = os.environ.get(VARIABLE)
    if (given and _can_be_made(Path(given))) or _writable(Path(__file__).parent) or _writable(_user_cache()):
        return
    folder = Path(tempfile.gettempdir(), f"isotone-numba-{getattr(os, 'getuid', int)()}")
    if not _is_ours(folder):
        folder = Path(tempfile.mkdtemp(prefix="isotone-numba-"))
    os.environ[VARIABLE] = str(folder)
    if numba := sys.modules.get("numba"):  # it has read its settings already
        numba.config.CACHE_DIR = str(folder)


def plain_folder() -> Path:
    """Return the folder of plain kernels (:mod:`isotone.kernels.native`), apart from that of native ones."""
    if given := os.environ.get(VARIABLE):
        return Path(given, "isotone-plain")
    beside = Path(__file__).parent
    if _writable(beside):
        return beside / "__pycache__" / "plain"
    return _user_cache() / "isotone-plain"


def _writable(folder: Path) -> bool:
    """Return whether a folder can be written to or, where there is none yet, its nearest parent."""
    there = next((parent for parent in (folder, *folder.absolute().parents) if parent.exists()), None)
    return there is not None and os.access(there, os.W_OK | os.X_OK)


def _can_be_made(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return _writable(folder)


def _user_cache() -> Path:
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a user without a home
        return Path(__file__).parent


def _is_ours(folder: Path) -> bool:
    """Make the folder, or return whether no other user can write to it: the code in it is run."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == getattr(os, "getuid", lambda: found.st_uid)()
        and not found.st_mode & 0o022
    )
