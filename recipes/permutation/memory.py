"""Peak memory of a piece of work in this process."""

from __future__ import annotations

import contextlib
from pathlib import Path


def mark() -> float | None:
    """Reset the system's high-water mark; return the memory in use in MiB, None where that cannot be done."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
        return _mib("VmRSS")
    return None


def peak_mib(before: float | None) -> float | None:
    """Return the peak since :func:`mark` beyond what it found in use, MiB; what was freed before may be used again."""
    return None if before is None else max(0.0, _mib("VmHWM") - before)


def _mib(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(f"{field}:")).split()[1]) / 1024
