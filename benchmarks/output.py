"""Output of the measurements: tables, JSON rows, and figures of cost against size."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from rich.table import Table

from benchmarks.harness import OURS, Bench, Row, Size
from isotone.files import atomic_write

# Colours that the colour-blind can distinguish (Okabe & Ito); ours comes first.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_PACKAGES = ("isotone", "torch", "torchaudio", "numba", "numpy", "scipy")


def machine(threads: int, benches: Sequence[Bench], device: str = "cpu") -> dict[str, str]:
    """Describe the processor, its cores and load, threads, the GPU, and the versions of everything that is timed."""
    peers = sorted({peer.package for bench in benches for peer in bench.peers if peer.package})
    versions = {name: _version(name) for name in ("python", *_PACKAGES, *peers)}
    return {
        **({} if device == "cpu" else {"device": gpu_name()}),
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "threads": str(threads),
        "load": f"{os.getloadavg()[0]:.1f}",
        "versions": ", ".join(f"{name} {number}" for name, number in versions.items() if number),
    }


def gpu_name() -> str:
    """Return the name of the GPU; empty where there is none."""
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else ""


def table(bench: Bench, rows: Sequence[Row]) -> Table:
    """Make a table of one benchmark's rows for the terminal."""
    shown = Table(title=f"{bench.name}: {bench.about}", title_justify="left", title_style="bold")
    shown.add_column("size", no_wrap=True)
    shown.add_column("peer", no_wrap=True)
    for heading in ("ours ms", "peer ms", "ratio", "target", "held", "ours MiB", "peer MiB"):
        shown.add_column(heading, justify="right", no_wrap=True)
    last = None
    for row in rows:
        if last is not None and row.size != last:
            shown.add_section()
        peer = row.peer if row.same_result in (None, True) else f"{row.peer} *"
        shown.add_row(
            "" if row.size == last else row.size, peer, _number(row.ours_ms), _number(row.peer_ms),
            "" if row.ratio is None else f"{row.ratio:.3f}", "" if row.target is None else f"<= {row.target:g}",
            _held(row.held), _memory(row), _number(row.peer_mib),
        )  # fmt: skip
        last = row.size
    notes = []
    if any(row.same_result is False for row in rows):
        notes.append("* a yardstick: it computes something else")
    slopes = exponents(rows)
    if slopes:
        notes.append(f"cost ~ {bench.axis}^k: " + ", ".join(f"{name} {k:.2f}" for name, k in slopes.items()))
    shown.caption, shown.caption_justify = "\n".join(notes) or None, "left"
    return shown


def write_markdown(path: Path, rows: Sequence[Row], of_machine: Mapping[str, str], note: str = "") -> str:
    """Write one table of all rows, under the machine that they were measured on; return it."""
    about = "; ".join(f"{name}: {text}" for name, text in of_machine.items())
    headings = [
        "bench, size",
        "ours ms",
        "peer",
        "peer ms",
        "ratio",
        "ours MiB",
        "peer MiB",
        "ours h/min",
        "peer h/min",
    ]
    lines = [f"| {' | '.join(cells)} |" for cells in (headings, ["---"] * len(headings))]
    for row in rows:
        peer = f"{row.peer} *" if row.same_result is False else row.peer
        cells = [
            f"{row.bench}: {row.size}", _number(row.ours_ms), peer, _number(row.peer_ms),
            "" if row.ratio is None else f"{row.ratio:.3f}", _number(row.ours_mib), _number(row.peer_mib),
            _per_minute(row.hours, row.ours_ms), _per_minute(row.hours, row.peer_ms),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    notes = [
        "\\* a yardstick: it computes something else. h/min: hours of audio per minute.",
        *([note] if note else []),
    ]
    text = "\n".join([f"{about}.", "", *lines, "", *notes]) + "\n"
    with atomic_write(path) as file:
        file.write(text)
    return text


def _per_minute(hours: float | None, ms: float | None) -> str:
    """Hours of audio per minute, of the hours that one call of so many milliseconds goes through."""
    return "" if hours is None or not ms else _number(hours / (ms / 60_000))


def write_json(path: Path, rows: Sequence[Row], of_machine: Mapping[str, str]) -> None:
    """Write a list of rows; each names the machine that it was measured on."""
    with atomic_write(path) as file:
        json.dump([{**asdict(row), "machine": dict(of_machine)} for row in rows], file, indent=1)
        file.write("\n")


def curves(rows: Sequence[Row]) -> dict[str, list[tuple[float, float]]]:
    """Return the points (size, milliseconds) of the sweep of every contender, ours first."""
    found: dict[str, dict[float, float]] = {OURS: {}}
    for row in rows:
        if row.swept:
            found[OURS][row.axis_value] = row.ours_ms
            if row.peer_ms is not None:
                found.setdefault(row.peer, {})[row.axis_value] = row.peer_ms
    return {name: sorted(points.items()) for name, points in found.items() if points}


def exponents(rows: Sequence[Row]) -> dict[str, float]:
    """Fit k of cost ~ size^k for every contender with at least three points: least squares in logarithms.

    Only the larger half of the points (but at least three) counts: fixed costs bend the start of the curve.
    """
    fitted = {}
    for name, points in curves(rows).items():
        if len(points) >= 3:
            top = np.log(points[-max(3, math.ceil(len(points) / 2)) :])
            fitted[name] = float(np.polyfit(top[:, 0], top[:, 1], 1)[0])
    return fitted


def figure(bench: Bench, sizes: Sequence[Size], rows: Sequence[Row], folder: Path) -> list[Path]:
    """Write cost against size, on logarithmic axes, as PNG and SVG; nothing where nothing was swept."""
    points = curves(rows)
    if not points:
        return []
    slopes = exponents(rows)
    drawing = Figure(figsize=(8.2, 4.4), layout="constrained")
    axes = drawing.add_subplot()
    for i, (name, curve) in enumerate(points.items()):
        # where colours repeat, markers differ
        colour, marker = _COLOURS[i % len(_COLOURS)], "os^"[i // len(_COLOURS) % 3]
        label = f"{name}: ${bench.axis}^{{{slopes[name]:.2f}}}$" if name in slopes else name
        ours = name == OURS
        axes.plot(*zip(*curve), marker=marker, ms=4, lw=2.4 if ours else 1.4, color=colour, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    values = sorted({value for curve in points.values() for value, _ in curve})
    axes.set_xticks(values, [f"{value:,}" for value in values])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(f"{bench.axis} ({_in_proportion(bench.axis, sizes)})")
    axes.set_ylabel("median of one call (ms)")
    drawing.suptitle(f"{bench.name}: {bench.about}", fontsize=10, x=0.01, ha="left")
    axes.grid(True, which="major", color="0.85")
    axes.grid(True, which="minor", color="0.94", lw=0.5)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    drawing.legend(frameon=False, loc="outside right center")
    written = []
    for kind in ("png", "svg"):
        path = folder / f"{bench.name}.{kind}"
        with atomic_write(path, "wb") as file:
            drawing.savefig(file, format=kind, dpi=150)
        written.append(path)
    return written


def _in_proportion(axis: str, sizes: Sequence[Size]) -> str:
    """Describe the other numbers of the sweep in terms of the axis."""
    swept = [size.dims for size in sizes if size.swept]
    parts = []
    for name in swept[0]:
        shares = [dims[name] / dims[axis] for dims in swept]
        if len({dims[name] for dims in swept}) == 1:
            parts.append(f"{name} {swept[0][name]}")
        elif name != axis:
            parts.append(f"{name} = {axis}" if shares[-1] == 1 else f"{name} = {shares[-1]:.3g} {axis}")
    return ", ".join(parts)


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def _held(held: bool | None) -> str:
    return "" if held is None else "[green]yes[/]" if held else "[red]NO[/]"


def _memory(row: Row) -> str:
    shown = _number(row.ours_mib)
    if row.memory_target_mib is None:
        return shown
    return f"{shown} <= {row.memory_target_mib:g} {_held(row.memory_held)}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _version(name: str) -> str:
    if name == "python":
        return platform.python_version()
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
