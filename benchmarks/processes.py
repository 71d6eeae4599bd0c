"""What a command takes, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple


class Spent(NamedTuple):
    """What a process took, with those that it waited for.

    Attributes:
        clock_s: Seconds by the clock.
        cpu_s: Seconds of the processor.
        mib: Its largest memory.
    """

    clock_s: float
    cpu_s: float
    mib: float


def timed(
    command: Sequence[str | Path], environment: Mapping[str, str], allowed: Container[int] = (0,)
) -> Spent:
    """Run a command, whose exit code is to be one of those that are allowed.

    Raises:
        RuntimeError: it failed; the message ends with what it printed as its error.
    """
    start = time.perf_counter()
    process = subprocess.Popen(
        [str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
    )
    assert process.stderr is not None
    with process.stderr as errors:
        said = errors.read().decode(errors="replace")
    _, status, used = os.wait4(process.pid, 0)
    clock_s = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in allowed:
        raise RuntimeError(f"{' '.join(map(str, command))} failed: {said}")
    unit = 2**20 if sys.platform == "darwin" else 2**10  # bytes there, kibibytes elsewhere
    return Spent(clock_s, used.ru_utime + used.ru_stime, used.ru_maxrss / unit)
