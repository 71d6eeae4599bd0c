"""A run of an experiment: every system with every length of code and seed, tables, and the figure of ties."""

from __future__ import annotations

import statistics as stats
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from isotone_contrastive.embedder import build_embedder
from isotone_hashing.figures import tie_range_figure
from rich.console import Console
from torch import Tensor

from isotone.evaluation import markdown_table
from isotone.evaluation.ranking import Spread, average_precision_range, ndcg_of
from isotone.evaluation.ties import tie_counts
from isotone.files import atomic_write
from isotone.training.grid import Rows, spread
from learned_codes.data import SOURCES, Task, inputs, statistics
from learned_codes.settings import Experiment
from learned_codes.shallow import CODERS
from learned_codes.training import Coder, train

#: Tables: measure of a row, and heading.
MEASURES = (("ap", "AP_T"), ("ndcg", "NDCG_T"))


class Prepared:
    """A task with its inputs and fixed features by part, computed once."""

    def __init__(self, experiment: Experiment) -> None:
        options = {**experiment.data}
        self.task: Task = SOURCES[options.pop("name")](**options)
        embedder = embedder_of(experiment, 0)
        body = None if embedder is None else embedder.body
        parts = {"train": self.task.train, "database": self.task.database, "queries": self.task.queries}
        self.rows = {name: inputs(items, body) for name, items in parts.items()}
        audio = body is not None and body.sample_rate is not None
        fixed = self.rows if audio else {name: inputs(items, None) for name, items in parts.items()}
        self.features = {name: statistics(rows) for name, rows in fixed.items()}
        self.affinity = self.task.affinity(self.task.queries.traits, self.task.database.traits)


def embedder_of(experiment: Experiment, seed: int) -> Any:
    """Build the experiment's embedder, None where codes are linear."""
    torch.manual_seed(seed)
    if experiment.encoder is None:
        return None
    shape = {"size": experiment.size, "hidden": experiment.hidden, "parts": experiment.parts}
    return build_embedder(experiment.encoder, **shape)


def run(experiment: Experiment) -> Path:
    """Run what the results lack, then write tables and the figure of ties; return the output folder.

    Raises:
        RecipeError: the folder holds the results of another configuration.
    """
    folder = Path(experiment.output)
    results = Rows(folder, experiment)
    done = results.having("system", "bits", "seed")
    grid = [(s, b, n) for s in experiment.seeds for b in experiment.bits for n in experiment.systems]
    console = Console(stderr=True)
    prepared = None
    for seed, bits, name in grid:
        if (name, bits, seed) in done:
            continue
        if prepared is None:
            console.print(f"preparing {experiment.data['name']}", highlight=False)
            prepared = Prepared(experiment)
        begin = perf_counter()
        codes = code(experiment, prepared, name, bits, seed)
        scores = evaluate(*codes, prepared.affinity, experiment.relevant)
        results.add({
            "system": name, "bits": bits, "seed": seed, **scores, "seconds": round(perf_counter() - begin, 2),
        })  # fmt: skip
        console.print(f"{name}, {bits} bits, seed {seed}: AP {scores['ap']:.3f}", highlight=False)
    text = tables(results.rows)
    with atomic_write(folder / "table.md") as file:
        file.write(text)
    with atomic_write(folder / "ties.png", "wb") as file:
        ties_figure(results.rows).savefig(file, format="png", dpi=150)
    sys.stdout.write(text)
    return folder


def code(
    experiment: Experiment, prepared: Prepared, name: str, bits: int, seed: int
) -> tuple[Tensor, Tensor]:
    """Train one system; return the bits of queries ``(Q, b)`` and of the database ``(N, b)``."""
    options = experiment.systems[name]
    if options["kind"] in CODERS:
        generator = torch.Generator().manual_seed(seed)
        fixed = CODERS[options["kind"]](prepared.features["train"], bits, generator)
        return fixed(prepared.features["queries"]), fixed(prepared.features["database"])
    embedder = embedder_of(experiment, seed)
    size = prepared.rows["train"][0].shape[1] if embedder is None else experiment.size
    coder = Coder(embedder, size, bits, options, seed)
    rows = prepared.rows
    train(coder, options, rows["train"], prepared.task, experiment.relevant, experiment.train, seed=seed)
    return coder.codes(rows["queries"]), coder.codes(rows["database"])


def evaluate(queries: Tensor, database: Tensor, affinity: Tensor, relevant: int) -> dict[str, float]:
    """Compute tie-aware AP with its range over orders of ties, and tie-aware NDCG: means over queries with a value."""
    signs = [2.0 * bits.float() - 1 for bits in (queries, database)]
    scores = (signs[0] @ signs[1].T).numpy()
    ap = average_precision_range(tie_counts(scores, (affinity >= relevant).numpy()))
    values = {"ap": ap.mean, "ap_low": ap.low, "ap_high": ap.high}
    # counts are int8: affinities above 10 do not occur
    values["ndcg"] = ndcg_of(tie_counts(scores, affinity.numpy().astype(np.int8)))
    return {name: float(np.nanmean(value)) for name, value in values.items()}


def tables(rows: Sequence[dict[str, Any]]) -> str:
    """Write AP and NDCG by system and bits, then the ranges of AP at the fewest bits, means over seeds."""
    systems = list(dict.fromkeys(row["system"] for row in rows))
    lengths = sorted({row["bits"] for row in rows})
    parts = []
    for key, heading in MEASURES:
        lines = [
            [
                name,
                *(
                    spread([r[key] for r in rows if (r["system"], r["bits"]) == (name, b)], 3)
                    for b in lengths
                ),
            ]
            for name in systems
        ]
        parts.append(markdown_table([heading, *(f"{b} bits" for b in lengths)], lines))
    lines = []
    for name in systems:
        own = [r for r in rows if (r["system"], r["bits"]) == (name, lengths[0])]
        cells = [f"{stats.fmean(r[key] for r in own):.3f}" for key in ("ap_low", "ap", "ap_high")]
        lines.append([name, *cells])
    head = [f"AP, {lengths[0]} bits", "worst order of ties", "mean of all orders", "best order"]
    parts.append(markdown_table(head, lines))
    return "\n".join(parts)


def ties_figure(rows: Sequence[dict[str, Any]]) -> Any:
    """Draw the range of AP over orders of ties at the fewest bits: figure 3."""
    fewest = min(row["bits"] for row in rows)
    spreads = {}
    for row in rows:
        if row["bits"] == fewest:
            spreads.setdefault(row["system"], []).append(row)
    drawn = {
        name: Spread(*(np.array([r[key] for r in own]) for key in ("ap_low", "ap", "ap_high")))
        for name, own in spreads.items()
    }
    return tie_range_figure(drawn, title=f"{fewest} bits: ties in the worst and the best order")
