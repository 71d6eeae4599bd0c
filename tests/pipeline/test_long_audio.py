"""Long recordings made of short ones: what is where, and the table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
from typer.testing import CliRunner

from benchmarks import long_audio
from isotone.alignment import SILENCE
from isotone.corpus.timit import TimitCorpus


def test_where_everything_is(timit_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_audio, "_EVERY", 2)
    rows = list(TimitCorpus(timit_root).load("train"))[:3]
    samples, row = long_audio.joined("u", rows, 16_000, silences=True)
    clips = [soundfile.read(r["audio"])[0] for r in rows]
    at = np.cumsum([0, len(clips[0]), len(clips[1]) + 15 * 16_000]) / 16_000  # a silence after the second
    for start, clip in zip(at, clips):
        first = round(start * 16_000)
        np.testing.assert_allclose(samples[first : first + len(clip)], clip, atol=6e-4)
    assert len(samples) == sum(map(len, clips)) + 15 * 16_000
    assert row["end"] == len(samples) / 16_000
    for tier in ("words", "phones"):
        expected = [
            (label, s + start, e + start)
            for start, r in zip(at, rows)
            for label, s, e in zip(*(r[tier][k] for k in ("label", "start", "end")))
            if label not in SILENCE
        ]
        found = list(zip(*(row[tier][k] for k in ("label", "start", "end"))))
        assert [x for x in found if x[0] not in SILENCE] == expected
        silent = [label in SILENCE for label, _, _ in found]
        assert not any(a and b for a, b in zip(silent, silent[1:]))  # noqa: RUF007


def test_the_table(
    tiny_recipes: Path, train: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_audio, "_EVERY", 1)
    run = train(tiny_recipes / "joint.yaml", f"output={tmp_path / 'run'}", "train.steps=4")
    from typer import Typer

    app = Typer()
    app.command()(long_audio.main)
    lines = CliRunner().invoke(app, [str(run), "--window", "5"], catch_exceptions=False).stdout.splitlines()
    names = [line.split("|")[1].strip() for line in lines if line]
    assert names[0] == "run"
    assert names[2:] == [
        "short", "one voice", "one voice, silences", "voices in turn", "voices in turn, silences",
    ]  # fmt: skip
    cells = [[float(cell) for cell in line.split("|")[2:-1]] for line in lines[3:]]
    assert all(np.isfinite(row).all() for row in cells)
    assert cells[2][0] > cells[1][0] + 15
