"""The time of ``isotone align`` by its parts: ``python -m benchmarks.profile LIBRISPEECH [--limit N]``.

The command runs in a process of its own on one thread, once on the recording whose length is closest to three seconds
and once on all. Each part counts what it takes itself, without the parts that it calls; imports count as such wherever
they happen. Seconds of the processor, and by the clock; what is compiled is in the caches.
"""

from __future__ import annotations

import argparse
import builtins
import functools
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: The functions of each part: module, and the name there.
PARTS = {
    "model: load, build": [("isotone.batch.options", "Options.aligning")],
    "plan, digests": [("isotone.batch.plan", "Planner.plan")],
    "ledger: claims": [("isotone.batch.database", "Database.claim")],
    "audio": [("isotone.audio", "load")],
    "transcripts": [("isotone.batch.speech", "read_passages")],
    "text, pronunciations": [("isotone.pipeline.forced", "ForcedPipeline.encode")],
    "features": [("isotone.model.onnx_model", "_Encoder.inputs")],
    "encoder": [("isotone.model.onnx_model", "_Session.__call__")],
    "heads, mixture": [("isotone.pipeline.emitter", "Emitter.__call__")],
    "graphs of texts": [
        ("isotone.pipeline.placing", "Placer.targets"),
        ("isotone_ctc.align", "with_fillers"),
        ("isotone_ottc.align", "with_fillers"),
    ],
    "guide": [("isotone.pipeline.placing", "Placer.guided")],
    "times": [("isotone.pipeline.placing", "Placer.__call__")],
    "edges": [("isotone.pipeline.placing", "Placer.with_edges")],
    "scores, tiers": [("isotone.pipeline.forced", "results")],
    "boundaries": [("isotone.audio.boundaries", "moved_edges")],
    "doubt": [("isotone.pipeline.forced", "agreements")],
    "presence": [("isotone.pipeline.forced", "evidences")],
    "analysis": [("isotone.batch.speech", "measured")],
    "files: make, write": [("isotone.batch.speech", "_Speech._done"), ("isotone.batch.ledger", "Ledger.write")],
    "lists at the end": [("isotone.batch.runs", "write_lists")],
}  # fmt: skip
REST = "the rest"


class Clock:
    """Seconds by part; the innermost open part counts."""

    def __init__(self) -> None:
        self.spent: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        self.open = [REST]
        self.last = time.process_time(), time.perf_counter()

    def tick(self) -> None:
        """Give the time since the last call to the open part."""
        now = time.process_time(), time.perf_counter()
        own = self.spent[self.open[-1]]
        for i in range(2):
            own[i] += now[i] - self.last[i]
        self.last = now

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count what happens inside for a part."""
        self.tick()
        self.open.append(name)
        try:
            yield
        finally:
            self.tick()
            self.open.pop()

    def counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function of a part."""

        @functools.wraps(function)
        def wrapped(*arguments: Any, **options: Any) -> Any:
            with self.part(name):
                return function(*arguments, **options)

        return wrapped


def watch(clock: Clock) -> None:
    """Count imports from now on, and the functions of :data:`PARTS`."""
    plain = builtins.__import__

    def importing(*arguments: Any, **options: Any) -> Any:
        if clock.open[-1] == "imports":
            return plain(*arguments, **options)
        with clock.part("imports"):
            return plain(*arguments, **options)

    builtins.__import__ = importing
    with clock.part("imports"):
        for part, functions in PARTS.items():
            for module, name in functions:
                *owners, last = name.split(".")
                owner = functools.reduce(getattr, owners, importlib.import_module(module))
                setattr(owner, last, clock.counted(part, getattr(owner, last)))


def inside(folder: str, out: str) -> None:
    """Run the command in this process, and print the seconds of its parts as JSON."""
    clock = Clock()
    watch(clock)
    with clock.part("imports"):
        from isotone.cli import app
    app(["align", folder, "--out", out], standalone_mode=False)
    clock.tick()
    sys.stdout.write("\n" + json.dumps(clock.spent))


def profiled(folder: Path) -> dict[str, list[float]]:
    """Run the command on a folder in a process of its own; return processor and clock seconds by part."""
    from isotone.batch.environment import ONE_THREAD

    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "benchmarks.profile", "--inside", str(folder), out]
        environment = {**os.environ, **ONE_THREAD}
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, list[float]] = json.loads(ran.stdout.splitlines()[-1])
    return found


def table(first: dict[str, list[float]], many: dict[str, list[float]], count: int) -> str:
    """Make the table: seconds of one file, milliseconds per file of many less what one file has to start with."""
    lines = [
        f"| part | one file: CPU s | clock s | {count} files: CPU ms per file | clock ms per file |",
        "|---|---|---|---|---|",
    ]
    zero = [0.0, 0.0]

    def row(name: str, one: Sequence[float], all: Sequence[float]) -> str:
        return f"| {name} | {one[0]:.2f} | {one[1]:.2f} | {1e3 * all[0] / count:.1f} | {1e3 * all[1] / count:.1f} |"

    names = sorted({*first, *many}, key=lambda name: -many.get(name, zero)[0])
    lines += [row(name, first.get(name, zero), many.get(name, zero)) for name in names]
    totals = [[sum(column) for column in zip(*spent.values())] for spent in (first, many)]
    return "\n".join([*lines, row("all", *totals)])


def main() -> None:
    """Run the measurement."""
    from benchmarks.endtoend import FIRST_S, RATE, copies, written

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="recordings with transcripts")
    parser.add_argument("--limit", type=int, help="most recordings (default: all)")
    given = parser.parse_args()
    recordings = copies(given.folder, given.limit)
    short = min(recordings, key=lambda one: abs(len(one[1]) / RATE - FIRST_S))
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        written(root / "first", [short])
        written(root / "all", recordings)
        profiled(root / "first")  # what is compiled comes into the caches
        print(table(profiled(root / "first"), profiled(root / "all"), len(recordings)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        inside(*sys.argv[2:4])
    else:
        main()
