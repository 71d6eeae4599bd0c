"""Streams of synthetic speech for tests."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.pipeline.live.stream import Spoken, Stream, Timing
from isotone.text.espeak import SAMPLE_RATE, Engine

RATE = 16_000
FIRST, SECOND = "The old man walked slowly down to the river.", "Nobody heard the small bell ring at dawn."
THIRD = "She put seven green bottles on the kitchen table."

Samples = NDArray[np.float32]


@cache
def pipeline() -> Pipeline:
    return Pipeline(Model.load("english"))


@cache
def say(text: str) -> Samples:
    pytest.importorskip("espeakng_loader", reason="espeak-ng is an extra")
    import soxr

    spoken = Engine().say(text).samples.astype(np.float32) / 32768
    hiss = np.random.default_rng(0).normal(0, 1e-4, len(spoken)).astype(np.float32)
    return soxr.resample(spoken + hiss, SAMPLE_RATE, RATE)


def stream(text: str, timing: Timing = Timing()) -> Stream:  # noqa: B008
    return Stream(pipeline(), pipeline().encode(text), timing)


def fed(made: Stream, samples: Samples, size: int = 800) -> list[tuple[Spoken, float]]:
    """What a stream gives, with the seconds that were fed."""
    found = []
    for start in range(0, len(samples), size):
        end = min(start + size, len(samples))
        found += [(word, end / RATE) for word in made.feed(samples[start:end])]
    return found + [(word, len(samples) / RATE) for word in made.finish()]


def last(given: list[tuple[Spoken, float]]) -> dict[int, Spoken]:
    return {word.number: word for word, _ in given}
