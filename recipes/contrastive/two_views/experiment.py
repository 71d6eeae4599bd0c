"""A run of an experiment: every system with every seed, rows that can be resumed, a table and a figure."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from isotone_contrastive.embedder import Embedder, build_embedder, save_encoder
from isotone_contrastive.losses import zero_gradient_share
from isotone_contrastive.qare import QARe, build_loss
from rich.console import Console

from isotone.corpus.voices import SAMPLE_RATE
from isotone.evaluation import markdown_table
from isotone.files import atomic_folder, atomic_write
from isotone.training.grid import Rows, spread
from isotone.training.loader import RecipeError
from two_views.figures import sweep_figure, write
from two_views.settings import Experiment, System, grid
from two_views.tasks import Matching, Probing


def run(experiment: Experiment) -> Path:
    """Run every system with every seed that the results lack, then write the table (and a sweep's figure).

    Called again after an interruption, it continues: rows are kept as they come, in ``rows.jsonl``, with the
    configuration in ``experiment.yaml``.

    Returns:
        The output folder.

    Raises:
        RecipeError: the folder holds the results of another configuration, or the encoder needs another sample rate.
    """
    folder = Path(experiment.output)
    results = Rows(folder, experiment)
    done, rows = results.having("system", "seed"), results.rows
    systems = grid(experiment)
    console = Console(stderr=True)
    todo = [(name, seed) for seed in experiment.seeds for name in systems if (name, seed) not in done]
    task = _prepare(experiment, console) if todo else None
    for name, seed in todo:
        assert task is not None
        results.add(_row(experiment, task, name, systems[name], seed))
        scores = ", ".join(f"{kind} {100 * score:.1f} %" for kind, score in rows[-1]["scores"].items())
        console.print(f"{name}, seed {seed}: {scores} ({rows[-1]['seconds']:.0f} s)", highlight=False)
    text = table(rows)
    with atomic_write(folder / "table.md") as file:
        file.write(text)
    if experiment.betas:
        write(sweep_figure(rows), folder / "beta")
    sys.stdout.write(text)
    return folder


def _prepare(experiment: Experiment, console: Console) -> Matching | Probing:
    """The task with its data; inputs are computed by an embedder of the experiment's kind."""
    console.print(f"preparing {experiment.data['name']}", highlight=False)
    embedder = _embedder(experiment, 0)
    if embedder.body.sample_rate not in (None, SAMPLE_RATE):
        raise RecipeError(
            f"The data are at {SAMPLE_RATE} Hz; the encoder needs {embedder.body.sample_rate} Hz."
        )
    return (Matching if experiment.task == "matching" else Probing)(experiment, embedder)


def _row(
    experiment: Experiment, task: Matching | Probing, name: str, system: System, seed: int
) -> dict[str, Any]:
    """Train one system with one seed; its row of the results."""
    start = time.perf_counter()
    steps = experiment.train.steps if system.steps is None else system.steps
    embedder, loss = _embedder(experiment, seed), build_loss(system.pairwise, system.qare)
    schedule = replace(experiment.train, steps=steps)
    if isinstance(task, Probing):
        scores, a, b = task.run(embedder, loss, schedule, seed, system.supervised)
    else:
        scores, a, b = task.run(embedder, loss, schedule, seed)
    pairwise = loss.pairwise if isinstance(loss, QARe) else loss
    if experiment.save:
        folder = Path(experiment.output) / "encoders" / f"{name} {seed}".replace(" ", "_")
        with atomic_folder(folder) as target:
            save_encoder(embedder, target)
    return {
        "system": name, "seed": seed, "beta": (system.qare or {}).get("beta", 0.0), "scores": scores,
        "zero_gradient_share": zero_gradient_share(pairwise, a, b),
        "seconds": round(time.perf_counter() - start, 2),
    }  # fmt: skip


def _embedder(experiment: Experiment, seed: int) -> Embedder:
    torch.manual_seed(seed)
    options = {"size": experiment.size, "hidden": experiment.hidden, "parts": experiment.parts}
    return build_embedder(experiment.encoder, **options)


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write means and standard deviations over the seeds in percent as a Markdown table, systems in order."""
    kinds = list(rows[0]["scores"])
    lines = []
    for name in dict.fromkeys(row["system"] for row in rows):
        own = [row for row in rows if row["system"] == name]
        cells = [spread([100 * row["scores"][kind] for row in own]) for kind in kinds]
        cells.append(spread([100 * row["zero_gradient_share"] for row in own]))
        lines.append([name, *cells, len(own)])
    head = ["system", *(f"{kind} %" for kind in kinds), "negatives without gradient %", "seeds"]
    return markdown_table(head, lines)
