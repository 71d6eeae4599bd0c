"""Declaration and timing of benchmarks: ours and every peer in one process, in turn."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from benchmarks.memory import peak_extra_mib
from benchmarks.timing import gpu_extra_mib, interleaved, moved

#: Name of this repository's kernels among the contenders.
OURS = "isotone"
# Modules of this package that declare no benchmarks.
_HARNESS = {
    "__main__", "adapting", "aligners", "books", "busy", "corpus", "numbers", "doubt", "edges", "endtoend", "margins",
    "endtoend_peers", "excerpts", "harness", "languages", "light", "long_audio", "match", "memory", "output", "pauses",
    "presence", "processes", "profile", "search_threshold", "sections", "softdtw_blocks", "start", "streaming",
    "subtitles", "timing",
}  # fmt: skip


@dataclass(frozen=True)
class Size:
    """One size of the inputs.

    Attributes:
        dims: Its numbers, by the names that every size of a benchmark has.
        targets: Largest ratio ours / theirs, by the peer's name.
        memory_mib: Largest extra memory of ours.
        peers: Names of the peers that run at this size. Default: all.
        swept: True where it is a point of the figure.
        quick: True where it is small enough for ``--quick``.
    """

    dims: Mapping[str, int]
    targets: Mapping[str, float] = field(default_factory=dict)
    memory_mib: float | None = None
    peers: tuple[str, ...] | None = None
    swept: bool = False
    quick: bool = False

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.dims.items())


@dataclass(frozen=True)
class Peer:
    """Code from elsewhere for the same task.

    Attributes:
        name: Its name in the tables.
        run: From the inputs to a result; imports its library when it is called.
        agrees: ``(inputs, ours, theirs)`` raises AssertionError where the two results do not agree.
            Only a yardstick may have none.
        yardstick: True where it computes something else; its time is a reference all the same.
        package: Its name on PyPI; empty for code of this repository and for dependencies of isotone.
        module: Name of the imported module, where it differs from the package's.
        devices: Devices that it works on.
    """

    name: str
    run: Callable[[Any], Any]
    agrees: Callable[[Any, Any, Any], None] | None = None
    yardstick: bool = False
    package: str = ""
    module: str = ""
    devices: tuple[str, ...] = ("cpu",)

    @property
    def installed(self) -> bool:
        module = self.module or self.package.replace("-", "_")
        return not module or importlib.util.find_spec(module) is not None


@dataclass(frozen=True)
class Bench:
    """A kernel, its peers and the sizes they are compared at.

    The functions belong to modules, because they are sent to fresh processes.

    Attributes:
        name: Its name on the command line.
        about: One line about the timed task.
        inputs: From the numbers of a size to the inputs, the same ones every time.
        ours: The kernel, from the inputs to a result.
        check: ``(inputs, result)`` raises AssertionError where ours is wrong.
        peers: The peers that it is compared with.
        sizes: In the order of the table.
        axis: The number on the figure's x axis.
        gpu_sizes: Sizes on a GPU. Empty: it does not run there.
        hours: From the numbers of a size to the hours of audio that one call goes through, where it has any.
    """

    name: str
    about: str
    inputs: Callable[[Mapping[str, int]], Any]
    ours: Callable[[Any], Any]
    peers: Sequence[Peer]
    sizes: Sequence[Size]
    axis: str
    check: Callable[[Any, Any], None] | None = None
    gpu_sizes: Sequence[Size] = ()
    hours: Callable[[Mapping[str, int]], float] | None = None

    def sizes_on(self, device: str) -> Sequence[Size]:
        """Return its sizes on a kind of device, ``cpu`` or ``cuda``."""
        return self.sizes if device == "cpu" else self.gpu_sizes


@dataclass(frozen=True)
class Row:
    """Ours against one peer at one size; the fields of the JSON file.

    ``peer`` is empty, and its own fields are None, where ours ran alone. ``same_result`` is False for a peer
    that computes something else. Times are medians; the best ones show how noisy the machine was. ``held``
    and ``memory_held`` are None where there is no target. ``hours`` are those of audio in one call.
    """

    bench: str
    size: str
    axis: str
    axis_value: int
    swept: bool
    ours_ms: float
    peer: str
    peer_ms: float | None
    ratio: float | None
    target: float | None
    held: bool | None
    same_result: bool | None
    ours_best_ms: float
    peer_best_ms: float | None
    ours_mib: float | None
    peer_mib: float | None
    memory_target_mib: float | None
    memory_held: bool | None
    rounds: int
    hours: float | None = None


@dataclass
class Report:
    """Rows of a benchmark, and its failures (``"where: why"``)."""

    rows: list[Row] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def modules() -> list[str]:
    """List the modules of this package that declare benchmarks (in ``BENCHES``)."""
    package = importlib.import_module("benchmarks")
    found = sorted(info.name for info in pkgutil.iter_modules(package.__path__))
    return [name for name in found if name not in _HARNESS]


def load(module: str) -> Sequence[Bench]:
    """Load the benchmarks of one of :func:`modules`."""
    benches: Sequence[Bench] = importlib.import_module(f"benchmarks.{module}").BENCHES
    return benches


def measure(
    bench: Bench,
    sizes: Sequence[Size],
    *,
    seconds: float,
    memory: bool,
    threads: int,
    report: Report,
    device: str = "cpu",
) -> Iterator[str]:
    """Measure a benchmark and add rows and failures to ``report``.

    Before timing, ours is checked, and every peer against ours: a wrong one is a failure, and not timed.

    Args:
        bench: The benchmark.
        sizes: Its sizes to measure.
        seconds: Time per size.
        memory: Measure memory as well: of the CPU in a fresh process each, of a GPU that which torch takes.
        threads: Threads of those processes.
        report: Filled step by step, so that an interruption keeps the finished part.
        device: ``cpu`` or ``cuda``: where inputs are. Results are checked on the CPU.

    Yields:
        The current step, for a progress line.
    """
    for size in sizes:
        where = f"{bench.name} ({size})"
        yield f"{where}: warm-up"
        runs, wrong = _warmed_up(bench, size, device)
        report.failures += [f"{where}, {what}" for what in wrong]
        if OURS not in runs:
            continue
        yield f"{where}: timing {', '.join(runs)}"
        times = interleaved(runs, seconds, device)
        mib: dict[str, float] = {}
        for name, run in runs.items() if memory else ():
            yield f"{where}: memory of {name}"
            try:
                if device == "cpu":
                    mib[name] = peak_extra_mib(bench.inputs, run.func, size.dims, threads)
                else:
                    mib[name] = gpu_extra_mib(run)
            except Exception as error:
                report.failures.append(f"{where}, memory of {name}: {_one_line(error)}")
        report.rows += _rows(bench, size, times, mib)


def _warmed_up(bench: Bench, size: Size, device: str) -> tuple[dict[str, partial[Any]], list[str]]:
    """Run every contender once; return those that are right, and the reasons against the others."""
    runs: dict[str, partial[Any]] = {}
    wrong: list[str] = []
    try:
        given = bench.inputs(size.dims)
        inputs = given if device == "cpu" else moved(given, device)
        ours = moved(bench.ours(inputs), "cpu")
        if bench.check is not None:
            bench.check(given, ours)
    except Exception as error:
        return runs, [f"{OURS}: {_one_line(error)}"]
    runs[OURS] = partial(bench.ours, inputs)
    for peer in bench.peers:
        if (
            not peer.installed
            or device not in peer.devices
            or (size.peers is not None and peer.name not in size.peers)
        ):
            continue
        try:
            theirs = moved(peer.run(inputs), "cpu")
            if peer.agrees is not None:
                peer.agrees(given, ours, theirs)
        except Exception as error:
            wrong.append(f"{peer.name}: {_one_line(error)}")
            continue
        runs[peer.name] = partial(peer.run, inputs)
    return runs, wrong


def _rows(
    bench: Bench, size: Size, times: Mapping[str, list[float]], mib: Mapping[str, float]
) -> Iterator[Row]:
    medians = {name: statistics.median(of_one) for name, of_one in times.items()}
    best = {name: min(of_one) for name, of_one in times.items()}
    ours_ms, ours_mib = medians[OURS], mib.get(OURS)
    fits = None if size.memory_mib is None or ours_mib is None else ours_mib <= size.memory_mib
    timed: list[Peer | None] = [peer for peer in bench.peers if peer.name in medians]
    for peer in timed or [None]:
        name = "" if peer is None else peer.name
        peer_ms = medians.get(name)
        ratio = None if peer_ms is None else ours_ms / peer_ms
        target = size.targets.get(name)
        yield Row(
            bench=bench.name,
            size=str(size),
            axis=bench.axis,
            axis_value=size.dims[bench.axis],
            swept=size.swept,
            ours_ms=ours_ms,
            peer=name,
            peer_ms=peer_ms,
            ratio=ratio,
            target=target,
            held=None if target is None or ratio is None else ratio <= target,
            same_result=None if peer is None else not peer.yardstick,
            ours_best_ms=best[OURS],
            peer_best_ms=best.get(name),
            ours_mib=ours_mib,
            peer_mib=mib.get(name),
            memory_target_mib=size.memory_mib,
            memory_held=fits,
            rounds=len(times[OURS]),
            hours=None if bench.hours is None else bench.hours(size.dims),
        )


def _one_line(error: BaseException) -> str:
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:4]) or 'without a message'}"
