"""Tables of reports."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from isotone.alignment import Alignment, Segment, Tier
from isotone.evaluation import QuietFrames, compare, markdown, markdown_table, score, table
from isotone.evaluation.report import Report
from isotone.evaluation.tables import comparison_markdown


def make_report(late_s: float, quiet: bool = False) -> Report:
    def one(id: str, shift: float) -> Alignment:
        segments = (Segment("a", 0.1 + shift, 0.2 + shift), Segment("b", 0.2 + shift, 0.5))
        return Alignment(id, 0.6, (Tier("phones", segments),))

    pairs = [(one(id, late_s), one(id, 0.0)) for id in ("u", "v")]
    half = QuietFrames(np.array([True, False]))
    return score(pairs, quiet_frames=dict.fromkeys("uv", half) if quiet else None)


def test_systems_side_by_side() -> None:
    # 30 ms late: |a| = 100, 70 overlap; |b| = 300, 270 overlap
    text = markdown({"late": make_report(0.03), "exact": make_report(0.0, quiet=True)})
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    assert rows[0] == ["metric", "late", "exact"]
    cells = {row[0]: row[1:] for row in rows[2:]}
    assert cells["idr (%)"] == ["85.00 (85.00 .. 85.00)", "100.00 (100.00 .. 100.00)"]
    assert cells["start_f1@20ms (%)"] == ["0.00 (0.00 .. 0.00)", "100.00 (100.00 .. 100.00)"]
    assert cells["peaky (%)"] == ["-", "50.00 (50.00 .. 50.00)"]  # 1 of 2 frames; their centres are spoken
    assert {len(row) for row in rows} == {3}


def test_the_terminal_shows_the_same_cells() -> None:
    reports = {"late": make_report(0.03)}
    console = Console(file=io.StringIO(), width=120)
    console.print(table(reports, ["bias", "per"]))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "22.50 (22.50 .. 22.50)" in shown  # starts 30 and 30, ends 30 and 0
    assert "0.00 (0.00 .. 0.00)" in shown
    assert "phones, labels and boundaries, 2 utterances" in " ".join(shown.split())
    assert markdown(reports, ["bias"]).splitlines()[2] == "| bias (ms) | 22.50 (22.50 .. 22.50) |"


def test_undefined_and_unknown_metrics() -> None:
    silent = Alignment("u", 1.0, (Tier("phones", ()),))
    report = score([(silent, silent)])
    assert markdown({"a | b": report}, ["idr"]).splitlines()[0::2] == [
        "| metric | a \\| b |", "| idr (%) | undefined |",
    ]  # fmt: skip
    with pytest.raises(KeyError, match=r"No metric 'ird' in this report\. Did you mean 'idr'"):
        markdown({"a": report}, ["ird"])
    with pytest.raises(ValueError, match="at least one report"):
        table({})


def test_comparison_table() -> None:
    text = comparison_markdown(compare(make_report(0.03), make_report(0.0), resamples=99), ("late", "exact"))
    lines = text.splitlines()
    assert lines[0] == "| metric | late | exact | late - exact | p (bootstrap) | p (permutation) |"
    bias = next(line for line in lines if line.startswith("| bias"))
    # two utterances that agree: all draws say +22.5; exchanges say +-22.5 or, half of the time, 0
    assert bias.startswith("| bias (ms) | 22.50 | 0.00 | +22.50 (+22.50 .. +22.50) | 0.020 |")


def test_a_markdown_table() -> None:
    text = markdown_table(["system", "a|b"], [["x", 1], ["y|z", 2.5]])
    assert text == "| system | a\\|b |\n| --- | --- |\n| x | 1 |\n| y\\|z | 2.5 |\n"
    assert markdown_table(["a", "b"], [], numbers_right=True).splitlines()[1] == "| --- | ---: |"
    with pytest.raises(ValueError, match=r"2 columns got a row of 1 cells: \['x'\]"):
        markdown_table(["a", "b"], [["x"]])
