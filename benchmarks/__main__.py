"""``python -m benchmarks``: the command line of the benchmarks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from benchmarks import harness, output
from benchmarks.busy import against_itself, cores_kept_busy
from benchmarks.harness import Bench, Report, Size
from benchmarks.memory import use_threads

_NO_MEASUREMENT = "By --quick, with one small size of each: a smoke test, no measurement."

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
out = Console(width=None if Console().is_terminal else 150)
err = Console(stderr=True)


@app.command()
def main(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...", help="Benchmarks or modules of them; --list shows them all. Default: all."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="One small size of each: a smoke test, no measurement.")
    ] = False,
    sizes: Annotated[
        list[str] | None,
        typer.Option(
            help="Other sizes, as n=5000,m=400; repeat for several. For the benchmarks that have these numbers.",
        ),
    ] = None,
    json: Annotated[Path | None, typer.Option(help="File for the rows: a JSON list.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="File for a table.")] = None,
    device: Annotated[str, typer.Option(help="cpu, or cuda: at a GPU's sizes.")] = "cpu",
    figures: Annotated[Path | None, typer.Option(help="Folder for cost against size.")] = None,
    memory: Annotated[
        bool, typer.Option(help="Measure memory too, every call in a process of its own.")
    ] = True,
    threads: Annotated[
        int, typer.Option(min=1, help="Threads of torch and numba, for ours and peers alike.")
    ] = 2,
    seconds: Annotated[
        float, typer.Option(min=0, help="How long to time at one size; at least 3 rounds.")
    ] = 4.0,
    busy: Annotated[
        int, typer.Option(min=0, help="Processes that keep a core busy meanwhile; the peer is one thread.")
    ] = 0,
    show: Annotated[
        bool, typer.Option("--list", help="Show benchmarks, peers and sizes; run nothing.")
    ] = False,
) -> None:
    """Time the kernels of isotone against public peers, side by side in one process.

    Results are compared before timing: a peer that disagrees is a failure, and so is a wrong result of ours.
    Times are medians of calls that take turns, after a warm-up each; a ratio is ours / peer.
    Memory is the peak of one call beyond its inputs, in a fresh process.

    Targets for ratio and memory are shown with the rows, and whether they held. They do not change the exit code,
    which is 1 if something failed to run and 0 otherwise.

    Examples: python -m benchmarks coupling ottc; python -m benchmarks coupling --sizes n=5000,m=400 --no-memory
    """
    _check(device)
    report = Report()
    benches = [against_itself(b, threads) if busy else b for b in _chosen(names or [], report)]
    if show:
        _list(benches)
        _finish(report)
    plan = _plan(benches, sizes or [], quick, device)
    of_machine = output.machine(threads, benches, device)
    _print_machine(of_machine, threads, benches)
    try:
        _run_all(plan, report, busy, 0.2 if quick else seconds, memory and not busy, threads, figures, device)
    finally:
        _write(json, markdown, report, of_machine, _NO_MEASUREMENT if quick else "")
    _finish(report)


def _write(
    json: Path | None, markdown: Path | None, report: Report, of_machine: Mapping[str, str], note: str
) -> None:
    """Write the rows to the files that were asked for, and show the table."""
    if json is not None:
        output.write_json(json, report.rows, of_machine)
    if markdown is not None:
        print(output.write_markdown(markdown, report.rows, of_machine, note))


def _check(device: str) -> None:
    """End the command where there is nothing of the device."""
    if device not in ("cpu", "cuda"):
        _fail(f"The device is cpu or cuda; got {device!r}.")
    if device == "cuda" and not output.gpu_name():
        out.print("There is no CUDA device here: nothing was measured.")
        raise typer.Exit(0)


def _plan(
    benches: Sequence[Bench], sizes: Sequence[str], quick: bool, device: str
) -> list[tuple[Bench, list[Size]]]:
    """List every benchmark with the sizes it is measured at."""
    requested = [_dims(text) for text in sizes]
    plan = [(bench, _sizes(bench, requested, quick, device)) for bench in benches]
    if requested and not any(of_one for _, of_one in plan):
        _fail(
            f"No benchmark that was named has sizes of {', '.join(sorted(requested[0]))}; --list shows them."
        )
    return plan


def _finish(report: Report) -> NoReturn:
    """Print what failed, and exit."""
    for failure in report.failures:
        err.print(f"[bold red]failed:[/] {escape(failure)}", highlight=False, soft_wrap=True)
    raise typer.Exit(1 if report.failures else 0)


def _print_machine(of_machine: Mapping[str, str], threads: int, benches: Sequence[Bench]) -> None:
    out.print(
        *(f"{name}: {text}" for name, text in of_machine.items()), sep="\n", highlight=False, soft_wrap=True
    )
    cores, load = os.cpu_count() or 1, os.getloadavg()[0]
    if load + threads > cores + 0.5:
        err.print(
            f"[yellow]The {cores} cores had a load of {load:.1f} before this: other work is running, and times of "
            "threads that wait for each other will be far off.[/]",
            highlight=False, soft_wrap=True,
        )  # fmt: skip
    _missing(benches)


def _run_all(
    plan: Sequence[tuple[Bench, list[Size]]],
    report: Report,
    busy: int,
    seconds: float,
    memory: bool,
    threads: int,
    figures: Path | None,
    device: str,
) -> None:
    use_threads(threads)
    with cores_kept_busy(busy):
        for bench, sizes in plan:
            _run(bench, sizes, report, seconds, memory, threads, figures, device)


def _run(
    bench: Bench,
    sizes: Sequence[Size],
    report: Report,
    seconds: float,
    memory: bool,
    threads: int,
    figures: Path | None,
    device: str,
) -> None:
    if not sizes:
        return
    part = Report([], report.failures)
    try:
        with err.status(f"{bench.name}: starting") as status:
            steps = harness.measure(
                bench, sizes, seconds=seconds, memory=memory, threads=threads, report=part, device=device
            )
            for step in steps:
                status.update(step)
    finally:
        report.rows += part.rows
    if part.rows:
        out.print()
        out.print(output.table(bench, part.rows))
        if figures is not None:
            for path in output.figure(bench, sizes, part.rows, figures):
                out.print(f"wrote {path}", highlight=False, soft_wrap=True)


def _chosen(names: Sequence[str], report: Report) -> list[Bench]:
    """Choose benchmarks by their own names or their modules'; all of them for no name."""
    found: list[Bench] = []
    known = set(harness.modules())
    needed = set(names) if names and set(names) <= known else known
    for module in sorted(needed):
        try:
            benches = harness.load(module)
        except Exception as error:
            if not names or module in names:
                report.failures.append(f"{module}: {type(error).__name__}: {error}")
            continue
        known |= {bench.name for bench in benches}
        found += [bench for bench in benches if not names or module in names or bench.name in names]
    unknown = [name for name in names if name not in known]
    if unknown:
        _fail(f"There is no benchmark {', '.join(unknown)}; there are {', '.join(sorted(known))}.")
    return found


def _dims(text: str) -> dict[str, int]:
    try:
        dims = {name.strip(): int(value) for name, value in (part.split("=") for part in text.split(","))}
    except ValueError:
        _fail(f"A size is written like n=5000,m=400; got {text!r}.")
    if any(value < 1 for value in dims.values()):
        _fail(f"The numbers of a size are at least 1; got {text!r}.")
    return dims


def _sizes(bench: Bench, requested: Sequence[dict[str, int]], quick: bool, device: str) -> list[Size]:
    """Choose sizes as declared, with their targets; other sizes of the command line have none."""
    declared_ones = bench.sizes_on(device)
    if not (requested and declared_ones):
        return [size for size in declared_ones if size.quick or not quick]
    order = list(declared_ones[0].dims)
    fitting = [{name: dims[name] for name in order} for dims in requested if set(dims) == set(order)]
    declared = {str(size): size for size in declared_ones}
    swept = len({dims[bench.axis] for dims in fitting}) == len(fitting)
    return [replace(declared.get(str(Size(dims)), Size(dims)), swept=swept) for dims in fitting]


def _list(benches: Sequence[Bench]) -> None:
    for bench in benches:
        out.print(f"[bold]{bench.name}[/]: {bench.about}", highlight=False)
        peers = [f"{peer.name}{'' if peer.installed else ' (not installed)'}" for peer in bench.peers]
        out.print(f"  peers: {', '.join(peers)}", highlight=False)
        for size in bench.sizes:
            goals = [f"<= {ratio:g} {peer}" for peer, ratio in size.targets.items()]
            goals += [] if size.memory_mib is None else [f"<= {size.memory_mib:g} MiB"]
            out.print(f"  {size}{': ' if goals else ''}{', '.join(goals)}", highlight=False)


def _missing(benches: Sequence[Bench]) -> None:
    missing = sorted({peer.package for bench in benches for peer in bench.peers if not peer.installed})
    if missing:
        err.print(
            f"[yellow]not installed, left out: {', '.join(missing)}[/] (pip install {' '.join(missing)})",
            highlight=False, soft_wrap=True,
        )  # fmt: skip


def _fail(message: str) -> NoReturn:
    err.print(f"[bold red]error:[/] {escape(message)}", highlight=False, soft_wrap=True)
    raise typer.Exit(2)


if __name__ == "__main__":
    app(prog_name="python -m benchmarks")
