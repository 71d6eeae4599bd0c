"""The frontier of text against times: error rate against intersection duration ratio, one point per system."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

from isotone.report.panels import NAME_LENGTH, new_figure, say_empty
from isotone.report.style import MUTED, Look, drawable, looks, set_title, short, styled

# Sides of a point that a name may stand on, in order of preference: right is (1, 0), above is (0, 1).
_SIDES = [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)]
_HORIZONTAL = {-1: "right", 0: "center", 1: "left"}
_VERTICAL = {-1: "top", 0: "center", 1: "bottom"}


@styled
def frontier_figure(
    points: Mapping[str, tuple[float, float]],
    spreads: Mapping[str, tuple[float, float]] | None = None,
    *,
    error: str = "phone error rate (%)",
    timing: str = "IDR (%)",
    title: str = "",
) -> Figure:
    """Draw error rate against intersection duration ratio: the price in text that a system pays for its times.

    Better is left and up; a line joins the systems that no other system beats in both.

    Args:
        points: For every system, its error rate and its IDR, both in percent.
        spreads: For every system, the standard deviations of both over its seeds, where known: half the length of
            its bars.
        error, timing: Names of the axes, with units.
        title: Heading.
    """
    figure, (axes,) = new_figure(height=4.4)
    styles = looks(points)
    kept = {n: (float(x), float(y)) for n, (x, y) in points.items() if math.isfinite(x) and math.isfinite(y)}
    if not kept:
        return say_empty(figure, axes, "no scores")
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
    """Return the names of the points that no other beats in both (lower x, higher y is better), by rising x."""
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
    """Write each name beside its point, on the first of eight sides where it meets nothing else.

    Own code: adjustText takes five times as long, puts names on other systems' marks, and knows no bars.
    """
    figure.draw_without_rendering()  # fixes the layout, so that boxes can be measured
    figure.set_layout_engine("none")
    taken = _marks(figure, axes, points, reach)
    if len(best) > 1:
        taken += _line(axes, [points[n] for n in best], 8 * figure.dpi / 72)
    room = axes.get_window_extent()
    for name, xy in points.items():
        label = axes.annotate(
            short(name, NAME_LENGTH), xy, (0, 0), textcoords="offset points", size=9, color=styles[name].colour,
            fontweight="bold",
        )  # fmt: skip
        scores = []
        for side in _SIDES:
            box = _put(label, *side)
            hit = sum(box.overlaps(other) for other in taken)
            out = not (room.x0 <= box.x0 and box.x1 <= room.x1 and room.y0 <= box.y0 and box.y1 <= room.y1)
            scores.append(hit + 2 * out)
        taken.append(_put(label, *_SIDES[int(np.argmin(scores))]))


def _put(label: Annotation, dx: int, dy: int) -> Bbox:
    """Put a name on a side of its point, and return its box."""
    label.set(ha=_HORIZONTAL[dx], va=_VERTICAL[dy], position=(9 * dx, 9 * dy if dx == 0 else 5 * dy))
    return label.get_window_extent()


def _marks(
    figure: Figure,
    axes: Axes,
    points: Mapping[str, tuple[float, float]],
    reach: Mapping[str, tuple[float, float]],
) -> list[Bbox]:
    """Return the boxes of the points' marks and bars, in pixels."""
    size = 6 * figure.dpi / 72
    pixels = [axes.transData.transform(p) for p in points.values()]
    boxes = [Bbox.from_extents(x - size, y - size, x + size, y + size) for x, y in pixels]
    for name, (x, y) in points.items():
        for dx, dy in ((reach[name][0], 0.0), (0.0, reach[name][1])):
            (left, bottom), (right, top) = axes.transData.transform([(x - dx, y - dy), (x + dx, y + dy)])
            boxes.append(Bbox.from_extents(left - 1, bottom - 1, right + 1, top + 1))
    return boxes


def _line(axes: Axes, points: Sequence[tuple[float, float]], step: float) -> list[Bbox]:
    """Return small boxes along the line through some points, ``step`` pixels apart."""
    corners: NDArray[np.float64] = axes.transData.transform(points)
    length = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(corners, axis=0).T))])
    along = np.linspace(0, length[-1], 2 + int(length[-1] / step))
    line = np.column_stack([np.interp(along, length, corners[:, k]) for k in (0, 1)])
    return [Bbox.from_extents(x - 1, y - 1, x + 1, y + 1) for x, y in line]
