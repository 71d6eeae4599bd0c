"""Rows of results that an interrupted experiment goes on from."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from isotone.files import atomic_write
from isotone.training.loader import RecipeError, differences, to_yaml


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
