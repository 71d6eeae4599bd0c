"""Schedules: each job is done once, whatever becomes of the workers, and a run ends."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.batch import Target, Workers, schedule
from isotone.batch.crew import Crew, Event, Finished, Lost, Ready, WorkerError
from isotone.batch.processes import Processes
from isotone.batch.runs import run
from isotone.batch.schedule import ATTEMPTS, Schedule
from isotone.batch.work import Done, Job
from tests.batch.parts import Echo, say, tree


class Fickle(Crew):
    """Workers without processes: lost where a plan says so, and told of in an order that it says.

    Attributes:
        given: The jobs that workers were given.
        most: The most workers at once.
    """

    def __init__(self, fate: Iterator[int], deadly: Collection[str] = (), key: str = "key") -> None:
        self.fate, self.deadly, self.key = fate, deadly, key
        self.given: list[str] = []
        self.most = 0
        self._events: list[Event] = []
        self._alive: set[int] = set()
        self._hired = 0

    def hire(self) -> int:
        self._hired += 1
        lost = next(self.fate) == 0
        self._events.append(Lost(self._hired, "no memory") if lost else Ready(self._hired, self.key))
        if not lost:
            self._alive.add(self._hired)
        self.most = max(self.most, len(self._alive))
        return self._hired

    def give(self, worker: int, job: Job) -> None:
        assert worker in self._alive
        self.given.append(job.id)
        if next(self.fate) == 1 or job.id in self.deadly:
            self._alive.remove(worker)
            self._events.append(Lost(worker, "killed"))
        else:
            self._events.append(Finished(worker, Done({}, text=job.id)))

    def wait(self, seconds: float | None) -> list[Event]:
        assert self._events, "it would wait for ever"
        return [self._events.pop(next(self.fate) % len(self._events))]


def jobs(count: int, gaps: Collection[int] = ()) -> Iterator[Job | None]:
    for i in range(count):
        if i in gaps:
            yield None
        yield Job(f"u{i}", Path(f"u{i}"), ())


@given(
    count=st.integers(0, 12),
    size=st.integers(1, 4),
    fates=st.lists(st.integers(0, 30), max_size=60),
    gaps=st.sets(st.integers(0, 11)),
)
def test_every_job_is_done_once(count: int, size: int, fates: list[int], gaps: set[int]) -> None:
    crew = Fickle(iter([*fates, *[7] * 500]))
    schedule.LOOK_S, before = 0.0, schedule.LOOK_S
    try:
        found = list(Schedule(crew, size, "key").run(jobs(count, gaps)))
    except WorkerError:
        assert 0 in fates, "only where no worker could begin"
        return
    finally:
        schedule.LOOK_S = before
    assert Counter(job.id for job, _ in found) == Counter(f"u{i}" for i in range(count))
    times = Counter(crew.given)
    for job, done in found:
        # a result is that of the last attempt; without one all attempts were made
        assert done.text == job.id or (done.error and times[job.id] == ATTEMPTS)
    assert max(times.values(), default=0) <= ATTEMPTS
    assert crew.most <= size


def test_a_job_that_ends_its_workers_fails_and_the_others_do_not() -> None:
    crew = Fickle(iter([7] * 200), deadly={"u3"})
    found = {job.id: done for job, done in Schedule(crew, 2, "key").run(jobs(8))}
    assert [id for id, done in found.items() if done.error] == ["u3"]
    assert found["u3"].error == "2 workers ended while they had it, the last as follows: killed"
    assert len(crew.given) == 9


def test_workers_that_cannot_begin_or_have_another_model_end_the_run() -> None:
    with pytest.raises(WorkerError, match="No worker can be started: no memory"):
        list(Schedule(Fickle(iter([0] * 9)), 2, "key").run(jobs(3)))
    with pytest.raises(WorkerError, match="another model"):
        list(Schedule(Fickle(iter([7] * 9), key="other"), 2, "key").run(jobs(3)))


class Deadly(Echo):
    """Ends its process at a recording with the text ``once``, the first time."""

    def run(self, job: Job, samples: np.ndarray) -> Done:
        seen = job.path.with_suffix(".seen")
        if job.path.with_suffix(".txt").read_text() == "once" and not seen.exists():
            seen.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().run(job, samples)


def deadly(reason: str = "") -> Deadly:
    if reason:
        raise ValueError(reason)
    work = Deadly()
    work.open(("textgrid",))
    return work


def test_processes_share_the_work_and_the_end_of_one_is_survived(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name, text in {"a": "a", "b": "once", "c": "bad", "e": "e"}.items():
        say(tmp_path / f"in/{name}.wav", text)
    run([tmp_path / "in"], Target(tmp_path / "out"), deadly, workers=Workers(2))
    reason = "the process was ended by SIGKILL, as when memory is short"
    assert caplog.messages == [f"A worker was lost ({reason}) with b, which is tried again."]
    # one process gives the same files
    run([tmp_path / "in"], Target(tmp_path / "alone"), deadly)
    assert tree(tmp_path / "alone") == tree(tmp_path / "out")
    assert sorted(tree(tmp_path / "out")) == ["a.TextGrid", "b.TextGrid", "e.TextGrid", "errors.jsonl"]


def test_a_process_that_cannot_begin_says_why() -> None:
    with Processes(partial(deadly, "no model")) as crew:
        assert (crew.hire(), crew.wait(None)) == (0, [Lost(0, "no model")])
