"""Compiled loops on several threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

# Below so many cells (half a millisecond of work), starting threads costs more than it saves.
_SERIAL_CELLS = 1_000_000


def each_task(loop: Callable[..., None], tasks: int, cells: int, *arguments: Any) -> None:
    """Call ``loop(task, *arguments)`` for every task, on ``torch.get_num_threads()`` Python threads.

    Threads take the next task when they are done with one, so that a core that is busy elsewhere does not
    hold the others up. (numba's parallel loops run on OpenMP, which ends a forked process whose parent has
    used them; these threads end with the call.)

    Args:
        loop: Releases the GIL. What it writes must depend on its task only.
        tasks: Their number.
        cells: Amount of work in all, about half a nanosecond each: with little of it there is one thread.
        arguments: Passed on.
    """
    numbers = iter(range(tasks))

    def work() -> None:
        for task in numbers:
            loop(task, *arguments)

    threads = min(torch.get_num_threads(), tasks)
    if threads <= 1 or cells < _SERIAL_CELLS:
        work()
        return
    with ThreadPoolExecutor(threads - 1) as pool:
        others = [pool.submit(work) for _ in range(threads - 1)]
        work()
        for other in others:
            other.result()
