"""Entry points of installed distributions, read once."""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path
from typing import Any


def installed(group: str) -> EntryPoints:
    """Return the entry points of a group, of all installed distributions."""
    folders = []
    for folder in sys.path:
        with suppress(OSError):
            folders.append((folder, Path(folder).stat().st_mtime_ns))
    found: EntryPoints = _read(tuple(folders)).select(group=group)
    return found


@lru_cache(maxsize=1)
def _read(folders: tuple[tuple[str, int], ...]) -> Any:
    """Read the files of every distribution in folders, once until one of these has changed: there are hundreds."""
    return entry_points()
