"""An hour of speech against the same hour at changing speed, in noise: time, memory and errors of ``isotone match``."""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
import soundfile

from benchmarks.match.changed import changed
from isotone import audio as sound
from isotone.batch.inputs import find_audio
from isotone.warping import TimeMap

_RATE = 16_000


def prepare(folder: Path, hours: float, target: Path, seed: int = 0) -> TimeMap:
    """Write ``original.wav``, joined from a folder's recordings, and ``changed.wav``; return the true time map."""
    parts, count = [], 0
    for path in find_audio([folder]):
        parts.append(sound.load(path, _RATE))
        count += len(parts[-1])
        if count >= hours * 3600 * _RATE:
            break
    else:
        raise ValueError(f"{folder} has {count / _RATE / 3600:.2f} hours of audio; {hours} are needed.")
    samples = np.concatenate(parts)[: round(hours * 3600 * _RATE)]
    played, truth = changed(samples, np.random.default_rng(seed), part_s=20.0)
    soundfile.write(target / "original.wav", samples, _RATE)
    soundfile.write(target / "changed.wav", played, _RATE)
    return truth


def measure(folder: Path, truth: TimeMap, warper: str) -> tuple[list[float], float, float]:
    """Match both files in a process of its own.

    Returns:
        Errors in seconds of one time per second, seconds that it took, and its peak memory in MiB.
    """
    with tempfile.TemporaryDirectory() as out:
        command = ["-m", "isotone", "match", folder / "changed.wav", folder / "original.wav", "-o", out]
        begin = time.perf_counter()
        process = psutil.Popen(
            [sys.executable, *map(str, command), "--warper", warper], stdout=subprocess.DEVNULL
        )
        peak = 0
        while process.poll() is None:
            try:
                peak = max(peak, process.memory_info().rss)
            except psutil.Error:
                break
            time.sleep(0.05)
        took = time.perf_counter() - begin
        if process.wait():
            raise RuntimeError(f"isotone match ended with the code {process.returncode}.")
        with Path(out, "original.map.csv").open() as file:
            next(rows := csv.reader(file))
            knots = np.array([[float(v) for v in row] for row in rows])
    found = TimeMap(knots[:, 0], knots[:, 1])
    times = np.arange(1.0, truth.source[-1] - 1, 1.0)
    return (found(times) - truth(times)).tolist(), took, peak / 2**20
