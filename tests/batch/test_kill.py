"""``kill -9`` at any moment of a long command: the rerun ends as an unbroken run does, and does nothing twice."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.batch.parts import tree
from tests.scripts import Script
from tests.tiny_models import save_character_model

CODE = """
import sys
from pathlib import Path
from isotone.batch import Options, Target, align_files, ledger
from isotone.batch.speech import Aligning

corpus, model, out, log = sys.argv[1:]

def note(what, id):
    with open(log, "a") as file:
        file.write(f"{what} {id}\\n")

run, write = Aligning.run, ledger.Ledger.write
def noted_run(self, job, samples):
    note("begin", job.id)
    return run(self, job, samples)
def noted_write(self, entry, contents, **options):
    write(self, entry, contents, **options)
    note("end", entry.id)
Aligning.run, ledger.Ledger.write = noted_run, noted_write
align_files([Path(corpus)], Options(model), Target(Path(out), ("textgrid", "json")))
"""


def speech(folder: Path, files: int) -> Path:
    """Short files, some of which fail, and some of which are warned of."""
    rng = np.random.default_rng(0)
    for i in range(files):
        path = folder / f"s{i % 7}/u{i:03}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, rng.normal(0, 0.1, 4000), 16_000)
        path.with_suffix(".txt").write_text(
            "a very long text indeed " * 20 if i % 50 == 3 else "go 日" if i % 40 == 5 else "go"
        )
    return folder


@pytest.mark.parametrize("files, kills", [(40, 5), pytest.param(200, 20, marks=pytest.mark.slow)])
def test_kills_at_random_moments(files: int, kills: int, tmp_path: Path) -> None:
    model, corpus = save_character_model(tmp_path / "model"), speech(tmp_path / "speech", files)
    log = tmp_path / "log"

    def start(target: str) -> Script:
        return Script(CODE, corpus, model, tmp_path / target, log)

    def ends() -> int:
        return log.read_text().count("end") if log.exists() else 0

    def kill_after(count: int, seconds: float) -> None:
        script = start("broken")
        while ends() < count:
            assert script.code is None, script.stderr
            time.sleep(0.001)
        time.sleep(seconds)
        script.signal(signal.SIGKILL)
        assert script.wait() == -signal.SIGKILL, "a run ended before its kill"

    assert (whole := start("whole")).wait() == 0, whole.stderr
    log.unlink()
    rng = random.Random(0)
    for moment in sorted(rng.sample(range(1, files - 10), kills)):
        kill_after(moment, rng.uniform(0, 0.03))
    assert (last := start("broken")).wait() == 0, last.stderr
    unbroken = {
        name: content.replace(b"/whole/", b"/broken/") for name, content in tree(tmp_path / "whole").items()
    }
    assert tree(tmp_path / "broken") == unbroken
    good = files - sum(i % 50 == 3 for i in range(files))
    assert len(unbroken) == 2 * good + 2, "there are two lists: of errors and of warnings"
    finished: set[str] = set()
    for line in log.read_text().splitlines():
        what, id = line.split()
        assert id not in finished, f"{id} was finished, and done again"
        if what == "end":
            finished.add(id)
    # a kill may come after a file is whole, and before its end is noted
    assert good - kills <= len(finished) <= good
