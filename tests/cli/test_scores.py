"""`isotone evaluate` and `isotone report`: scores, files and messages."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from isotone import format as files
from isotone import formats
from isotone.alignment import Alignment, Segment, Tier
from isotone.evaluation.files import evaluate_files
from tests.tiny_models import error_of, isotone, save_noise

# evaluate


def utterance(id: str, shift: float = 0.0, labels: str = "s iy sil t aa") -> Alignment:
    """Five phones of 100 ms, and two words."""
    bounds = [0.1 * i + (shift if i else 0.0) for i in range(6)]
    phones = [Segment(x, bounds[i], bounds[i + 1]) for i, x in enumerate(labels.split())]
    words = [Segment("see", bounds[0], bounds[2]), Segment("ta", bounds[3], bounds[5])]
    return Alignment(id, 0.6, (Tier("words", words), Tier("phones", phones)))


#: Of the 20 frames of phones other than silence, 4.
QUIET = {"frames": 30, "quiet": [[0, 4], [10, 15], [25, 30]], "hop_s": 0.02, "offset_s": 0.0}


@pytest.fixture
def scored(tmp_path: Path) -> Path:
    """``ref``, ``good`` (10 ms off) and ``bad`` (30 ms off): three utterances of TextGrids each."""
    for name, shift in (("ref", 0.0), ("good", 0.01), ("bad", 0.03)):
        for i in range(3):
            files.write(utterance(f"u{i}", shift), tmp_path / name, "textgrid")
    return tmp_path


def metrics(json_file: Path, name: str) -> dict[str, float]:
    return {row["metric"]: row["value"] for row in json.loads(json_file.read_text())[name]["metrics"]}


def test_evaluate_folders(scored: Path) -> None:
    result = isotone("evaluate", scored / "good", scored / "ref", "--json", scored / "s.json")
    assert "start_f1@20ms" in result.stdout
    assert "100.00" in result.stdout
    found = metrics(scored / "s.json", "good")
    assert found["start_f1@20ms"] == 100.0
    assert found["per"] == 0.0
    assert found["error_median"] == pytest.approx(10.0)
    assert metrics_of(scored, "bad")["start_f1@20ms"] == pytest.approx(25.0)  # "s" starts at 0 in both
    assert metrics_of(scored, "bad", "--collar", "35")["start_f1@35ms"] == 100.0
    assert "wer" in metrics_of(scored, "good", "--tier", "words")
    assert "per" in metrics_of(scored, "good", "--tier", "Phone")


def metrics_of(scored: Path, name: str, *options: str) -> dict[str, float]:
    isotone("evaluate", scored / name, scored / "ref", "--json", scored / "o.json", *options)
    return metrics(scored / "o.json", name)


def test_evaluate_in_the_folder_itself(scored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(scored / "good")
    isotone("evaluate", ".", "../ref", "--json", "../s.json")
    assert metrics(scored / "s.json", "good")["start_f1@20ms"] == 100.0


def test_evaluate_says_when_both_sides_are_one(scored: Path) -> None:
    result = isotone("evaluate", scored / "ref", scored / "good/../ref")
    assert "it was compared with itself" in result.output
    assert "itself" not in isotone("evaluate", scored / "good", scored / "ref").output


def test_evaluate_whatever_the_labels(tmp_path: Path) -> None:
    files.write(utterance("u", labels="t aa sil s iy"), tmp_path / "hyp", "textgrid")
    files.write(utterance("u"), tmp_path / "ref", "textgrid")
    assert metrics_of_pair(tmp_path)["start_f1@20ms"] == 0.0
    assert metrics_of_pair(tmp_path, "--any-label")["start_f1@20ms"] == 100.0


def metrics_of_pair(folder: Path, *options: str) -> dict[str, float]:
    isotone("evaluate", folder / "hyp", folder / "ref", "--json", folder / "s.json", *options)
    return metrics(folder / "s.json", "hyp")


def test_evaluate_folds_phones(tmp_path: Path) -> None:
    """TIMIT's own labels against those of a model of 39."""
    ends, raw = [1600, 3200, 4000, 4800, 6400, 8000], ["h#", "s", "kcl", "k", "ix", "q"]
    lines = "".join(f"{a} {b} {x}\n" for a, b, x in zip([0, *ends], ends, raw))
    (tmp_path / "ref").mkdir()
    (tmp_path / "ref/u.phn").write_text(lines)
    folded = [
        Segment("s", 0.1, 0.2),
        Segment("sil", 0.2, 0.25),
        Segment("k", 0.25, 0.3),
        Segment("ih", 0.3, 0.4),
    ]
    files.write(Alignment("u", 0.5, (Tier("phones", folded),)), tmp_path / "hyp", "textgrid")
    as_it_is, at_39 = metrics_of_pair(tmp_path), metrics_of_pair(tmp_path, "--phones", "39")
    assert as_it_is["per"] > 0
    assert at_39["per"] == 0.0
    assert at_39["start_f1@20ms"] == 100.0
    assert "40" in error_of("evaluate", tmp_path / "hyp", tmp_path / "ref", "--phones", "40")


def test_evaluate_files_of_several_formats(scored: Path) -> None:
    """One utterance in every format that is read, TIMIT's pair of files among them."""
    good = files.read(scored / "good/u0.TextGrid")
    for name in ("json", "csv"):
        path = files.write(good, scored / name, name)
        assert metrics_of_files(scored, path)["start_f1@20ms"] == 100.0
    for tier in ("phones", "words"):
        files.write(good, scored / "timit", formats.build("timit", tier=tier))
        files.write(good, scored / "ctm" / tier, formats.build("ctm", tier=tier))
    found = metrics_of_files(scored, scored / "ctm/phones/u0.ctm")
    assert found["error_median"] == pytest.approx(10.0)
    isotone("evaluate", scored / "timit", scored / "ref", "--json", scored / "s.json")
    assert metrics(scored / "s.json", "timit")["error_median"] == pytest.approx(10.0)
    assert "wer" in metrics_of_files(scored, scored / "ctm/words/u0.ctm", "--tier", "words")


def metrics_of_files(scored: Path, path: Path, *options: str) -> dict[str, float]:
    isotone("evaluate", path, scored / "ref/u0.TextGrid", "--json", scored / "s.json", *options)
    return metrics(scored / "s.json", path.name)


def test_evaluate_a_run_folder_counts_its_peaks(scored: Path) -> None:
    run = scored / "run"
    for i in range(3):
        files.write(utterance(f"u{i}"), run / "alignments", "textgrid")
    rows = [{"id": f"u{i}", **QUIET} for i in range(3)]
    (run / "predictions.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    isotone("evaluate", run, scored / "ref", "--json", scored / "s.json")
    assert metrics(scored / "s.json", "run")["peaky"] == pytest.approx(20.0)


def test_evaluate_against_another(scored: Path) -> None:
    paths = [scored / "good", scored / "ref", "--against", scored / "bad"]
    result = isotone("evaluate", *paths, "--json", scored / "s.json")
    assert "p (permutation)" in result.stdout
    whole = json.loads((scored / "s.json").read_text())
    rows = {row["metric"]: row for row in whole["comparison"]}
    assert rows["start_f1@20ms"]["difference"] == pytest.approx(75.0)
    assert {str(scored / "good"), str(scored / "bad")} < whole.keys()
    message = error_of("evaluate", scored / "good", scored / "ref", "--against", scored / "ref/../good")
    assert "the hypothesis itself" in message


def test_evaluate_says_what_it_does_not_cover(scored: Path) -> None:
    (scored / "good/u1.TextGrid").unlink()
    files.write(utterance("stranger"), scored / "good", "textgrid")
    result = isotone("evaluate", scored / "good", scored / "ref", "--json", scored / "s.json")
    assert "1 without a prediction, not scored: u1" in result.stderr
    assert "1 without a reference, not scored: stranger" in result.stderr
    whole = json.loads((scored / "s.json").read_text())["good"]
    assert (whole["missing_hyp"], whole["missing_ref"]) == (["u1"], ["stranger"])
    (scored / "good/analysis.csv").write_text("file,begin,end\n")
    files.write(Alignment("u0", 0.6, (Tier("phones", ()),)), scored / "good", "textgrid")
    result = isotone("evaluate", scored / "good", scored / "ref")
    assert f"1 files that are no alignments, left alone: {scored / 'good/analysis.csv'}" in result.stderr
    assert "1 predictions with nothing in the tier, scored so: u0" in result.stderr
    (scored / "good/u2.TextGrid").write_text("File type = nonsense")
    result = isotone("evaluate", scored / "good", scored / "ref", code=1)
    assert "u2.TextGrid: " in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing", "ref"), "nothing"),
        (("good", "nothing"), "nothing"),
        (("good", "ref", "--tier", "syllables"), "--tier syllables needs --collar, in milliseconds"),
        (
            ("good", "ref", "--tier", "syllables", "--collar", "20"),
            "has 'words', 'phones' in 3 .TextGrid files",
        ),
        (("good", "ref", "--collar", "-5"), "--collar expects milliseconds, 0 or more; got -5."),
        (("good", "ref", "--collar", "inf"), "--collar expects milliseconds, 0 or more; got inf."),
        (("good", "ref", "--collar", "nan"), "--collar expects milliseconds, 0 or more; got nan."),
        (("good", "ref", "--phones", "40"), "--phones expects 39 or 48"),
        (
            ("good", "ref", "--phones", "39", "--tier", "words"),
            "--phones folds phones; --tier words has none",
        ),
        (("good", "ref", "--as-written"), "--as-written is for words; --tier phones has none"),
        (("good/u0.TextGrid", "empty.TextGrid"), "empty.TextGrid"),
        (("good", "ref", "--json", "file/s.json"), "file"),
    ],
)
def test_evaluate_explains_wrong_arguments(scored: Path, arguments: tuple[str, ...], message: str) -> None:
    (scored / "empty.TextGrid").touch()
    (scored / "file").touch()
    paths = [scored / a if (scored / a.split("/")[0]).exists() or a == "nothing" else a for a in arguments]
    assert message in error_of("evaluate", *paths)


# report


def fake_run(folder: Path, shift: float, *, seed: int = 0, count: int = 3) -> Path:
    """Write the files of a finished run: noise, three utterances ``shift`` seconds late, ten steps of training."""
    rows = []
    for i in range(count):
        audio = save_noise(folder.parent / f"audio/u{i}.wav", 0.6, seed=i)
        files.write(utterance(f"u{i}"), folder / "reference", "textgrid")
        for part in ("alignments", "forced"):
            files.write(utterance(f"u{i}", shift), folder / part, "textgrid")
        rows.append(
            {
                "id": f"u{i}", "audio": str(audio), "start": 0.0, "end": 0.6, "words": "see ta",
                "text": "s iy sil t aa", "recognised": "s iy sil t aa", **QUIET,
                "score": -1.0, "forced_score": -1.0,
            }
        )  # fmt: skip
    (folder / "predictions.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    history = [{"step": i, "loss": 10.0 - i, "ctc": 10.0 - i, "lr": 1e-3, "epoch": 0} for i in range(10)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in history))
    (folder / "result.json").write_text("{}")
    (folder / "config.yaml").write_text(f"seed: {seed}\noutput: {folder}\nshift: {shift}\n")
    return folder


def test_report_compares_runs(tmp_path: Path) -> None:
    runs = [fake_run(tmp_path / "good", 0.01), fake_run(tmp_path / "bad", 0.03)]
    (runs[1] / "forced/u0.TextGrid").unlink()  # a text that needs more frames than there are
    result = isotone("report", *runs, "--out", tmp_path / "report")
    assert f"Page: {tmp_path / 'report/report.html'}\n" in result.stdout
    assert "…" not in result.stdout, "a terminal of 80 columns shows every number"
    shown = {
        line.split("│")[1].strip(): line.split("│")[2:4] for line in result.stdout.splitlines() if "│" in line
    }
    assert [cell.strip() for cell in shown["start F1 20 ms"]] == ["100.0", "25.0"]
    page = (tmp_path / "report/report.html").read_text(encoding="utf-8")
    assert page.rstrip().endswith("</html>")
    assert page.count('class="viewer"') >= 3
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "see ta" in page
    scores = json.loads((tmp_path / "report/scores.json").read_text())
    assert set(scores) == {"good", "bad"}
    table = (tmp_path / "report/table.md").read_text().splitlines()
    names = [cell.strip() for cell in table[0].split("|")[1:-1]]
    cells = [cell.strip() for cell in table[2].split("|")[1:-1]]
    row = dict(zip(names, cells))
    assert (row["model"], row["PER %"], row["peaky %"], row["start F1 20 ms"]) == (
        "good",
        "0.0",
        "20.0",
        "100.0",
    )


def test_a_report_replaces_nothing_that_isotone_did_not_write(tmp_path: Path) -> None:
    run, out = fake_run(tmp_path / "good", 0.01), tmp_path / "report"
    out.mkdir()
    (out / "table.md").write_text("mine")
    assert "table.md" in error_of("report", run, "--out", out)
    assert [p.name for p in out.glob("[!.]*")] == ["table.md"]
    isotone("report", run, "--out", out, "--overwrite")
    isotone("report", run, "--out", out)


def test_report_of_a_model_evaluated_as_it_was(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "good", 0.01)
    (run / "metrics.jsonl").unlink()
    isotone("report", run, "--out", tmp_path / "report")
    assert "Training" not in (tmp_path / "report/report.html").read_text(encoding="utf-8")


def test_report_keeps_runs_of_one_name_apart(tmp_path: Path) -> None:
    runs = [fake_run(tmp_path / "one/ctc", 0.01), fake_run(tmp_path / "two/ctc", 0.03)]
    isotone("report", *runs, "--out", tmp_path / "report", "--tier", "words")
    rows = (tmp_path / "report/table.csv").read_text().splitlines()[1:]
    assert [row.split(",")[0] for row in rows] == ["one_ctc", "two_ctc"]


def test_report_takes_seeds_as_one_system(tmp_path: Path) -> None:
    runs = [fake_run(tmp_path / f"ctc-{seed}", 0.01, seed=seed) for seed in (1, 2)]
    isotone("report", *runs, "--out", tmp_path / "report")
    rows = (tmp_path / "report/table.md").read_text().splitlines()[2:]
    assert [row.split("|")[1].strip() for row in rows] == ["ctc"]
    assert "100.0 ± 0.0" in rows[0]


def test_report_again_by_the_same_pattern(tmp_path: Path) -> None:
    """`isotone report runs/* --out runs/report`: the second time the pattern finds the report, too."""
    run = fake_run(tmp_path / "ctc", 0.01)
    isotone("report", run, "--out", tmp_path / "report")
    isotone("report", run, tmp_path / "report", "--out", tmp_path / "report")
    assert len((tmp_path / "report/table.csv").read_text().splitlines()) == 2


def test_report_explains_what_is_no_run(tmp_path: Path) -> None:
    good = fake_run(tmp_path / "good", 0.01)
    assert "not a finished run" in error_of("report", good, tmp_path / "nothing")
    shutil.rmtree(good / "reference")
    assert "texts alone. `isotone results` makes a table" in error_of("report", good)
    (good / "reference").mkdir()
    (good / "result.json").unlink()
    assert "result.json" in error_of("report", good)
    less = fake_run(tmp_path / "less", 0.01, count=2)
    assert "another test split" in error_of("report", less, fake_run(tmp_path / "more", 0.02))
    assert not (tmp_path / "report").exists()


def test_words_are_compared_without_case_and_punctuation(tmp_path: Path) -> None:
    hyp, ref = tmp_path / "hyp", tmp_path / "ref"
    for folder, label in ((hyp, "Year."), (ref, "year")):
        files.write(Alignment("a", 1.0, (Tier("words", (Segment(label, 0.25, 0.75),)),)), folder, "textgrid")
    plain = evaluate_files(hyp, ref, tier="words")[0]["hyp"].report
    assert plain["wer"].value == 0.0
    assert plain["idr"].value == 100.0
    assert evaluate_files(hyp, ref, tier="words", as_written=True)[0]["hyp"].report["wer"].value == 100.0
