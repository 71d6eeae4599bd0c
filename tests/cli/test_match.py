"""``isotone match``: files out, what cannot be used, and nothing of anybody's replaced."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from isotone.alignment import Alignment, Segment, Tier
from isotone.format.textgrid import TextGridFormat
from tests.tiny_models import error_of, isotone, lines_of, names_in, save_character_model
from tests.warping.parts import RATE, melody, save_melody


def quiet(seconds: float) -> np.ndarray:
    return (1e-3 * np.random.default_rng(7).standard_normal(round(seconds * RATE))).astype(np.float32)


PIECE = np.concatenate([quiet(0.4), melody(4.6)])
WORDS = Tier("words", (Segment("one", 0.5, 1.5), Segment("two", 1.5, 3.0), Segment("three", 4.0, 4.5)))


@pytest.fixture
def piece(tmp_path: Path) -> Path:
    """A reference with labels beside it."""
    grid = TextGridFormat().dumps(Alignment("piece", 5.0, (WORDS,)))
    (tmp_path / "piece.TextGrid").write_text(grid)
    return save_melody(tmp_path / "piece.wav", PIECE)


def late(path: Path, seconds: float = 1.0) -> Path:
    """The piece after a pause."""
    return save_melody(path, quiet(seconds), PIECE)


def starts(path: Path) -> list[float]:
    return [s.start for s in TextGridFormat().loads(path.read_text(), "x").tier("words") if s.label]


def test_labels_are_carried_and_maps_written(piece: Path, tmp_path: Path) -> None:
    late(tmp_path / "in/a/x.wav")
    late(tmp_path / "in/b/x.flac", 2.0)
    out = tmp_path / "out"
    result = isotone("match", piece, tmp_path / "in", "-o", out, "--map", "csv", "--map", "json")
    assert "2 of 2 files written" in result.stdout
    assert names_in(out / "a") == ["x.TextGrid", "x.map.csv", "x.map.json"]
    np.testing.assert_allclose(starts(out / "a/x.TextGrid"), [1.5, 2.5, 5.0], atol=0.03)
    np.testing.assert_allclose(starts(out / "b/x.TextGrid"), [2.5, 3.5, 6.0], atol=0.03)
    with (out / "a/x.map.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert rows[0] == {"reference_s": "0.0000", "other_s": "0.0000"}
    found = np.interp(2.0, *([float(r[k]) for r in rows] for k in ("reference_s", "other_s")))
    assert found == pytest.approx(3.0, abs=0.03)
    whole = json.loads((out / "a/x.map.json").read_text())
    assert (whole["reference"], whole["other"]) == ("piece.wav", "x.wav")
    assert (whole["features"], whole["warper"], whole["part"]) == ("log-mel", "soft-dtw", "none")
    assert whole["map"][-1] == [5.0, 6.0]
    assert whole["mismatch"] < 0.3


def test_finished_ones_are_skipped_until_something_changes(piece: Path, tmp_path: Path) -> None:
    other, out = late(tmp_path / "late.wav"), tmp_path / "out"
    command = "match", piece, other, "-o", out
    isotone(*command)
    assert "(1 of them there before)" in isotone(*command).stdout
    assert "there before" not in isotone(*command, "--warper", "dtw").stdout
    labels = tmp_path / "piece.TextGrid"
    labels.write_text(labels.read_text().replace("one", "ONE"))
    assert "there before" not in isotone(*command, "--warper", "dtw").stdout
    assert "ONE" in (out / "late.TextGrid").read_text()


def test_hand_made_labels_are_not_replaced(piece: Path, tmp_path: Path) -> None:
    other = late(tmp_path / "late.wav")
    (tmp_path / "late.TextGrid").write_text("mine")
    assert "1 file would be overwritten" in error_of("match", piece, other, "-o", tmp_path)
    assert (tmp_path / "late.TextGrid").read_text() == "mine"
    isotone("match", piece, other, "-o", tmp_path, "--overwrite")
    assert starts(tmp_path / "late.TextGrid")


def test_match_and_align_do_not_take_each_others_files(piece: Path, tmp_path: Path) -> None:
    model = save_character_model(tmp_path / "model")
    other, out = late(tmp_path / "in/late.wav"), tmp_path / "out"
    (tmp_path / "in/late.txt").write_text("one two three")
    align = "align", other, "-m", model, "-o", out
    match = "match", piece, other, "-o", out
    isotone(*align)
    aligned = (out / "late.TextGrid").read_bytes()
    refused = "late.TextGrid: it was written by isotone align"
    assert refused in isotone(*match, code=2).stderr
    isotone(*match, "-f", "json")
    assert set(names_in(out)) >= {"late.TextGrid", "late.json", "late.map.csv"}
    # what match wrote under the same name does not make align's file its own, nor its recording undone
    assert refused in isotone(*match, code=2).stderr
    assert "late.json: it was written by isotone match" in isotone(*align, "-f", "json", code=2).stderr
    for command in (align, (*match, "-f", "json")):
        assert "(1 of them there before)" in isotone(*command).stdout
    assert (out / "late.TextGrid").read_bytes() == aligned
    # said so, match takes the file, and then it is no longer align's
    isotone(*match, "--overwrite")
    np.testing.assert_allclose(starts(out / "late.TextGrid"), [1.5, 2.5, 5.0], atol=0.03)
    assert "late.TextGrid: it was written by isotone match" in isotone(*align, code=2).stderr


def test_pruning_leaves_the_files_of_the_other_command(piece: Path, tmp_path: Path) -> None:
    model = save_character_model(tmp_path / "model")
    for name in ("a", "b"):
        late(tmp_path / f"in/{name}.wav")
        (tmp_path / f"in/{name}.txt").write_text("one two three")
    out = tmp_path / "out"
    isotone("align", tmp_path / "in", "-m", model, "-o", out)
    isotone("match", piece, tmp_path / "in", "-o", out, "-f", "json", "--only", "a.*", "--prune")
    assert [n for n in names_in(out) if not n.endswith(".jsonl")] == [
        "a.TextGrid", "a.json", "a.map.csv", "b.TextGrid",
    ]  # fmt: skip


def test_clips_get_the_labels_that_they_hold(piece: Path, tmp_path: Path) -> None:
    clip = save_melody(tmp_path / "clip.wav", PIECE[round(1.2 * RATE) : round(3.4 * RATE)])
    out = tmp_path / "out"
    isotone("match", piece, clip, "--part", "other", "-o", out)
    words = TextGridFormat().loads((out / "clip.TextGrid").read_text(), "clip").tier("words")
    assert [s.label for s in words if s.label] == ["one", "two"]
    np.testing.assert_allclose([words.segments[0].end, words.segments[1].end], [0.3, 1.8], atol=0.03)


def test_without_labels_there_are_maps_alone(tmp_path: Path) -> None:
    piece, other = save_melody(tmp_path / "p.wav", PIECE), late(tmp_path / "late.wav")
    isotone("match", piece, other, "-o", tmp_path / "out")
    assert names_in(tmp_path / "out") == ["late.map.csv"]


def test_files_of_a_name_are_picked_and_the_reference_is_left_out(piece: Path, tmp_path: Path) -> None:
    for name in ("a/piece.wav", "b/piece.flac", "b/other.wav"):
        late(tmp_path / "in" / name)
    out = tmp_path / "out"
    result = isotone("match", piece, tmp_path / "in", piece, "--only", "piece.*", "-o", out)
    assert "2 of 2 files" in result.stdout
    assert sorted(p.relative_to(out).as_posix() for p in out.rglob("*.TextGrid")) == [
        "a/piece.TextGrid", "b/piece.TextGrid",
    ]  # fmt: skip
    assert "is one to do" in error_of("match", piece, tmp_path / "in", "--only", "none.*", "-o", out)


def test_one_bad_file_does_not_stop_the_others_and_doubts_are_told(piece: Path, tmp_path: Path) -> None:
    late(tmp_path / "in/a.wav")
    (tmp_path / "in/b.wav").write_bytes(b"nothing")
    save_melody(tmp_path / "in/c.wav", melody(4.0, seed=5))
    save_melody(tmp_path / "in/d.wav", PIECE[:200])
    out = tmp_path / "out"
    result = isotone("match", piece, tmp_path / "in", "-o", out, code=1)
    assert "2 of 4 files written" in result.stdout
    errors = {Path(row["file"]).name: row["error"] for row in lines_of(out / "errors.jsonl")}
    assert set(errors) == {"b.wav", "d.wav"}
    assert "too short" in errors["d.wav"]
    (warning,) = lines_of(out / "warnings.jsonl")
    assert Path(warning["file"]).name == "c.wav"
    assert "hardly matches" in warning["warning"]


def test_the_features_of_a_model(piece: Path, tmp_path: Path) -> None:
    model = save_character_model(tmp_path / "model")
    other = late(tmp_path / "late.wav")
    for features in ("phones", "layer:1", "log-mel+phones:ctc"):
        out = tmp_path / features.replace(":", "_")
        isotone("match", piece, other, "-o", out, "--features", features, "-m", model)
        assert starts(out / "late.TextGrid")
    assert "no head 'no'" in error_of("match", piece, other, "--features", "phones:no", "-m", model)
    assert "the layers 0 to" in error_of("match", piece, other, "--features", "layer:99", "-m", model)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--features", "layer:1"], "give one (--model)"),
        (["--features", "mel"], "there are log-mel, phones"),
        (["--warper", "no"], "No warper named 'no'"),
        (["--warper", "{name: opas, step: 0}"], "step >= 1"),
        (["--part", "both"], "none, reference, other"),
        (["--map", "xml"], "there are csv, json"),
        (["--labels", "no.TextGrid"], "no.TextGrid"),
        (["--model", "no/such/model", "--features", "layer:1"], "no/such/model"),
        (["-f", "no"], "No format named 'no'"),
    ],
)
def test_options_that_cannot_be_used(options: list[str], message: str, piece: Path, tmp_path: Path) -> None:
    other, out = late(tmp_path / "late.wav"), tmp_path / "out"
    assert message in error_of("match", piece, other, "-o", out, *options)
    assert not out.exists() or not names_in(out)


def test_a_reference_that_cannot_be_used(piece: Path, tmp_path: Path) -> None:
    other = late(tmp_path / "late.wav")
    assert "No recording" in error_of("match", tmp_path / "none.wav", other)
    assert "No recording" in error_of("match", tmp_path, other)
    assert "No such file" in error_of("match", piece, tmp_path / "none.wav")
    ctm = tmp_path / "two.ctm"
    ctm.write_text("a 1 0.0 0.5 x\nb 1 0.0 0.5 y\n")
    assert "labels of 2 recordings" in error_of("match", piece, other, "--labels", ctm)
    (tmp_path / "piece.TextGrid").write_text("broken")
    assert "piece.TextGrid" in error_of("match", piece, other)


def test_a_device_that_is_not_there(piece: Path, tmp_path: Path) -> None:
    late(tmp_path / "in/x.wav")
    out = tmp_path / "out"
    said = error_of("match", piece, tmp_path / "in", "-o", out, "--features", "phones", "--device", "cuda:77")
    assert "The device 'cuda:77' cannot be used" in said
    assert not out.exists()


def test_the_reference_is_not_matched_with_itself(piece: Path, tmp_path: Path) -> None:
    assert "is the reference, and is not matched with itself" in error_of(
        "match", piece, piece, "-o", tmp_path / "out"
    )
    said = error_of("match", piece, late(tmp_path / "x.wav"), "--labels", tmp_path / "no.TextGrid")
    assert f"No labels at {tmp_path / 'no.TextGrid'}: give one file" in said


@pytest.mark.parametrize("warper", ["dtw", "soft-dtw", "opas"])
def test_silence_is_no_clip_of_a_recording_with_a_pause(tmp_path: Path, warper: str) -> None:
    pause = np.zeros(RATE, np.float32)
    whole = save_melody(tmp_path / "whole.wav", melody(2.0), pause, melody(2.0, seed=1))
    clip = save_melody(tmp_path / "clip.wav", pause[: RATE // 2])
    isotone("match", whole, clip, "--part", "other", "--warper", warper, "-o", tmp_path / "out")
    (row,) = lines_of(tmp_path / "out" / "warnings.jsonl")
    assert "it hardly matches the reference: a mismatch of 1.00" in row["warning"]
