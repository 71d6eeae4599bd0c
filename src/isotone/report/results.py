"""The paper's tables from finished runs: error rates, times, ablations; Markdown, CSV and a figure."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isotone.evaluation import markdown_table
from isotone.files import atomic_write, check_folder, safe_name
from isotone.report.frontier import frontier_figure
from isotone.report.run_folders import paper_peakiness
from isotone.report.seeds import difference, group_seeds, mean_and_deviation, settings, spread
from isotone.report.style import save

#: Models of the paper's tables 1 and 2; every other experiment is an ablation of them.
MODELS = ("ctc", "ottc", "joint")

#: Results of the OTTC paper (Wav2Vec2-large), by (corpus, training split, test split) and model. It does not state
#: the collar of its start F1.
PUBLISHED: dict[tuple[str, str, str], dict[str, dict[str, float]]] = {
    ("timit", "train", "test"): {
        "ctc": {"error": 8.38, "peaky_paper": 53.51, "f1": 88.77, "idr": 26.98},
        "ottc": {"error": 8.76, "peaky_paper": 0.76, "f1": 89.27, "idr": 76.72},
    },
    ("ami", "train", "test"): {
        "ctc": {"error": 11.75, "peaky_paper": 81.93, "f1": 83.94, "idr": 16.75},
        "ottc": {"error": 14.27, "peaky_paper": 54.75, "f1": 84.81, "idr": 42.84},
    },
    ("librispeech", "train-100", "test-clean"): {"ctc": {"error": 3.36}, "ottc": {"error": 3.77}},
    ("librispeech", "train-100", "test-other"): {"ctc": {"error": 7.36}, "ottc": {"error": 8.55}},
    ("librispeech", "train-360", "test-clean"): {
        "ctc": {"error": 2.77}, "ottc": {"error": 3.00}, "ottc_freeze_5": {"error": 3.01},
        "ottc_freeze_15": {"error": 3.10}, "single_path": {"error": 7.04}, "ottc_fixed_alpha": {"error": 3.51},
        "softdtw": {"error": 39.43},
    },
    ("librispeech", "train-360", "test-other"): {
        "ctc": {"error": 6.58}, "ottc": {"error": 7.44}, "single_path": {"error": 13.03},
        "ottc_fixed_alpha": {"error": 8.24},
    },
    ("librispeech", "train-960", "test-clean"): {"ctc": {"error": 2.20}, "ottc": {"error": 2.52}},
    ("librispeech", "train-960", "test-other"): {"ctc": {"error": 5.23}, "ottc": {"error": 6.16}},
}  # fmt: skip

COLUMNS = {
    "error": "error %", "characters": "character error %", "peaky": "peaky %", "peaky_paper": "peaky (paper) %",
    "f1_20": "start F1 20 ms", "f1_50": "start F1 50 ms", "f1_200": "start F1 200 ms", "idr": "IDR %",
}  # fmt: skip
_METRICS = {
    "characters": "cer", "f1_20": "start_f1@20ms", "f1_50": "start_f1@50ms", "f1_200": "start_f1@200ms", "idr": "idr",
}  # fmt: skip
# of corpora without times, in shares
_RATES = {"error": "error_rate", "characters": "character_error_rate"}


@dataclass(frozen=True)
class Row:
    """One system on one test split.

    Attributes:
        corpus, train, test: The corpus and its splits.
        unit: The unit of errors: phone or word.
        model: Name of the system.
        values: By the keys of :data:`COLUMNS`, one value per seed; None where there is none.
        difference: Its changes to the configuration of the model that it is an ablation of.
    """

    corpus: str
    train: str
    test: str
    unit: str
    model: str
    values: Mapping[str, list[float | None]]
    difference: str = ""

    @property
    def published(self) -> Mapping[str, float]:
        """The paper's results for the same model and splits."""
        return PUBLISHED.get((self.corpus, self.train, self.test), {}).get(self.model, {})


def read_rows(folders: Sequence[Path]) -> list[Row]:
    """Read finished runs: one row per system and test split.

    Raises:
        FileNotFoundError: a folder is not a finished run.
    """
    found = group_seeds(folders)
    configs = {name: settings(runs[0]) for name, runs in found.items()}
    rows = []
    for name, runs in found.items():
        config = configs[name]
        base = _base(name, config, configs)
        for test, result in _tests(config).items():
            results = [_read(run / result) for run in runs]
            values = {key: [_value(r, key) for r in results] for key in COLUMNS}
            tokens = config["tokens"]
            unit = "phone" if tokens["unit"] == "phones" and not tokens.get("lexicon") else "word"
            splits = (config["data"]["name"], config["splits"]["train"], test)
            rows.append(Row(*splits, unit, name, values, "" if base is None else difference(config, base)))
    order = {name: i for i, name in enumerate(MODELS)}
    return sorted(rows, key=lambda r: order.get(r.model, len(MODELS)))


def write_results(folders: Sequence[Path], out: Path) -> list[Row]:
    """Write ``results.md``, ``results.csv`` and one figure per corpus from finished runs.

    Tables: error rates (rows are models, columns test splits; the paper's table 2), times (its table 1), and
    the ablations with their changes. Published values stand beside ours where the paper has the same corpus and
    splits. Several seeds are a mean and a standard deviation.

    Args:
        folders: Run folders.
        out: Folder; other files in it stay.

    Raises:
        FileNotFoundError: a folder is not a finished run.
        NotADirectoryError, PermissionError: nothing can be written to the folder.
        ValueError: no runs.
    """
    if not folders:
        raise ValueError("There are no runs to make tables of.")
    rows = read_rows([Path(f) for f in folders])
    check_folder(out)
    with atomic_write(out / "results.md") as file:
        file.write(markdown(rows))
    with atomic_write(out / "results.csv") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["corpus", "train", "test", "unit", "model", "run", *COLUMNS])
        for r in rows:
            key_cells = (r.corpus, r.train, r.test, r.unit, r.model)
            runs = range(len(r.values["error"]))
            writer.writerows([*key_cells, i, *(r.values[key][i] for key in COLUMNS)] for i in runs)
    for name, (points, spreads) in _frontiers(rows).items():
        figure = frontier_figure(points, spreads, error=f"{_unit(rows, name)} error rate (%)", title=name)
        save(figure, out / f"{safe_name(name.replace(' ', '_'))}.png")
    return rows


def markdown(rows: Sequence[Row]) -> str:
    """Write the tables in Markdown."""
    parts = ["# Results\n", "## Error rates\n", _errors(rows)]
    spelt = [r for r in rows if any(v is not None for v in r.values["characters"])]
    if spelt:
        parts += ["## Character error rates\n", _errors(spelt, "characters")]
    timed = [r for r in rows if r.model in MODELS and any(v is not None for v in r.values["idr"])]
    if timed:
        parts += ["## Times\n", _listed(timed, ["peaky", "peaky_paper", "f1_20", "f1_50", "f1_200", "idr"])]
    ablations = [r for r in rows if r.model not in MODELS]
    if ablations:
        parts += [
            "## Ablations\n",
            _listed(ablations, [k for k in COLUMNS if k != "characters"], changes=True),
        ]
    return "\n".join(parts)


def _errors(rows: Sequence[Row], key: str = "error") -> str:
    splits = list(dict.fromkeys(_splits(r) for r in rows))
    cells = {(r.model, _splits(r)): _cell(r, key) for r in rows}
    unit = {p: f"{_unit(rows, p)} error %" if key == "error" else COLUMNS[key] for p in splits}
    head = ["model", *(f"{p}, {unit[p]}" for p in splits)]
    lines = []
    for model in dict.fromkeys(r.model for r in rows):
        lines.append([model, *(cells.get((model, p), "") for p in splits)])
    return markdown_table(head, lines)


def _listed(rows: Sequence[Row], keys: Sequence[str], changes: bool = False) -> str:
    head = ["corpus", "model", *(["difference"] if changes else []), *(COLUMNS[k] for k in keys)]
    lines = []
    for r in rows:
        changed = [r.difference] if changes else []
        lines.append([_splits(r), r.model, *changed, *(_cell(r, k) for k in keys)])
    return markdown_table(head, lines)


def _cell(row: Row, key: str) -> str:
    """Our value, and the paper's in brackets where it has one (its start F1 at a collar that it does not state)."""
    published = row.published.get(key)
    return spread(row.values[key]) + (f" ({published:g})" if published is not None else "")


_Points = dict[str, tuple[float, float]]


def _frontiers(rows: Sequence[Row]) -> dict[str, tuple[_Points, _Points]]:
    """Return means and standard deviations of every system's error rate and IDR, by corpus and splits."""
    out: dict[str, tuple[_Points, _Points]] = {}
    for r in rows:
        pairs = [
            (e, i) for e, i in zip(r.values["error"], r.values["idr"]) if e is not None and i is not None
        ]
        if pairs:
            means, deviations = out.setdefault(_splits(r), ({}, {}))
            means[r.model], deviations[r.model] = mean_and_deviation(pairs)
    return out


def _splits(row: Row) -> str:
    return " ".join(dict.fromkeys((row.corpus, row.train, row.test)))


def _unit(rows: Sequence[Row], splits: str) -> str:
    return next(r.unit for r in rows if _splits(r) == splits)


def _base(name: str, config: Mapping[str, Any], configs: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the configuration that an experiment is an ablation of: the most similar one of the same corpus."""
    if name in MODELS:
        return None
    same = [c for n, c in configs.items() if n in MODELS and c["data"] == config["data"]]
    return min(same, key=lambda c: len(difference(config, c)), default=None)


def _tests(config: Mapping[str, Any]) -> dict[str, Path]:
    """Return the files with results, relative to the run's folder, by test split."""
    splits = config["splits"]
    tests = {splits["test"]: Path("result.json")} if splits.get("test") else {}
    return tests | {name: Path("tests", safe_name(name), "result.json") for name in splits.get("more", [])}


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is not there: the run is not finished. The same command continues it."
        )
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return result


def _value(result: Mapping[str, Any], key: str) -> float | None:
    metrics = {m["metric"]: m["value"] for m in result.get("recognised", {}).get("metrics", [])}
    if key.startswith("peaky"):
        return _peakiness(metrics, key, result.get("recognised", {}).get("tier", ""))
    if (rate := _RATES.get(key, "")) in result:
        return 100 * float(result[rate])
    return metrics.get("per", metrics.get("wer")) if key == "error" else metrics.get(_METRICS[key])


def _peakiness(metrics: Mapping[str, float | None], key: str, tier: str) -> float | None:
    """Return a peakiness; None for runs of before there were two, whose ``peaky`` counted no silence labels."""
    if "peaky_paper" not in metrics:
        return None
    return metrics.get(key if key == "peaky" else paper_peakiness(tier))
