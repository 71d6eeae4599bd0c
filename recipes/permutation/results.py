"""Results of an experiment: rows as JSON, a table beside the paper's, and a figure."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from figures import COLOURS
from matplotlib.figure import Figure
from settings import Experiment

from isotone.evaluation import markdown_table
from isotone.files import atomic_write
from isotone.training.loader import to_yaml

Row = dict[str, Any]

#: Measures beside precision that a table is made of, where rows have them, with their headings.
MEASURES = {"l1": "l1 distance", "hamming": "Hamming distance", "mib": "peak memory, MiB"}


def summary(rows: Sequence[Row], key: str) -> dict[tuple[str, str], tuple[float, float, int]]:
    """Compute mean, standard deviation and number of values, by (method, setting), in the order of the rows."""
    values: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row.get(key) is not None:
            values.setdefault((row["method"], row["setting"]), []).append(row[key])
    return {
        cell: (statistics.fmean(v), statistics.stdev(v) if len(v) > 1 else 0.0, len(v))
        for cell, v in values.items()
    }


def table(config: Experiment, rows: Sequence[Row]) -> str:
    """Write precision in Markdown by method and setting: mean and deviation over seeds, the paper's in brackets."""
    precision, seconds = summary(rows, "precision"), summary(rows, "seconds")
    settings = list(dict.fromkeys(row["setting"] for row in rows))
    paper = config.paper or {}
    lines = []
    for method in dict.fromkeys(row["method"] for row in rows):
        cells = []
        of_paper = paper.get(method, {})
        for setting in settings:
            if (method, setting) not in precision:
                cells.append("")
                continue
            mean, deviation, _ = precision[method, setting]
            reported = f" ({of_paper[setting]:.2f})" if setting in of_paper else ""
            cells.append(f"{mean:.2f} ± {deviation:.2f}{reported}")
        of_method = [key for key in precision if key[0] == method]
        seeds = min(precision[key][2] for key in of_method)
        seconds_per_run = statistics.fmean(seconds[key][0] for key in of_method)
        lines.append([method, *cells, seeds, f"{seconds_per_run:.1f}"])
    return markdown_table(["method", *settings, "seeds", "seconds"], lines)


def tables(config: Experiment, rows: Sequence[Row]) -> str:
    """Write the table of precision, then one of each of :data:`MEASURES` that the rows have."""
    parts = [table(config, rows)]
    settings = list(dict.fromkeys(row["setting"] for row in rows))
    for key, heading in MEASURES.items():
        if found := summary(rows, key):
            cells = {cell: f"{mean:.2f} ± {deviation:.2f}" for cell, (mean, deviation, _) in found.items()}
            names = dict.fromkeys(name for name, _ in found)
            lines = [[name, *(cells.get((name, setting), "") for setting in settings)] for name in names]
            parts.append(markdown_table([heading, *settings], lines))
    return "\n".join(parts)


def figure(config: Experiment, rows: Sequence[Row]) -> Figure:
    """Draw precision against the settings, one line per method, with the deviation over seeds."""
    precision = summary(rows, "precision")
    settings = list(dict.fromkeys(row["setting"] for row in rows))
    drawing = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = drawing.add_subplot()
    for number, method in enumerate(dict.fromkeys(row["method"] for row in rows)):
        points = [(i, *precision[method, s][:2]) for i, s in enumerate(settings) if (method, s) in precision]
        positions, means, deviations = zip(*points)
        colour = COLOURS[number % len(COLOURS)]
        axes.errorbar(positions, means, deviations, marker="o", capsize=3, color=colour, label=method)
    axes.set_xticks(range(len(settings)), settings)
    axes.set_ylabel("precision (%)")
    axes.set_title(str(config.experiment).replace("_", " "), loc="left")
    axes.grid(True, axis="y", color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return drawing


def write(
    folder: Path, config: Experiment, rows: Sequence[Row], drawings: Mapping[str, Figure] | None = None
) -> None:
    """Write ``config.yaml``, ``results.json``, ``results.md`` and figures, each whole or not at all.

    Args:
        folder: Where.
        config: Settings of the experiment.
        rows: What it measured.
        drawings: More figures by name.
    """
    texts = {
        "config.yaml": to_yaml(config),
        "results.json": json.dumps(list(rows), indent=1) + "\n",
        "results.md": tables(config, rows),
    }
    for name, text in texts.items():
        with atomic_write(folder / name) as file:
            file.write(text)
    for name, drawing in {"results": figure(config, rows), **(drawings or {})}.items():
        with atomic_write(folder / f"{name}.png", "wb") as file:
            drawing.savefig(file, format="png", dpi=150)
