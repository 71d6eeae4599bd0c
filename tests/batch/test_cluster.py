"""A cluster of two nodes on this machine: a worker that is killed loses nothing, and nothing is done twice."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from isotone.batch import Target, Workers
from isotone.batch.runs import run
from isotone.batch.work import Done, Job
from tests.batch.parts import Echo, say, tree

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own
FILES = 24


class Noted(Echo):
    """Notes the process of every recording that it begins."""

    def __init__(self, log: Path, both: bool) -> None:
        super().__init__()
        self.log, self.both = log, both

    def run(self, job: Job, samples: np.ndarray) -> Done:
        with self.log.open("a") as file:
            file.write(f"{os.getpid()} {job.id}\n")
        # both begin before one can end, however long a machine takes to start them
        end = time.monotonic() + 60
        while self.both and len({line.split()[0] for line in self.log.read_text().splitlines()}) < 2:
            assert time.monotonic() < end, "only one worker"
            time.sleep(0.02)
        time.sleep(0.02)
        return super().run(job, samples)


def noted(log: Path, both: bool = True) -> Noted:
    work = Noted(log, both)
    work.open(("textgrid",))
    return work


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a cluster of two nodes with one core each."""
    pytest.importorskip("ray", reason="Ray is not installed")
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        cluster.add_node(num_cpus=1)
        yield cluster.address
    finally:
        ray.shutdown()
        cluster.shutdown()


def killed_when(log: Path, lines: int) -> threading.Thread:
    """Kill the worker that began last when so many recordings are begun."""

    def kill() -> None:
        while log.read_text().count("\n") < lines:
            time.sleep(0.01)
        os.kill(int(log.read_text().split("\n")[-2].split()[0]), signal.SIGKILL)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    return thread


def test_a_worker_that_is_killed_loses_nothing(tmp_path: Path, address: str) -> None:
    for i in range(FILES):
        say(tmp_path / f"in/s{i % 3}/u{i:02}.wav", "bad" if i == 5 else f"text {i}")
    log = tmp_path / "log"
    log.touch()
    killer = killed_when(log, FILES // 2)
    begin: Callable[[], Noted] = partial(noted, log)
    outcome = run([tmp_path / "in"], Target(tmp_path / "out"), begin, workers=Workers(cluster=address))
    killer.join(10)
    assert (outcome.done, len(outcome.errors)) == (FILES - 1, 1)
    begun = [line.split() for line in log.read_text().splitlines()]
    assert len({process for process, _ in begun}) >= 2, (
        "two workers, and perhaps one in place of the killed one"
    )
    again = [id for id, times in Counter(id for _, id in begun).items() if times > 1]
    assert len(again) <= 1, "at most the recording in hand is begun twice"
    # one process gives the same files
    run([tmp_path / "in"], Target(tmp_path / "alone"), partial(noted, tmp_path / "other", both=False))
    assert tree(tmp_path / "alone") == tree(tmp_path / "out")
    # nothing is left to do
    assert run([tmp_path / "in"], Target(tmp_path / "out"), begin).there == FILES - 1


def test_a_cluster_that_is_not_there_is_said(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    say(tmp_path / "in/a.wav", "a")
    with pytest.raises(OSError, match=r"No cluster of Ray at 'nowhere'"):
        run(
            [tmp_path / "in"],
            Target(tmp_path / "out"),
            partial(noted, tmp_path / "l"),
            workers=Workers(cluster="nowhere"),
        )
