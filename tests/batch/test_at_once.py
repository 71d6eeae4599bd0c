"""Recordings that are done at once: the same results as one by one, and errors that are a recording's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import soundfile
from typer.testing import CliRunner

from isotone.audio import Samples
from isotone.batch import Options
from isotone.batch.crew import AT_ONCE_S
from isotone.batch.work import Done, Job
from isotone.cli import app
from tests.batch.parts import Echo, echo, say, tree
from tests.live import FIRST, RATE, SECOND, THIRD
from tests.live import say as spoken
from tests.paths import ROOT

english = pytest.mark.skipif(
    not (ROOT / "plugins/isotone_english/model").is_dir(), reason="the pack's weights are not built"
)


class Many(Echo):
    """Does what it can at once.

    Attributes:
        groups: The recordings of every call.
    """

    at_once = 3

    def __init__(self, apart: str = "", fails: bool = False) -> None:
        super().__init__()
        self.apart, self.fails = apart, fails
        self.groups: list[list[str]] = []

    def run_all(self, jobs: Sequence[Job], samples: Sequence[Samples]) -> list[Done | None]:
        self.groups.append([job.id for job in jobs])
        if self.fails:
            raise ValueError("all of them")
        texts = [job.inputs.files["text"].read_text() for job in jobs]
        return [
            None if text == self.apart else super(Many, self).run(job, np.asarray(own))
            for job, own, text in zip(jobs, samples, texts)
        ]


def names(folder: Path, count: int, samples: int = 400) -> list[str]:
    for number in range(count):
        say(folder / f"{number}.wav", f"text{number}", samples)
    return [str(number) for number in range(count)]


def test_recordings_are_done_in_groups(tmp_path: Path) -> None:
    ids = names(tmp_path / "in", 7)
    work = Many()
    echo(tmp_path / "in", tmp_path / "many", work=work)
    assert work.groups == [["0", "1", "2"], ["3", "4", "5"]]  # the last is alone
    assert work.done == ids
    echo(tmp_path / "in", tmp_path / "single")
    assert tree(tmp_path / "many") == tree(tmp_path / "single")


def test_those_that_cannot_be_done_at_once_are_done_by_themselves(tmp_path: Path) -> None:
    ids = names(tmp_path / "in", 3)
    work = Many(apart="text1")
    echo(tmp_path / "in", tmp_path / "out", work=work)
    assert sorted(work.done) == ids
    assert work.done[-1] == "1"


def test_an_error_at_once_is_found_one_by_one(tmp_path: Path) -> None:
    names(tmp_path / "in", 3)
    (tmp_path / "in/1.txt").write_text("bad")
    (tmp_path / "in/2.wav").write_bytes(b"no audio")
    for work in (Many(), Many(fails=True)):
        outcome = echo(tmp_path / "in", tmp_path / f"out{work.fails}", work=work)
        assert work.groups == [["0", "1"]]
        assert sorted(Path(row["file"]).name for row in outcome.errors) == ["1.wav", "2.wav"]
        assert (tmp_path / f"out{work.fails}/0.TextGrid").exists()


def test_long_recordings_are_done_in_smaller_groups(tmp_path: Path) -> None:
    names(tmp_path / "in", 3, round(16_000 * AT_ONCE_S * 0.6))
    work = Many()
    echo(tmp_path / "in", tmp_path / "out", work=work)
    assert work.groups == [["0", "1"]]
    assert sorted(work.done) == ["0", "1", "2"]


@english
def test_alignments_are_the_same_to_the_last_bit() -> None:
    pipeline = Options("english", engine="onnx").aligning()
    pause = np.zeros(RATE, np.float32)
    audio = [
        spoken(FIRST),
        np.concatenate([pause, spoken(SECOND), pause]),  # in part silent: encoded by itself
        np.concatenate([spoken(THIRD), spoken(FIRST)]),
        np.concatenate([spoken(FIRST)] * 15),  # in windows
    ]
    texts = [FIRST, SECOND, f"{THIRD} {FIRST}", " ".join([FIRST] * 15)]
    assert len(audio[3]) > 30 * RATE
    encoded = [pipeline.encode(text) for text in texts]
    at_once = pipeline.align_batch(["a"] * 4, audio, encoded)
    for found, *one in zip(at_once, audio, encoded):
        alone = pipeline.align("a", *one)
        assert found.alignment == alone.alignment
        assert (found.warnings, found.agreement, found.score) == (
            alone.warnings,
            alone.agreement,
            alone.score,
        )


@english
def test_a_folder_gives_the_same_files_as_its_recordings_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name, text in {"a": FIRST, "b": SECOND, "c": THIRD, "wrong": FIRST, "silent": FIRST}.items():
        samples = spoken(THIRD if name == "wrong" else text)
        soundfile.write(tmp_path / f"in/{name}.wav", samples * (name != "silent"), RATE)
        (tmp_path / f"in/{name}.txt").write_text(text)
    (tmp_path / "in/c.srt").write_text(f"1\n00:00:00,000 --> 00:00:03,000\n{THIRD}\n")
    (tmp_path / "in/c.txt").unlink()
    options = ["--format", "json", "--format", "textgrid", "--engine", "onnx"]
    run = CliRunner().invoke
    assert run(app, ["align", str(tmp_path / "in"), "--out", str(tmp_path / "all"), *options]).exit_code == 0
    for path in sorted((tmp_path / "in").glob("*.wav")):
        assert run(app, ["align", str(path), "--out", str(tmp_path / "each"), *options]).exit_code == 0
    found, expected = (
        {name: text for name, text in tree(tmp_path / out).items() if name.endswith(("json", "TextGrid"))}
        for out in ("all", "each")
    )
    assert len(found) == 10
    assert found == expected
