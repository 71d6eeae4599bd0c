"""Scoring files, folders and runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isotone.alignment import Alignment, Segment, Tier
from isotone.evaluation.files import evaluate_paths, read_blank_counts
from isotone.format import write


def utterance(id: str, late_s: float = 0.0, tier: str = "phones") -> Alignment:
    segments = (Segment("a", 0.1 + late_s, 0.3 + late_s), Segment("b", 0.3 + late_s, 0.5 + late_s))
    return Alignment(id, 1.0, (Tier(tier, segments),))


def test_folders_of_different_formats(tmp_path: Path) -> None:
    write(utterance("One", 0.02), tmp_path / "hyp", "textgrid")
    write(utterance("only-predicted"), tmp_path / "hyp", "textgrid")
    write(utterance("no-phones", tier="words"), tmp_path / "hyp", "textgrid")
    write(utterance("one"), tmp_path / "ref", "json")
    write(utterance("spk/two"), tmp_path / "ref", "json")
    write(utterance("no-phones"), tmp_path / "ref", "json")
    (tmp_path / "ref" / "broken.json").write_text("{")
    found = evaluate_paths(tmp_path / "hyp", tmp_path / "ref", out=tmp_path / "scores" / "report.json")
    assert found.report["bias"].value == pytest.approx(20)
    assert found.report.ids == ("one",)
    assert found.missing_hyp == ("spk/two",)
    assert found.missing_ref == ("only-predicted",)
    assert found.renamed == ()
    reasons = dict(found.skipped)
    assert reasons["no-phones"] == "The prediction has no tier 'phones'."
    assert str(tmp_path / "ref" / "broken.json") in reasons
    written = json.loads((tmp_path / "scores" / "report.json").read_text())
    assert written["missing_hyp"] == ["spk/two"]
    assert len(written["skipped"]) == 2
    assert written["metrics"] == found.report.rows()


def test_a_run_brings_its_blank_frames(tmp_path: Path) -> None:
    run = tmp_path / "run"
    for id in ("spk/one", "two"):  # the first needs a digest in its file name
        write(utterance(id), run / "alignments", "textgrid")
        write(utterance(id), tmp_path / "ref", "json")
    lines = [
        {"id": "spk/one", "text": "a b", "frames": 50, "blank_frames": 40},
        {"id": "two", "frames": 10, "blank_frames": 8},
        {"id": "elsewhere", "frames": 5, "blank_frames": 5},
        {"id": "no-count"},
    ]
    (run / "predictions.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    found = evaluate_paths(run, tmp_path / "ref")
    assert found.report["peaky_raw"].value == pytest.approx(80)
    assert found.report["peaky"].value == pytest.approx(80 - 60)  # 600 of 1,000 ms are silent
    assert (found.missing_hyp, found.missing_ref) == ((), ())
    (run / "predictions.jsonl").unlink()
    assert "peaky" not in evaluate_paths(run, tmp_path / "ref").report.metrics


def test_broken_predictions_name_their_line(tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"
    for bad in (
        "[1]",
        '{"frames": 3, "blank_frames": 1}',
        '{"id": "a", "frames": "x", "blank_frames": 1}',
        "{",
    ):
        path.write_text('{"id": "a", "frames": 3, "blank_frames": 1}\n' + bad + "\n")
        with pytest.raises(ValueError, match=r"predictions\.jsonl, line 2: expected a JSON object"):
            read_blank_counts(path)


def test_two_files_are_a_pair_whatever_their_names(tmp_path: Path) -> None:
    hyp = write(utterance("guess", 0.01), tmp_path, "textgrid")
    ref = write(utterance("truth"), tmp_path, "json")
    found = evaluate_paths(hyp, ref, tolerance_s=0.005, resamples=0)
    assert found.report.ids == ("truth",)
    assert found.report["bias"].value == pytest.approx(10)
    assert found.report["boundary_f1@5ms"].value == 0
    assert found.renamed == (("guess", "truth"),)


def test_ctm_files_hold_many_utterances(tmp_path: Path) -> None:
    (tmp_path / "hyp.ctm").write_text("u1 1 0.10 0.20 a\nu1 1 0.30 0.20 b\nu2 1 0.00 0.50 a\nu3 1 0 1 a\n")
    (tmp_path / "ref.ctm").write_text("u1 1 0.10 0.20 a\nu1 1 0.30 0.20 b\nu2 1 0.04 0.50 a\n")
    found = evaluate_paths(tmp_path / "hyp.ctm", tmp_path / "ref.ctm", tier="phones", resamples=0)
    assert found.report.ids == ("u1", "u2")
    assert found.missing_ref == ("u3",)
    assert found.report["bias"].value == pytest.approx(-80 / 6)
    (tmp_path / "bad.ctm").write_text("u1 1 zero 0.20 a\n")
    with pytest.raises(ValueError, match=r"bad\.ctm: line 1"):
        evaluate_paths(tmp_path / "bad.ctm", tmp_path / "ref.ctm")


def test_nothing_in_common_is_an_error_that_shows_both_sides(tmp_path: Path) -> None:
    write(utterance("a"), tmp_path / "hyp", "json")
    write(utterance("b"), tmp_path / "ref", "json")
    with pytest.raises(ValueError, match=r"share no utterance with a tier 'phones': ids 'a' and 'b'"):
        evaluate_paths(tmp_path / "hyp", tmp_path / "ref")
    with pytest.raises(ValueError, match=r"the reference has no tier 'words'"):
        evaluate_paths(tmp_path / "hyp", tmp_path / "hyp", tier="words")
    with pytest.raises(FileNotFoundError, match="there is no"):
        evaluate_paths(tmp_path / "gone", tmp_path / "ref")
