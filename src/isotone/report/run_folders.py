"""Finished runs, read back and scored; those that differ in their seed alone are one system."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isotone import format as files
from isotone.evaluation import Report
from isotone.evaluation.files import evaluate_paths
from isotone.report.seeds import group_seeds, mean_and_deviation, spread

#: Error rates by tier: name in a table, metric, and label of an axis.
ERRORS = {
    "words": ("WER %", "wer", "word error rate (%)"),
    "phones": ("PER %", "per", "phone error rate (%)"),
}
OTHER_ERRORS = ("errors %", "label_error_rate", "label error rate (%)")
_COLUMNS = {
    "peaky %": ("recognised", "peaky"),
    "peaky (paper) %": ("recognised", "peaky_paper"),
    "start F1 20 ms": ("recognised", "start_f1@20ms"),
    "start F1 50 ms": ("recognised", "start_f1@50ms"),
    "IDR %": ("recognised", "idr"),
    "forced F1 20 ms": ("forced", "start_f1@20ms"),
    "forced F1 50 ms": ("forced", "start_f1@50ms"),
    "forced IDR %": ("forced", "idr"),
    "forced median error ms": ("forced", "error_median"),
}
PARTS = ("config.yaml", "result.json", "alignments", "forced", "reference", "predictions.jsonl")
NOT_LOSSES = ("epoch", "lr", "grad_norm", "utterances_per_s")


def columns(tier: str) -> dict[str, tuple[str, str]]:
    """Return the columns of a table on a tier: name to report and metric."""
    name, metric, _ = ERRORS.get(tier, OTHER_ERRORS)
    peaky = {"peaky (paper) %": ("recognised", paper_peakiness(tier))}
    return {name: ("recognised", metric), **_COLUMNS, **peaky}


def paper_peakiness(tier: str) -> str:
    """Return the metric of the paper's peakiness: less the silence for phones (its TIMIT), raw for words (its AMI)."""
    return "peaky_paper" if tier == "phones" else "peaky_raw"


@dataclass(frozen=True)
class Run:
    """A finished run, read back.

    Attributes:
        name: Its folder's name.
        folder: Its folder.
        reports: ``recognised`` and ``forced``.
    """

    name: str
    folder: Path
    reports: Mapping[str, Report]

    def predictions(self) -> dict[str, dict[str, Any]]:
        """Read the lines of ``predictions.jsonl`` by utterance id."""
        with (self.folder / "predictions.jsonl").open(encoding="utf-8") as lines:
            return {row["id"]: row for row in map(json.loads, lines)}

    def history(self) -> list[dict[str, float]]:
        """Read the loss terms of every step from ``metrics.jsonl``; empty where nothing was trained."""
        path = self.folder / "metrics.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        rows = [row for row in map(json.loads, lines) if "loss" in row]
        return [{k: v for k, v in row.items() if k not in NOT_LOSSES} for row in rows]

    def snapshots(self, index: int = 0) -> list[tuple[int, dict[str, np.ndarray]]]:
        """Read the (step, arrays) recorded of a watched utterance during training."""
        out = []
        for path in sorted((self.folder / "snapshots").glob(f"step-*-{index}.npz")):
            with np.load(path) as stored:
                out.append((int(path.stem.split("-")[1]), {k: stored[k] for k in stored.files}))
        return out

    @property
    def tier(self) -> str:
        """The tier that is scored."""
        return self.reports["recognised"].tier

    def values(self) -> list[float | None]:
        """Return the headline numbers, in the order of :func:`columns`."""
        return [
            self.reports[part].metrics[metric].value if metric in self.reports[part].metrics else None
            for part, metric in columns(self.tier).values()
        ]


@dataclass(frozen=True)
class System:
    """Runs that differ in their seed alone.

    Attributes:
        name: The first run's, without its seed's number where there are several.
        runs: In the order they were given; figures and examples show the first.
    """

    name: str
    runs: list[Run]

    def mean(self) -> list[float | None]:
        """Return means over the runs, in the order of :func:`columns`; None where a run has no value."""
        return [None if None in v else float(np.mean(v)) for v in self._columns()]  # type: ignore[arg-type]

    def mean_point(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return means and standard deviations of error rate and IDR over the seeds, in percent (0 for one seed)."""
        idr = list(columns(self.runs[0].tier)).index("IDR %")
        known = [[math.nan if v is None else v for v in run.values()] for run in self.runs]
        return mean_and_deviation([(values[0], values[idr]) for values in known])

    def cells(self) -> list[str]:
        """Return the cells of a table: the mean, and the standard deviation where there are several seeds."""
        return [spread(values) for values in self._columns()]

    def _columns(self) -> list[tuple[float | None, ...]]:
        return list(zip(*(run.values() for run in self.runs)))


def systems(runs: Sequence[Run]) -> list[System]:
    """Group runs whose configurations differ in seed and output folder alone."""
    by_folder = {run.folder: run for run in runs}
    return [
        System(name, [by_folder[f] for f in found]) for name, found in group_seeds(list(by_folder)).items()
    ]


def load_run(folder: Path, tier: str = "") -> Run:
    """Read a run folder back and score it.

    Args:
        folder: The run.
        tier: The tier that is scored. Default: phones, or words where the references have no phones.

    Raises:
        FileNotFoundError: the run is not finished: a file or folder that a run writes is missing.
        ValueError: its corpus has no times.
    """
    folder = Path(folder)
    if (folder / "result.json").is_file() and not (folder / "reference").exists():
        raise ValueError(
            f"{folder} has no times to compare: its corpus has texts alone. `isotone results` makes a table of the "
            "error rates of such runs."
        )
    for part in PARTS:
        if not (folder / part).exists():
            raise FileNotFoundError(
                f"{folder} is not a finished run: {folder / part} is not there. Train it to the end first."
            )
    tier = tier or _scored_tier(folder)
    reports = {"recognised": evaluate_paths(folder, folder / "reference", tier).report}
    reports["forced"] = evaluate_paths(folder / "forced", folder / "reference", tier).report
    return Run(folder.resolve().name, folder, reports)


def _scored_tier(folder: Path) -> str:
    first = min((folder / "reference").iterdir(), default=None)
    return "words" if first and not files.read(first).has("phones") else "phones"
