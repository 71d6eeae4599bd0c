"""Figures of an experiment: score distributions, MAP against time and memory, alignments, and indexes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from isotone_opas.model import OPAS
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from torch import Tensor

from isotone.registries import relaxations
from isotone.report.style import CTC, OTTC, WIDE_IN, looks, set_title, styled, tidy
from ordered_search.sets import SearchSet


@styled
def distributions(scores: Mapping[str, Tensor], data: SearchSet, title: str = "") -> Figure:
    """Draw the density of scores of positive and negative pairs (figures 2 and 8), one panel per score.

    Args:
        scores: By name, ``(Q, C)``.
        data: Queries and corpus.
        title: Heading.
    """
    figure = Figure(figsize=(3.7 * len(scores), 3.2), layout="constrained")
    for axes, (name, values) in zip(_panels(figure, 1, len(scores)), scores.items()):
        positive, negative = values[data.relevant], values[~data.relevant & data.counted]
        low, high = float(values.min()), float(values.max())
        bins = np.linspace(low, high if high > low else low + 1, 51).tolist()
        for part, colour, label, hatch in (
            (negative, CTC, "negative pairs", "//"), (positive, OTTC, "positive pairs", ".."),
        ):  # fmt: skip
            axes.hist(
                part.numpy(), bins, density=True, histtype="stepfilled", color=colour, alpha=0.45, label=label,
                hatch=hatch, edgecolor=colour,
            )  # fmt: skip
        axes.set_xlabel(name)
        axes.set_ylabel("density")
        axes.legend(frameon=False, fontsize=8)
    set_title(figure, title)
    return figure


@styled
def precision_against(
    rows: Mapping[str, Mapping[str, float]], cost: str, label: str, title: str = ""
) -> Figure:
    """Draw MAP against what a method costs: time (figure 3), memory (figure 12).

    Args:
        rows: By method, with ``MAP`` and the cost; methods without it are left out.
        cost: Key of the cost.
        label: Of the axis.
        title: Heading.
    """
    rows = {name: row for name, row in rows.items() if cost in row}
    figure = Figure(figsize=(6.2, 3.8), layout="constrained")
    (axes,) = _panels(figure, 1, 1, grid=True)
    for name, look in looks(rows).items():
        price, score = rows[name][cost], rows[name]["MAP"]
        star = name == "OPAS"
        axes.plot(
            [price], [score], marker="*" if star else look.marker, color=OTTC if star else look.colour,
            markersize=14 if star else 7, linestyle="none", label=name,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel(label)
    axes.set_ylabel("MAP")
    axes.set_ylim(-0.03, 1.03)
    figure.legend(loc="outside right upper", frameon=False, fontsize=8)
    set_title(figure, title)
    return figure


def positive_pairs(data: SearchSet, count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Draw queries at random, and an item that is relevant to each: their numbers."""
    generator = torch.Generator().manual_seed(seed)
    queries = torch.randperm(len(data.queries), generator=generator)[:count]
    noise = torch.rand(len(queries), len(data.corpus), generator=generator)
    return queries, torch.where(data.relevant[queries], noise, -1.0).argmax(1)


@torch.no_grad()
def plan_distances(
    model: OPAS, data: SearchSet, queries: Tensor, items: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    """Compute the squared distances ``(B,)`` of learned plans from the true choices, and the pairs' s and s_F."""
    lengths = data.lengths[items]
    x, y = model.embed(data.queries[queries]), model.embed(data.corpus[items], lengths)
    found = model.select(x, y, None, lengths)
    true = torch.zeros_like(found.plan).scatter(2, data.chosen[queries][..., None], 1.0)
    return (found.plan - true).square().sum((1, 2)), {"score": found.score, "s_F": found.fit}


@styled
def distances(apart: Tensor, scores: Mapping[str, Tensor], title: str = "") -> Figure:
    """Draw the distance of learned plans from the true choice against scores (figures 9 and 10)."""
    figure = Figure(figsize=(3.7 * len(scores), 3.2), layout="constrained")
    for axes, (name, values) in zip(_panels(figure, 1, len(scores), grid=True), scores.items()):
        axes.plot(values.numpy(), apart.numpy(), marker=".", linestyle="none", color=OTTC, markersize=4)
        axes.set_xlabel(name)
        axes.set_ylabel("squared distance of P from the truth")
    set_title(figure, title)
    return figure


@torch.no_grad()
def plans(
    model: OPAS, data: SearchSet, queries: Tensor, items: Tensor, temperatures: Sequence[float]
) -> dict[str, Tensor]:
    """Compute plans ``(B, m, n)`` of pairs: one per tau, the exact ordered selection, and the true windows."""
    lengths = data.lengths[items]
    x, y = model.embed(data.queries[queries]), model.embed(data.corpus[items], lengths)
    reward = model.select(x, y, None, lengths).reward
    found = {}
    for tau in temperatures:
        relaxation = relaxations.build("sinkhorn", temperature=tau, iterations=200)
        found[f"tau = {tau:g}"] = relaxation(reward, None, lengths)
    hard = model.align(x, y, None, lengths)
    exact = torch.zeros_like(reward)
    rows = torch.arange(len(queries))[:, None].expand_as(hard.target)
    exact[rows, hard.target, hard.source] = 1.0
    found["exact"] = exact
    found["drawn"] = torch.zeros_like(reward).scatter(2, data.chosen[queries][..., None], 1.0)
    return found


@styled
def alignments(found: Mapping[str, Tensor], title: str = "") -> Figure:
    """Draw plans of pairs, one row per pair and one column per way to find them (figure 11)."""
    count, m, n = next(iter(found.values())).shape
    height = max(1.0, WIDE_IN / len(found) * min(1.0, 2 * m / n))
    figure = Figure(figsize=(WIDE_IN, 0.6 + count * height), layout="constrained")
    panels = _panels(figure, count, len(found))
    for i in range(count):
        for j, (name, plan) in enumerate(found.items()):
            axes = panels[i * len(found) + j]
            axes.imshow(plan[i].numpy(), cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
            if i == 0:
                axes.set_title(name, fontsize=9)
            if i == count - 1:
                axes.set_xlabel("corpus window", fontsize=8)
            if j == 0:
                axes.set_ylabel("query", fontsize=8)
    set_title(figure, title)
    return figure


@styled
def index_curves(rows: Mapping[str, Sequence[Mapping[str, float]]], title: str = "") -> Figure:
    """Draw MAP against the share of the corpus that is retrieved (figure 4), one line per index."""
    figure = Figure(figsize=(6.2, 3.8), layout="constrained")
    (axes,) = _panels(figure, 1, 1, grid=True)
    for name, look in looks(rows).items():
        points = sorted((100 * row["share"], row["MAP"]) for row in rows[name] if row["share"] > 0)
        shares, scores = zip(*points) if points else ((), ())
        axes.plot(shares, scores, marker=look.marker, linestyle=look.dash, color=look.colour, label=name)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("retrieved share of the corpus (%)")
    axes.set_ylabel("MAP, ranked by OPAS")
    axes.set_ylim(-0.03, 1.03)
    axes.legend(frameon=False, fontsize=8)
    set_title(figure, title)
    return figure


def _panels(figure: Figure, rows: int, columns: int, grid: bool = False) -> list[Axes]:
    panels: Any = figure.subplots(rows, columns, squeeze=False)
    return [tidy(axes, grid=grid) for axes in panels.ravel()]
