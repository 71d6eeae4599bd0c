"""Crews: workers that each hold a command's work, in this process, in others, or on other machines."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, TypeVar

from isotone.batch.work import Done, Job, Work, explain

log = logging.getLogger(__name__)

T = TypeVar("T")

#: Seconds of recordings that are done at once: what is done is written sooner, and takes less memory.
AT_ONCE_S = 120.0

#: Makes the work of a command. Workers elsewhere get it pickled: it is a class or function of a module, or a
#: ``functools.partial`` of one.
Begin = Callable[[], Work]


class WorkerError(OSError):
    """No worker can be started; the message says why."""


@dataclass(frozen=True)
class Ready:
    """A worker has its model. ``key`` is its work's :meth:`Work.key` of no inputs, which tells models apart."""

    worker: int
    key: str


@dataclass(frozen=True)
class Finished:
    """A worker has done its job."""

    worker: int
    done: Done


@dataclass(frozen=True)
class Lost:
    """A worker has ended, and does not come back: it was killed, its machine is gone, or it could not begin."""

    worker: int
    reason: str


Event = Ready | Finished | Lost


class Crew(ABC):
    """Workers, by number; a context manager that ends them all."""

    @abstractmethod
    def hire(self) -> int:
        """Start a worker, and return its number. It is told by :class:`Ready` or :class:`Lost`."""

    @abstractmethod
    def give(self, worker: int, job: Job) -> None:
        """Give a job to a ready worker that has none. It is told by :class:`Finished` or :class:`Lost`."""

    @abstractmethod
    def wait(self, seconds: float | None) -> list[Event]:
        """Wait for events: at most so many seconds, or (None) until there is one."""

    def watch(self, on_part: Callable[[float], None]) -> None:
        """Report the share of a long recording that is done, where it can be known."""
        return

    def close(self) -> None:
        """End all workers, at once."""
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def perform(work: Work, job: Job) -> Done:
    """Do a job; an error of any kind becomes that of the recording."""
    return _tried(job, lambda: work.run(job, work.load(job.path)))


def _tried(job: Job, do: Callable[[], T]) -> T | Done:
    """Do something for a job; an error of any kind becomes that of the recording."""
    try:
        return do()
    except Exception as error:
        log.debug("%s", job.path, exc_info=True)
        return Done({}, error=explain(error, job.path))


class Here(Crew):
    """This process, with work that it has already, as so many workers as it does recordings at once."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self._events: deque[Event] = deque()
        self._jobs: dict[int, Job] = {}
        self._hired = 0

    def hire(self) -> int:
        """See :meth:`Crew.hire`."""
        self._events.append(Ready(self._hired, key_of(self.work)))
        self._hired += 1
        return self._hired - 1

    def give(self, worker: int, job: Job) -> None:
        """See :meth:`Crew.give`; the work is done by :meth:`wait`."""
        self._jobs[worker] = job

    def wait(self, seconds: float | None) -> list[Event]:
        """See :meth:`Crew.wait`; it takes as long as some of the jobs."""
        self._events += self._done()
        events = list(self._events)
        self._events.clear()
        return events

    def _done(self) -> Iterator[Finished]:
        """Do the first jobs, as many as are short enough together."""
        work, loaded = self.work, dict[int, tuple[Job, Any]]()
        left_s = AT_ONCE_S
        while self._jobs and left_s > 0:
            worker = next(iter(self._jobs))
            job = self._jobs.pop(worker)
            samples = _tried(job, partial(work.load, job.path))
            if isinstance(samples, Done):
                yield Finished(worker, samples)
                continue
            loaded[worker] = job, samples
            left_s -= len(samples) / work.sample_rate
        found: Sequence[Done | None] = [None] * len(loaded)
        if len(loaded) > 1:
            try:
                found = work.run_all(*zip(*loaded.values()))
            except Exception:  # whose it is shows where each is done by itself
                log.debug("%d recordings at once", len(loaded), exc_info=True)
        for (worker, (job, samples)), done in zip(loaded.items(), found):
            yield Finished(worker, _tried(job, partial(work.run, job, samples)) if done is None else done)

    def watch(self, on_part: Callable[[float], None]) -> None:
        """See :meth:`Crew.watch`."""
        self.work.watch(on_part)


def key_of(work: Work) -> str:
    """Compute the key of no inputs: that of the model, the options and isotone's version."""
    none: Mapping[str, str] = {}
    return work.key(none)
