"""The range of a measure over orders of tied items: TALR's figure 3."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from isotone.evaluation.ranking import Spread
from isotone.report.style import CURVE_IN, INK, drawable, looks, set_title, short, styled, tidy


@styled
def tie_range_figure(
    spreads: Mapping[str, Spread], *, measure: str = "mean average precision", title: str = ""
) -> Figure:
    """Draw for each system a bar from the worst to the best order of tied items, and a dot at the mean over orders.

    Where two bars overlap, the order of ties decides which system looks better.

    Args:
        spreads: Of each system, such as :func:`isotone.evaluation.ranking.average_precision_range` gives;
            queries without a value are left out of its means.
        measure: What the axis shows.
        title: Heading.

    Raises:
        ValueError: there are no systems.
    """
    if not spreads:
        raise ValueError("tie_range_figure expects at least one system; got none.")
    size = (CURVE_IN, 1.1 + 0.42 * len(spreads))
    figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.08))
    axes = tidy(figure.subplots(), grid=True)
    styles = looks(spreads)
    for row, (name, spread) in enumerate(spreads.items()):
        low, mean, high = (float(np.nanmean(values)) if len(values) else np.nan for values in spread)
        axes.barh(row, high - low, left=low, height=0.5, color=styles[name].colour, alpha=0.45, zorder=2)
        axes.plot([mean], [row], marker="o", color=INK, ls="none", ms=5, zorder=3)
    axes.set_yticks(range(len(spreads)), [short(drawable(name), 30) for name in spreads])
    axes.invert_yaxis()
    axes.use_sticky_edges = False
    axes.autoscale_view()
    axes.set_xlabel(measure)
    if title:
        set_title(figure, title)
    return figure
