"""Beside other work: processes that keep cores busy, and ours on several threads against ours on one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from benchmarks.harness import Bench, Peer
from benchmarks.memory import use_threads

#: Name of ours on one thread, and the largest ratio of ours on several threads to it.
ONE, TARGET = "one thread", 1.1


@contextmanager
def cores_kept_busy(count: int) -> Iterator[None]:
    """Keep cores busy by a process each, which computes and never waits."""
    command = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def against_itself(bench: Bench, threads: int) -> Bench:
    """Make the benchmark whose only peer is ours on one thread."""
    sizes = [replace(size, peers=(ONE,), targets={ONE: TARGET}, memory_mib=None) for size in bench.sizes]
    return replace(bench, peers=[Peer(ONE, _on_one(bench.ours, threads), yardstick=True)], sizes=sizes)


def _on_one(run: Callable[[Any], Any], threads: int) -> Callable[[Any], Any]:
    def on_one(inputs: Any) -> Any:
        use_threads(1)
        try:
            return run(inputs)
        finally:
            use_threads(threads)

    return on_one
