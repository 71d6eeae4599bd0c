"""The measurement of whole programs: what it writes for them, and what it takes as done."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from benchmarks.endtoend import aligned, copies, written
from benchmarks.endtoend_peers import PRONUNCIATIONS, RATE, recordings

WRITES = """
import pathlib, sys
for path in pathlib.Path(sys.argv[1]).glob(%r):
    pathlib.Path(sys.argv[2], path.stem + ".ctm").touch()
"""


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    source = tmp_path / "source" / "anna"
    source.mkdir(parents=True)
    for name, text in (("a", "She, washed the DOG!"), ("b", "The dog's tea.")):
        soundfile.write(source / f"{name}.wav", np.full(RATE // 2, 0.1), RATE)
        (source / f"{name}.txt").write_text(text)
    assert written(tmp_path / "corpus", copies(tmp_path / "source", None)) == pytest.approx(1 / 3600)
    return tmp_path / "corpus"


def test_every_system_gets_the_same_plain_files(corpus: Path) -> None:
    found = {name: (len(samples), text) for name, samples, text in recordings(corpus)}
    half = RATE // 2
    assert found == {"anna_a": (half, "she washed the dog"), "anna_b": (half, "the dog's tea")}
    spoken = json.loads((corpus / PRONUNCIATIONS).read_text())
    assert set(spoken) == {"she", "washed", "the", "dog", "dog's", "tea"}
    assert spoken["tea"] == "T IY"


def test_a_run_counts_only_if_all_files_are_written(corpus: Path) -> None:
    command = [sys.executable, "-c", WRITES % "*.wav", "{folder}", "{out}"]
    clock, processor = aligned(command, corpus)
    assert 0 < processor < clock + 1
    with pytest.raises(RuntimeError, match="1 of 2 files"):
        aligned([sys.executable, "-c", WRITES % "*a.wav", "{folder}", "{out}"], corpus)
    with pytest.raises(RuntimeError, match="no such peer"):
        aligned([sys.executable, "-c", "raise SystemExit('no such peer')"], corpus)
