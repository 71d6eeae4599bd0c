"""``kill -9`` at any moment of a long command: the rerun ends as an unbroken run does, and does nothing twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.batch.parts import tree
from tests.tiny_models import save_character_model

FILES, KILLS = 200, 20

# One process that has imported everything forks a child for each run, and kills it when it is told to.
ZYGOTE = """
import os, signal, sys, time
from pathlib import Path
from isotone import cli
from isotone.batch import Options, Target, align_files, ledger
from isotone.batch.speech import Aligning

corpus, model, out, log = sys.argv[1:]

def note(what, id):
    with open(log, "a") as file:
        file.write(f"{what} {id}\\n")

run, write = Aligning.run, ledger.Ledger.write
def noted_run(self, path, id, samples, formats):
    note("begin", id)
    return run(self, path, id, samples, formats)
def noted_write(self, entry, contents, **options):
    write(self, entry, contents, **options)
    note("end", entry.id)
Aligning.run, ledger.Ledger.write = noted_run, noted_write

def ends():
    return Path(log).read_text().count("end") if Path(log).exists() else 0

print("ready", flush=True)
for line in sys.stdin:
    target, count, jitter = line.split()
    child = os.fork()
    if not child:
        import torch
        torch.set_num_threads(1)
        try:
            align_files([Path(corpus)], Options(model), Target(Path(out, target), ("textgrid", "json")))
        finally:
            os._exit(0)
    killed = False
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if float(count) and ends() >= float(count):
            time.sleep(float(jitter))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            killed = True
            break
        time.sleep(0.001)
    print(int(killed), flush=True)
"""


def speech(folder: Path) -> Path:
    """Short files, some of which fail, and some of which are warned of."""
    rng = np.random.default_rng(0)
    for i in range(FILES):
        path = folder / f"s{i % 7}/u{i:03}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, rng.normal(0, 0.1, 4000), 16_000)
        path.with_suffix(".txt").write_text(
            "a very long text indeed " * 20 if i % 50 == 3 else "go 日" if i % 40 == 5 else "go"
        )
    return folder


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills need a process that can be forked")
def test_kills_at_random_moments(tmp_path: Path) -> None:
    model, corpus, log = (
        save_character_model(tmp_path / "model"),
        speech(tmp_path / "speech"),
        tmp_path / "log",
    )
    arguments = [sys.executable, "-c", ZYGOTE, str(corpus), str(model), str(tmp_path), str(log)]
    zygote = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert zygote.stdin is not None
    assert zygote.stdout is not None

    def run(target: str, count: int = 0, jitter: float = 0.0) -> bool:
        """Run a command, killed shortly after ``count`` finished recordings, or never; return whether it was killed."""
        assert zygote.stdin is not None
        assert zygote.stdout is not None
        print(target, count, jitter, file=zygote.stdin, flush=True)
        return zygote.stdout.readline() == "1\n"

    try:
        assert zygote.stdout.readline() == "ready\n"
        run("whole")
        log.unlink()
        rng = random.Random(0)
        moments = sorted(rng.sample(range(1, FILES - 10), KILLS))
        assert all(run("broken", moment, rng.uniform(0, 0.03)) for moment in moments), (
            "a run ended before its kill"
        )
        run("broken")
    finally:
        zygote.send_signal(signal.SIGKILL)
        zygote.communicate()
    unbroken = {
        name: content.replace(b"/whole/", b"/broken/") for name, content in tree(tmp_path / "whole").items()
    }
    assert tree(tmp_path / "broken") == unbroken
    assert len(unbroken) == 2 * (FILES - 4) + 2, "four fail; there are two lists"
    finished: set[str] = set()
    for line in log.read_text().splitlines():
        what, id = line.split()
        assert id not in finished, f"{id} was finished, and done again"
        if what == "end":
            finished.add(id)
    assert len(finished) == FILES - 4
