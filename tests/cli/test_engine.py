"""``isotone align`` by onnxruntime: without torch, with the files that torch gives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

import isotone as package
from benchmarks.light import TOLERANCE_S, difference
from isotone import format as formats
from tests.tiny_models import isotone, save_noise

#: A module that makes imports of some packages fail.
BLOCK = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name in ("torch", "torchaudio", "transformers"):
            raise ImportError(f"{name} is not to be imported")

sys.meta_path.insert(0, Blocked())
"""

TEXT = "she washed the dog and paid $20"


@pytest.fixture
def speech(tmp_path: Path) -> Path:
    """A folder of recordings: one with a text, one in two channels with subtitles, a long one, and no audio."""
    folder = tmp_path / "speech"
    save_noise(folder / "a" / "one.wav", 3.0, text=TEXT)
    save_noise(folder / "long.wav", 31.0, text=f"{TEXT} {TEXT}")
    (folder / "none.wav").write_bytes(b"no audio")
    (folder / "none.txt").write_text(TEXT)
    both = np.random.default_rng(0).normal(0, 0.1, (48_000, 2))
    soundfile.write(folder / "two.wav", both, 16_000)
    cues = "1\n00:00:00,200 --> 00:00:01,400\nthe dog\n\n2\n00:00:01,500 --> 00:00:02,800\nthe cat\n"
    (folder / "two.srt").write_text(cues)
    return folder


def without_torch(tmp_path: Path, *arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess:
    """Run the command in processes that cannot import torch, workers too."""
    blocked = tmp_path / "blocked"
    blocked.mkdir(exist_ok=True)
    (blocked / "sitecustomize.py").write_text(BLOCK)
    paths = os.pathsep.join([str(blocked), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "isotone", *map(str, arguments)], capture_output=True, text=True, timeout=500,
        env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def same(one: Path, other: Path) -> int:
    """Compare the alignments of two folders; return their number."""
    names = sorted(path.relative_to(one) for path in one.rglob("*.json") if path.name != "book.json")
    assert names == sorted(
        path.relative_to(other) for path in other.rglob("*.json") if path.name != "book.json"
    )
    for name in names:
        seconds, labels = difference(formats.read(one / name), formats.read(other / name))
        assert labels, name
        assert seconds <= TOLERANCE_S, name
    return len(names)


def test_files_are_those_of_torch_and_are_not_redone(speech: Path, tmp_path: Path) -> None:
    out, torchs = tmp_path / "out", tmp_path / "torch"
    asked = ("--format", "textgrid", "--format", "json", "--format", "vtt", "--analysis", "--page")
    done = without_torch(tmp_path, "align", speech, "--out", out, *asked, "--json", code=1)
    found = json.loads(done.stdout)
    assert (found["engine"], found["done"], len(found["errors"])) == ("onnx", 3, 1)
    assert {path.suffix for path in out.rglob("*")} >= {".TextGrid", ".json", ".vtt", ".html", ".csv"}
    isotone("align", speech, "--out", torchs, *asked, "--engine", "torch", code=1)
    assert same(out, torchs) == 3
    # the ledger takes the files of both engines for the same
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*.TextGrid")}
    again = isotone("align", speech, "--out", out, *asked, "--engine", "torch", code=1)
    assert "(3 of them there before)" in again.output
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*.TextGrid")} == before


def test_workers_do_without_torch(speech: Path, tmp_path: Path) -> None:
    without_torch(
        tmp_path, "align", speech, "--out", tmp_path / "out", "--format", "json", "--jobs", "2", code=1
    )
    isotone("align", speech, "--out", tmp_path / "torch", "--format", "json", "--engine", "torch", code=1)
    assert same(tmp_path / "out", tmp_path / "torch") == 3


def test_options_of_alignment_do_without_torch(tmp_path: Path) -> None:
    noise = save_noise(tmp_path / "in" / "noise.wav", 3.0, text=TEXT)
    for number, options in enumerate(
        (["--extra-speech"], ["--closures", "--no-presence"], ["--no-guide", "--no-edges"], ["--aligner", "ctc"],
         ["--times", "ctc", "--window", "0"], ["--language", "en", "--min-score", "-1"])
    ):  # fmt: skip
        out, other = (tmp_path / f"{name}{number}" for name in ("out", "torch"))
        without_torch(tmp_path, "align", noise, *options, "--format", "json", "--out", out)
        isotone("align", noise, *options, "--format", "json", "--out", other, "--engine", "torch")
        assert same(out, other) == 1


def test_a_book_is_found_without_torch(tmp_path: Path) -> None:
    noise = save_noise(tmp_path / "in" / "noise.wav", 20.0)
    (tmp_path / "book.txt").write_text("CHAPTER I\n\n" + "The dog washed the cat and went home again. " * 40)
    asked = ("align", noise, "--book", tmp_path / "book.txt", "--format", "json")
    without_torch(tmp_path, *asked, "--out", tmp_path / "out", code=1)
    isotone(*asked, "--out", tmp_path / "torch", "--engine", "torch", code=1)
    found, expected = ((tmp_path / name / "errors.jsonl").read_text() for name in ("out", "torch"))
    assert found == expected


def test_torch_is_taken_visibly_where_it_is_needed(tmp_path: Path) -> None:
    noise = save_noise(tmp_path / "in" / "noise.wav", 1.0, text="the dog")
    done = isotone("--verbose", "align", noise, "--out", tmp_path / "out", "--aligner", "ottc", "--json")
    assert json.loads(done.stdout)["engine"] == "torch"
    assert "Engine: torch (the aligner ottc needs torch)" in " ".join(done.stderr.split())
    refused = isotone(
        "align", noise, "--out", tmp_path / "o", "--aligner", "ottc", "--engine", "onnx", code=2
    )
    assert "The engine onnx cannot align with english: the aligner ottc needs torch" in refused.output


def test_the_call_does_without_torch(tmp_path: Path) -> None:
    code = """
import sys, numpy as np, isotone
noise = np.random.default_rng(0).normal(0, 0.1, 40_000).astype(np.float32)
for _ in range(2):
    aligned = isotone.align(noise, "She washed the dog.", rate=16_000)
print(*(word.label for word in aligned.words if word.label), "torch" in sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "She washed the dog. False"
    rate = 16_000
    noise = np.random.default_rng(0).normal(0, 0.1, 40_000).astype(np.float32)
    one, other = (package.align(noise, TEXT, rate=rate, engine=engine) for engine in ("onnx", "torch"))
    assert difference(one.alignment, other.alignment)[0] <= TOLERANCE_S
