"""The memory that one call takes beyond its inputs, measured in a process of its own."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import resource
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from isotone.batch.environment import environment

# Blocks from this size on come from the system and go back to it when they are freed. So memory freed before
# the call cannot hide memory that the call takes. (By default the C library raises this bound over time.)
_OWN_MAPPING_BYTES = 65_536
# Of the server that processes are forked from: it starts at the first measurement.
_ALLOCATION = dict.fromkeys(("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"), str(_OWN_MAPPING_BYTES))
_NO_HUGE_PAGES = 41  # PR_SET_THP_DISABLE: a touched page counts as 4 KiB, not 2 MiB


def peak_extra_mib(
    inputs: Callable[[Mapping[str, int]], Any],
    run: Callable[[Any], Any],
    dims: Mapping[str, int],
    threads: int,
) -> float:
    """Measure the peak resident memory of one call, less that before it, in MiB: result and intermediate values.

    A fresh process builds the inputs and calls once, so that libraries and compiled code are loaded; returns
    the freed memory to the system; resets its high-water mark, and calls again.

    Args:
        inputs, run: Functions of modules, as of :class:`benchmarks.harness.Bench`.
        dims: The size.
        threads: Threads of torch and numba.

    Raises:
        concurrent.futures.process.BrokenProcessPool: the process was killed, for lack of memory for instance.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "numba", "isotone.types"])
    with environment(_ALLOCATION), ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_measure, inputs, run, dims, threads).result()


def use_threads(threads: int) -> None:
    """Give torch and numba so many threads in this process."""
    import numba
    import torch

    torch.set_num_threads(threads)
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))


def _measure(
    inputs: Callable[[Mapping[str, int]], Any],
    run: Callable[[Any], Any],
    dims: Mapping[str, int],
    threads: int,
) -> float:
    use_threads(threads)
    built = inputs(dims)
    run(built)
    gc.collect()
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.prctl(_NO_HUGE_PAGES, 1, 0, 0, 0)
        if hasattr(libc, "malloc_trim"):
            libc.malloc_trim(0)
    before = _reset_peak()
    result = run(built)
    after = _peak()
    del result
    return max(0, after - before) / 2**20


def _reset_peak() -> int:
    """Reset the high-water mark where the system can; return its value in bytes."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass
    else:
        return _status("VmRSS")
    return _peak()


def _peak() -> int:
    if Path("/proc/self/status").exists():
        return _status("VmHWM")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"Expected {field} in /proc/self/status; this system does not have it.")
