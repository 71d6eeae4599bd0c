"""OT4P's experiments: `python recipes/permutation/run.py EXPERIMENT [key=value ...]`, on the CPU."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import results
import torch
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from settings import NAMES, load_settings

from isotone.training.experiments import experiment_arguments


def main(arguments: list[str]) -> list[dict[str, Any]]:
    """Run an experiment; write its rows, a table beside the paper's, a figure and the configuration."""
    config = load_settings(arguments[0], arguments[1:])
    torch.set_num_threads(config.threads)
    experiment = importlib.import_module(config.experiment)
    console = Console(stderr=True)
    rows: list[dict[str, Any]] = []
    columns = SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=experiment.total(config))
        for row in experiment.run(config):
            rows.append(row)
            done = f"{row['setting']}, {row['method']}, seed {row['seed']}: {row['precision']:.2f} %"
            progress.update(task, advance=1, description=done)
            console.print(f"{done}, {row['seconds']:.1f} s", highlight=False)
            results.write(Path(config.output), config, rows)
    if draw := getattr(experiment, "drawings", None):
        results.write(Path(config.output), config, rows, draw(config, rows))
    print(results.tables(config, rows))
    console.print(f"wrote {config.output}", highlight=False)
    return rows


if __name__ == "__main__":
    name, overrides = experiment_arguments(f"{__doc__}\nExperiments: {', '.join(NAMES)}")
    try:
        main([name, *overrides])
    except (FileNotFoundError, ValueError) as error:
        raise SystemExit(f"error: {error}") from None
