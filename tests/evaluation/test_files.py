"""Evaluation of files, folders and runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isotone.alignment import Alignment, Segment, Tier
from isotone.evaluation.files import evaluate_files, evaluate_paths, read_quiet_frames
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
    assert reasons["no-phones"] == "the prediction has no tier 'phones' (no-phones.TextGrid has 'words')."
    assert str(tmp_path / "ref" / "broken.json") in reasons
    written = json.loads((tmp_path / "scores" / "report.json").read_text())
    assert written["missing_hyp"] == ["spk/two"]
    assert len(written["skipped"]) == 2
    assert written["metrics"] == found.report.rows()


def test_a_run_brings_its_quiet_frames(tmp_path: Path) -> None:
    run = tmp_path / "run"
    for id in ("spk/one", "two"):  # the first needs a digest in its file name
        write(utterance(id), run / "alignments", "textgrid")
        write(utterance(id), tmp_path / "ref", "json")
    times = {"hop_s": 0.1, "offset_s": 0.0}
    lines = [
        {"id": "spk/one", "text": "a b", "frames": 10, "quiet": [[0, 2], [4, 10]], **times},
        {"id": "two", "frames": 10, "quiet": [], **times},
        {"id": "elsewhere", "frames": 5, "quiet": [[0, 5]], **times},
        {"id": "of an early run", "frames": 5, "blank_frames": 5},
    ]
    (run / "predictions.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    found = evaluate_paths(run, tmp_path / "ref")
    assert found.report["peaky_raw"].value == pytest.approx(40)
    assert found.report["peaky_paper"].value == pytest.approx(40 - 60)  # 600 of 1,000 ms are silent
    # 100 to 500 ms are spoken: of 4 frames each, 1 and 4 in the first, are quiet
    assert found.report["peaky"].value == pytest.approx(100 * 2 / 8)
    assert (found.missing_hyp, found.missing_ref) == ((), ())
    (run / "predictions.jsonl").write_text(json.dumps({"id": "two", "frames": 5, "blank_frames": 5}) + "\n")
    assert "peaky" not in evaluate_paths(run, tmp_path / "ref").report.metrics
    (run / "predictions.jsonl").unlink()
    assert "peaky" not in evaluate_paths(run, tmp_path / "ref").report.metrics


@pytest.mark.parametrize(
    "bad",
    [
        "[1]", "{", '{"frames": 3, "quiet": [], "hop_s": 1, "offset_s": 0}',
        '{"id": "a", "frames": "x", "quiet": [], "hop_s": 1, "offset_s": 0}',
        '{"id": "a", "frames": 3, "quiet": [[1, 4]], "hop_s": 1, "offset_s": 0}',
        '{"id": "a", "frames": 3, "quiet": [1], "hop_s": 1, "offset_s": 0}',
        '{"id": "a", "frames": 3, "quiet": []}', '{"id": "a", "frames": 0, "quiet": [], "hop_s": 1, "offset_s": 0}',
    ],
)  # fmt: skip
def test_broken_predictions_name_their_line(tmp_path: Path, bad: str) -> None:
    path = tmp_path / "predictions.jsonl"
    good = '{"id": "a", "frames": 3, "quiet": [[0, 1]], "hop_s": 0.02, "offset_s": 0.01}\n'
    path.write_text(good + bad + "\n")
    with pytest.raises(ValueError, match=r"predictions\.jsonl, line 2: expected a JSON object"):
        read_quiet_frames(path)


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
    with pytest.raises(ValueError, match=r"share no utterance: ids 'a' and 'b'\. Files match by"):
        evaluate_paths(tmp_path / "hyp", tmp_path / "ref")
    with pytest.raises(
        ValueError,
        match=r"none has a tier 'words' on both sides: .*hyp has 'phones' in 1 \.json file; ",
    ):
        evaluate_paths(tmp_path / "hyp", tmp_path / "hyp", tier="words")
    with pytest.raises(FileNotFoundError, match="there is no"):
        evaluate_paths(tmp_path / "gone", tmp_path / "ref")


def test_what_cannot_be_matched_is_explained(tmp_path: Path) -> None:
    write(utterance("sa1"), tmp_path / "hyp", "textgrid")
    for speaker in ("f", "g"):
        write(utterance("sa1"), tmp_path / "ref" / speaker, "textgrid")
    with pytest.raises(ValueError, match=r"'sa1' could be any of 'f/sa1', 'g/sa1': give the folder"):
        evaluate_paths(tmp_path / "hyp", tmp_path / "ref")
    assert evaluate_paths(tmp_path / "hyp", tmp_path / "ref" / "g").report.ids == ("sa1",)
    (tmp_path / "mfa").mkdir()
    with pytest.raises(ValueError, match=r"mfa has no files of alignments \(TextGrid, CTM"):
        evaluate_paths(tmp_path / "mfa", tmp_path / "ref")
    (tmp_path / "mfa" / "sa1.csv").write_text("Begin,End,Label,Type,Speaker\n0,1,a,phones,f\n")
    with pytest.raises(
        ValueError, match=r"mfa has no alignment that can be read: .*sa1\.csv: line 1: expected the h"
    ):
        evaluate_paths(tmp_path / "mfa", tmp_path / "ref")


def of_speakers(**tiers: tuple[float, float, str]) -> Alignment:
    return Alignment(
        "u", 3.0, tuple(Tier(f"{n} - words", (Segment(w, a, b),)) for n, (a, b, w) in tiers.items())
    )


def test_tiers_of_speakers_are_scored_as_one_or_by_name(tmp_path: Path) -> None:
    words = Tier("Word", (Segment("one", 0.1, 1.0), Segment("two", 1.1, 2.0)))
    write(Alignment("u", 3.0, (words,)), tmp_path / "hyp", "textgrid")
    write(of_speakers(A=(0.1, 1.0, "one"), B=(1.1, 2.0, "two")), tmp_path / "ref", "textgrid")
    found = evaluate_paths(tmp_path / "hyp", tmp_path / "ref", "words").report
    assert (found.tier, found["wer"].value, found["idr"].value) == ("words", 0.0, 100.0)
    one = evaluate_paths(tmp_path / "hyp", tmp_path / "ref", "A - words").report
    assert (one.tier, one["wer"].value) == ("words", 100.0), "B's word is not in A's tier"
    with pytest.raises(
        ValueError, match="No file has a tier 'C - words'; there are 'A - words', 'B - words', 'Word'"
    ):
        evaluate_paths(tmp_path / "hyp", tmp_path / "ref", "C - words")
    write(of_speakers(A=(0.1, 1.5, "one"), B=(1.1, 2.0, "two")), tmp_path / "ref", "textgrid")
    with pytest.raises(
        ValueError,
        match=r"can be scored: u: tiers .*overlap.* by its whole name. Its speakers .*: none and 'a', 'b'.$",
    ):
        evaluate_paths(tmp_path / "hyp", tmp_path / "ref", "words")


def test_speakers_who_talk_at_once_are_scored_one_after_the_other(tmp_path: Path) -> None:
    """Whatever the order of their tiers, and as their scores would be alone; other recordings have their own way."""
    said = {"A": (0.1, 1.5, "one"), "B": (1.1, 2.0, "two")}
    write(of_speakers(**said), tmp_path / "ref", "textgrid")
    write(of_speakers(B=(1.12, 2.05, "two"), A=(0.1, 1.5, "one")), tmp_path / "hyp", "textgrid")
    single = Alignment("v", 3.0, (Tier("words", (Segment("one", 0.1, 1.0),)),))
    for side in ("hyp", "ref"):
        write(single, tmp_path / side, "textgrid")
    found = evaluate_paths(tmp_path / "hyp", tmp_path / "ref", "words")
    assert found.skipped == ()
    assert (found.report["wer"].value, found.report["matched"].value) == (0.0, 100.0)
    assert found.report["error_mean"].value == pytest.approx((20 + 50) / 6)
    alone = evaluate_paths(tmp_path / "hyp", tmp_path / "ref", "B - words").report
    assert alone["error_mean"].value == pytest.approx((20 + 50) / 4), "v's tier is of any speaker"
    write(of_speakers(B=(1.1, 2.0, "two"), C=(0.1, 1.5, "one")), tmp_path / "hyp", "textgrid")
    ((id, why),) = evaluate_paths(tmp_path / "hyp", tmp_path / "ref", "words").skipped
    assert id == "u"
    assert "speakers are not those of the other side: 'b', 'c' and 'a', 'b'" in why


def test_of_several_files_of_an_utterance_the_one_with_the_tier_is_scored(tmp_path: Path) -> None:
    """A corpus of hand-labelled phones with an aligner's TextGrids, and reports of its own, in one folder."""
    for folder in ("hyp", "ref"):
        write(utterance("u"), tmp_path / folder, "timit")
        write(utterance("u", tier="words"), tmp_path / folder, "textgrid")
    (tmp_path / "hyp" / "alignment_analysis.csv").write_text("file,begin,end,speaker\n")
    found = evaluate_paths(tmp_path / "hyp", tmp_path / "ref", "words")
    assert found.report["wer"].value == 0.0
    assert found.skipped == ()
    assert found.foreign == (str(tmp_path / "hyp" / "alignment_analysis.csv"),)
    assert evaluate_paths(tmp_path / "hyp", tmp_path / "ref", "phones").report["per"].value == 0.0


def test_empty_tiers_are_scored_and_said(tmp_path: Path) -> None:
    silent = Tier("phones", (Segment("sil", 0.0, 1.0),))
    write(Alignment("a", 1.0, (silent,)), tmp_path / "hyp", "textgrid")
    write(Alignment("b", 1.0, (Tier("phones", ()),)), tmp_path / "hyp", "json")
    for id in ("a", "b"):
        write(utterance(id), tmp_path / "ref", "textgrid")
    found = evaluate_paths(tmp_path / "hyp", tmp_path / "ref")
    assert (found.empty_hyp, found.empty_ref) == (("a", "b"), ())
    assert found.report["per"].value == 100.0


@pytest.mark.parametrize("other", [("DH", "AH0", "K", "AE1", "T"), ("ð", "ə", "kʰ", "æ", "t")])
def test_phones_of_other_sets_are_folded(other: tuple[str, ...], tmp_path: Path) -> None:
    for side, labels in (("hyp", ("dh", "ax", "k", "ae", "t")), ("ref", ("sil", *other, "spn"))):
        segments = tuple(
            Segment(label, 0.1 * i, 0.1 * (i + 1)) for i, label in enumerate(labels, side == "hyp")
        )
        write(Alignment("one", 1.0, (Tier("phones", segments),)), tmp_path / side, "textgrid")
    found, _ = evaluate_files(tmp_path / "hyp", tmp_path / "ref", phones=39)
    assert (found["hyp"].report["per"].value, found["hyp"].report["start_f1@20ms"].value) == (0, 100)
