"""Spoken digits: a few steps from recordings of words to a report on words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.paths import RECIPES

pytest.importorskip("espeakng_loader", reason="espeak-ng is not installed: isotone[synth]")

from isotone.corpus.digits import WORDS
from isotone.report.runs import report_runs
from isotone.training.config import load_recipe

RECIPE = RECIPES / "digits"
SHORT = [
    "train.steps=3", "train.batch_size=4", "train.evaluate_every=2", "train.evaluate_limit=2", "train.trackers=[none]",
    "encoder.config.num_hidden_layers=1", "data.train=8", "data.dev=2", "data.test=3", "data.length=[2,3]",
]  # fmt: skip


@pytest.fixture(scope="module")
def fsdd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A miniature of the data set: every digit is a tone."""
    folder = tmp_path_factory.mktemp("fsdd") / "recordings"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for digit in range(10):
        for index in (0, 5, 10, 11):
            size = int(rng.integers(1600, 3200))
            tone = 0.3 * np.sin(2 * np.pi * 300 * (1 + digit) * np.arange(size) / 8000)
            soundfile.write(folder / f"{digit}_ann_{index}.wav", tone, 8000, subtype="PCM_16")
    return folder.parent


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, fsdd: Path, train: Callable[..., Path]) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    place = [f"data.root={fsdd}", f"data.cache={folder / 'cache'}"]
    return [
        train(RECIPE / f"{name}.yaml", *place, *SHORT, f"seed={seed}", f"output={folder / f'{name}-{seed}'}")
        for name, seed in (("ctc", 0), ("joint", 0), ("joint", 1))
    ]


def test_words_are_scored(runs: list[Path]) -> None:
    for run in runs:
        result = json.loads((run / "result.json").read_text())
        assert {"recognised", "forced"} <= result.keys()
        assert all(result[part]["tier"] == "words" for part in ("recognised", "forced"))
        metrics = {m["metric"]: m["value"] for m in result["forced"]["metrics"]}
        assert metrics["wer"] == 0  # the words were given
        assert 0 < metrics["idr"] <= 100
        lines = [json.loads(line) for line in (run / "predictions.jsonl").read_text().splitlines()]
        assert [line["text"] for line in lines] == [line["words"] for line in lines]
        assert {word for line in lines for word in line["recognised"].split()} <= set(WORDS)
        tokenizer = json.loads((run / "model" / "tokenizer" / "isotone_tokenizer.json").read_text())
        assert "sil" in tokenizer["labels"]
        assert set(tokenizer["lexicon"]) <= set(WORDS)


def test_the_report_is_on_words_and_has_the_frontier(runs: list[Path], tmp_path: Path) -> None:
    found = report_runs(runs, tmp_path)
    assert [(system.name, len(system.runs)) for system in found] == [("ctc-0", 1), ("joint", 2)]
    head = (tmp_path / "table.md").read_text().splitlines()[0]
    assert head.startswith("| model | WER % | peaky % | peaky (paper) % |")
    for system in found:
        (error, idr), deviations = system.mean_point()
        values = np.array([run.values() for run in system.runs], dtype=float)
        assert error == pytest.approx(values[:, 0].mean())
        assert idr == pytest.approx(values[:, 5].mean())
        expected = values[:, [0, 5]].std(0, ddof=1) if len(system.runs) > 1 else (0, 0)
        assert deviations == pytest.approx(expected)
    assert (tmp_path / "frontier.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "report.html").read_text()
    assert "Bars: standard deviation over seeds." in page
    report_runs(runs[1:], tmp_path / "one")
    assert not (tmp_path / "one" / "frontier.png").exists()  # a single system trades nothing


@pytest.mark.parametrize("name", ["ctc", "ottc", "joint", "path_after"])
def test_settings(name: str) -> None:
    recipe = load_recipe(RECIPE / f"{name}.yaml", ["data.root=/corpora/fsdd"])
    assert recipe.encoder["source"] == "wav2vec2-bert-tiny"
    assert recipe.tokens["unit"] == "phones"
    assert recipe.tokens["pauses"]
    assert recipe.tokens["lexicon"]
    assert recipe.output == f"runs/digits/{name}"
