"""Draw the figures of docs/explained: ``python -m docs.figures`` writes them beside the pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from docs.metric_figures import confidence, metrics, recognition
from isotone import aligners
from isotone.types import Coupling, Emissions, Grid, Targets

FOLDER = Path(__file__).parent / "explained"
#: Labels of the word, and how many frames each of them is heard.
LABELS, HEARD = ("s", "p", "a", "sil"), (7, 4, 9, 4)
FRAMES, BLANK = sum(HEARD), 0
ALIGNERS = {
    "ctc": "CTC: the best path through blanks and tokens",
    "ottc": "OTTC: transport of the frames' weights",
    "soft-dtw": "Soft-DTW: the cheapest path, frame by frame",
    "opas": "OPAS: a frame per token, then its span",
}


def emissions(*, blank: float, seed: int = 0) -> tuple[Emissions, Targets]:
    """Scores of one utterance, ``(1, 24, 5)``: each label is likely where it is heard, by less in noise.

    Args:
        blank: Probability of the blank in most frames, as a model trained by CTC has it: high.
        seed: Of the noise.
    """
    rng = np.random.default_rng(seed)
    heard = np.repeat(np.arange(1, len(LABELS) + 1), HEARD)
    scores = rng.normal(0, 0.35, (FRAMES, len(LABELS) + 1))
    scores[np.arange(FRAMES), heard] += 2.0
    # a label's neighbour is heard before it begins
    for border in np.cumsum(HEARD)[:-1]:
        scores[border - 1, heard[border]] += 1.2
        scores[border, heard[border - 1]] += 1.2
    scores[:, BLANK] = np.log(np.exp(scores[:, 1:]).sum(1) * blank / (1 - blank))
    middles = np.cumsum(HEARD) - np.array(HEARD) // 2 - 1
    scores[middles, BLANK] -= 4.0
    # the weights of frames: high where one label is clear
    clear = torch.log_softmax(torch.tensor(scores[:, 1:]), 1).max(1).values
    lengths = torch.tensor([FRAMES])
    logits = torch.tensor(scores, dtype=torch.float32)[None]
    weights = clear.float()[None]
    return (
        Emissions(logits, lengths, Grid(0.02), BLANK, weight_logits=weights),
        Targets.from_lists([[*range(1, len(LABELS) + 1)]]),
    )


def couplings() -> Figure:
    """The emissions of one word, and the couplings of four aligners."""
    figure, axes = plt.subplots(5, 1, figsize=(7.5, 9), sharex=True, height_ratios=(5, 4, 4, 4, 4))
    scores, targets = emissions(blank=0.7)
    axes[0].imshow(scores.log_probs()[0].exp().T, aspect="auto", cmap="Greys", vmin=0, vmax=1)
    axes[0].set_yticks(range(len(LABELS) + 1), ("blank", *LABELS))
    axes[0].set_title("Probabilities of the labels in every frame", loc="left", fontsize=10)
    for axis, (name, title) in zip(axes[1:], ALIGNERS.items()):
        draw(axis, aligners.build(name)(scores, targets))
        axis.set_title(title, loc="left", fontsize=10)
    axes[-1].set_xlabel("frame")
    figure.tight_layout()
    return figure


def draw(axis: Axes, coupling: Coupling) -> None:
    """Draw a coupling: the area of a square is the mass that a frame has in common with a token."""
    mass = coupling.mass[0] / coupling.mass[0].max()
    axis.scatter(
        coupling.source[0], coupling.target[0], s=110 * mass, marker="s", color="#3f51b5", linewidth=0
    )
    _truth(axis)
    axis.set_yticks(range(len(LABELS)), LABELS)
    axis.set_ylim(len(LABELS) - 0.4, -0.6)
    axis.set_xlim(-0.5, FRAMES - 0.5)


def _truth(axis: Axes) -> None:
    for border in np.cumsum(HEARD)[:-1]:
        axis.axvline(border - 0.5, color="0.6", linewidth=0.8, linestyle="--")


def widths() -> Figure:
    """A step in the audio, as heads that see 3 and 25 frames hear it."""
    figure, axis = plt.subplots(figsize=(7.5, 2.8))
    frames = np.arange(-20, 21)
    for width, colour in ((1, "0.2"), (3, "#3f51b5"), (25, "#e65100")):
        seen = [(np.arange(t - width // 2, t + width // 2 + 1) >= 0).mean() for t in frames]
        axis.plot(frames, seen, color=colour, marker=".", label=f"{width} frame{'s' * (width > 1)}")
    axis.axvline(-0.5, color="0.6", linewidth=0.8, linestyle="--")
    axis.set(xlabel="frames from the boundary", ylabel="share of the next label")
    axis.legend(title="sees", frameon=False)
    figure.tight_layout()
    return figure


FIGURES: dict[str, Any] = {
    "couplings": couplings,
    "widths": widths,
    "metrics": metrics,
    "recognition": recognition,
    "confidence": confidence,
}


def main() -> None:
    """Write all figures."""
    for name, make in FIGURES.items():
        figure = make()
        figure.savefig(FOLDER / f"{name}.png", dpi=100, metadata={"Software": None})
        plt.close(figure)


if __name__ == "__main__":
    main()
