"""Workers in processes of this machine, one thread each."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from multiprocessing import connection, get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

from isotone.batch.crew import Begin, Crew, Event, Finished, Lost, Ready, key_of, perform
from isotone.batch.environment import ONE_THREAD, environment
from isotone.batch.work import Job, explain


class Processes(Crew):
    """Workers that are processes: each is started anew and loads the model by itself.

    Scripts that use them need ``if __name__ == "__main__":`` around what they do, as for all such processes.

    Args:
        begin: Makes the work; it is pickled.
    """

    def __init__(self, begin: Begin) -> None:
        self._begin = begin
        self._context = get_context("spawn")
        self._workers: dict[int, tuple[SpawnProcess, Connection]] = {}
        self._hired = 0

    def hire(self) -> int:
        """See :meth:`Crew.hire`."""
        ours, theirs = self._context.Pipe()
        number = self._hired
        process = self._context.Process(target=_serve, args=(number, theirs, self._begin), daemon=True)
        with environment(ONE_THREAD):
            process.start()
        theirs.close()
        self._workers[number] = process, ours
        self._hired += 1
        return number

    def give(self, worker: int, job: Job) -> None:
        """See :meth:`Crew.give`."""
        with suppress(OSError):  # it may just have ended: the next wait says so
            self._workers[worker][1].send(job)

    def wait(self, seconds: float | None) -> list[Event]:
        """See :meth:`Crew.wait`."""
        pipes = {pipe: number for number, (_, pipe) in self._workers.items()}
        return [self._told(pipes[pipe]) for pipe in connection.wait(list(pipes), seconds)]  # type: ignore[index]

    def _told(self, worker: int) -> Event:
        process, pipe = self._workers[worker]
        try:
            event: Event = pipe.recv()
        except (EOFError, OSError):
            process.join()
            event = Lost(worker, _ending(process.exitcode))
        if isinstance(event, Lost):
            self._end(worker)
        return event

    def _end(self, worker: int) -> None:
        process, pipe = self._workers.pop(worker)
        pipe.close()
        process.kill()
        process.join()
        process.close()

    def close(self) -> None:
        """See :meth:`Crew.close`."""
        for worker in list(self._workers):
            self._end(worker)


def _ending(code: int | None) -> str:
    """Describe the end of a process by its exit code."""
    if code is not None and code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return f"the process was ended by {name}" + (", as when memory is short" if name == "SIGKILL" else "")
    return f"the process ended with exit code {code}"


def _serve(number: int, pipe: Connection, begin: Begin) -> None:
    """Do jobs until the pipe is closed, or the process that gives them ends."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches all processes; the one that gives jobs ends them
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        work = begin()
        event: Event = Ready(number, key_of(work))
    except Exception as error:
        pipe.send(Lost(number, explain(error)))
        return
    pipe.send(event)
    try:
        while True:
            pipe.send(Finished(number, perform(work, pipe.recv())))
    except (EOFError, OSError):
        return


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
