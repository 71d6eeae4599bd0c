"""Scores and losses as curves: start F1 by collar, and what training logged."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from isotone.report.panels import add_legend, new_figure, say_empty
from isotone.report.style import CURVE_IN, MUTED, WIDE_IN, Look, drawable, looks, set_title, short, styled


@styled
def collar_figure(
    curves: Mapping[str, Mapping[float, float]],
    bands: Mapping[str, Mapping[float, tuple[float, float]]] | None = None,
    *,
    measure: str = "start F1 (%)",
    collars_s: Sequence[float] = (),
    title: str = "",
) -> Figure:
    """Draw a score against the collar within which a boundary counts as found.

    Args:
        curves: For every system, the score in percent by collar in seconds.
        bands: For every system, the confidence interval (low, high) in percent by collar, where known.
        measure: What the score is, with its unit.
        collars_s: Collars to mark, such as the headline's.
        title: Heading.
    """
    figure, (axes,) = new_figure()
    styles = looks(curves)
    handles = []
    for name, curve in curves.items():
        look = styles[name]
        x = np.array(sorted(curve), dtype=float)
        (line,) = axes.plot(
            1000 * x, [curve[c] for c in x], color=look.colour, ls=look.dash, marker=look.marker, zorder=3
        )
        handles.append(line)
        if band := (bands or {}).get(name):
            low, high = np.array([band[c] for c in sorted(band)], dtype=float).reshape(-1, 2).T
            axes.fill_between(
                1000 * np.array(sorted(band)), low, high, color=look.colour, alpha=0.16, linewidth=0
            )
    for collar in collars_s:
        axes.axvline(1000 * collar, color=MUTED, lw=0.9, ls=(0, (2, 2)), zorder=1)
    every = sorted({1000 * c for curve in curves.values() for c in curve})
    if not every:
        return say_empty(figure, axes, "no scores")
    _collar_axis(axes, every)
    axes.set_ylabel(drawable(measure))
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    bottom, top = axes.get_ylim()
    axes.set_ylim(max(0.0, bottom), min(top, 101.5))
    set_title(figure, title)
    add_legend(figure, handles, list(curves))
    return figure


def _collar_axis(axes: Axes, collars_ms: Sequence[float]) -> None:
    """Set the axis: logarithmic where the collars span a decade, with a tick at each collar that has room."""
    positive = [c for c in collars_ms if c > 0]
    if len(positive) == len(collars_ms) and collars_ms[-1] >= 8 * collars_ms[0]:
        axes.set_xscale("log")
        ticks: list[float] = []
        room = math.log(collars_ms[-1] / collars_ms[0]) / 14
        for c in collars_ms:
            if not ticks or math.log(c / ticks[-1]) >= room:
                ticks.append(c)
        axes.set_xticks(ticks, [f"{c:g}" for c in ticks])
        axes.set_xticks([], minor=True)
    axes.set_xlabel("collar (ms)")


@styled
def training_figure(
    history: Mapping[str, Sequence[Mapping[str, Any]]],
    terms: Sequence[str] | None = None,
    *,
    marks: Mapping[str, float] | None = None,
    title: str = "",
) -> Figure:
    """Draw loss (and whatever else was logged) against the step: one panel per term, one line per system.

    Long noisy curves are drawn faint, under their running mean over a 25th of their points.

    Args:
        history: For every system, records with ``"step"`` and whatever was logged there; values that are no
            finite numbers are left out.
        terms: The numbers to show, in order; default: all, as they first appear.
        marks: Moments to mark in all panels: name to step.
        title: Heading.
    """
    if terms is None:
        found = (
            k for rows in history.values() for row in rows for k in row if k != "step" and _is_number(row[k])
        )
        terms = list(dict.fromkeys(found))
    if not terms:
        figure, (axes,) = new_figure()
        return say_empty(figure, axes, "nothing was logged")
    columns = 2 if len(terms) == 4 else min(3, len(terms))
    rows = -(-len(terms) // columns)
    figure, panels = new_figure(
        rows, columns, width=CURVE_IN if columns == 1 else WIDE_IN, height=0.7 + 2.4 * rows
    )
    styles = looks(history)
    for axes, term in zip(panels, terms):
        for name, records in history.items():
            points = [(r["step"], r[term]) for r in records if _is_number(r.get(term))]
            if points:
                _draw_history(axes, np.array(sorted(points), dtype=float), styles[name])
        for mark, step in (marks or {}).items():
            axes.axvline(step, color=MUTED, lw=0.9, ls=(0, (2, 2)), zorder=1)
            axes.annotate(
                short(mark, 24), (step, 1), xycoords=("data", "axes fraction"), xytext=(-3, -3),
                textcoords="offset points", rotation=90, ha="right", va="top", size=8, color=MUTED,
            )  # fmt: skip
        axes.set_title(drawable(term))
        axes.set_xlabel("step")
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.0f}"))
    for axes in panels[len(terms) :]:
        axes.set_visible(False)
    set_title(figure, title)
    handles = [Line2D([], [], color=look.colour, ls=look.dash) for look in styles.values()]
    if handles:
        add_legend(figure, handles, list(styles))
    return figure


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _draw_history(axes: Axes, points: NDArray[np.float64], look: Look) -> None:
    steps, values = points.T
    size = len(values) // 25
    if size < 3:
        marker = look.marker if len(values) <= 20 else None
        axes.plot(steps, values, color=look.colour, ls=look.dash, marker=marker, ms=4)
        return
    axes.plot(steps, values, color=look.colour, lw=0.7, alpha=0.25)
    # a centred running mean; at the ends it covers fewer points instead of padding
    sums = np.concatenate([[0.0], np.cumsum(values)])
    index = np.arange(len(values))
    first, last = np.maximum(index - size // 2, 0), np.minimum(index + size // 2 + 1, len(values))
    axes.plot(steps, (sums[last] - sums[first]) / (last - first), color=look.colour, ls=look.dash)
