"""A run that version 0.1.0 trained and saved, and the alignments that it made: read and made alike since."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from isotone import audio, formats
from isotone.alignment import Alignment
from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.report.results import read_rows
from isotone.training.config import Recipe
from isotone.training.loader import load_saved
from tests.paths import ROOT
from tests.tiny_models import isotone

FIXTURES = ROOT / "tests" / "fixtures"
RUN = FIXTURES / "run_0_1_0"
PHONES = "sh iy sil b aa sil b s sil b aa"


def expected(name: str) -> Alignment:
    return formats.build("json").loads((FIXTURES / f"{name}.json").read_text(), "one")


def equal(found: Alignment, before: Alignment) -> None:
    assert [t.name for t in found.tiers] == [t.name for t in before.tiers]
    for tier, old in zip(found.tiers, before.tiers):
        assert tier.labels == old.labels
        for segment, was in zip(tier, old):
            # a phone that had .4 ms has 5 now
            assert (segment.start, segment.end) == pytest.approx((was.start, was.end), abs=2.5e-3)
            assert segment.score == pytest.approx(was.score, abs=1e-2)
    assert found.score == pytest.approx(before.score, abs=1e-2)


@pytest.mark.parametrize("source", [RUN, RUN / "model"])
def test_a_saved_model_aligns_as_it_did(source: Path) -> None:
    pipeline = Pipeline(Model.load(source))
    samples = audio.load(FIXTURES / "one.flac", 16_000)
    found = pipeline.align("one", samples, pipeline.encode(PHONES))
    equal(found.alignment, expected("align"))
    assert found.agreement == pytest.approx(0.4903, abs=1e-2)
    equal(pipeline.transcribe("one", samples).alignment, expected("transcribe"))


def test_the_commands_read_it(tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "one.flac", tmp_path)
    (tmp_path / "one.txt").write_text(PHONES)
    done = isotone(
        "align", tmp_path / "one.flac", "--model", RUN, "--out", tmp_path / "out", "-f", "json", "--no-check"
    )
    assert done.exit_code == 0, done.output
    written = json.loads((tmp_path / "out" / "one.json").read_text())
    assert [t["name"] for t in written["tiers"]] == ["phones"]
    equal(formats.build("json").loads((tmp_path / "out" / "one.json").read_text(), "one"), expected("align"))


def test_its_recipe_is_read() -> None:
    recipe = load_saved(Recipe, RUN / "config.yaml")
    assert recipe.reading.guide == "ctc"
    assert recipe.train.steps == 300


def test_its_scores_are_read_without_a_peakiness(tmp_path: Path) -> None:
    """It counted blank frames alone, without their times: that is neither of today's measures, and no error."""
    run = tmp_path / "run"
    shutil.copytree(RUN, run)
    (run / "forced").rename(run / "alignments")
    done = isotone("evaluate", run, run / "reference", "--json", tmp_path / "scores.json")
    assert done.exit_code == 0, done.output
    names = {row["metric"] for row in json.loads((tmp_path / "scores.json").read_text())["run"]["metrics"]}
    assert "start_f1@20ms" in names
    assert not {name for name in names if name.startswith("peaky")}
    row = read_rows([RUN])[0]
    assert (row.values["peaky"], row.values["peaky_paper"]) == ([None], [None])
    assert row.values["error"] == [pytest.approx(before("per"))]
    assert row.values["idr"] == [pytest.approx(before("idr"))]


def before(name: str) -> float:
    metrics = json.loads((RUN / "result.json").read_text())["recognised"]["metrics"]
    value: float = next(m["value"] for m in metrics if m["metric"] == name)
    return value
