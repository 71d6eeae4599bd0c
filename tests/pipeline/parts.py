"""Stand-ins for the parts of a pipeline: emissions that a test made, and an aligner that is watched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from isotone.interfaces import Aligner
from isotone.pipeline import Pipeline
from isotone.pipeline.emitter import Emitter
from isotone.pipeline.windows import Windows
from isotone.types import Coupling, Emissions, Targets


@dataclass(frozen=True)
class GivenEmissions(Emitter):
    """Gives the same emissions whatever the audio, and in the second pass others, if there are any."""

    first: dict[str, Emissions] = field(default_factory=dict)
    second: dict[str, Emissions] = field(default_factory=dict)
    seen: list[Windows] = field(default_factory=list)

    def __call__(
        self,
        ids: Sequence[str],
        audio: Sequence[np.ndarray],
        heads: set[str],
        on_window: Callable[[float], None] = lambda share: None,
    ) -> dict[str, Emissions]:
        return self.first

    def in_windows(self, audio: np.ndarray, heads: set[str], windows: Windows) -> dict[str, Emissions]:
        self.seen.append(windows)
        return self.second or super().in_windows(audio, heads, windows)


def give(pipeline: Pipeline, emissions: Emissions, second: Emissions | None = None) -> list[Windows]:
    """Let a pipeline find these emissions in any audio; returns the windows of its second passes."""
    emitter = pipeline.emitter
    first, again = {"ctc": emissions}, {} if second is None else {"ctc": second}
    pipeline.emitter = GivenEmissions(emitter.model, emitter.windows, first, again)
    return pipeline.emitter.seen


class Spy(Aligner):
    """An aligner that keeps the targets that it is given."""

    def __init__(self, inner: Aligner) -> None:
        self.inner = inner
        self.skips_optional = inner.skips_optional
        self.seen: list[Targets] = []

    def __call__(self, emissions: Emissions, targets: Targets) -> Coupling:
        self.seen.append(targets)
        return self.inner(emissions, targets)


def watch(pipeline: Pipeline) -> Spy:
    """Put a spy in the place of a pipeline's aligner."""
    spy = Spy(pipeline.aligner)
    pipeline.placer = replace(pipeline.placer, aligner=spy)
    placer = pipeline.placer if pipeline.recogniser.placer else None
    pipeline.recogniser = replace(pipeline.recogniser, placer=placer)
    return spy
