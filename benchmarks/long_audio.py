"""Results of a finished run on long recordings made of its test split: voices one by one or in turn, with silences.

``python -m benchmarks.long_audio RUN...`` recognises and aligns them, and prints a table.
"short" is the split as it is.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from isotone import audio as sound
from isotone.alignment import SILENCE
from isotone.corpus import reference
from isotone.corpus.manifest import load_splits
from isotone.evaluation import markdown_table, score
from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.pipeline.windows import Windows
from isotone.training.config import Recipe
from isotone.training.loader import load_saved

_SILENCE_S, _EVERY = 15.0, 5
_NOISE = 1e-4  # of full scale: -80 dB
_HALVES = 2

Row = Mapping[str, Any]
Recording = tuple[np.ndarray, dict[str, Any]]


def joined(id: str, rows: Sequence[Row], rate: int, silences: bool) -> Recording:
    """Join utterances to one recording under low noise, with or without a silence after every fifth."""
    parts: list[np.ndarray] = []
    tiers: dict[str, list[tuple[str, float, float]]] = {"words": [], "phones": []}
    now = 0.0
    for number, row in enumerate(rows, 1):
        parts.append(sound.load(Path(row["audio"]), rate, row["start"], row["end"]))
        for name, spans in tiers.items():
            found = zip(*(row[name][key] for key in ("label", "start", "end")))
            spans += [(label, start + now, end + now) for label, start, end in found]
        now += len(parts[-1]) / rate
        if silences and number % _EVERY == 0:
            parts.append(np.zeros(round(_SILENCE_S * rate), np.float32))
            now += _SILENCE_S
    samples = np.concatenate(parts)
    samples += np.random.default_rng(0).normal(0, _NOISE, len(samples)).astype(np.float32)
    columns = {name: _columns(spans) for name, spans in tiers.items()}
    text = " ".join(row["text"] for row in rows)
    return samples, {"id": id, "start": 0.0, "end": len(samples) / rate, "text": text, **columns}


def _columns(spans: Sequence[tuple[str, float, float]]) -> dict[str, list[Any]]:
    """Return a row's tier; consecutive silences become one, up to the next segment."""
    kept: list[tuple[str, float, float]] = []
    for label, start, end in spans:
        if kept and label in SILENCE and kept[-1][0] in SILENCE:
            kept[-1] = (kept[-1][0], kept[-1][1], end)
        else:
            kept.append((label, start, end))
    return {key: [span[i] for span in kept] for i, key in enumerate(("label", "start", "end"))}


def recordings(rows: Sequence[Row], rate: int) -> Iterator[tuple[str, list[Recording]]]:
    """Make sets of recordings by name."""
    yield "short", [joined(row["id"], [row], rate, False) for row in rows]
    voices: dict[str, list[Row]] = {}
    for row in rows:
        voices.setdefault(row["speaker"], []).append(row)
    mixed = [rows[int(i)] for i in np.random.default_rng(0).permutation(len(rows))]
    turns = {f"turns-{i}": mixed[i::_HALVES] for i in range(_HALVES)}
    for name, groups in (("one voice", voices), ("voices in turn", turns)):
        for silences in (False, True):
            made = [joined(id, some, rate, silences) for id, some in groups.items()]
            yield f"{name}, silences" if silences else name, made


def measure(pipeline: Pipeline, some: Sequence[Recording]) -> dict[str, float]:
    """Measure error rate and forced alignment over recordings."""
    tokenizer = pipeline.model.tokenizer
    tier = "phones" if tokenizer.unit == "phones" and not tokenizer.has_words else "words"
    recognised, placed = [], []
    for samples, row in some:
        truth = reference(row)
        recognised.append((pipeline.transcribe(row["id"], samples).alignment, truth))
        placed.append((pipeline.align(row["id"], samples, tokenizer.encode_row(row)).alignment, truth))
    text, forced = score(recognised, tier=tier), score(placed, tier=tier)
    return {
        "seconds each": float(np.mean([len(samples) for samples, _ in some]))
        / pipeline.model.encoder.sample_rate,
        "error rate %": text.metrics["per" if tier == "phones" else "wer"].value,
        "forced F1 20 ms": forced.metrics["start_f1@20ms"].value,
        "forced F1 50 ms": forced.metrics["start_f1@50ms"].value,
        "forced median error ms": forced.metrics["error_median"].value,
    }


def main(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, of a corpus with times.")],
    window: Annotated[float, typer.Option(help="Seconds of the windows; 0: all at once.")] = Windows.window_s,
) -> None:
    """Recognise and align long recordings made of the test split of each run."""
    for run in runs:
        recipe = load_saved(Recipe, run / "config.yaml")
        with tempfile.TemporaryDirectory() as folder:
            rows = list(load_splits(recipe.data, {"test": recipe.splits.test}, Path(folder))["test"].rows)
        pipeline = Pipeline(Model.load(run), windows=Windows(window))
        rate = pipeline.model.encoder.sample_rate
        found = {name: measure(pipeline, some) for name, some in recordings(rows, rate)}
        head = [run.name, *next(iter(found.values()), {})]
        lines = ([name, *(f"{value:.1f}" for value in row.values())] for name, row in found.items())
        typer.echo("\n" + markdown_table(head, lines), nl=False)


if __name__ == "__main__":
    typer.run(main)
