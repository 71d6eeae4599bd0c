"""OT weights during training: each frame's weight, and the target that holds the frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray

from isotone.alignment import Tier
from isotone.report.style import (
    ALTERNATING,
    INK,
    MUTED,
    REFERENCE,
    RULE,
    WIDE_IN,
    drawable,
    fit_label,
    set_title,
    styled,
    tidy,
    tint,
)
from isotone.report.tiers import boundaries, label_above, window

_LEFT_IN, _RIGHT_IN = 0.95, 0.15
#: Bullets and text of a group; as ALTERNATING, both dark enough on white for small bullets.
_GROUPS = (ALTERNATING[0], "#c77d00")


@dataclass(frozen=True)
class WeightSnapshot:
    """The OT weights of one utterance at one moment of training.

    Attributes:
        step: Optimiser step (or epoch).
        alpha: ``(T,)`` OT weights, non-negative, summing to 1.
        token: ``(T,)`` number of the target that gets most of the frame's mass, -1 where none does.
    """

    step: int
    alpha: NDArray[np.floating]
    token: NDArray[np.integer]

    def __post_init__(self) -> None:
        if self.alpha.ndim != 1 or self.alpha.shape != self.token.shape:
            raise ValueError(
                f"A snapshot has alpha and token of shape (T,); got {self.alpha.shape}, {self.token.shape}."
            )
        if not np.isfinite(self.alpha).all() or (self.alpha < 0).any():
            raise ValueError(f"OT weights are finite and not negative; step {self.step} has others.")


@dataclass(frozen=True)
class Group:
    """A run of frames that one target holds: frames ``first`` to before ``last``."""

    token: int
    first: int
    last: int


def groups(token: NDArray[np.integer]) -> list[Group]:
    """Find the runs of equal targets ``(T,)``, in order; frames of no target (-1) belong to none."""
    if not len(token):
        return []
    cuts = [0, *(np.flatnonzero(np.diff(token)) + 1).tolist(), len(token)]
    return [Group(int(token[a]), a, b) for a, b in pairwise(cuts) if token[a] >= 0]


@styled
def weights_figure(
    snapshots: Sequence[WeightSnapshot],
    labels: Sequence[str],
    hop_s: float,
    *,
    offset_s: float = 0.0,
    reference: Tier | None = None,
    start_s: float | None = None,
    end_s: float | None = None,
    title: str = "",
) -> Figure:
    """Draw OT weights over the targets during training, one row per snapshot (Fig. 5 of the OTTC paper).

    Every frame is a bullet whose area is proportional to its weight alpha, on one scale for all rows;
    neighbouring groups of frames alternate in colour, with their target's label above them. Frames of no
    target are hollow.

    Args:
        snapshots: At least one, all with the same number of frames T.
        labels: The targets' labels ``(U,)``.
        hop_s, offset_s: Frame t covers ``offset_s + t * hop_s`` to ``offset_s + (t + 1) * hop_s`` seconds.
        reference: Its boundaries are drawn through all rows, and its labels above them, where given.
        start_s, end_s: The window in seconds; default: all frames.
        title: Heading.

    Raises:
        ValueError: no snapshots, snapshots of different lengths, a token without a label, or an empty window.
    """
    frames = _check(snapshots, labels)
    start, end = window(offset_s + frames * hop_s, start_s, end_s)
    figure, rows = _stacked_rows(len(snapshots), reference is not None, title)
    inches_per_s = (WIDE_IN - _LEFT_IN - _RIGHT_IN) / (end - start)
    centres = offset_s + (np.arange(frames) + 0.5) * hop_s
    seen = (centres >= start) & (centres <= end)
    largest = max(float(s.alpha[seen].max(initial=0.0)) for s in snapshots)
    uniform = 1.0 / frames
    # the uniform weight fills 3/4 of a frame's width; the largest bullet stays in its row
    unit = min(0.75 * hop_s * inches_per_s, 0.30 * np.sqrt(uniform / max(largest, uniform))) * 72.0
    for axes, snapshot in zip(rows, snapshots):
        area = unit**2 * snapshot.alpha / uniform
        _draw_bullets(axes, snapshot, centres, area, seen)
        _draw_groups(axes, snapshot, labels, centres, (start, end), inches_per_s, hop_s)
        axes.set_xlim(start, end)
        axes.set_ylim(-0.55, 1.15)
        axes.set_yticks([])
        axes.set_ylabel(
            f"step\n{snapshot.step:,}", rotation=0, ha="right", va="center", labelpad=8, color=MUTED
        )
    if reference is not None:
        _draw_reference(rows, reference, (start, end), inches_per_s)
    rows[-1].set_xlabel("time (s)", loc="left")
    note = (
        f"bullet area: OT weight;  the largest is {largest * frames:.1f} times the uniform weight 1/{frames}"
    )
    rows[-1].annotate(
        note, (1, 0), xytext=(0, -24), xycoords="axes fraction", textcoords="offset points", ha="right",
        va="top", size=8.5, color=MUTED,
    )  # fmt: skip
    set_title(figure, title)
    return figure


def _check(snapshots: Sequence[WeightSnapshot], labels: Sequence[str]) -> int:
    lengths = sorted({len(s.alpha) for s in snapshots})
    if len(lengths) != 1 or not lengths[0]:
        raise ValueError(
            f"weights_figure expects snapshots of one utterance, all of T > 0 frames; got lengths {lengths}."
        )
    top = max(int(s.token.max()) for s in snapshots)
    if top >= len(labels):
        raise ValueError(
            f"weights_figure expects a label for every token; got {len(labels)} and token number {top}."
        )
    return lengths[0]


def _stacked_rows(count: int, referenced: bool, title: str) -> tuple[Figure, list[Axes]]:
    row, top, bottom = 0.72, 0.1 + (0.3 if title else 0) + (0.2 if referenced else 0), 0.52
    total = top + row * count + bottom
    figure = Figure(figsize=(WIDE_IN, total))
    rows = []
    for i in range(count):
        box = (
            _LEFT_IN / WIDE_IN,
            (total - top - row * (i + 1)) / total,
            1 - (_LEFT_IN + _RIGHT_IN) / WIDE_IN,
            row / total,
        )
        axes = tidy(figure.add_axes(box))
        axes.spines["left"].set_visible(False)
        if i + 1 < count:
            axes.spines["bottom"].set_color(tint(RULE, 0.6))
            axes.tick_params(labelbottom=False, bottom=False)
        rows.append(axes)
    return figure, rows


def _draw_bullets(
    axes: Axes,
    snapshot: WeightSnapshot,
    centres: NDArray[np.floating],
    area: NDArray[np.floating],
    seen: NDArray[np.bool_],
) -> None:
    held = seen & (snapshot.token >= 0)
    colours = np.array(_GROUPS)[snapshot.token[held] % 2]
    axes.scatter(centres[held], np.zeros(held.sum()), s=area[held], c=colours, linewidths=0, zorder=3)
    free = seen & (snapshot.token < 0)
    axes.scatter(
        centres[free], np.zeros(free.sum()), s=np.maximum(area[free], 4.0), facecolors="none",
        edgecolors=REFERENCE, linewidths=0.7, zorder=3,
    )  # fmt: skip


def _draw_groups(
    axes: Axes,
    snapshot: WeightSnapshot,
    labels: Sequence[str],
    centres: NDArray[np.floating],
    window_s: tuple[float, float],
    inches_per_s: float,
    hop_s: float,
) -> None:
    shown = [
        g for g in groups(snapshot.token) if window_s[0] <= centres[g.first : g.last].mean() <= window_s[1]
    ]
    # the label stands where the mass of its frames is
    mass = [snapshot.alpha[g.first : g.last] + 1e-12 for g in shown]
    at = [float(np.average(centres[g.first : g.last], weights=m)) for g, m in zip(shown, mass)]
    brackets = [
        [(centres[g.first] - hop_s / 2, 0.42), (centres[g.last - 1] + hop_s / 2, 0.42)] for g in shown
    ]
    colours = [_GROUPS[g.token % 2] for g in shown]
    axes.add_collection(LineCollection(brackets, colors=colours, linewidths=2.2, capstyle="butt", zorder=2))
    for i, group in enumerate(shown):
        left = (at[i - 1] + at[i]) / 2 if i else window_s[0]
        right = (at[i] + at[i + 1]) / 2 if i + 1 < len(at) else window_s[1]
        room = 2 * min(at[i] - left, right - at[i]) * inches_per_s
        text = drawable(labels[group.token])
        if fit := fit_label(text, room, 0.26):
            axes.text(
                at[i], 0.78, text, size=fit[0], rotation=fit[1], ha="center", va="center", color=INK,
                clip_on=True,
            )  # fmt: skip


def _draw_reference(
    rows: Sequence[Axes], reference: Tier, window_s: tuple[float, float], inches_per_s: float
) -> None:
    lines = boundaries(reference, *window_s)
    for axes in rows:
        axes.vlines(
            lines, 0, 1, transform=axes.get_xaxis_transform(), color=REFERENCE, lw=0.5, alpha=0.6, zorder=1
        )
    rows[0].text(
        -0.01,
        1.0,
        "reference",
        size=8.5,
        ha="right",
        va="bottom",
        color=REFERENCE,
        transform=rows[0].transAxes,
    )
    label_above(rows[0], reference, window_s, inches_per_s)
