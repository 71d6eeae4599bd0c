"""The memory that one call takes."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
# Blocks from this size on come from the system and go back to it, so that freed memory does not hide new memory.
_OWN_MAPPING_BYTES = 65_536
_MMAP_THRESHOLD = -3  # mallopt's M_MMAP_THRESHOLD


def peak_mib(call: Callable[[], object]) -> dict[str, float]:
    """Measure the peak resident memory of a call, less that before it: ``peak_mib``, after a first call to warm up.

    Returns:
        Nothing where the system cannot tell (it needs Linux).
    """
    call()
    if not _STATUS.exists():
        return {}
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_MMAP_THRESHOLD, _OWN_MAPPING_BYTES)
        libc.malloc_trim(0)
    gc.collect()
    try:
        _RESET.write_text("5")
    except OSError:
        return {}
    before = _kib("VmRSS")
    call()
    return {"peak_mib": max(0, _kib("VmHWM") - before) / 1024}


def _kib(field: str) -> int:
    rows = (line.split() for line in _STATUS.read_text().splitlines())
    return next(int(row[1]) for row in rows if row and row[0] == f"{field}:")
