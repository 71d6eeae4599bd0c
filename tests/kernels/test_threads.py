"""Compiled loops on torch's threads: every task once, failures come out, forked processes and other builds too."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from numba import njit

from isotone.kernels.native import openmp
from isotone.kernels.threads import each_run, each_task

_ENOUGH = 10**9  # cells that are worth threads


@njit(nogil=True)
def _square(task: int, out: np.ndarray) -> None:
    out[task] += task * task


@pytest.fixture(autouse=True)
def _two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture(params=["torch's threads", "Python's threads"])
def _either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "Python's threads":
        monkeypatch.setattr(openmp, "parallel", lambda: None)
    elif openmp.parallel() is None:
        pytest.skip("this torch has no OpenMP that takes work from outside")


@pytest.mark.usefixtures("_either")
@pytest.mark.parametrize("tasks", [0, 1, 2, 7, 1000])
def test_every_task_is_done_once(tasks: int) -> None:
    out = np.zeros(tasks)
    each_task(_square, tasks, _ENOUGH, out)
    np.testing.assert_array_equal(out, np.arange(tasks) ** 2.0)


@pytest.mark.usefixtures("_either")
@pytest.mark.parametrize(
    ("parts", "cells"), [(0, 0), (7, 10**9), (1000, 1000), (1000, 10**7), (1001, 3 * 10**7)]
)
def test_every_part_is_in_one_run(parts: int, cells: int) -> None:
    runs: list[range] = []

    def some(task: int, run: int) -> None:
        runs.append(range(parts)[task * run : (task + 1) * run])

    each_run(some, parts, cells)
    assert sorted(place for run in runs for place in run) == list(range(parts))
    assert all(len(run) for run in runs)
    # a part that is much is a task, and a million cells are few
    assert not parts or len(runs) == {10**9: 7, 1000: 1, 10**7: 50, 3 * 10**7: 167}[cells]


@pytest.mark.usefixtures("_either")
def test_two_threads_work_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=20)

    def meet(_task: int) -> None:
        both.wait()  # breaks where one thread has to do both

    each_task(meet, 2, _ENOUGH)


def test_little_work_stays_on_its_thread() -> None:
    seen: set[int] = set()

    def note(_task: int) -> None:
        seen.add(threading.get_ident())
        time.sleep(0.001)

    each_task(note, 20, 100)
    assert seen == {threading.get_ident()}


@pytest.mark.usefixtures("_either")
def test_a_failure_comes_out() -> None:
    def fail(task: int) -> None:
        time.sleep(0.001)
        if task == 3:
            raise ZeroDivisionError("task 3")

    with pytest.raises(ZeroDivisionError, match="task 3"):
        each_task(fail, 8, _ENOUGH)
    out = np.zeros(5)
    each_task(_square, 5, _ENOUGH, out)  # the threads are fine
    assert out[4] == 16


@pytest.mark.usefixtures("_either")
def test_tasks_may_be_shared_out_from_several_threads_at_once() -> None:
    outs = [np.zeros(300) for _ in range(4)]
    callers = [threading.Thread(target=each_task, args=(_square, 300, _ENOUGH, out)) for out in outs]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(20)
        assert not caller.is_alive()
    for out in outs:
        np.testing.assert_array_equal(out, np.arange(300) ** 2.0)


def _in_child(queue: object) -> None:
    torch.set_num_threads(2)
    out = np.zeros(50)
    each_task(_square, 50, _ENOUGH, out)
    queue.put(out.sum())  # type: ignore[attr-defined]


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this system")
def test_a_forked_process_has_threads_too() -> None:
    each_task(_square, 50, _ENOUGH, np.zeros(50))  # the parent's threads have been used
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    child.join(60)
    if child.is_alive():
        child.kill()
        pytest.fail("the forked process hangs")
    assert queue.get() == (np.arange(50) ** 2.0).sum()
