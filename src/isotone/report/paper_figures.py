"""The paper's figures of a training run: tiers, OT weights, and the evolution of an alignment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from isotone.alignment import Tier, tier_from_spans
from isotone.report.evolution import evolution_figure
from isotone.report.overview import Example
from isotone.report.run_folders import Run
from isotone.report.sections import Heading, Image, Section
from isotone.report.style import save
from isotone.report.tiers import tiers_figure
from isotone.report.weights import WeightSnapshot, weights_figure
from isotone.text import tokenizer

Snapshots = list[tuple[int, dict[str, np.ndarray]]]


def training_sections(
    runs: Sequence[Run], out: Path, examples: Sequence[Example], tier: str
) -> list[Section]:
    """Draw the paper's figures 4 (tiers), 5 (OT weights) and 7 (evolution of an alignment), for the page and as PNG."""
    parts: list[Section] = [Heading("Figures")]
    if examples:
        figure = _tiers(examples[0], tier)
        save(figure, out / "tiers.png")
        caption = "Wave, spectrogram, reference and what each model says."
        parts.append(Image(figure, f"Tiers of {examples[0].title}", caption))
    for run in runs:
        snapshots = run.snapshots()
        if not snapshots:
            continue
        figure = _evolution(run, snapshots)
        save(figure, out / f"evolution_{run.name}.png")
        caption = "Each row is an evaluation; groups of frames of one label share a colour, blank is white."
        parts.append(Image(figure, f"Alignment evolution of {run.name}", caption))
        if np.ptp(snapshots[-1][1]["alpha"]) > 1e-6:
            figure = _weights(run, snapshots)
            save(figure, out / f"weights_{run.name}.png")
            caption = "Bullets are frames, their area the OT weight."
            parts.append(Image(figure, f"OT weights of {run.name}", caption))
    return parts


def _tiers(example: Example, tier: str) -> Figure:
    shown = {k: v for k, v in example.alignments.items() if not k.endswith("text given")}
    end_s = min(2.5, len(example.audio) / example.sample_rate)
    return tiers_figure(example.audio, example.sample_rate, shown, tier, end_s=end_s)


def _evolution(run: Run, snapshots: Snapshots) -> Figure:
    last = snapshots[-1][1]
    return evolution_figure(
        [step for step, _ in snapshots], np.stack([arrays["tokens"] for _, arrays in snapshots]),
        float(last["hop_s"]), offset_s=float(last["offset_s"]), unit="step",
        reference=_watched_reference(last, _labels(run, last["labels"])),
        title=f"{run.name}: alignment of one utterance while training",
    )  # fmt: skip


def _weights(run: Run, snapshots: Snapshots) -> Figure:
    """Draw the weights at the first evaluation, after a quarter, after half, and at the last."""
    last = snapshots[-1][1]
    count = len(snapshots)
    chosen = [snapshots[i] for i in sorted({0, count // 4, count // 2, count - 1})]
    labels = _labels(run, last["labels"])
    hop, offset = float(last["hop_s"]), float(last["offset_s"])
    return weights_figure(
        [WeightSnapshot(step, arrays["alpha"], arrays["tokens"]) for step, arrays in chosen], labels, hop,
        offset_s=offset, end_s=min(1.6, offset + hop * len(last["alpha"])),
        reference=_watched_reference(last, labels), title=f"{run.name}: OT weights while training",
    )  # fmt: skip


def _labels(run: Run, numbers: np.ndarray) -> list[str]:
    names = tokenizer.load(run.folder / "model" / "tokenizer").labels
    return [names[i] for i in numbers]


def _watched_reference(arrays: Mapping[str, np.ndarray], labels: Sequence[str]) -> Tier | None:
    if "reference_start" not in arrays:
        return None
    spans = zip(labels, arrays["reference_start"].tolist(), arrays["reference_end"].tolist())
    end = float(arrays["reference_end"].max())
    return tier_from_spans("reference", [(a, s, e, None) for a, s, e in spans], end)
