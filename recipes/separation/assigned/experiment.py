"""A run of an experiment: every system with every seed, and a table."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from assigned.assignments import build
from assigned.mixtures import SAMPLE_RATE, SOURCES, mix
from assigned.network import Separator
from assigned.settings import Experiment
from assigned.training import Mixtures, agreement, improvement, train
from isotone.evaluation import markdown_table
from isotone.files import atomic_write
from isotone.training.grid import Rows, spread

#: Columns of the table: key of a row, heading, digits.
COLUMNS = (
    ("si_sdr_gain", "SI-SDR gain dB", 2),
    ("train_gain", "in training dB", 2),
    ("agreement", "least cost %", 1),
    ("switched", "switched %", 1),
    ("seconds", "seconds", 0),
)


def run(experiment: Experiment) -> Path:
    """Run every system with every seed that the results lack, then write the table; return the output folder.

    Raises:
        RecipeError: the folder holds the results of another configuration.
    """
    folder = Path(experiment.output)
    results = Rows(folder, experiment)
    done = results.having("system", "seed")
    todo = [(s, n) for s in experiment.seeds for n in experiment.systems if (n, s) not in done]
    console = Console(stderr=True)
    if todo:
        console.print("mixing", highlight=False)
        parts = draw(experiment)
    for seed, name in todo:
        results.add(row(experiment, parts, name, seed))
        gain, seconds = results.rows[-1]["si_sdr_gain"], results.rows[-1]["seconds"]
        console.print(f"{name}, seed {seed}: {gain:.2f} dB ({seconds:.0f} s)", highlight=False)
    text = table(results.rows)
    with atomic_write(folder / "table.md") as file:
        file.write(text)
    sys.stdout.write(text)
    return folder


def draw(experiment: Experiment) -> tuple[Mixtures, Mixtures]:
    """Draw the mixtures of training and test."""
    options = {**experiment.data}
    sides = SOURCES[options.pop("name")](seconds=experiment.seconds, **options)
    counts = experiment.mixtures, experiment.test_mixtures
    train_side, test_side = (
        Mixtures.of(
            mix(side, count, experiment.voices, experiment.level_db, np.random.default_rng([part, 23]))
        )
        for part, (side, count) in enumerate(zip(sides, counts))
    )
    return train_side, test_side


def row(experiment: Experiment, parts: tuple[Mixtures, Mixtures], name: str, seed: int) -> dict[str, Any]:
    """Train and test one system with one seed; its row of the results."""
    begin = time.perf_counter()
    torch.manual_seed(seed)
    model = Separator(experiment.voices, **experiment.network)
    assignment = build(experiment.systems[name], len(parts[0].voices), experiment.voices, seed)
    history = train(model, assignment, parts[0], experiment.train, seed=seed)
    return {
        "system": name, "seed": seed, "si_sdr_gain": improvement(model, parts[1]),
        "train_gain": improvement(model, Mixtures(*(part[: len(parts[1].voices)] for part in parts[0]))),
        "agreement": 100 * agreement(model, assignment, parts[0]),
        "switched": 100 * history.switched[-2] if len(history.switched) > 1 else 0.0,
        "loss": history.losses[-1], "sample_rate": SAMPLE_RATE,
        "seconds": round(time.perf_counter() - begin, 2),
    }  # fmt: skip


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Write means and standard deviations over the seeds as a Markdown table, systems in order."""
    lines = []
    for name in dict.fromkeys(r["system"] for r in rows):
        own = [r for r in rows if r["system"] == name]
        cells = [spread([r[key] for r in own], digits) for key, _, digits in COLUMNS]
        lines.append([name, *cells, len(own)])
    return markdown_table(["assignment", *(heading for _, heading, _ in COLUMNS), "seeds"], lines)
