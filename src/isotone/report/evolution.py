"""The evolution of an alignment in training: the token of each frame, epoch after epoch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray

from isotone.alignment import Tier
from isotone.report.style import ALTERNATING, INK, WIDE_IN, set_title, styled, text_width, tidy, tint
from isotone.report.tiers import boundaries, label_above

_RIGHT_IN = 0.15


@styled
def evolution_figure(
    steps: Sequence[int],
    tokens: NDArray[np.integer],
    hop_s: float,
    *,
    offset_s: float = 0.0,
    reference: Tier | None = None,
    unit: str = "epoch",
    title: str = "",
) -> Figure:
    """Draw the evolution of one utterance's alignment in training: epoch by frame (Fig. 7 of the OTTC paper).

    Neighbouring groups of frames alternate in colour and a token keeps its colour in every row; frames of no
    token (blank) are white. The panel on the right shows the share of frames that changed their token since
    the row above.

    Args:
        steps: ``(E,)`` steps or epochs, in order.
        tokens: ``(E, T)`` number of the token of each frame, -1 for blank.
        hop_s, offset_s: Frame t covers ``offset_s + t * hop_s`` to ``offset_s + (t + 1) * hop_s`` seconds.
        reference: Its boundaries are drawn as lines over all rows, and its labels above, where given.
        unit: What ``steps`` counts.
        title: Heading.

    Raises:
        ValueError: ``tokens`` is not ``(E, T)`` with one row per step, or is empty.
    """
    tokens = np.asarray(tokens)
    if tokens.ndim != 2 or tokens.shape[0] != len(steps) or not tokens.size:
        raise ValueError(
            f"evolution_figure expects tokens (E, T), E = steps; got {tokens.shape} for {len(steps)} steps."
        )
    count, frames = tokens.shape
    end = offset_s + frames * hop_s
    top, bottom = 0.1 + (0.3 if title else 0) + (0.2 if reference is not None else 0), 0.52
    left, gap, side = 0.35 + text_width(f"{max(steps):,}", 9) + 0.3, 0.12, 1.1
    height = float(np.clip(0.11 * count, 1.3, 5.0))
    total = top + height + bottom
    width = WIDE_IN - left - gap - side - _RIGHT_IN
    figure = Figure(figsize=(WIDE_IN, total))
    axes = tidy(figure.add_axes((left / WIDE_IN, bottom / total, width / WIDE_IN, height / total)))
    image = np.where(tokens < 0, 0, 1 + tokens % 2)
    axes.imshow(
        image, cmap=ListedColormap(["white", *ALTERNATING]), vmin=0, vmax=2, aspect="auto",
        interpolation="nearest", extent=(offset_s, end, count - 0.5, -0.5),
    )  # fmt: skip
    rows = _row_ticks(count, height)
    axes.set_yticks(rows, [f"{steps[i]:,}" for i in rows])
    axes.set_ylabel(unit)
    axes.set_xlabel("time (s)")
    if reference is not None:
        lines = boundaries(reference, offset_s, end)
        # a white rim keeps the lines visible on both colours
        axes.vlines(lines, -0.5, count - 0.5, color="white", lw=1.8, alpha=0.9)
        axes.vlines(lines, -0.5, count - 0.5, color="#d1242f", lw=0.8, gid="reference")
        label_above(axes, reference, (offset_s, end), width / (end - offset_s))
    axes.set_xlim(offset_s, end)
    box = ((left + width + gap) / WIDE_IN, bottom / total, side / WIDE_IN, height / total)
    _draw_changes(figure, box, tokens)
    set_title(figure, title)
    return figure


def _row_ticks(count: int, height_in: float) -> list[int]:
    every = max(1, int(np.ceil(count / max(2, height_in / 0.3))))
    for nice in (1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000):
        if nice >= every:
            every = nice
            break
    return list(range(0, count, every))


def _draw_changes(
    figure: Figure, box: tuple[float, float, float, float], tokens: NDArray[np.integer]
) -> None:
    axes = tidy(figure.add_axes(box))
    changed = 100.0 * (tokens[1:] != tokens[:-1]).mean(axis=1)
    axes.barh(np.arange(1, len(tokens)), changed, height=0.8, color=tint(INK, 0.45), linewidth=0)
    axes.set_ylim(len(tokens) - 0.5, -0.5)
    axes.set_xlim(0, max(5.0, float(changed.max(initial=0.0)) * 1.08))
    axes.set_yticks([])
    axes.locator_params(axis="x", nbins=3)
    axes.set_xlabel("frames moved (%)")
