"""Whole programs on a corpus, from files to files: hours of audio per minute, and the wait for a first result.

``python -m benchmarks.endtoend FOLDER``

Every system runs in a process of its own, on one thread, and reads the same files: start, model, features, alignment
and writing all count. isotone and isotone-light run as their commands; pocketsphinx with its own model; the pipeline of
torchaudio with random weights of the shape of MMS_FA, which take as long as trained ones, on the first recordings only.
What is compiled is in the caches, Python's modules too, as after an installation. Folders are of the kinds that
``benchmarks.doubt`` reads.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import soundfile

from benchmarks.doubt import transcripts
from benchmarks.endtoend_peers import PEERS, PRONUNCIATIONS, RATE
from benchmarks.processes import timed
from isotone.audio import load
from isotone.batch.environment import ONE_THREAD

SCRIPT = Path(__file__).with_name("endtoend_peers.py")
#: Seconds of the recording whose result is waited for, and how far off it may be.
FIRST_S, NEAR_S = 3.0, 0.5
#: Recordings that the largest model gets.
FEW = 10
Copy = tuple[str, np.ndarray, str]


def commands(light: str | None) -> Iterator[tuple[str, list[str]]]:
    """Iterate over the systems that are here and how they start, with places for folder and output."""
    yield "isotone", [sys.executable, "-m", "isotone", "align", "{folder}", "--out", "{out}"]
    if light:
        yield "isotone-light", [light, "{folder}", "-o", "{out}"]
    for name in PEERS:
        if importlib.util.find_spec(name):
            yield name, [sys.executable, "-P", str(SCRIPT), name, "{folder}", "{out}"]


def aligned(command: Sequence[str], folder: Path) -> tuple[float, float]:
    """Run a system on a folder; return seconds by the clock and of the processor.

    Raises:
        RuntimeError: it failed, or wrote fewer files than there are recordings.
    """
    with tempfile.TemporaryDirectory() as out:
        given = [part.format(folder=folder, out=out) for part in command]
        spent = timed(given, {**os.environ, **ONE_THREAD, "PYTHONDONTWRITEBYTECODE": ""})
        files = [path for path in Path(out).rglob("*") if path.suffix in (".TextGrid", ".ctm")]
        wanted = len(list(folder.glob("*.wav")))
        if len(files) < wanted:
            raise RuntimeError(f"{given}: {len(files)} of {wanted} files.")
    return spent.clock_s, spent.cpu_s


def copies(source: Path, limit: int | None) -> list[Copy]:
    """Load recordings; their texts are lower case, without punctuation, for the peers' sake."""
    found = []
    for path, text in islice(transcripts(source), limit):
        plain = " ".join(re.sub(r"[^a-z' ]+", " ", text.lower()).split())
        found.append((f"{path.parent.name}_{path.stem}", load(path, RATE), plain))
    return found


def written(folder: Path, recordings: Sequence[Copy]) -> float:
    """Write recordings, texts and pronunciations into a new folder; return its hours."""
    from benchmarks.aligners.systems import arpabet
    from isotone.text.pronounce import Espeak

    folder.mkdir()
    for name, samples, text in recordings:
        soundfile.write(folder / f"{name}.wav", np.clip(samples, -1, 1), RATE)
        (folder / f"{name}.txt").write_text(text, "utf-8")
    words = sorted({word for *_, text in recordings for word in text.split()})
    spoken = {word: " ".join(map(arpabet, phones)) for word, phones in zip(words, Espeak(phones=48)(words))}
    (folder / PRONUNCIATIONS).write_text(json.dumps(spoken), "utf-8")
    return sum(len(samples) for _, samples, _ in recordings) / RATE / 3600


def main() -> None:
    """Run the measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="recordings with transcripts")
    parser.add_argument("--limit", type=int, help="most recordings (default: all)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of every system")
    parser.add_argument("--light", default=shutil.which("isotone-light"), help="the command isotone-light")
    given = parser.parse_args()
    recordings = copies(given.folder, given.limit)
    short = [r for r in recordings if abs(len(r[1]) / RATE - FIRST_S) < NEAR_S][:1]
    if not short:
        raise SystemExit(f"error: no recording of about {FIRST_S:.0f} s in {given.folder}.")
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        hours = {"all": written(root / "all", recordings), "few": written(root / "few", recordings[:FEW])}
        written(root / "first", short)
        print(
            f"{len(recordings)} recordings, {60 * hours['all']:.1f} minutes; medians of {given.rounds} runs\n"
        )
        print("| system | hours per minute | of processor time | first result, s | of processor time |")
        print("|---|---|---|---|---|")
        for system, command in commands(given.light):
            folder = "few" if system == "torchaudio" else "all"
            aligned(command, root / "first")  # what is compiled comes into the caches
            alone, whole = (
                [aligned(command, root / part) for _ in range(given.rounds)] for part in ("first", folder)
            )
            rates = [60 * hours[folder] / statistics.median(column) for column in zip(*whole)]
            waits = [statistics.median(column) for column in zip(*alone)]
            values = " | ".join(f"{value:.2f}" for value in (*rates, *waits))
            print(f"| {system} | {values} |", flush=True)


if __name__ == "__main__":
    main()
