"""Compiled loops on several threads."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from isotone.kernels.native import openmp

# With fewer cells (half a millisecond of work), waking threads costs more than it saves.
SERIAL_CELLS = 1_000_000

# A call from Python takes 3 us and holds Python's lock: a task is worth it from so many cells on.
_TASK_CELLS = 200_000


def each_task(loop: Callable[..., None], tasks: int, cells: int, *arguments: Any) -> None:
    """Call ``loop(task, *arguments)`` for every task, on several threads (:func:`thread_count`).

    Threads take the next task when they are done with one, so a core that is busy elsewhere does not delay the others.

    They are torch's own threads. Unless they sleep (:mod:`isotone.kernels.waiting`), these spin for a millisecond or
    two after an operation, and other threads beside them would get half of a core. (numba's parallel loops have a
    pool of their own. It also ends a forked process whose parent has used it.) Where torch's threads cannot be had, or
    torch is not imported, they are Python's.

    Args:
        loop: Releases Python's lock. What it writes must depend on its task only.
        tasks: Their number.
        cells: Total amount of work, about half a nanosecond each: little of it runs on one thread.
        arguments: Passed on.
    """
    numbers = iter(range(tasks))
    failures: list[BaseException] = []

    def work(_: Any = None) -> None:
        try:
            for task in numbers:
                loop(task, *arguments)
        except BaseException as failure:  # nothing can be raised through torch's threads
            failures.append(failure)

    threads = min(thread_count(), tasks)
    if threads <= 1 or cells < SERIAL_CELLS:
        work()
    elif (parallel := openmp.parallel()) is None:
        with ThreadPoolExecutor(threads) as pool:
            for _ in range(threads):
                pool.submit(work)
    else:
        parallel(work, threads)
    if failures:
        raise failures[0]


def thread_count() -> int:
    """Return torch's number of threads; where torch is not imported that of ``OMP_NUM_THREADS``, or of the cores."""
    if torch := sys.modules.get("torch"):
        return int(torch.get_num_threads())
    given = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if given.isdecimal() and int(given):
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def each_run(loop: Callable[..., None], parts: int, cells: int, *arguments: Any) -> None:
    """Call ``loop(task, run, *arguments)``, each task being ``run`` parts: as many as are worth a task."""
    run = max(1, parts * _TASK_CELLS // max(1, cells))
    each_task(loop, -(-parts // run), cells, run, *arguments)
