"""Compiled loops on several threads."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

# Below so many cells (half a millisecond of work), waking threads costs more than it saves.
_SERIAL_CELLS = 1_000_000

# A call from Python takes 3 us, with its lock held: a task is worth so many cells at least.
_TASK_CELLS = 200_000

_BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def each_task(loop: Callable[..., None], tasks: int, cells: int, *arguments: Any) -> None:
    """Call ``loop(task, *arguments)`` for every task, on ``torch.get_num_threads()`` threads.

    Threads take the next task when they are done with one, so that a core that is busy elsewhere does not
    hold the others up.

    They are torch's own: after an operation its threads spin for a millisecond or two, waiting for the next one, and
    others beside them would get half of a core. (numba's parallel loops have a pool of their own, which moreover
    ends a forked process whose parent has used it.)

    Args:
        loop: Releases the GIL. What it writes must depend on its task only.
        tasks: Their number.
        cells: Amount of work in all, about half a nanosecond each: with little of it there is one thread.
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

    threads = min(torch.get_num_threads(), tasks)
    if threads <= 1 or cells < _SERIAL_CELLS:
        work()
    elif _parallel is None:
        with ThreadPoolExecutor(threads) as pool:
            for _ in range(threads):
                pool.submit(work)
    else:
        _parallel(_BODY(work), None, threads, 0)
    if failures:
        raise failures[0]


def each_run(loop: Callable[..., None], parts: int, cells: int, *arguments: Any) -> None:
    """:func:`each_task` with ``loop(task, run, *arguments)`` for every ``run`` parts, as many as are worth a task."""
    run = max(1, parts * _TASK_CELLS // max(1, cells))
    each_task(loop, -(-parts // run), cells, run, *arguments)


def _find_parallel() -> Any:
    """OpenMP's ``GOMP_parallel(body, data, threads, flags)`` as torch has it; None where it has none."""
    for name in ("libtorch_cpu.so", "libtorch_cpu.dylib"):
        try:  # a library's functions include those of the libraries it is linked with
            call = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / name)).GOMP_parallel
        except (OSError, AttributeError):
            continue
        call.argtypes, call.restype = [_BODY, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint], None
        return call
    return None


def _after_fork() -> None:
    """The child of a fork has the memory of OpenMP's threads without the threads, and would wait for them."""
    global _parallel
    _parallel = None


_parallel = _find_parallel()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
