"""Two recordings: the time map between them, and where they do not match."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from isotone.interfaces import Warper
from isotone.registries import warpers
from isotone.types import Warp
from isotone.warping.features import Features, open_features
from isotone.warping.mismatch import mismatches, places_back, stretches
from isotone.warping.sequences import align_sequences
from isotone.warping.time_map import TimeMap

#: The recording that may be a part of the other.
Part = Literal["none", "reference", "other"]

Stretches = tuple[tuple[float, float], ...]

# Seconds of a stretch that does not match, and its least mean mismatch (benchmarks/match measures both).
_STRETCH_S, _UNLIKE = 0.6, 0.8

#: Mean mismatch from which two recordings hardly match at all.
DOUBTFUL = 0.45


@dataclass(frozen=True)
class Match:
    """The result of matching a recording with a reference.

    Attributes:
        map: Times of the reference to times of the other.
        mismatch: Mean mismatch of the frames: 0 for equal recordings, about 1 for noises that have nothing in common.
            Readers of the same sentence have about 0.3, of different ones 0.5. It is 1 where one of them is silence.
        only_reference: Stretches of the reference, in seconds, that match nothing in the other.
        only_other: Stretches of the other that match nothing in the reference.
    """

    map: TimeMap
    mismatch: float
    only_reference: Stretches = ()
    only_other: Stretches = ()

    @property
    def doubtful(self) -> str:
        """The reason to doubt that the recordings have the same content; empty without one."""
        if self.mismatch < DOUBTFUL:
            return ""
        return f"it hardly matches the reference: a mismatch of {self.mismatch:.2f}, where {DOUBTFUL} is doubtful"


@dataclass
class Matcher:
    """A method to match recordings with a reference.

    Attributes:
        features: By what they are compared; see :func:`isotone.warping.open_features`.
        warper: How the times are found: a name, a mapping of name and options, or a warper. Default: ``soft-dtw``, and
            ``opas`` for parts, which with free ends DTW may squeeze into a moment (benchmarks/match).
        part: Which of the two may be a part of the other; the ends of the whole one are then free.
        refine: Weight by which boundaries of labels that are carried over move to where the sound changes, see
            :func:`isotone.warping.refined`. The time map itself stays.

    Raises:
        LookupError: no such warper.
        ValueError: no such part, or a weight that is negative or not finite.
    """

    features: Features = field(default_factory=open_features)
    warper: str | Mapping[str, Any] | Warper | None = None
    part: Part = "none"
    refine: float = 10.0

    def __post_init__(self) -> None:
        if not 0 <= self.refine < math.inf:
            raise ValueError(f"Refine is a weight of 0 or more, such as 10; got {self.refine}.")
        if self.part not in get_args(Part):
            raise ValueError(f"A part is one of {', '.join(get_args(Part))}; got {self.part!r}.")
        if self.warper is None:
            self.warper = "soft-dtw" if self.part == "none" else "opas"
        self._warper = self.warper if isinstance(self.warper, Warper) else warpers.create(self.warper)

    def values(self) -> dict[str, Any]:
        """Plain values of the options."""
        warper = type(self.warper).__name__ if isinstance(self.warper, Warper) else self.warper
        return {"features": self.features.name, "warper": warper, "part": self.part, "refine": self.refine}

    def vectors(self, samples: NDArray[np.float32]) -> tuple[Tensor, float]:
        """Features and seconds of a recording ``(N,)`` at 16 kHz, for :meth:`match`.

        Raises:
            AlignmentError: too little audio.
        """
        return self.features(samples), len(samples) / self.features.sample_rate

    def __call__(self, reference: NDArray[np.float32], other: NDArray[np.float32]) -> Match:
        """Match a recording with a reference, both ``(N,)`` mono at 16 kHz.

        Raises:
            AlignmentError: too little audio, or no path.
        """
        return self.match(self.vectors(reference), self.vectors(other))

    def match(self, reference: tuple[Tensor, float], other: tuple[Tensor, float]) -> Match:
        """Match recordings by what :meth:`vectors` gave."""
        within = self.part == "other"
        (x, x_s), (y, y_s) = (other, reference) if within else (reference, other)
        warp = align_sequences(x, y, self._warper, part=self.part != "none")
        found = self._map(warp, x_s, y_s)
        of_x = mismatches(x, warp.places, y)
        # silence is like any other silence, and says nothing of what the recordings hold
        mismatch = 1.0 if any(bool((z == z[0]).all()) for z in (x, y)) else float(np.mean(of_x))
        only_x = self._only(of_x, warp.places)
        first, back = places_back(warp.places, len(y))
        only_y = self._only(mismatches(y[first : first + len(back)], back, x), back, first)
        if within:
            return Match(found.inverse(), mismatch, only_y, only_x)
        return Match(found, mismatch, only_x, only_y)

    def _map(self, warp: Warp, x_s: float, y_s: float) -> TimeMap:
        """The time map of a warp between the middles of frames, continued to the ends."""
        grid = self.features.grid
        middle = grid.offset_s + grid.hop_s / 2
        source = middle + np.arange(len(warp.places)) * grid.hop_s
        target = middle + warp.places.numpy() * grid.hop_s
        if self.part == "none":
            ends = 0.0, y_s
        else:
            ends = max(0.0, target[0] - source[0]), min(y_s, target[-1] + x_s - source[-1])
        return TimeMap(np.array([0.0, *source, x_s]), np.array([ends[0], *target, ends[1]]))

    def _only(self, mismatch: NDArray[np.float64], places: Tensor, first: int = 0) -> Stretches:
        """Stretches without a counterpart, in seconds."""
        hop = self.features.grid.hop_s
        found = stretches(mismatch, places, round(_STRETCH_S / hop), _UNLIKE)
        return tuple(((first + start) * hop, (first + stop) * hop) for start, stop in found)
