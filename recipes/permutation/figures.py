"""Figures of the experiments: matrices by tau, cost against size, and the matching of two views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

# Colours that the colour-blind can distinguish (Okabe & Ito).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_RIGHT, _WRONG = COLOURS[0], COLOURS[1]

#: Mean of a measure by method and setting.
Means = Mapping[tuple[str, str], tuple[float, float, int]]


def tau_figure(matrices: Mapping[str, Sequence[np.ndarray]], taus: Sequence[float]) -> Figure:
    """Draw a row of matrices per name, from the rotation (tau = 1) to its permutation (tau = 0): figure 5."""
    drawing = Figure(figsize=(1.5 * len(taus), 1.7 * len(matrices)), layout="constrained")
    panels = drawing.subplots(len(matrices), len(taus), squeeze=False)
    for axes_of_row, (name, row) in zip(panels, matrices.items()):
        for axes, matrix, tau in zip(axes_of_row, row, taus):
            image = axes.imshow(matrix, cmap="RdBu_r", vmin=-1, vmax=1)
            axes.set_xticks([])
            axes.set_yticks([])
            axes.set_title(f"{name}, $\\tau$ = {tau:g}", fontsize=8)
    drawing.colorbar(image, ax=panels, shrink=0.6)
    return drawing


def cost_figure(measures: Mapping[str, Means], settings: Sequence[str], methods: Sequence[str]) -> Figure:
    """Draw one panel per measure, by its label, with one line per method over the settings: figure 6."""
    drawing = Figure(figsize=(4.2 * len(measures), 3.4), layout=ConstrainedLayoutEngine(w_pad=0.1))
    for axes, (label, values) in zip(np.atleast_1d(drawing.subplots(1, len(measures))), measures.items()):
        for method, colour in zip(methods, COLOURS):
            means = [values[method, setting][0] for setting in settings if (method, setting) in values]
            axes.plot(range(len(means)), means, marker="o", color=colour, label=method)
        axes.set_xticks(range(len(settings)), settings)
        axes.set_ylabel(label)
        axes.grid(True, axis="y", color="0.9")
        axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    return drawing


def matching_figure(
    positions: np.ndarray, true: Sequence[int], found: Mapping[str, Sequence[int]], title: str
) -> Figure:
    """Draw two views beside each other, with a line from every point to its match: figure 7.

    Args:
        positions: ``(2, n, 2)`` of the points in both views.
        true: The second view's point of every point of the first.
        found: The same as each method has it. Wrong ones are dashed.
        title: Heading.
    """
    rows, columns = -(-len(found) // 4), min(4, len(found))
    drawing = Figure(figsize=(3.6 * columns, 2.7 * rows), layout="constrained")
    panels = np.atleast_1d(drawing.subplots(rows, columns)).ravel()
    for axes in panels:
        axes.set_axis_off()
    first, second = positions
    # beside the first view
    second = second + np.array([1.3 * np.ptp(positions[:, :, 0]), 0.0])
    for axes, (name, matches) in zip(panels, found.items()):
        for point, (match, right) in enumerate(zip(matches, true)):
            ends = np.stack([first[point], second[match]])
            wrong = match != right
            axes.plot(*ends.T, color=_WRONG if wrong else _RIGHT, ls="--" if wrong else "-", lw=0.9)
        axes.plot(*np.concatenate([first, second]).T, ls="none", marker=".", color="black", ms=4)
        share = 100 * float(np.mean(np.equal(matches, true)))
        axes.set_title(f"{name}: {share:.0f} % right", fontsize=9)
    drawing.suptitle(title, fontsize=10)
    return drawing
