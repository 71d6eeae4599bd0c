"""Ways to match two recordings: isotone's features and warpers, and librosa's DTW of MFCC."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray

from isotone.warping import Features, Matcher, TimeMap, open_features

#: Two recordings at 16 kHz to the time map of the first to the second.
System = Callable[[NDArray[np.float32], NDArray[np.float32]], TimeMap]

WARPERS = "dtw", "soft-dtw", "opas"


def systems(
    model: str | None, layers: Sequence[int] = (), *, part: bool = False
) -> Iterator[tuple[str, System]]:
    """All systems by name; librosa's where it is installed.

    With a model also its phones, each of its layers, and phones beside log-mel.

    Args:
        model: Model folder.
        layers: Layers of its encoder.
        part: The first recording is a part of the second.
    """
    names = ["log-mel"]
    if model is not None:
        names += ["log-mel+phones", "phones", *(f"layer:{layer}" for layer in layers)]
    for name in names:
        features = open_features(name, model)
        for warper in WARPERS:
            matcher = Matcher(features, warper, "reference" if part else "none")
            yield f"{name}, {warper}", _system(matcher)
    for hop in (512, 160) if importlib.util.find_spec("librosa") else ():
        yield f"librosa MFCC, its DTW, hop {hop}", _librosa(hop, part)


def _system(matcher: Matcher) -> System:
    @cache
    def vectors(samples: bytes) -> torch.Tensor:
        return matcher.features(np.frombuffer(samples, np.float32).copy())

    def match(x: NDArray[np.float32], y: NDArray[np.float32]) -> TimeMap:
        pair = [(vectors(z.tobytes()), len(z) / Features.sample_rate) for z in (x, y)]
        return matcher.match(*pair).map

    return match


def _librosa(hop: int, part: bool) -> System:
    import librosa

    @cache
    def mfcc(samples: bytes) -> NDArray[np.float32]:
        audio = np.frombuffer(samples, np.float32)
        return librosa.feature.mfcc(y=audio, sr=16_000, hop_length=hop, n_fft=2048 if hop == 512 else 400)

    def match(x: NDArray[np.float32], y: NDArray[np.float32]) -> TimeMap:
        _, path = librosa.sequence.dtw(mfcc(x.tobytes()), mfcc(y.tobytes()), subseq=part)
        rows, columns = path[::-1].T
        source, of = np.unique(rows, return_inverse=True)
        target = np.bincount(of, columns) / np.bincount(of)
        # librosa's frames are centred on their first sample
        return TimeMap(source * hop / 16_000, target * hop / 16_000)

    return match
