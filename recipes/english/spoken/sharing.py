"""Work shared out to processes of this machine, with a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, TypeVar

from rich.progress import track

from isotone.batch.environment import ONE_THREAD, environment

Task = TypeVar("Task")
Result = TypeVar("Result")


def share(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    workers: int,
    title: str,
    begin: Callable[..., None] | None = None,
    given: tuple[Any, ...] = (),
) -> list[Result]:
    """Call a function for every task; return the results in the tasks' order.

    Args:
        function: A function of a module, as other processes have to find it.
        tasks: What it is called with.
        workers: Processes, of one thread each; with one, this process does the work.
        title: Title of the progress bar.
        begin, given: Function that every process calls first, and its arguments.
    """

    def shown(results: Iterable[Result]) -> list[Result]:
        return list(track(results, description=title, total=len(tasks), transient=True))

    if workers == 1:
        if begin is not None:
            begin(*given)
        return shown(map(function, tasks))
    with environment(ONE_THREAD), ProcessPoolExecutor(workers, get_context("spawn"), begin, given) as pool:
        return shown(pool.map(function, tasks))
