"""Correct transcripts against wrong ones: pairs, numbers, and warnings of likely wrong transcripts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from isotone import format as files
from isotone.batch import Options
from isotone.batch.score_check import check_scores
from isotone.evaluation import roc
from tests.paths import DATA
from tests.tiny_models import error_of, isotone, lines_of, save_noise


@pytest.fixture(scope="module")
def trained(tiny_recipes: Path, train: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has learned the tones of the miniature corpus."""
    out = tmp_path_factory.mktemp("runs") / "ctc"
    options = (f"output={out}", "train.steps=150", "train.lr=1.0e-2", "train.evaluate_every=150")
    return train(tiny_recipes / "joint.yaml", *options)


@pytest.fixture
def spoken(timit_root: Path, tmp_path: Path) -> Path:
    """The corpus's recordings with their phones as transcripts, closures left to the stops."""
    for path in sorted(timit_root.rglob("*.WAV")):
        name = f"{path.parent.name}-{path.stem}"
        (tmp_path / f"{name}.wav").symlink_to(path)
        phones = [line.split()[2] for line in path.with_suffix(".PHN").read_text().splitlines()]
        (tmp_path / f"{name}.txt").write_text(
            " ".join("sil" if p == "h#" else p for p in phones if not p.endswith("cl"))
        )
    return tmp_path


def test_right_transcripts_score_higher(trained: Path, spoken: Path, tmp_path: Path) -> None:
    check = check_scores([spoken], Options(str(trained)), json_file=tmp_path / "scores/check.json")
    assert check.roc.right == check.roc.wrong == 16
    assert check.roc.auc > 0.8  # of a model that was trained for seconds
    assert check.roc == roc([p.score for p in check.right], [p.score for p in check.wrong])
    assert all(p.file == p.transcript_of for p in check.right)
    assert not any(p.file == p.transcript_of for p in check.wrong)
    written = json.loads((tmp_path / "scores/check.json").read_text())
    assert written["roc"]["auc"] == check.roc.auc
    assert [row["score"] for row in written["right"]] == [p.score for p in check.right]
    output = isotone("score-check", spoken, "-m", trained).stdout
    assert f"{100 * check.roc.auc:.1f}" in output
    assert f"{check.roc.threshold:.2f}" in output

    # by chance alone as well, and what the default threshold does here
    assert check.agreement is not None
    assert check.agreement.auc > 0.5
    assert check.agreement.auc == written["agreement"]["auc"]
    below = [p.agreement < check.default.threshold for p in check.wrong if p.agreement is not None]
    assert check.flagged()[1] == sum(below) / len(below) == written["default"]["wrong_flagged_here"]
    assert f"{100 * sum(below) / len(below):.1f} % of the wrong transcripts" in output.replace("\n", " ")

    # the threshold finds a transcript that was exchanged
    right = {Path(p.file).stem: p.score for p in check.right}
    wrong = min(check.wrong, key=lambda p: p.score)
    Path(wrong.file).with_suffix(".txt").write_text(Path(wrong.transcript_of).with_suffix(".txt").read_text())
    out = tmp_path / "out"
    result = isotone(
        "align", spoken, "-m", trained, "-f", "json", "-o", out, "--min-score", f"{check.roc.threshold}"
    )
    low = {Path(row["file"]).stem: row["warning"] for row in lines_of(out / "warnings.jsonl")}
    expected = {stem for stem, score in right.items() if score < check.roc.threshold}
    assert set(low) == expected | {Path(wrong.file).stem}
    assert "likely not what is said" in low[Path(wrong.file).stem]
    assert "16 of 16 files written" in result.stdout, "what is flagged is written all the same"
    for stem, score in right.items():
        if stem != Path(wrong.file).stem:
            assert files.read(out / f"{stem}.json").score == pytest.approx(score, abs=1e-6)


def test_a_transcript_that_does_not_fit_is_wrong_at_any_threshold(model: Path, tmp_path: Path) -> None:
    save_noise(tmp_path / "short.wav", 0.3, text="a")
    save_noise(tmp_path / "long.wav", 2.0, text="it goes on and on and on and on")
    check = check_scores([tmp_path], Options(str(model)), json_file=tmp_path / "c.json")
    scores = {Path(p.file).stem: p.score for p in check.wrong}
    assert scores["short"] == float("-inf")
    assert scores["long"] < 0
    rows = json.loads((tmp_path / "c.json").read_text())["wrong"]
    assert [row["score"] is None for row in rows if row["file"].endswith("short.wav")] == [True]


def test_a_bad_file_is_left_out_and_said(model: Path, tmp_path: Path) -> None:
    for i, text in enumerate(("so it is", "as you like")):
        save_noise(tmp_path / f"u{i}.wav", 1.0, text=text, seed=i)
    save_noise(tmp_path / "mute.wav", 1.0)
    (tmp_path / "broken.wav").write_text("no audio")
    (tmp_path / "broken.txt").write_text("no")
    result = isotone("score-check", tmp_path, "-m", model, code=1)
    assert "2 files left out" in result.stderr
    assert " 2 " in result.stdout


def test_what_cannot_be_checked_is_explained(model: Path, tmp_path: Path) -> None:
    save_noise(tmp_path / "u.wav", 1.0, text="so it is")
    assert "1 files with 1 transcript" in error_of("score-check", tmp_path, "-m", model)
    assert "No such file" in error_of("score-check", tmp_path / "none", "-m", model)
    save_noise(tmp_path / "v.wav", 1.0, text="щщ")
    save_noise(tmp_path / "u.wav", 1.0, text="ффф")
    assert "None of the files could be aligned" in error_of("score-check", tmp_path, "-m", model)
    assert "is a folder" in error_of("score-check", tmp_path, "-m", model, "--json", tmp_path)
    for score in ("0.5", "nan"):
        message = error_of("align", tmp_path, "-m", model, "-o", tmp_path / "out", "--min-score", score)
        assert "0 or less" in message


@pytest.mark.skipif(not (DATA / "timit_sample").is_dir(), reason=f"no TIMIT sample in {DATA}")
def test_scores_of_real_speech_are_finite(model: Path) -> None:
    """An untrained model: the machinery on real recordings; what trained ones reach is measured, not tested."""
    speaker = sorted((DATA / "timit_sample").iterdir())[1]
    check = check_scores([speaker], Options(str(model)))
    assert check.roc.right == 10
    assert all(-100 < p.score < 0 for p in (*check.right, *check.wrong))
