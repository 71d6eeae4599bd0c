"""Scores and losses as curves: collars, training, boundary errors, and the frontier of text against times."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

from isotone.report.style import (
    CURVE_IN,
    INK,
    MUTED,
    WIDE_IN,
    Look,
    drawable,
    looks,
    set_title,
    short,
    styled,
    text_width,
    tidy,
)

_NAME = 30  # characters of a system's name in a legend


def _new(
    rows: int = 1, columns: int = 1, *, width: float = CURVE_IN, height: float = 3.7
) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.08))
    grid = figure.subplots(rows, columns, squeeze=False)
    return figure, [tidy(axes, grid=True) for axes in grid.ravel()]


def _legend(figure: Figure, handles: Sequence[Any], names: Sequence[str]) -> None:
    """One legend over all panels; explicit, so that a name that starts with an underscore is shown too."""
    shown = [short(n, _NAME) for n in names]
    widths = [text_width(n, 9) + 0.68 for n in shown]  # with handle and spacing
    room = figure.get_figwidth() - 0.2
    columns = len(names) if sum(widths) <= room else max(1, int(room / max(widths)))
    figure.legend(handles, shown, loc="outside lower center", ncols=columns, handlelength=2.4)


def _none(figure: Figure, axes: Axes, what: str) -> Figure:
    axes.text(0.5, 0.5, what, transform=axes.transAxes, ha="center", va="center", color=MUTED)
    return figure


@styled
def collar_figure(
    curves: Mapping[str, Mapping[float, float]],
    bands: Mapping[str, Mapping[float, tuple[float, float]]] | None = None,
    *,
    measure: str = "start F1 (%)",
    collars_s: Sequence[float] = (),
    title: str = "",
) -> Figure:
    """A score against the collar within which a boundary counts as found.

    Args:
        curves: For every system, the score in percent by collar in seconds.
        bands: For every system, the confidence interval (low, high) in percent by collar, where known.
        measure: What the score is, with its unit.
        collars_s: Collars to mark, such as the headline's.
        title: Heading.
    """
    figure, (axes,) = _new()
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
        return _none(figure, axes, "no scores")
    _collar_axis(axes, every)
    axes.set_ylabel(drawable(measure))
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    bottom, top = axes.get_ylim()
    axes.set_ylim(max(0.0, bottom), min(top, 101.5))
    set_title(figure, title)
    _legend(figure, handles, list(curves))
    return figure


def _collar_axis(axes: Axes, collars_ms: Sequence[float]) -> None:
    """Logarithmic where the collars span a decade (they are chosen so), with a tick at each that has room."""
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
    """Loss (and whatever else was logged) against the step, one panel a term, one line a system.

    Long noisy curves are drawn faint, under their running mean over a 25th of their points.

    Args:
        history: For every system, records with ``"step"`` and whatever was logged there; what is no finite
            number is left out.
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
        figure, (axes,) = _new()
        return _none(figure, axes, "nothing was logged")
    columns = 2 if len(terms) == 4 else min(3, len(terms))
    rows = -(-len(terms) // columns)
    figure, panels = _new(rows, columns, width=CURVE_IN if columns == 1 else WIDE_IN, height=0.7 + 2.4 * rows)
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
        _legend(figure, handles, list(styles))
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
    # a centred mean over what there is: the ends are means of fewer points, not of padding
    sums = np.concatenate([[0.0], np.cumsum(values)])
    index = np.arange(len(values))
    first, last = np.maximum(index - size // 2, 0), np.minimum(index + size // 2 + 1, len(values))
    axes.plot(steps, (sums[last] - sums[first]) / (last - first), color=look.colour, ls=look.dash)


@styled
def error_figure(
    errors: Mapping[str, NDArray[np.floating]], *, limit_s: float = 0.1, title: str = ""
) -> Figure:
    """Signed boundary errors: how they are distributed, and what share lies within a tolerance.

    Left, the density of the signed error (right of zero: placed too late) with the median marked; right, the
    share of boundaries whose absolute error is at most x. Errors past the limit are not drawn on the left;
    the legend says how many there are. They count in both shares and medians.

    Args:
        errors: For every system, ``(N,)`` predicted minus reference times in seconds.
        limit_s: Both panels end here.
        title: Heading.

    Raises:
        ValueError: ``limit_s`` is not positive, or an error is not finite.
    """
    if limit_s <= 0:
        raise ValueError(f"error_figure expects limit_s > 0 seconds; got {limit_s}.")
    figure, (density, share) = _new(1, 2, width=WIDE_IN, height=3.9)
    styles = looks(errors)
    limit = 1000 * limit_s
    bins = np.linspace(-limit, limit, 81)
    names = []
    for name, values in errors.items():
        look = styles[name]
        ms = 1000 * np.asarray(values, dtype=float)
        if not np.isfinite(ms).all():
            raise ValueError(
                f"error_figure expects finite errors in seconds; those of {name!r} hold NaN or infinity."
            )
        if not len(ms):
            names.append(f"{short(name, _NAME)}: no boundaries")
            continue
        counts, _ = np.histogram(ms, bins)
        density.stairs(
            100 * counts / len(ms) / (bins[1] - bins[0]), bins, color=look.colour, lw=1.6, ls=look.dash
        )
        density.axvline(float(np.median(ms)), color=look.colour, lw=1.0, ls=look.dash, ymax=0.06)
        outside = 100 * float((np.abs(ms) > limit).mean())
        median = f"{np.median(ms):+.1f}".replace("-", "\u2212")
        names.append(
            f"{short(name, _NAME)}: median {median} ms, {outside:.1f} % beyond {limit:g} ms (n = {len(ms):,})"
        )
        order = np.sort(np.abs(ms))
        x = np.concatenate([[0.0], order[order <= limit], [limit]])
        y = 100 * np.searchsorted(order, x, side="right") / len(order)
        share.step(x, y, where="post", color=look.colour, ls=look.dash)
    density.axvline(0, color=INK, lw=0.8, zorder=1)
    density.set_xlim(-limit, limit)
    density.set_ylim(bottom=0)
    density.set_xlabel("error (ms): early  ◂  0  ▸  late")
    density.set_ylabel("boundaries (% per ms)")
    share.set_xlim(0, limit)
    share.set_ylim(0, 101.5)
    share.set_xlabel("tolerance (ms)")
    share.set_ylabel("boundaries within it (%)")
    set_title(figure, title)
    handles = [Line2D([], [], color=look.colour, ls=look.dash) for look in styles.values()]
    if handles:
        figure.legend(handles, names, loc="outside lower left", ncols=1, handlelength=2.4)
    return figure


@styled
def frontier_figure(
    points: Mapping[str, tuple[float, float]],
    spreads: Mapping[str, tuple[float, float]] | None = None,
    *,
    error: str = "phone error rate (%)",
    timing: str = "IDR (%)",
    title: str = "",
) -> Figure:
    """What a system pays in text for its times: error rate against intersection duration ratio.

    Better is left and up; a line joins the systems that no other beats in both.

    Args:
        points: For every system, its error rate and its IDR, both in percent.
        spreads: For every system, how far the bars reach on each side of its point, where known: the standard
            deviations of both over its seeds.
        error, timing: Names of the axes, with units.
        title: Heading.
    """
    figure, (axes,) = _new(height=4.4)
    styles = looks(points)
    kept = {n: (float(x), float(y)) for n, (x, y) in points.items() if math.isfinite(x) and math.isfinite(y)}
    if not kept:
        return _none(figure, axes, "no scores")
    best = frontier(kept)
    if len(best) > 1:
        axes.plot(*zip(*(kept[n] for n in best)), color=MUTED, lw=1.0, ls=(0, (2, 2)), zorder=1)
    reach = {n: (spreads or {}).get(n, (0.0, 0.0)) for n in kept}
    for name, (x, y) in kept.items():
        across, up = reach[name]
        axes.errorbar(
            x, y, xerr=across or None, yerr=up or None, marker=styles[name].marker, color=styles[name].colour,
            ms=9, mec="white", mew=0.8, ls="none", elinewidth=1.2, capsize=2.5,
        )  # fmt: skip
    axes.margins(0.16, 0.14)
    axes.set_xlabel(f"{drawable(error)}   ◂ better")
    axes.set_ylabel(f"{drawable(timing)}   better ▸")
    set_title(figure, title)
    _name_points(figure, axes, kept, reach, styles, best)
    return figure


def frontier(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """The names of the points that no other beats in both (lower x, higher y is better), by rising x."""
    best: list[str] = []
    top = -math.inf
    for name in sorted(points, key=lambda n: (points[n][0], -points[n][1])):
        if points[name][1] > top:
            best.append(name)
            top = points[name][1]
    return best


def _name_points(
    figure: Figure,
    axes: Axes,
    points: Mapping[str, tuple[float, float]],
    reach: Mapping[str, tuple[float, float]],
    styles: Mapping[str, Look],
    best: Sequence[str],
) -> None:
    """Write each name beside its point, on the first of eight sides where it meets nothing else."""
    figure.draw_without_rendering()  # fixes the layout, so that boxes can be measured
    figure.set_layout_engine("none")
    at = {n: axes.transData.transform(p) for n, p in points.items()}
    point = figure.dpi / 72
    taken = [
        Bbox.from_extents(x - 6 * point, y - 6 * point, x + 6 * point, y + 6 * point) for x, y in at.values()
    ]
    for n, (x, y) in points.items():  # the bars and the frontier's line are no places for a name either
        for dx, dy in ((reach[n][0], 0.0), (0.0, reach[n][1])):
            (left, bottom), (right, top) = axes.transData.transform([(x - dx, y - dy), (x + dx, y + dy)])
            taken.append(Bbox.from_extents(left - 1, bottom - 1, right + 1, top + 1))
    if len(best) > 1:
        corners = np.array([at[n] for n in best])
        length = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(corners, axis=0).T))])
        along = np.linspace(0, length[-1], 2 + int(length[-1] / (8 * point)))
        line = np.column_stack([np.interp(along, length, corners[:, k]) for k in (0, 1)])
        taken += [Bbox.from_extents(x - 1, y - 1, x + 1, y + 1) for x, y in line]
    room = axes.get_window_extent()
    sides = [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)]
    align = {-1: "right", 0: "center", 1: "left"}
    stand = {-1: "top", 0: "center", 1: "bottom"}
    for name, xy in points.items():
        label = axes.annotate(
            short(name, _NAME),
            xy,
            (0, 0),
            textcoords="offset points",
            size=9,
            color=styles[name].colour,
            fontweight="bold",
        )
        scores = []
        for dx, dy in sides:
            label.set(ha=align[dx], va=stand[dy], position=(9 * dx, 9 * dy if dx == 0 else 5 * dy))
            box = label.get_window_extent()
            hit = sum(box.overlaps(other) for other in taken)
            out = not (room.x0 <= box.x0 and box.x1 <= room.x1 and room.y0 <= box.y0 and box.y1 <= room.y1)
            scores.append(hit + 2 * out)
        dx, dy = sides[int(np.argmin(scores))]
        label.set(ha=align[dx], va=stand[dy], position=(9 * dx, 9 * dy if dx == 0 else 5 * dy))
        taken.append(label.get_window_extent())
