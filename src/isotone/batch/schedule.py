"""The schedule of a crew: each job is done once, whatever becomes of the workers."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterator

from isotone.batch.crew import Crew, Event, Finished, Lost, Ready, WorkerError
from isotone.batch.work import Done, Job

log = logging.getLogger(__name__)

#: Workers that are given a job before it fails: one that ends with a job in hand may have done so for other reasons.
ATTEMPTS = 2
#: Seconds between two questions for jobs, while there are none at the moment.
LOOK_S = 0.2

_NEXT = {False: "is tried again", True: "has failed"}


class Schedule:
    """Gives jobs to the workers of a crew, and hires others in place of those that are lost.

    Args:
        crew: The crew, without workers.
        size: Number of workers, at most.
        key: The key that every worker must have, see :class:`isotone.batch.crew.Ready`.
    """

    def __init__(self, crew: Crew, size: int, key: str) -> None:
        self.crew, self.size, self.key = crew, size, key
        self._jobs: Iterator[Job | None] = iter(())
        self._held: Job | None = None
        self._again: deque[Job] = deque()
        self._attempts: dict[str, int] = {}
        self._starting: set[int] = set()
        self._idle: deque[int] = deque()
        self._busy: dict[int, Job] = {}
        self._more = True

    def run(self, jobs: Iterator[Job | None]) -> Iterator[tuple[Job, Done]]:
        """Yield every job with its result, in the order in which they are done.

        A worker gets its next job before the last one's result is yielded. The job of a lost worker is given to
        another at the end, and fails if that one is lost too.

        Args:
            jobs: The jobs; None says that there is none at the moment, but may be later.

        Raises:
            WorkerError: no worker can be started.
        """
        self._jobs = jobs
        while True:
            none_now = self._assign()
            if not (self._busy or self._held or self._more):
                return
            if none_now and not (self._busy or self._starting):
                time.sleep(LOOK_S)
                continue
            events = self.crew.wait(LOOK_S if none_now else None)
            results = [result for event in events if (result := self._handle(event))]
            self._assign()
            yield from results

    def _assign(self) -> bool:
        """Give jobs to idle workers, and hire; return True if there are no jobs now, but may be later."""
        while self._idle or len(self._starting) + len(self._busy) < self.size:
            self._held = self._held or self._next()
            if self._held is None:
                return self._more
            if not self._idle:
                self._hire()
                return False
            job, worker = self._held, self._idle.popleft()
            self._held, self._busy[worker] = None, job
            self._attempts[job.id] = self._attempts.get(job.id, 0) + 1
            self.crew.give(worker, job)
        return False

    def _hire(self) -> None:
        """Hire as many workers as there is work for."""
        work = self.size if self._more else 1 + len(self._again) + len(self._busy)
        while len(self._starting) + len(self._busy) < min(self.size, work):
            self._starting.add(self.crew.hire())

    def _next(self) -> Job | None:
        job = None
        if self._more:
            try:
                job = next(self._jobs)
            except StopIteration:
                self._more = False
        return job if job or not self._again else self._again.popleft()

    def _handle(self, event: Event) -> tuple[Job, Done] | None:
        """Note an event; return the job that it ends."""
        if isinstance(event, Ready):
            if event.key != self.key:
                raise WorkerError(
                    "A worker has another model, other dictionaries or another isotone than this process: install the "
                    "same everywhere, and keep files on a disk that all workers share."
                )
            self._starting.discard(event.worker)
            self._idle.append(event.worker)
            return None
        if isinstance(event, Finished):
            self._idle.append(event.worker)
            return self._ended(event.worker, event.done)
        return self._replace(event)

    def _replace(self, event: Lost) -> tuple[Job, Done] | None:
        """Note that a worker is lost; one that could not begin gets no successor."""
        if event.worker in self._starting:
            self._starting.discard(event.worker)
            self.size -= 1
            if not (self._starting or self._idle or self._busy):
                raise WorkerError(f"No worker can be started: {event.reason}.")
            log.warning("A worker could not begin (%s): the work goes on with fewer.", event.reason)
            return None
        job = self._busy.get(event.worker)
        if job is None:
            self._idle.remove(event.worker)
            log.warning("A worker was lost (%s).", event.reason)
            return None
        last = self._attempts[job.id] == ATTEMPTS
        log.warning("A worker was lost (%s) with %s, which %s.", event.reason, job.id, _NEXT[last])
        if last:
            reason = f"{ATTEMPTS} workers ended while they had it, the last as follows: {event.reason}"
            return self._ended(event.worker, Done({}, error=reason))
        self._again.append(self._busy.pop(event.worker))
        return None

    def _ended(self, worker: int, done: Done) -> tuple[Job, Done]:
        job = self._busy.pop(worker)
        del self._attempts[job.id]
        return job, done
