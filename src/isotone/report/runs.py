"""Finished runs side by side: the table, the figures, the page."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from isotone import audio as sound
from isotone import format as files
from isotone.alignment import Alignment
from isotone.evaluation import Report, markdown_table
from isotone.files import atomic_write, check_folder
from isotone.report.frontier import frontier_figure
from isotone.report.html import write_report
from isotone.report.overview import Example, Overview, overview_sections
from isotone.report.paper_figures import training_sections
from isotone.report.run_folders import ERRORS, OTHER_ERRORS, Run, System, columns, load_run, systems
from isotone.report.sections import Table
from isotone.report.style import save

_LESS_IS_BETTER = ("PER", "WER", "errors", "peaky", "forced median")


def report_runs(folders: Sequence[Path], out: Path, *, tier: str = "", examples: int = 3) -> list[System]:
    """Compare finished runs: ``table.md``, ``table.csv``, ``scores.json``, figures and ``report.html``.

    Of several systems, ``frontier.png`` shows error rate against IDR.

    Runs that differ in their seed alone are one system: tables give mean and standard deviation.

    Args:
        folders: Run folders with the same test split.
        out: Folder of the files.
        tier: Tier that is scored. Default: phones, or words where the references have no phones.
        examples: Utterances to look at and to listen to.

    Returns:
        The systems, scored.

    Raises:
        FileNotFoundError: a run is not finished.
        ValueError: the runs have different test splits, or nothing on the tier.
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
    points = {s.name: s.mean_point() for s in found}
    overview = Overview(
        scores=recognised,
        frontier={name: mean for name, (mean, _) in points.items()},
        frontier_spreads={s.name: points[s.name][1] for s in found if len(s.runs) > 1},
        error=ERRORS.get(tier, OTHER_ERRORS)[2],
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
    sections = [heading, first, forced, *rest, *training_sections(runs, out, shown, tier)]
    facts = {
        "runs": ", ".join(str(r.folder) for r in runs),
        "utterances": len(runs[0].reports["recognised"].ids),
    }
    write_report(out / "report.html", "Recognisers whose time stamps can be trusted", sections, facts=facts)
    return found


def _table(found: Sequence[System], part: str) -> Table:
    """Make the table of recognised, or of forced alignments."""
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
    with atomic_write(out / "table.md") as file:
        file.write(markdown_table(["model", *names], ([s.name, *s.cells()] for s in found)))
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
    """Choose utterances spread over the split whose audio files still exist."""
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
