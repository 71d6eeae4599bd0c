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
from output_parts import tree
from tiny_models import save_character_model

FILES, KILLS = 200, 20

# One process that has imported everything forks a child for each run, and kills it when it is told to.
ZYGOTE = """
import os, signal, sys, time
from pathlib import Path
from isotone import cli
from isotone.batch import Options, Target, align_files, ledger
from isotone.batch.commands import Aligning

corpus, model, out, log = sys.argv[1:]

def note(what, id):
    with open(log, "a") as file:
        file.write(f"{what} {id}\\n")

run, write = Aligning.run, ledger.Ledger.write
def noted_run(self, pipeline, path, id, samples):
    note("begin", id)
    return run(self, pipeline, path, id, samples)
def noted_write(self, entry, contents, **options):
    write(self, entry, contents, **options)
    note("end", entry.id)
Aligning.run, ledger.Ledger.write = noted_run, noted_write

print("ready", flush=True)
for line in sys.stdin:
    after, target = float(line.split()[0]), line.split()[1]
    child = os.fork()
    if not child:
        import torch
        torch.set_num_threads(1)
        try:
            align_files([Path(corpus)], Options(model), Target(Path(out, target), ("textgrid", "json")))
        finally:
            os._exit(0)
    began = time.monotonic()
    while after and time.monotonic() - began < after and os.waitpid(child, os.WNOHANG) == (0, 0):
        time.sleep(0.002)
    try:
        if after:
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    except (ChildProcessError, ProcessLookupError):
        pass
    print(time.monotonic() - began, flush=True)
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

    def run(target: str, seconds: float = 0.0) -> float:
        """Run, killed after some seconds or never; how long it took."""
        assert zygote.stdin is not None
        assert zygote.stdout is not None
        print(seconds, target, file=zygote.stdin, flush=True)
        return float(zygote.stdout.readline())

    try:
        assert zygote.stdout.readline() == "ready\n"
        whole = run("whole")
        log.unlink()
        rng, cut = random.Random(0), 0
        for _ in range(KILLS):
            before = ends(log)
            run("broken", rng.uniform(0.05, 0.6) * whole if cut % 3 else rng.uniform(0.2, 0.4) * whole)
            cut += len(ends(log)) < FILES and ends(log) >= before
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


def ends(log: Path) -> set[str]:
    """The recordings that were finished so far."""
    lines = log.read_text().splitlines() if log.exists() else []
    return {line.split()[1] for line in lines if line.startswith("end")}
