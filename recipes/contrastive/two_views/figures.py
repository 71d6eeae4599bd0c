"""Accuracy against the weight of the set term: the paper's figure 2."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from isotone.files import atomic_write
from isotone.report.style import CURVE_IN, looks, styled, tidy


@styled
def sweep_figure(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw one line per score over beta, with a band of one standard deviation over the seeds.

    Args:
        rows: Each with ``beta`` and ``scores`` by name, 0 to 1; only rows of one family of systems make sense.

    Raises:
        ValueError: there are no rows.
    """
    if not rows:
        raise ValueError("sweep_figure expects at least one row; got none.")
    kinds = list(rows[0]["scores"])
    figure = Figure(
        figsize=(CURVE_IN, 2.6 * len(kinds)), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1)
    )
    styles = looks(kinds)
    betas = sorted({row["beta"] for row in rows})
    panels = figure.subplots(len(kinds), 1, sharex=True, squeeze=False)[:, 0]
    for axes, kind in zip(panels, kinds):
        tidy(axes, grid=True)
        groups = [[100 * row["scores"][kind] for row in rows if row["beta"] == beta] for beta in betas]
        means = [statistics.fmean(group) for group in groups]
        spreads = [statistics.stdev(group) if len(group) > 1 else 0.0 for group in groups]
        axes.fill_between(
            betas, [m - s for m, s in zip(means, spreads)], [m + s for m, s in zip(means, spreads)],
            color=styles[kind].colour, alpha=0.2, lw=0,
        )  # fmt: skip
        axes.plot(betas, means, color=styles[kind].colour, marker="o", ms=4)
        axes.set_ylabel(f"{kind}, accuracy %")
    panels[-1].set_xlabel("weight of the set term, beta")
    return figure


def write(figure: Figure, stem: Path) -> list[Path]:
    """Write ``stem.png`` and ``stem.svg``."""
    paths = [stem.with_suffix(suffix) for suffix in (".png", ".svg")]
    for path in paths:
        with atomic_write(path, "wb") as file:
            figure.savefig(file, format=path.suffix[1:], dpi=150)
    return paths
