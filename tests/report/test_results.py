"""The paper's tables from run folders that hold only numbers."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from isotone.report.results import PUBLISHED, markdown, read_rows, write_results
from isotone.report.seeds import difference, group_seeds, mean_and_deviation, spread
from tests.tiny_models import error_of, isotone


def save_run(
    folder: Path,
    result: dict[str, Any],
    *,
    corpus: str = "timit",
    more: dict[str, Any] | None = None,
    **changes: Any,
) -> Path:
    config = {
        "data": {"name": corpus},
        "splits": {"train": "train", "dev": "dev", "test": "test", "more": list(more or {})},
        "tokens": {"unit": "phones" if corpus == "timit" else "characters"},
        "heads": {"ottc": {"name": "ottc", "alpha": "learned"}},
        "seed": 0,
        "output": str(folder),
    } | changes
    folder.mkdir(parents=True)
    OmegaConf.save(OmegaConf.create(config), folder / "config.yaml")
    for place, numbers in {Path(): result, **{Path("tests", k): v for k, v in (more or {}).items()}}.items():
        (folder / place).mkdir(parents=True, exist_ok=True)
        (folder / place / "result.json").write_text(json.dumps(numbers))
    return folder


def timed(error: float, idr: float) -> dict[str, Any]:
    metrics = {
        "per": error, "peaky": 50.0, "peaky_paper": 40.0, "peaky_raw": 45.0, "start_f1@20ms": 60.0, "idr": idr,
    }  # fmt: skip
    rows = [{"metric": k, "value": v} for k, v in metrics.items()]
    return {"recognised": {"tier": "phones", "metrics": rows}}


def test_seeds_are_one_row_beside_the_published(tmp_path: Path) -> None:
    runs = [save_run(tmp_path / f"ctc-{i}", timed(8.0 + i, 20.0), seed=i) for i in range(3)]
    runs += [save_run(tmp_path / "ottc", timed(9.0, 70.0), heads={"ottc": {"name": "ottc"}})]
    rows = read_rows(runs)
    assert [r.model for r in rows] == ["ctc", "ottc"]
    assert rows[0].values["error"] == [8.0, 9.0, 10.0]
    assert rows[0].published == PUBLISHED["timit", "train", "test"]["ctc"]
    text = markdown(rows)
    assert "| ctc | 9.0 ± 1.0 (8.38) |" in text
    assert "| timit train test | ottc | 50.0 | 40.0 (0.76) | 60.0 | - | - | 70.0 (76.72) |" in text
    assert "Ablations" not in text


def test_the_papers_peakiness_is_raw_for_words(tmp_path: Path) -> None:
    result = timed(12.0, 20.0)
    result["recognised"]["tier"] = "words"
    rows = read_rows([save_run(tmp_path / "ctc", result, corpus="ami")])
    assert (rows[0].values["peaky"], rows[0].values["peaky_paper"]) == ([50.0], [45.0])
    assert "| ami train test | ctc | 50.0 | 45.0 (81.93) |" in markdown(rows)


def test_an_early_runs_peakiness_is_neither(tmp_path: Path) -> None:
    """Its ``peaky`` left labels of silence out, and was never below 0."""
    result = timed(12.0, 20.0)
    result["recognised"]["metrics"] = [
        m for m in result["recognised"]["metrics"] if m["metric"] != "peaky_paper"
    ]
    rows = read_rows([save_run(tmp_path / "ctc", result)])
    assert (rows[0].values["peaky"], rows[0].values["peaky_paper"]) == ([None], [None])
    assert rows[0].values["idr"] == [20.0]


def test_ablations_say_what_they_change(tmp_path: Path) -> None:
    runs = [
        save_run(tmp_path / "ottc", timed(9.0, 70.0), train={"steps": 5}),
        save_run(tmp_path / "ctc", timed(8.0, 20.0), heads={"ctc": {"name": "ctc"}}, train={"steps": 5}),
        save_run(
            tmp_path / "fixed", timed(40.0, 30.0), heads={"ottc": {"name": "ottc", "alpha": "uniform"}},
            train={"steps": 5}, teacher="/somewhere/ctc-0",
        ),
    ]  # fmt: skip
    fixed = read_rows(runs)[-1]
    assert fixed.model == "fixed"
    assert fixed.difference == "heads.ottc.alpha=uniform, teacher=ctc-0"
    assert "heads.ottc.alpha=uniform" in markdown(read_rows(runs))


def test_phones_that_are_read_as_words_are_counted_as_words(tmp_path: Path) -> None:
    result = timed(3.0, 80.0)
    result["recognised"]["metrics"][0]["metric"] = "wer"
    tokens = {"unit": "phones", "lexicon": True}
    run = save_run(tmp_path / "joint", result, corpus="digits", tokens=tokens)
    assert "digits train test, word error %" in markdown(read_rows([run]))
    assert "| joint | 3.0 |" in markdown(read_rows([run]))


def test_several_test_splits_without_times(tmp_path: Path) -> None:
    splits = {"train": "train-360", "dev": "dev-clean", "test": "test-clean", "more": ["test-other"]}
    run = save_run(
        tmp_path / "ctc", {"error_rate": 0.03}, corpus="librispeech",
        more={"test-other": {"error_rate": 0.07, "character_error_rate": 0.025}},
        splits=splits,
    )  # fmt: skip
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "other.txt").write_text("stays")
    rows = write_results([run], tmp_path / "out")
    assert (tmp_path / "out" / "other.txt").read_text() == "stays"
    assert [(r.test, r.values["error"]) for r in rows] == [
        ("test-clean", [3.0]),
        ("test-other", [pytest.approx(7.0)]),
    ]
    text = (tmp_path / "out" / "results.md").read_text()
    assert "| ctc | 3.0 (2.77) | 7.0 (6.58) |" in text
    assert "Times" not in text
    assert "| model | librispeech train-360 test-other, character error % |" in text
    assert "| ctc | 2.5 |" in text, "of runs before it was counted there is none"
    with (tmp_path / "out" / "results.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [row["test"] for row in table] == ["test-clean", "test-other"]
    assert table[0]["error"] == "3.0"
    assert table[0]["idr"] == ""


def test_the_command_and_the_figure(tmp_path: Path) -> None:
    a, b = (
        save_run(tmp_path / "ctc", timed(8.0, 20.0)),
        save_run(tmp_path / "joint", timed(8.5, 86.0), train={"x": 1}),
    )
    said = isotone("results", a, b, "--out", tmp_path / "out").output
    assert "| joint | 8.5 |" in said
    assert (tmp_path / "out" / "timit_train_test.png").stat().st_size > 5000
    (b / "result.json").unlink()
    assert "not finished" in error_of("results", a, b, "--out", tmp_path / "out")
    assert "ctc" in (tmp_path / "out" / "results.md").read_text()  # other files stay
    assert "is no run" in error_of("results", tmp_path / "out")


def test_grouping_and_spread(tmp_path: Path) -> None:
    runs = [save_run(tmp_path / name, timed(1, 1), seed=i) for i, name in enumerate(["x/ctc-0", "x/ctc-1"])]
    other = save_run(tmp_path / "y" / "ctc-0", timed(1, 1), seed=7, train={"steps": 9})
    assert group_seeds([*runs, other, runs[0]]) == {"ctc": runs, "ctc-0": [other]}
    tuned = [
        save_run(tmp_path / f"tuned-{seed}", timed(1, 1), seed=seed, init=f"runs/ctc-{start}")
        for seed, start in [(0, 0), (1, 1), (2, 1)]
    ]
    assert group_seeds(tuned) == {"tuned": tuned[:2], "tuned-2": [tuned[2]]}  # the start has another seed
    assert spread([1.0]) == "1.0"
    assert spread([1.0, 3.0]) == "2.0 ± 1.4"
    assert spread([1.0, None]) == "-"
    assert mean_and_deviation([(1.0, 5.0), (3.0, 5.0)]) == ((2.0, 5.0), (pytest.approx(2**0.5), 0.0))
    assert mean_and_deviation([(1.0, 5.0)]) == ((1.0, 5.0), (0.0, 0.0))
    assert difference({"a": {"b": 1}, "c": 2}, {"a": {"b": 1, "d": 3}, "c": 2, "seed": 1}) == "no a.d"
