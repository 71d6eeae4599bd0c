"""Finished runs side by side: the table, the figures, the page."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from isotone import audio as sound
from isotone import format as files
from isotone.alignment import Alignment, Tier
from isotone.evaluation import Report
from isotone.evaluation.files import evaluate_paths
from isotone.files import atomic_write, check_folder
from isotone.report.evolution import evolution_figure
from isotone.report.frontier import frontier_figure
from isotone.report.html import write_report
from isotone.report.overview import Example, Overview, overview_sections
from isotone.report.sections import Heading, Image, Section, Table
from isotone.report.seeds import group_seeds, mean_and_deviation, spread
from isotone.report.style import save
from isotone.report.tiers import tiers_figure
from isotone.report.weights import WeightSnapshot, weights_figure

#: Error rates by tier: what a table calls them, the metric, and what an axis says.
_ERRORS = {
    "words": ("WER %", "wer", "word error rate (%)"),
    "phones": ("PER %", "per", "phone error rate (%)"),
}
_OTHER_ERRORS = ("errors %", "label_error_rate", "label error rate (%)")
_COLUMNS = {
    "peaky %": ("recognised", "peaky"),
    "start F1 20 ms": ("recognised", "start_f1@20ms"),
    "start F1 50 ms": ("recognised", "start_f1@50ms"),
    "IDR %": ("recognised", "idr"),
    "forced F1 20 ms": ("forced", "start_f1@20ms"),
    "forced F1 50 ms": ("forced", "start_f1@50ms"),
    "forced IDR %": ("forced", "idr"),
    "forced median error ms": ("forced", "error_median"),
}
PARTS = ("config.yaml", "result.json", "alignments", "forced", "reference", "predictions.jsonl")
NOT_LOSSES = ("epoch", "lr", "grad_norm", "utterances_per_s")
_LESS_IS_BETTER = ("PER", "WER", "errors", "peaky", "forced median")


def columns(tier: str) -> dict[str, tuple[str, str]]:
    """The columns of a table on a tier: name to report and metric."""
    name, metric, _ = _ERRORS.get(tier, _OTHER_ERRORS)
    return {name: ("recognised", metric), **_COLUMNS}


@dataclass(frozen=True)
class Run:
    """A finished run, read back.

    Attributes:
        name: Its folder's name.
        folder: Where it is.
        reports: ``recognised`` and ``forced``.
    """

    name: str
    folder: Path
    reports: Mapping[str, Report]

    def predictions(self) -> dict[str, dict[str, Any]]:
        """Lines of ``predictions.jsonl`` by utterance id."""
        lines = (self.folder / "predictions.jsonl").read_text(encoding="utf-8").splitlines()
        return {row["id"]: row for row in map(json.loads, lines)}

    def history(self) -> list[dict[str, float]]:
        """The loss terms of every step, from ``metrics.jsonl``; none where a model was evaluated as it was."""
        path = self.folder / "metrics.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        rows = [row for row in map(json.loads, lines) if "loss" in row]
        return [{k: v for k, v in row.items() if k not in NOT_LOSSES} for row in rows]

    def snapshots(self, index: int = 0) -> list[tuple[int, dict[str, np.ndarray]]]:
        """What was recorded of a watched utterance while training: (step, arrays)."""
        out = []
        for path in sorted((self.folder / "snapshots").glob(f"step-*-{index}.npz")):
            with np.load(path) as stored:
                out.append((int(path.stem.split("-")[1]), {k: stored[k] for k in stored.files}))
        return out

    @property
    def tier(self) -> str:
        """The tier that is scored."""
        return self.reports["recognised"].tier

    def values(self) -> list[float | None]:
        """The headline numbers, in the order of :func:`columns`."""
        return [
            self.reports[part].metrics[metric].value if metric in self.reports[part].metrics else None
            for part, metric in columns(self.tier).values()
        ]


@dataclass(frozen=True)
class System:
    """Runs that differ in their seed alone.

    Attributes:
        name: The first run's, without its seed's number where there are several.
        runs: In the order they were given; figures and examples show the first.
    """

    name: str
    runs: list[Run]

    def mean(self) -> list[float | None]:
        """Means over the runs, in the order of :func:`columns`; None where a run has none."""
        return [None if None in v else float(np.mean(v)) for v in self._columns()]  # type: ignore[arg-type]

    def place(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Error rate and IDR in percent: their means, and their standard deviations over the seeds (0 of one seed)."""
        idr = list(columns(self.runs[0].tier)).index("IDR %")
        known = [[math.nan if v is None else v for v in run.values()] for run in self.runs]
        return mean_and_deviation([(values[0], values[idr]) for values in known])

    def cells(self) -> list[str]:
        """What a table shows: the mean, and the standard deviation over the seeds where there are several."""
        return [spread(values) for values in self._columns()]

    def _columns(self) -> list[tuple[float | None, ...]]:
        return list(zip(*(run.values() for run in self.runs)))


def systems(runs: Sequence[Run]) -> list[System]:
    """Group runs whose configurations differ in seed and output folder alone."""
    by_folder = {run.folder: run for run in runs}
    return [
        System(name, [by_folder[f] for f in found]) for name, found in group_seeds(list(by_folder)).items()
    ]


def load_run(folder: Path, tier: str = "") -> Run:
    """Read a run folder back and score it.

    Args:
        folder: The run.
        tier: What is scored. Default: phones, or words where the references have no phones.

    Raises:
        FileNotFoundError: the run is not finished: a part of what a run writes is not there.
    """
    folder = Path(folder)
    for part in PARTS:
        if not (folder / part).exists():
            raise FileNotFoundError(
                f"{folder} is not a finished run: {folder / part} is not there. Train it to the end first."
            )
    tier = tier or _scored_tier(folder)
    reports = {"recognised": evaluate_paths(folder, folder / "reference", tier).report}
    reports["forced"] = evaluate_paths(folder / "forced", folder / "reference", tier).report
    return Run(folder.resolve().name, folder, reports)


def _scored_tier(folder: Path) -> str:
    first = min((folder / "reference").iterdir(), default=None)
    return "words" if first and not files.read(first).has("phones") else "phones"


def report_runs(folders: Sequence[Path], out: Path, *, tier: str = "", examples: int = 3) -> list[System]:
    """Compare finished runs: ``table.md``, ``table.csv``, ``scores.json``, figures and ``report.html``.

    Of several systems, ``frontier.png`` has what each pays in errors for its times.

    Runs that differ in their seed alone are one system: tables give mean and standard deviation.

    Args:
        folders: Run folders with the same test split.
        out: Where the files go.
        tier: Tier that is scored. Default: phones, or words where the references have no phones.
        examples: Utterances to look at and to hear.

    Returns:
        The systems, scored.

    Raises:
        FileNotFoundError: a run is not finished.
        ValueError: the runs have other test splits, or nothing on the tier.
    """
    every = [load_run(f, tier) for f in dict.fromkeys(folders)]
    tier = every[0].tier
    for run in every[1:]:
        if set(run.reports["recognised"].ids) != set(every[0].reports["recognised"].ids):
            raise ValueError(
                f"{run.folder} has another test split than {every[0].folder}: compare runs on the same one."
            )
    found = systems(every)
    check_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    _write_tables(out, found, every)
    recognised, forced = (_table(found, part) for part in ("recognised", "forced"))
    runs = [replace(s.runs[0], name=s.name) for s in found]
    shown = _examples(runs, tier, examples)
    places = {s.name: s.place() for s in found}
    overview = Overview(
        scores=recognised,
        frontier={name: place for name, (place, _) in places.items()},
        frontier_spreads={s.name: places[s.name][1] for s in found if len(s.runs) > 1},
        error=_ERRORS.get(tier, _OTHER_ERRORS)[2],
        collars={r.name: _curve(r.reports["recognised"]) for r in runs},
        collar_bands={r.name: _bands(r.reports["recognised"]) for r in runs},
        history={r.name: history for r in runs if (history := r.history())},
        examples=shown,
        tiers=tuple(dict.fromkeys(("words", tier)))
        if any("words" in [t.name for t in a.tiers] for e in shown for a in e.alignments.values())
        else (tier,),
    )
    if len(found) > 1:
        figure = frontier_figure(overview.frontier, overview.frontier_spreads, error=overview.error)
        save(figure, out / "frontier.png")
    heading, first, *rest = overview_sections(overview)
    sections = [heading, first, forced, *rest, *_training_sections(runs, out, shown, tier)]
    facts = {
        "runs": ", ".join(str(r.folder) for r in runs),
        "utterances": len(runs[0].reports["recognised"].ids),
    }
    write_report(out / "report.html", "Recognisers whose time stamps can be trusted", sections, facts=facts)
    return found


def _table(found: Sequence[System], part: str) -> Table:
    """The columns of recognised, or of forced alignments."""
    several = any(len(s.runs) > 1 for s in found)
    every = columns(found[0].runs[0].tier)
    names = [name for name, (source, _) in every.items() if source == part]
    shown = [dict(zip(every, s.cells() if several else s.mean())) for s in found]
    best: dict[str, Literal["min", "max"]] = {
        name: "min" if name.startswith(_LESS_IS_BETTER) else "max" for name in names
    }
    caption = {
        "recognised": "Recognised text with its times, test split. F1 and IDR are label-strict, without silence.",
        "forced": "Forced alignment of the reference transcripts.",
    }[part]
    return Table(
        ["model", *names],
        [[s.name, *(row[n] for n in names)] for s, row in zip(found, shown)],
        caption + (" Mean and standard deviation over seeds." if several else ""),
        best={} if several else best,
        digits=1,
    )


def _write_tables(out: Path, found: Sequence[System], runs: Sequence[Run]) -> None:
    names = columns(runs[0].tier)
    rows = [["model", *names], *([s.name, *s.cells()] for s in found)]
    rule = ["---"] * len(rows[0])
    with atomic_write(out / "table.md") as file:
        file.writelines("| " + " | ".join(row) + " |\n" for row in (rows[0], rule, *rows[1:]))
    with atomic_write(out / "table.csv") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "run", *names])
        writer.writerows([s.name, r.name, *r.values()] for s in found for r in s.runs)
    with atomic_write(out / "scores.json") as file:
        scores = {r.name: {k: v.to_dict(per_utterance=False) for k, v in r.reports.items()} for r in runs}
        json.dump(scores, file, indent=1, ensure_ascii=False)


def _curve(report: Report) -> dict[float, float]:
    return {c: m.value for c, m in _starts(report) if m.value is not None}


def _bands(report: Report) -> dict[float, tuple[float, float]]:
    return {c: (m.low, m.high) for c, m in _starts(report) if m.low is not None and m.high is not None}


def _starts(report: Report) -> list[tuple[float, Any]]:
    prefix = "start_f1@"
    found = [
        (float(n[len(prefix) : -2]) / 1000, m) for n, m in report.metrics.items() if n.startswith(prefix)
    ]
    return sorted(found, key=lambda pair: pair[0])


def _examples(runs: Sequence[Run], tier: str, count: int) -> list[Example]:
    """Utterances spread over the split, whose audio is still where it was."""
    predictions = runs[0].predictions()
    ids = sorted(i for i, row in predictions.items() if Path(row["audio"]).is_file())
    out = []
    for id in ids[:: max(1, len(ids) // max(1, count))][:count]:
        row = predictions[id]
        samples = sound.load(row["audio"], 16_000, row["start"], row["end"])
        alignments: dict[str, Alignment] = {"reference": _read(runs[0].folder / "reference", id)}
        for run in runs:
            alignments[run.name] = _read(run.folder / "alignments", id)
        if _file(
            runs[-1].folder / "forced", id
        ).is_file():  # not where the text needs more frames than there are
            alignments[f"{runs[-1].name}, text given"] = _read(runs[-1].folder / "forced", id)
        out.append(Example(f"{id}: {row['words'] or row['text']}", samples, 16_000, alignments))
    return out


def _read(folder: Path, id: str) -> Alignment:
    return files.read(_file(folder, id))


def _file(folder: Path, id: str) -> Path:
    return folder / files.file_name(id, ".TextGrid")


def _training_sections(
    runs: Sequence[Run], out: Path, examples: Sequence[Example], tier: str
) -> list[Section]:
    """The paper's figures: tiers (Fig. 4), OT weights (Fig. 5) and the evolution of an alignment (Fig. 7)."""
    parts: list[Section] = [Heading("Figures")]
    if examples:
        first = examples[0]
        shown = {k: v for k, v in first.alignments.items() if not k.endswith("text given")}
        figure = tiers_figure(
            first.audio, first.sample_rate, shown, tier, end_s=min(2.5, len(first.audio) / first.sample_rate)
        )
        save(figure, out / "tiers.png")
        parts.append(
            Image(figure, f"Tiers of {first.title}", "Wave, spectrogram, reference and what each model says.")
        )
    for run in runs:
        snapshots = run.snapshots()
        if not snapshots:
            continue
        last = snapshots[-1][1]
        labels = _labels(run, last["labels"])
        hop, offset = float(last["hop_s"]), float(last["offset_s"])
        reference = _watched_reference(last, labels)
        steps = [s for s, _ in snapshots]
        figure = evolution_figure(
            steps, np.stack([a["tokens"] for _, a in snapshots]), hop, offset_s=offset, unit="step",
            reference=reference,
            title=f"{run.name}: alignment of one utterance while training",
        )  # fmt: skip
        save(figure, out / f"evolution_{run.name}.png")
        parts.append(
            Image(
                figure,
                f"Alignment evolution of {run.name}",
                "Each row is an evaluation; groups of frames of one label share a colour, blank is white.",
            )
        )
        if np.ptp(last["alpha"]) > 1e-6:
            chosen = [
                snapshots[i]
                for i in sorted({0, len(snapshots) // 4, len(snapshots) // 2, len(snapshots) - 1})
            ]
            figure = weights_figure(
                [WeightSnapshot(s, a["alpha"], a["tokens"]) for s, a in chosen], labels, hop, offset_s=offset,
                end_s=min(1.6, offset + hop * len(last["alpha"])), reference=reference,
                title=f"{run.name}: OT weights while training",
            )  # fmt: skip
            save(figure, out / f"weights_{run.name}.png")
            parts.append(
                Image(figure, f"OT weights of {run.name}", "Bullets are frames, their area the OT weight.")
            )
    return parts


def _labels(run: Run, numbers: np.ndarray) -> list[str]:
    from isotone.text import tokenizer

    names = tokenizer.load(run.folder / "model" / "tokenizer").labels
    return [names[i] for i in numbers]


def _watched_reference(arrays: Mapping[str, np.ndarray], labels: Sequence[str]) -> Tier | None:
    if "reference_start" not in arrays:
        return None
    from isotone.alignment import tier_from_spans

    spans = zip(labels, arrays["reference_start"].tolist(), arrays["reference_end"].tolist())
    end = float(arrays["reference_end"].max())
    return tier_from_spans("reference", [(a, s, e, None) for a, s, e in spans], end)
