"""Where compiled kernels are kept, for users who can write neither to the package nor to a home."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path

VARIABLE = "NUMBA_CACHE_DIR"


def ensure_cache() -> None:
    """Give numba a folder for what it compiles, where it would find none and refuse to compile.

    It looks beside the source and in the user's cache folder. In a container that runs under some number of a user, of
    a package that root installed, both are read-only; the folder is then one of this user's in the system's temporary
    folder. ``NUMBA_CACHE_DIR`` is respected where it is set, and set where one is made, for processes to come.
    """
    if os.environ.get(VARIABLE) or _writable(Path(__file__).parent) or _writable(_user_cache()):
        return
    place = Path(tempfile.gettempdir(), f"isotone-numba-{getattr(os, 'getuid', int)()}")
    if not _is_ours(place):
        place = Path(tempfile.mkdtemp(prefix="isotone-numba-"))
    os.environ[VARIABLE] = str(place)
    if numba := sys.modules.get("numba"):  # it has read its settings already
        numba.config.CACHE_DIR = str(place)


def _writable(folder: Path) -> bool:
    there = next((parent for parent in (folder, *folder.absolute().parents) if parent.exists()), None)
    return there is not None and os.access(there, os.W_OK | os.X_OK)


def _user_cache() -> Path:
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a user without a home, of whom only the number is known
        return Path(__file__).parent


def _is_ours(folder: Path) -> bool:
    """Make the folder, or see that no other user can write to it: what lies there is run."""
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
