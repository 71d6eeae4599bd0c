"""The tasks that a process has claimed: their jobs, and their files, which a thread writes beside the work."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Self

from isotone.batch.ledger import Entry, Ledger
from isotone.batch.plan import Planner, Task
from isotone.batch.work import Done, Job, explain

log = logging.getLogger(__name__)

#: Seconds of work that are claimed at once: a claim waits for the disk, which takes as long as a short recording.
CLAIMED_S = 0.5


class OpenTasks:
    """The tasks of a command that this process has claimed, and not yet written; a context manager.

    Results are written in the order in which they end, by one thread with a ledger of its own: meanwhile the next
    recording is worked on. At its end the block waits for all of them.

    Args:
        tasks: The tasks.
        planner: Their planner, with the ledger.
        step: Told of every recording that begins, and (None) ends.
        entries: Gets the entries of all tasks, also of those that another process has done meanwhile.
    """

    def __init__(
        self,
        tasks: Iterable[Task],
        planner: Planner,
        step: Callable[[str | None], None],
        entries: list[Entry],
    ) -> None:
        self._waiting = deque(tasks)
        self._planner, self._step, self._entries = planner, step, entries
        self._open: dict[str, Task] = {}
        self._ended: deque[str] = deque()  # still claimed: the next claim releases them
        self._begun, self._count = time.monotonic(), 0
        self._writing: deque[Future[None]] = deque()

    def __enter__(self) -> Self:
        self._writer = ThreadPoolExecutor(1)
        self._ledger = self._writer.submit(Ledger, self._planner.ledger.folder).result()
        return self

    def __exit__(self, *_: object) -> None:
        self._planner.ledger.abandon()  # the writer waits for its end
        try:
            while self._writing:
                self._writing.popleft().result()
        finally:
            self._writer.submit(self._ledger.close)
            self._writer.shutdown()

    def jobs(self) -> Iterator[Job | None]:
        """Yield the job of each task when it is claimed; those that others have claimed come last.

        Yields:
            A job; None while other processes have all that are left.
        """
        busy = 0  # tasks in a row that other processes have claimed
        while self._waiting:
            tasks = [self._waiting.popleft() for _ in range(self._share())]
            ended = [self._ended.popleft() for _ in range(len(self._ended))]
            claimed = set(self._planner.ledger.claim(*(task.entry.id for task in tasks), ended=ended))
            others = [task for task in tasks if task.entry.id not in claimed]
            self._waiting += others
            busy = busy + len(others) if not claimed else 0
            yield from (job for task in tasks if task not in others and (job := self._begin(task)))
            if busy and busy >= len(self._waiting):
                busy = 0
                yield None

    def _share(self) -> int:
        """Return the number of tasks to claim at once, of which other processes keep most."""
        rate = self._count / max(1e-3, time.monotonic() - self._begun)
        return max(1, min(int(rate * CLAIMED_S), len(self._waiting) // 4))

    def _begin(self, task: Task) -> Job | None:
        """Make the job of a claimed task; None if another process has done it meanwhile."""
        before = self._planner.ledger.entry(task.entry.id, task.entry.command)
        names = self._planner.missing(task, before)
        if before is not None and not names:
            self._entries.append(before)
            self._close(task.entry.id)
            return None
        self._open[task.entry.id] = replace(task, names=names)
        self._step(task.entry.id)
        return Job(task.entry.id, task.recording.path, tuple(names), task.inputs)

    def end(self, job: Job, done: Done) -> None:
        """Have the files of a job written with its entry, with the error if it failed, and its claim ended.

        Raises:
            LedgerError: the ledger could not be written for an earlier job.
        """
        self._count += 1
        while self._writing and self._writing[0].done():
            self._writing.popleft().result()
        self._writing.append(self._writer.submit(self._write, self._open.pop(job.id), done))

    def _write(self, task: Task, done: Done) -> None:
        path = task.recording.path
        entry = replace(
            task.entry, warnings=done.warnings, score=done.score, text=done.text, agreement=done.agreement,
            doubt=self._planner.work.doubt(done.score, done.agreement), error=done.error, analysis=done.analysis,
            verdict=done.verdict,
        )  # fmt: skip
        try:
            if not done.error:
                contents = {name: done.contents[format] for format, name in task.names.items()}
                self._ledger.write(entry, contents, overwrite=self._planner.target.overwrite)
        except Exception as error:  # of any kind: the other files go on
            log.debug("%s", path, exc_info=True)
            entry = replace(task.entry, error=explain(error, path))
        if entry.error:
            self._ledger.note(entry)
        # the ledger has the analysis: of many recordings it would fill the memory
        self._entries.append(replace(entry, analysis=None))
        self._close(entry.id)

    def _close(self, id: str) -> None:
        self._ended.append(id)
        self._step(None)
