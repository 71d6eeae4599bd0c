"""An hour of speech against the same hour at changing speed, in noise: time, memory and errors."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import numpy as np

from benchmarks.match.changed import changed
from isotone import audio as sound
from isotone.batch.inputs import find_audio
from isotone.warping import Matcher


def measure(folder: Path, hours: float, warper: str, seed: int = 0) -> tuple[list[float], float, float]:
    """Match an hour that is joined from a folder's recordings with its changed copy.

    Returns:
        Errors in seconds of one time per second, seconds of the matching, and the peak memory of the process in MiB.
    """
    parts, count = [], 0
    for path in find_audio([folder]):
        parts.append(sound.load(path, 16_000))
        count += len(parts[-1])
        if count >= hours * 3600 * 16_000:
            break
    else:
        raise ValueError(f"{folder} has {count / 16_000 / 3600:.2f} hours of audio; {hours} are needed.")
    samples = np.concatenate(parts)[: round(hours * 3600 * 16_000)]
    del parts
    played, truth = changed(samples, np.random.default_rng(seed), part_s=20.0)
    begin = time.perf_counter()
    found = Matcher(warper=warper)(played, samples)
    took = time.perf_counter() - begin
    times = np.arange(1.0, len(played) / 16_000 - 1, 1.0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (found.map(times) - truth(times)).tolist(), took, peak
