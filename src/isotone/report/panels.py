"""Figures of panels with one legend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from isotone.report.style import CURVE_IN, MUTED, short, text_width, tidy

#: Characters of a system's name in a legend.
NAME_LENGTH = 30


def new_figure(
    rows: int = 1, columns: int = 1, *, width: float = CURVE_IN, height: float = 3.7
) -> tuple[Figure, list[Axes]]:
    """Make a figure of panels in the house's style; sizes in inches."""
    figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.08))
    grid = figure.subplots(rows, columns, squeeze=False)
    return figure, [tidy(axes, grid=True) for axes in grid.ravel()]


def add_legend(figure: Figure, handles: Sequence[Any], names: Sequence[str]) -> None:
    """Add one legend over all panels; explicit, so that a name that starts with an underscore is shown too."""
    shown = [short(n, NAME_LENGTH) for n in names]
    widths = [text_width(n, 9) + 0.68 for n in shown]  # with handle and spacing
    room = figure.get_figwidth() - 0.2
    columns = len(names) if sum(widths) <= room else max(1, int(room / max(widths)))
    figure.legend(handles, shown, loc="outside lower center", ncols=columns, handlelength=2.4)


def say_empty(figure: Figure, axes: Axes, message: str) -> Figure:
    """Write in the middle of a panel why there is nothing to show."""
    axes.text(0.5, 0.5, message, transform=axes.transAxes, ha="center", va="center", color=MUTED)
    return figure
