"""Figures of docs/explained/metrics.md; :mod:`docs.figures` writes them.

Every figure is drawn from the numbers of its example, which the page computes with.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

GOOD, BAD, MARK, SOFT = "#2e7d32", "#c62828", "#e65100", "#c5cae9"
REFERENCE = (("s", 0.10, 0.30), ("p", 0.30, 0.40), ("a", 0.40, 0.70))
PREDICTED = (("s", 0.115, 0.24), ("p", 0.335, 0.40), ("a", 0.41, 0.72))
COLLAR = 0.02
#: Phones of a reference, and what was recognised in their place; none where it was left out.
EDITS = (("s", "s"), ("p", "b"), ("a", "a"), ("t", ""))
#: The likeliest label of each frame of speech; empty where it is the blank.
FRAMES = ("", "", "s", "", "", "", "p", "", "a", "")
#: Log-probabilities of a text, of eight other orders of its tokens, and of the best label of every frame.
TEXT, ORDERS, BEST = -60.0, (-171.0, -158.0, -149.0, -143.0, -137.0, -129.0, -121.0, -112.0), -40.0


def metrics() -> Figure:
    """A reference and a prediction of three phones: overlap and collars, and boundaries without their labels."""
    figure, (above, below) = plt.subplots(
        2, 1, figsize=(7.5, 4.4), sharex=True, height_ratios=(3, 2), layout="constrained"
    )
    for row, segments, colour in ((1, REFERENCE, "0.85"), (0, PREDICTED, SOFT)):
        for label, start, end in segments:
            above.barh(row, end - start, left=start, height=0.5, color=colour, edgecolor="0.3", linewidth=0.8)
            above.text((start + end) / 2, row, label, ha="center", va="center")
    for (_, start, end), (_, first, last) in zip(REFERENCE, PREDICTED):
        above.add_patch(
            plt.Rectangle((start - COLLAR, 0.3), 2 * COLLAR, 1.0, color=GOOD, alpha=0.2, linewidth=0)
        )
        above.plot((max(start, first), min(end, last)), (0.5, 0.5), color=MARK, linewidth=3)
        off = abs(first - start)
        above.text(
            start - 0.003, 1.36, f"{1000 * off:.0f} ms", ha="center", color=GOOD if off <= COLLAR else BAD
        )
    above.set_yticks((0, 1), ("predicted", "reference"))
    above.set(xlim=(0.05, 0.75), ylim=(-0.4, 1.6))
    above.set_title("Starts and overlap of matched phones", loc="left", fontsize=10)
    _boundaries(below)
    return figure


def _boundaries(axis: Axes) -> None:
    reference = sorted({time for _, *times in REFERENCE for time in times})
    predicted = sorted({time for _, *times in PREDICTED for time in times})
    hits = pairs(reference, predicted, COLLAR)
    for row, times, found in (
        (1, reference, [a for a, _ in hits]),
        (0, predicted, [b for _, b in hits]),
    ):
        for time in times:
            colour, width = (GOOD, 2.5) if time in found else (BAD, 2.5)
            axis.plot((time, time), (row - 0.3, row + 0.3), color=colour, linewidth=width)
    for a, b in hits:
        axis.plot((a, b), (0.7, 0.3), color=GOOD, linewidth=1)
    axis.set_yticks((0, 1), ("predicted", "reference"))
    axis.set(xlabel="seconds", ylim=(-0.5, 1.5))
    title = f"Boundaries without labels: {len(hits)} hits, of {len(reference)} true and {len(predicted)} predicted ones"
    axis.set_title(title, loc="left", fontsize=10)


def pairs(reference: list[float], predicted: list[float], collar: float) -> list[tuple[float, float]]:
    """Pair boundaries within a collar, each once, in order."""
    found, used = [], 0
    for time in reference:
        near = [b for b in predicted[used:] if abs(b - time) <= collar + 1e-9]
        if near:
            found.append((time, near[0]))
            used = predicted.index(near[0]) + 1
    return found


def recognition() -> Figure:
    """The edits between two sequences, and the frames of speech in which a model names no sound."""
    figure, (above, below) = plt.subplots(
        2, 1, figsize=(7.5, 3.2), height_ratios=(3, 2), layout="constrained"
    )
    for x, (said, heard) in enumerate(EDITS):
        right = said == heard
        above.text(x, 1, said, ha="center", va="center", fontsize=12)
        above.text(x, 0, heard or "-", ha="center", va="center", fontsize=12, color="black" if right else BAD)
        above.plot((x, x), (0.35, 0.65), color=GOOD if right else BAD, linewidth=2)
        if not right:
            above.text(
                x + 0.05, 0.5, "substitution" if heard else "deletion", va="center", color=BAD, fontsize=9
            )
    wrong = sum(said != heard for said, heard in EDITS)
    above.set_title(f"Error rate: {wrong} of {len(EDITS)} phones", loc="left", fontsize=10)
    above.set_yticks((0, 1), ("recognised", "reference"))
    above.set(xlim=(-0.5, len(EDITS) - 0.3), ylim=(-0.4, 1.4), xticks=())
    for t, label in enumerate(FRAMES):
        below.barh(0, 1, left=t, height=1, color=SOFT if label else "0.4", edgecolor="white")
        below.text(t + 0.5, 0, label, ha="center", va="center")
    quiet = sum(not label for label in FRAMES)
    below.set_title(
        f"Peakiness: {quiet} of {len(FRAMES)} frames of speech have the blank (dark)", loc="left", fontsize=10
    )
    below.set(xlim=(0, len(FRAMES)), yticks=(), xlabel="frame")
    return figure


def confidence() -> Figure:
    """A text between chance and certainty, and the means of resampled utterances with their interval."""
    figure, (above, below) = plt.subplots(
        2, 1, figsize=(7.5, 3.8), height_ratios=(2, 3), layout="constrained"
    )
    chance = float(np.mean(ORDERS))
    above.plot(ORDERS, np.zeros(len(ORDERS)), "|", color="0.5", markersize=14)
    for x, said, colour in (
        (chance, "mean of other orders: 0", "0.3"),
        (TEXT, "the text", MARK),
        (BEST, "best labels: 1", "0.3"),
    ):
        above.plot(x, 0, "o", color=colour)
        above.text(x, 0.45, said, ha="right" if x == TEXT else "center", color=colour)
    above.annotate("", (TEXT, -0.5), (chance, -0.5), arrowprops={"arrowstyle": "<->", "color": MARK})
    share = (TEXT - chance) / (BEST - chance)
    above.text((TEXT + chance) / 2, -0.9, f"agreement {share:.2f}", ha="center", color=MARK)
    above.set(xlim=(-185, -20), ylim=(-1.2, 1), yticks=(), xlabel="log-probability, nats")
    above.set_title(
        "Agreement: a text between other orders of its tokens and the best labels", loc="left", fontsize=10
    )
    _intervals(below)
    return figure


def _intervals(axis: Axes) -> None:
    rng = np.random.default_rng(0)
    errors = rng.gamma(2.0, 15.0, 80)  # ms, of 80 utterances
    means = rng.choice(errors, (4000, len(errors))).mean(1)
    low, high = np.percentile(means, (2.5, 97.5))
    axis.hist(means, 60, color=SOFT)
    axis.axvspan(low, high, color=MARK, alpha=0.15, linewidth=0)
    axis.axvline(errors.mean(), color=MARK)
    axis.set(yticks=(), xlabel="mean error of 80 utterances drawn again, ms")
    axis.set_title(f"Interval: {errors.mean():.1f} ({low:.1f} to {high:.1f})", loc="left", fontsize=10)
