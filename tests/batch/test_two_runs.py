"""Two runs at once on one output folder, and runs that are refused before they do anything."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from isotone.batch import OutputConflict, published
from isotone.batch.ledger import NAME, Entry, Ledger, OutputBusy, State
from tests.batch.parts import echo, say, tree
from tests.scripts import Script

# A run that does nothing until a file is there.
WAITING = """
import pathlib, sys, time
from tests.batch.parts import Echo, echo
speech, out, go = map(pathlib.Path, sys.argv[1:])
class Waiting(Echo):
    def run(self, job, samples):
        go.with_name("begun").touch()
        while not go.exists():
            time.sleep(0.01)
        return super().run(job, samples)
outcome = echo(speech, out, work=Waiting())
print(outcome.done, len(outcome.errors))
"""


@contextmanager
def at_work(speech: Path, out: Path) -> Iterator[Script]:
    """Have another process at work on a folder while the block lasts, which then ends well."""
    go = out.parent / "go"
    other = Script(WAITING, speech, out, go)
    try:
        for _ in range(6000):
            if go.with_name("begun").exists():
                break
            time.sleep(0.01)
        yield other
    finally:
        go.touch()
        assert other.wait() == 0, other.stderr
    assert other.stdout == f"{len(list(speech.glob('*.wav')))} 0\n"


def test_another_run_with_other_options_or_texts_is_refused(tmp_path: Path) -> None:
    speech, out = tmp_path / "in", tmp_path / "out"
    for name in "ab":
        say(speech / f"{name}.wav", name)
    say(tmp_path / "else/z.wav", "z")
    with at_work(speech, out):
        before = tree(out)
        with pytest.raises(
            OutputBusy, match=r"process \d+\) is writing .*a\.TextGrid and 1 more, with other"
        ):
            echo(speech, out, key="another")
        (speech / "b.txt").write_text("another text")
        with pytest.raises(
            OutputBusy, match=r"b\.TextGrid, with other options, recordings or texts; this one"
        ):
            echo(speech, out)
        (speech / "b.txt").write_text("b")
        with pytest.raises(OutputBusy):
            echo(speech, out, overwrite=True, key="another")
        assert tree(out) == before
        assert echo(tmp_path / "else", out, key="another").done == 1, "of other recordings it may be"
    assert b'"a"' in tree(out)["a.TextGrid"]
    # when it has ended nothing is in the way
    assert echo(speech, out, key="another").there == 0


def test_formats_of_one_ending_are_other_files(tmp_path: Path) -> None:
    path, out = say(tmp_path / "a.wav", "a"), tmp_path / "out"
    code = (
        "import sys, pathlib; from tests.batch.parts import echo\n"
        "echo(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), formats=(sys.argv[3],))"
    )
    assert Script(code, path, out, "json").wait() == 0
    with Ledger(out) as ledger:
        entry = ledger.entry("a", "align")
        assert entry is not None
        with ledger.planned({"a.json": f"align {entry.key} json"}):
            same, other = (Script(code, path, out, format) for format in ("json", "whisperx"))
            assert (same.wait(), other.wait()) == (0, 1)
            assert "OutputBusy" in other.stderr


def test_a_killed_run_is_in_nobodys_way(tmp_path: Path) -> None:
    speech, out = tmp_path / "in", tmp_path / "out"
    say(speech / "a.wav", "a")
    killed = Script(
        "import os, sys, pathlib; from isotone.batch.ledger import Ledger\n"
        "with Ledger(pathlib.Path(sys.argv[1])) as ledger, ledger.planned({'a.TextGrid': 'else'}):\n"
        "    os._exit(3)", out,
    )  # fmt: skip
    assert killed.wait() == 3
    assert echo(speech, out).done == 1


def test_a_run_that_is_refused_leaves_nothing(tmp_path: Path) -> None:
    say(tmp_path / "in/a.wav", "a")
    out = tmp_path / "out"
    out.mkdir()
    (out / "a.TextGrid").write_text("mine")
    with pytest.raises(OutputConflict):
        echo(tmp_path / "in", out)
    with pytest.raises(OutputConflict), published(out) as folder:
        (folder / "a.TextGrid").write_text("a report")
    assert [path.name for path in out.iterdir()] == ["a.TextGrid"]


def test_a_ledger_is_made_when_there_is_something_to_keep(tmp_path: Path) -> None:
    path, out = say(tmp_path / "a.wav", "a"), tmp_path / "new/out"
    with Ledger(out) as ledger:
        digest = dict(ledger.digests([path]))
        assert (ledger.entries(), ledger.state("a")) == ([], State.ABSENT)
        assert not out.parent.exists()
        # another process writes meanwhile
        with Ledger(out) as other:
            other.write(Entry("a", "", "", "align"), {"a": b"1"})
        assert ledger.state("a") is State.WRITTEN
        assert dict(ledger.digests([path])) == digest
    assert [path.name for path in sorted(out.iterdir())] == [NAME, "a"]
