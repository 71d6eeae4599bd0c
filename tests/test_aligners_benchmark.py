"""Errors of boundaries: exact at the collars, and without what an aligner's frames add."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pytest
import soundfile

from benchmarks.aligners.errors import figures, framed, in_common, phone_errors, row, word_errors
from benchmarks.aligners.recordings import Labelled, add_cut, cut, labelled
from benchmarks.aligners.systems import Times
from benchmarks.aligners.tables import beside, report
from benchmarks.margins import HEADER, Known, parts
from benchmarks.margins import row as margins_row
from isotone.alignment import Segment


def test_a_boundary_at_the_collar_is_within() -> None:
    found = [Segment("a", 0.11, 0.32), Segment("b", 0.34, 0.7)]
    labels = [Segment("a", 0.1, 0.3), Segment("b", 0.33, 0.69)]
    assert 1000 * (0.32 - 0.3) > 20, "in floating-point numbers it is outside"
    assert word_errors(found, labels) == {0: (10.0, 20.0), 1: (10.0, 10.0)}
    with pytest.raises(ValueError, match="zip"):
        word_errors(found[:1], labels)
    same = [Segment(x, s.start, s.end) for x, s in zip(("iy", "s"), found)]
    theirs = [Segment(x, s.start, s.end) for x, s in zip(("iy", "s"), labels)]
    assert phone_errors(same, theirs) == {0: (10.0, 20.0), 1: (10.0, 10.0)}


def test_boundaries_go_to_the_start_of_their_frame() -> None:
    found = framed([Segment("a", 0.104, 0.29), Segment("b", 0.29, 0.3099)], 10)
    assert 100 * 0.29 < 29, "in floating-point numbers it lies before its frame"
    assert [(s.start, s.end) for s in found] == [(0.1, 0.29), (0.29, 0.3)]
    assert framed(found, 10) == found
    assert [(s.start, s.end) for s in framed(found, 25)] == [(0.1, 0.275), (0.275, 0.3)]


def test_a_recording_is_cut_around_its_words() -> None:
    samples = np.arange(16000, dtype=np.float32)
    words = (Segment("a", 0.25, 0.5), Segment("b", 0.5, 0.75))
    phones = (Segment("h#", 0, 0.25), Segment("ah", 0.25, 0.75), Segment("h#", 0.75, 1))
    found = cut(Labelled("x", samples, "a b", words, phones), 0.125)
    assert (found.samples[0], len(found.samples)) == (2000, 12000)
    assert [(s.start, s.end) for s in found.words] == [(0.125, 0.375), (0.375, 0.625)]
    assert [(s.start, s.end) for s in found.phones] == [(0, 0.125), (0.125, 0.625), (0.625, 0.75)]
    close = cut(Labelled("x", samples, "a b", words, phones), 0)
    assert [(s.label, s.start, s.end) for s in close.phones] == [("ah", 0, 0.5)]
    whole = cut(Labelled("x", samples, "a b", words, phones), 5)
    assert (whole.words, whole.phones, len(whole.samples)) == (words, phones, 16000)


def test_the_option_for_cut_recordings_is_in_milliseconds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    soundfile.write(tmp_path / "x.wav", np.zeros(16000), 16000)
    (tmp_path / "x.wrd").write_text("4000 8000 a\n8000 12000 b\n")
    (tmp_path / "x.phn").write_text("0 4000 h#\n4000 12000 ah\n12000 16000 h#\n")
    parser = argparse.ArgumentParser()
    add_cut(parser)
    (whole,) = labelled(tmp_path, parser.parse_args([]).cut)
    (found,) = labelled(tmp_path, parser.parse_args(["--cut", "125"]).cut)
    assert (len(whole.samples), len(found.samples)) == (16000, 12000)
    assert [(s.start, s.end) for s in found.words] == [(0.125, 0.375), (0.375, 0.625)]
    for wrong in ("-1", "nan", "inf", "x"):
        with pytest.raises(SystemExit):
            parser.parse_args(["--cut", wrong])
        assert "argument --cut: " in capsys.readouterr().err


def test_what_all_have_is_without_failed_recordings_and_other_phones() -> None:
    near, far = (1.0, 2.0), (90.0, 80.0)
    found = in_common({"a": {0: {0: near, 1: far}, 1: {0: far}}, "b": {0: {0: near}}})
    assert found == {"a": {0: {0: near}}, "b": {0: {0: near}}}
    assert (
        row("a", figures(found["a"]), 0)
        == "| a | 1.5 | 1.5 | 100.0 | 100.0 | 100.0 | 100.0 | 100.0 | 100.0 | 0 |"
    )
    assert row("none", figures({0: {}}), 2).startswith("| none | - | - |")


def test_an_aligner_that_fails_is_counted_and_compared_where_it_does_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words, silence = (Segment("a", 0.1, 0.3),), np.zeros(16000, np.float32)
    labels = [Labelled(str(i), silence, "a", words, ()) for i in range(2)]

    def late(samples: np.ndarray, text: str) -> Times:
        return Times((Segment("a", 0.1 + samples[0], 0.3 + samples[0]),), ())

    def fails(samples: np.ndarray, text: str) -> Times:
        if samples[0]:
            raise RuntimeError
        return Times(words, ())

    both = {"late": late, "fails": fails}
    found = report("clean", both, labels, [silence, silence + np.float32(0.5)], None)
    _, first, second = capsys.readouterr().out.split("**words, clean")
    assert "| late | 250.0" in first
    assert "| fails | 0.0 | 0.0 | 100.0" in first
    assert first.count("| 1 |") == 1, "one recording is not aligned, by one aligner"
    assert "what all have" in second
    assert "| late | 0.0 | 0.0 | 100.0" in second
    shown = beside(
        "x, 2 recordings", {"clean": found["words"], "in noise": {"late": (None, 2), "fails": (None, 0)}}
    )
    assert shown.splitlines() == [
        "| x, 2 recordings | late | within | fails | within |",
        "| --- | --- | --- | --- | --- |",
        "| clean | 250.0 (0.0 to 500.0) / 250.0 | 50.0 50.0 50.0 50.0 50.0 "
        "| 0.0 / 0.0, 1 failed | 100.0 100.0 100.0 100.0 100.0 |",
        "| in noise | -, 2 failed | - | - | - |",
    ]
    report("clean", {"late": late}, labels[:1], [silence + np.float32(0.004)], 10)
    assert "words, clean, in frames of 10 ms**" in (out := capsys.readouterr().out)
    assert "| late | 4.0" in out
    assert "| late | 0.0" in out


def test_the_table_of_margins_counts_what_they_hold() -> None:
    near = [Known(0.001 * i, 0.0, 0.03, 1 - 0.02 * i) for i in range(20)]
    far = [Known(-0.04, 0.03, 0.05, 0.3), Known(0.06, 0.01, 0.09, 0.2)]
    cells = margins_row("clean", [*near, *far]).strip("| ").split(" | ")
    assert len(cells) == HEADER.splitlines()[0].count("|") - 1
    # 21 of 22 are held, and 20 of 22 within 20 ms; these have the highest probabilities
    assert cells == ["clean", "22", "95.5", "30", "35", "75.9", "90.9", "100.0"]
    rows = [line.strip("| ").split(" | ") for line in list(parts("clean", [*near, *far]))[1:]]
    assert [float(row[0]) for row in rows] == sorted(float(row[0]) for row in rows)
    assert [row[1] for row in rows[1:]] == ["100.0"] * 4
