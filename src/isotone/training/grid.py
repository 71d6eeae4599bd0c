"""Experiments over systems and seeds: their command, rows that an interrupted run goes on from, and spreads."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import MISSING

from isotone.files import atomic_write
from isotone.training.experiments import experiment_arguments, experiments
from isotone.training.loader import RecipeError, differences, to_yaml


def main(
    about: str | None, folder: Path, load: Callable[[Path, Sequence[str]], Any], run: Callable[[Any], object]
) -> None:
    """Run the experiment that a recipe's ``run.py`` was called with.

    Args:
        about: Printed for ``--help``, with the names of the experiments.
        folder: The recipe's.
        load: From an experiment's file and ``key=value`` overrides to its settings.
        run: Runs the settings.

    Raises:
        SystemExit: help, or a mistake in the command with its message.
    """
    name, overrides = experiment_arguments(f"{about}\nExperiments: {', '.join(experiments(folder, None))}")
    try:
        run(load(folder / f"{name}.yaml", overrides))
    except (FileNotFoundError, ImportError, RecipeError) as error:
        raise SystemExit(f"error: {error}") from None


@dataclass
class Schedule:
    """Settings of a training by Adam, with the learning rate annealed to 0 along a cosine.

    Attributes:
        steps: Optimiser steps.
        batch_size: Items of a batch.
        lr: Learning rate at the beginning.
    """

    steps: int = MISSING
    batch_size: int = MISSING
    lr: float = MISSING


class Rows:
    """Rows of an experiment in a folder: ``rows.jsonl``, and the configuration in ``experiment.yaml``.

    Args:
        folder: Where; rows of an earlier run of the same configuration are read.
        experiment: The configuration, a dataclass.
        ignored: Keys that may differ from the earlier run, such as the seeds, which can be added.

    Raises:
        RecipeError: the folder holds the results of another configuration.
    """

    def __init__(self, folder: Path, experiment: Any, *, ignored: Sequence[str] = ("seeds",)) -> None:
        saved = folder / "experiment.yaml"
        if saved.is_file() and (changed := differences(saved, experiment, ignored=ignored)):
            raise RecipeError(
                f"{folder} holds results of another configuration: {'; '.join(changed[:5])}. Choose another "
                "output, or remove it."
            )
        with atomic_write(saved) as file:
            file.write(to_yaml(experiment))
        self.path = folder / "rows.jsonl"
        lines = self.path.read_text("utf-8").splitlines() if self.path.is_file() else []
        self.rows: list[dict[str, Any]] = [json.loads(line) for line in lines]

    def add(self, row: dict[str, Any]) -> None:
        """Add a row, and write all of them."""
        self.rows.append(row)
        with atomic_write(self.path) as file:
            file.writelines(json.dumps(row) + "\n" for row in self.rows)

    def having(self, *keys: str) -> set[tuple[Any, ...]]:
        """Return the values of some keys that there are rows of."""
        return {tuple(row[key] for key in keys) for row in self.rows}


def spread(values: Sequence[float], digits: int = 1) -> str:
    """Format mean and standard deviation, ``12.3 ± 0.4``; the mean alone of a single value."""
    mean = f"{statistics.fmean(values):.{digits}f}"
    return f"{mean} ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else mean
