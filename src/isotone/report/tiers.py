"""The wave, its spectrogram and the segments of every system, as one figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from isotone.alignment import SILENCE, Alignment, Segment, Tier
from isotone.report.spectrum import Array, mono, outline, spectrogram
from isotone.report.style import (
    INK,
    MUTED,
    REFERENCE,
    RULE,
    WIDE_IN,
    Look,
    drawable,
    fit_label,
    looks,
    set_title,
    short,
    styled,
    text_width,
    tidy,
    tint,
)

_ROW_IN = 0.46
#: Closer boundaries than this would hide the panels behind them.
_LINES_PER_INCH = 25
_FILL = 0.78  # share of a row's height that the segment takes


@dataclass(frozen=True)
class Placed:
    """A segment inside the window, and the room for its label: to the middle of the gaps on both sides."""

    segment: Segment
    start_s: float
    end_s: float
    room_s: tuple[float, float]


def window(duration_s: float, start_s: float | None, end_s: float | None) -> tuple[float, float]:
    """Return the part of a recording to show, in seconds.

    Args:
        duration_s: Seconds of audio.
        start_s, end_s: The requested part; None is the recording's own start or end. An end past the audio
            is cut.

    Raises:
        ValueError: nothing would be shown.
    """
    start = 0.0 if start_s is None else max(0.0, start_s)
    end = duration_s if end_s is None else min(duration_s, end_s)
    if not start < end:
        raise ValueError(
            f"A window expects 0 <= start_s < end_s within {duration_s:.3f} s; got {start_s} .. {end_s}."
        )
    return start, end


def placed(tier: Tier, start_s: float, end_s: float) -> list[Placed]:
    """Return the labelled segments of a tier in a window, cut to it, with the room for their labels."""
    seen = [s for s in tier if s.label and s.end >= start_s and s.start <= end_s]
    cut = [(max(s.start, start_s), min(s.end, end_s)) for s in seen]
    out = []
    for i, (segment, (start, end)) in enumerate(zip(seen, cut)):
        left = (cut[i - 1][1] + start) / 2 if i else start_s
        right = (end + cut[i + 1][0]) / 2 if i + 1 < len(cut) else end_s
        # a label stays centred on its segment
        half = min((start + end) / 2 - left, right - (start + end) / 2)
        out.append(Placed(segment, start, end, ((start + end) / 2 - half, (start + end) / 2 + half)))
    return out


def boundaries(tier: Tier, start_s: float, end_s: float) -> list[float]:
    """Return the times in a window at which a labelled segment of a tier starts or ends, in order, each once."""
    times = {t for s in tier if s.label for t in (s.start, s.end)}
    return sorted(t for t in times if start_s <= t <= end_s)


def label_above(axes: Axes, reference: Tier, window_s: tuple[float, float], inches_per_s: float) -> None:
    """Write a tier's labels in a row above a panel, those that have room."""
    for p in placed(reference, *window_s):
        text = drawable(p.segment.label)
        fit = fit_label(text, (p.end_s - p.start_s) * inches_per_s, 0.2)
        if fit and fit[1] == 0:
            axes.text(
                (p.start_s + p.end_s) / 2, 1.0, text, size=fit[0], ha="center", va="bottom", color=REFERENCE,
                transform=axes.get_xaxis_transform(),
            )  # fmt: skip


@styled
def tiers_figure(
    audio: NDArray[np.floating],
    sample_rate: int,
    alignments: Mapping[str, Alignment],
    tier: str | Sequence[str] = "phones",
    *,
    start_s: float | None = None,
    end_s: float | None = None,
    title: str = "",
) -> Figure:
    """Draw wave, spectrogram and one row of labelled segments per system (Fig. 4 of the OTTC paper).

    The first system is the reference: the boundaries of its first tier run through every panel as thin lines. Rows show
    segments as they are: the holes of a peaky CTC alignment stay holes. A label without room is set smaller,
    then turned, then left out; lines that crowd are left out too. A shorter window brings both back.

    Args:
        audio: ``(N,)`` mono samples.
        sample_rate: Samples per second.
        alignments: Alignment by system, the reference first; times from the start of ``audio``.
        tier: Name of the tier that is shown of each; or several, one below the other.
        start_s, end_s: The window in seconds; default: the whole recording.
        title: Heading.

    Raises:
        ValueError: no alignments, an empty window, or audio that cannot be drawn.
        KeyError: an alignment has no such tier.
    """
    samples = mono(audio, sample_rate)
    if not alignments:
        raise ValueError("tiers_figure expects at least one alignment, the reference first; got none.")
    names = [tier] if isinstance(tier, str) else list(tier)
    shown = {(t, system): a.tier(t) for t in names for system, a in alignments.items()}
    titles = {row: row[1] if len(names) == 1 else f"{row[0]}: {row[1]}" for row in shown}
    first = next(iter(shown))
    start, end = window(len(samples) / sample_rate, start_s, end_s)
    figure, (wave, spectrum, rows), inches_per_s = _panels(list(titles.values()), end - start, bool(title))
    _draw_audio(wave, spectrum, samples, sample_rate, (start, end))
    styles = looks(alignments, first[1])
    for i, ((_, system), row) in enumerate(shown.items()):
        strong = system != first[1]
        _draw_row(rows, i, placed(row, start, end), styles[system], inches_per_s, strong=strong)
    lines = boundaries(shown[first], start, end)
    if len(lines) > _LINES_PER_INCH * WIDE_IN:
        lines = []
    for axes in (wave, spectrum, rows):
        axes.vlines(
            lines, 0, 1, transform=axes.get_xaxis_transform(), color=REFERENCE, lw=0.55, alpha=0.7, zorder=4
        )
        axes.set_xlim(start, end)
    rows.set_ylim(len(shown) - 0.5, -0.5)
    rows.set_yticks(range(len(shown)), [short(n, 22) for n in titles.values()], fontweight="bold")
    for label, (_, system) in zip(rows.get_yticklabels(), shown):
        label.set_color(styles[system].colour)
    rows.set_xlabel("time (s)")
    set_title(figure, title)
    return figure


def _panels(
    names: Sequence[str], seconds: float, titled: bool
) -> tuple[Figure, tuple[Axes, Axes, Axes], float]:
    """Make figure and panels; margins are fixed, so that labels can be fitted before drawing.

    Returns:
        The figure, its panels, and inches per second.
    """
    left = max(0.75, *(text_width(short(n, 22), 9) * 1.2 + 0.25 for n in names))
    right, top, bottom, gap = 0.15, 0.36 if titled else 0.1, 0.48, 0.06
    heights = (0.62, 1.35, _ROW_IN * len(names))
    total = top + sum(heights) + 2 * gap + bottom
    figure = Figure(figsize=(WIDE_IN, total))
    width = WIDE_IN - left - right
    panels = []
    at = total - top
    for height in heights:
        at -= height
        axes = figure.add_axes((left / WIDE_IN, at / total, width / WIDE_IN, height / total))
        panels.append(tidy(axes))
        at -= gap
    return figure, (panels[0], panels[1], panels[2]), width / seconds


def _draw_audio(
    wave: Axes, spectrum: Axes, samples: Array, sample_rate: int, window_s: tuple[float, float]
) -> None:
    first, last = (round(t * sample_rate) for t in window_s)
    part = samples[first : max(last, first + 1)]
    middle, low, high = outline(part, columns=1600)
    seconds = window_s[0] + (middle + 0.5) / sample_rate
    wave.fill_between(seconds, low, high, color="#4a5561", linewidth=0.5, step=None)
    peak = float(np.abs(part).max()) or 1.0
    wave.set_ylim(-1.08 * peak, 1.08 * peak)
    wave.set_yticks([])
    levels, times, hertz = spectrogram(part, sample_rate)
    hop = times[1] - times[0] if len(times) > 1 else window_s[1] - window_s[0]
    spectrum.imshow(
        levels,
        cmap="Greys",
        aspect="auto",
        origin="lower",
        interpolation="bilinear",
        extent=(
            window_s[0] + times[0] - hop / 2,
            window_s[0] + times[-1] + hop / 2,
            0.0,
            float(hertz[-1]) / 1000,
        ),
    )
    spectrum.set_ylabel("kHz", color=MUTED)
    spectrum.set_yticks([k for k in (0, 2, 4, 6, 8) if k <= hertz[-1] / 1000 + 0.01])
    for axes in (wave, spectrum):
        axes.tick_params(labelbottom=False, bottom=False)
        axes.spines["bottom"].set_visible(False)


def _draw_row(
    axes: Axes, row: int, segments: Sequence[Placed], look: Look, inches_per_s: float, *, strong: bool
) -> None:
    fills = {False: tint(look.colour, 0.42 if strong else 0.22), True: tint(look.colour, 0.08)}
    height = _FILL
    for silent in (False, True):
        spans = [(p.start_s, p.end_s - p.start_s) for p in segments if (p.segment.label in SILENCE) is silent]
        axes.broken_barh(
            spans,
            (row - height / 2, height),
            facecolor=fills[silent],
            edgecolor="white",
            linewidth=0.6,
            zorder=2,
        )
    starts = [p.start_s for p in segments]
    axes.vlines(
        starts, row - height / 2, row + height / 2, color=look.colour, lw=1.3 if strong else 0.8, zorder=5
    )
    axes.axhline(row + 0.5, color=RULE, lw=0.5, zorder=1)
    for text, at_s, (size, rotation), silent in _labels(segments, inches_per_s):
        axes.text(
            at_s, row, text, size=size, rotation=rotation, ha="center", va="center",
            color=MUTED if silent else INK, zorder=6, clip_on=True,
        )  # fmt: skip


def _labels(
    segments: Sequence[Placed], inches_per_s: float
) -> Iterator[tuple[str, float, tuple[float, float], bool]]:
    for p in segments:
        text = drawable(p.segment.label)
        room = (p.room_s[1] - p.room_s[0]) * inches_per_s
        if fit := fit_label(text, room, _ROW_IN * _FILL - 0.02):
            yield text, (p.start_s + p.end_s) / 2, fit, p.segment.label in SILENCE
