"""Throughput of ``isotone align`` on a corpus of short files, kills in the middle of it, and the scheduler's cost.

``python -m benchmarks.corpus SPEECH [--files 1000] [--jobs 2] [--kills 10]`` makes a corpus of speaker folders with
recordings and ``.lab`` files from the recordings in SPEECH that have transcripts beside them, aligns it, and prints the
throughput in multiples of real time. With kills it aligns the corpus once more, ended by ``kill -9`` at random moments
and begun again, and compares the outputs with those of the unbroken run, byte for byte.

``python -m benchmarks.corpus --simulate 100000`` runs the scheduler alone, and then a whole command on so many tiny
recordings, with a worker that does nothing.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from itertools import cycle, islice
from pathlib import Path

import numpy as np
import soundfile

from isotone.batch import Target
from isotone.batch.crew import Crew, Event, Finished, Ready
from isotone.batch.inputs import find_audio, find_transcript, read_text
from isotone.batch.runs import run
from isotone.batch.schedule import Schedule
from isotone.batch.work import Done, Inputs, Job, Work


def main() -> None:
    """Run the measurement."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.corpus",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("speech", type=Path, nargs="?", help="recordings with transcripts beside them")
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--model", default="english")
    parser.add_argument("--simulate", type=int, default=0, metavar="FILES")
    arguments = parser.parse_args()
    if arguments.speech is None and not arguments.simulate:
        parser.error("give a folder of SPEECH, or --simulate FILES")
    with tempfile.TemporaryDirectory() as name:
        if arguments.simulate:
            simulate(Path(name), arguments.simulate)
        if arguments.speech is not None:
            seconds = build(arguments.speech, Path(name, "corpus"), arguments.files)
            measure(Path(name), arguments.model, arguments.jobs, seconds, arguments.kills)


def build(speech: Path, corpus: Path, files: int) -> float:
    """Write recordings with their transcripts, ten to a speaker, no two alike; return their seconds."""
    found = [(path, *soundfile.read(path, dtype="int16")) for path in find_audio([speech])]
    texts = {path: read_text(find_transcript(path, None).path, len(s) / rate) for path, s, rate in found}
    seconds = 0.0
    for i, (path, samples, rate) in enumerate(islice(cycle(found), files)):
        target = corpus / f"speaker{i // 10:03}" / f"u{i:05}.wav"
        target.parent.mkdir(parents=True, exist_ok=True)
        # another copy begins with another number of silent samples
        silence = np.zeros((i // len(found), *samples.shape[1:]), np.int16)
        soundfile.write(target, np.concatenate([silence, samples]), rate)
        target.with_suffix(".lab").write_text(texts[path], encoding="utf-8")
        seconds += len(samples) / rate
    return seconds


def measure(folder: Path, model: str, jobs: int, seconds: float, kills: int) -> None:
    """Align a corpus, print the throughput, and compare a run that is killed with it."""
    align(folder, "warm", model, jobs, 0)  # compiled kernels and files are in the caches
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    align(folder, "whole", model, jobs)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    count = len(list((folder / "corpus").rglob("*.wav")))
    print(f"{count} files, {seconds:.0f} s of audio, --jobs {jobs}, {os.cpu_count()} cores")
    print(f"clock {wall:.1f} s: {seconds / wall:.1f} x real time, {60 * count / wall:.0f} files per minute")
    print(f"CPU {cpu:.1f} s of all processes: {seconds / cpu:.1f} x real time on each core", flush=True)
    if not kills:
        return
    rng = random.Random(0)
    for moment in sorted(rng.uniform(0.1, 0.95) for _ in range(kills)):
        align(folder, "broken", model, jobs, round(moment * count), rng.uniform(0, 0.3))
    align(folder, "broken", model, jobs)
    same = tree(folder / "whole") == tree(folder / "broken")
    print(f"{kills} times kill -9: the outputs are {'the same, byte for byte' if same else 'NOT THE SAME'}")
    if not same:
        raise SystemExit(1)


def align(
    folder: Path, out: str, model: str, jobs: int, files: int | None = None, jitter: float = 0.0
) -> None:
    """Run the command, to its end or until ``jitter`` seconds after so many outputs are there, then ``kill -9``."""
    arguments = [
        "align",
        folder / "corpus",
        "--model",
        model,
        "--out",
        folder / out,
        "--jobs",
        jobs,
        "-f",
        "json",
    ]
    log = (folder / "log").open("w")
    command = [sys.executable, "-m", "isotone", *map(str, arguments), "-f", "textgrid"]
    child = subprocess.Popen(command, stdout=log, stderr=log)
    while files is not None and child.poll() is None:
        if sum(1 for _ in (folder / out).rglob("*.TextGrid")) > files:
            time.sleep(jitter)
            child.send_signal(signal.SIGKILL)
            child.wait()
            return
        time.sleep(0.1)
    if child.wait() not in (0, 1):
        raise SystemExit((folder / "log").read_text())


def tree(folder: Path) -> dict[str, bytes]:
    """Read the outputs, by path."""
    paths = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


class Idle(Crew):
    """Workers that are done at once."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._hired = 0

    def hire(self) -> int:
        self._hired += 1
        self._events.append(Ready(self._hired, ""))
        return self._hired

    def give(self, worker: int, job: Job) -> None:
        self._events.append(Finished(worker, Done({})))

    def wait(self, seconds: float | None) -> list[Event]:
        return [self._events.popleft()]


class Nothing(Work):
    """Writes the name of a recording."""

    command, sample_rate, suffixes = "align", 16_000, {"text": ".out"}

    def inputs(self, recording: Path, own: object) -> Inputs:
        return Inputs()

    def key(self, digests: object) -> str:
        return str(digests)

    def run(self, job: Job, *_: object) -> Done:
        return Done({"text": job.path.name.encode()})


def simulate(folder: Path, count: int) -> None:
    """Print the scheduler's cost per file, that of a whole command, and the memory of both."""
    jobs = (Job(f"speaker{i // 100}/u{i}", Path(f"u{i}.wav"), ("textgrid",)) for i in range(count))
    start, memory = time.process_time(), peak_mib()
    done = sum(1 for _ in Schedule(Idle(), 64, "").run(jobs))
    cost = 1e6 * (time.process_time() - start) / count
    print(
        f"scheduler alone, 64 workers: {done} files, {cost:.1f} us of CPU a file, {peak_mib() - memory:.0f} MiB more"
    )
    soundfile.write(folder / "one.wav", np.zeros(160), 16_000)
    sample = (folder / "one.wav").read_bytes()
    for i in range(count):
        path = folder / "in" / f"speaker{i // 100}" / f"u{i}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(sample)
    cpu, start, memory = time.process_time(), time.perf_counter(), peak_mib()
    outcome = run([folder / "in"], Target(folder / "out"), Nothing)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - start
    print(
        f"whole command, with ledger, reading, writing: {outcome.done} files, {1e3 * cpu / count:.2f} ms of CPU and "
        f"{1e3 * wall / count:.2f} ms a file, {peak_mib() - memory:.0f} MiB more"
    )


def peak_mib() -> float:
    """Return the most memory that this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
