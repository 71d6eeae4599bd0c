"""Time maps: the times of one recording in another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.alignment import Alignment, tier_from_spans


@dataclass(frozen=True)
class TimeMap:
    """The time in another recording of every time of a recording: linear between knots.

    Attributes:
        source: ``(K,)`` float64 seconds, never decreasing.
        target: ``(K,)`` float64 seconds, never decreasing.

    Raises:
        ValueError: times that decrease or are not finite, or fewer than two knots.
    """

    source: NDArray[np.float64]
    target: NDArray[np.float64]

    def __post_init__(self) -> None:
        for name in ("source", "target"):
            times = np.asarray(getattr(self, name), np.float64)
            object.__setattr__(self, name, times)
            if times.ndim != 1 or len(times) < 2 or len(times) != len(self.source):
                raise ValueError(
                    f"A time map expects two rows of times of one length, 2 or more; got {times.shape}."
                )
            if not np.isfinite(times).all() or (np.diff(times) < 0).any():
                raise ValueError(f"A time map expects {name} times that are finite and never decrease.")

    def __call__(self, seconds: ArrayLike) -> NDArray[np.float64]:
        """Times in the other recording; before the first and after the last knot those of the knots.

        Where several times of the other recording belong to one, it is the last of them.
        """
        return np.interp(np.asarray(seconds, np.float64), self.source, self.target)

    def inverse(self) -> TimeMap:
        """The map from the other recording to this one."""
        return TimeMap(self.target, self.source)

    def knots(self) -> Iterator[tuple[float, float]]:
        """Pairs of times, in order."""
        return zip(self.source.tolist(), self.target.tolist())

    def covers(self, seconds: float) -> bool:
        """Tell if a time lies between the first and the last knot."""
        return bool(self.source[0] <= seconds <= self.source[-1])

    def carry(self, alignment: Alignment, id: str, duration: float) -> Alignment:
        """Carry the tiers of this recording over to the other.

        Segments that lie wholly outside the map, in a part that the other recording does not have, are left out.

        Args:
            alignment: Tiers of this recording.
            id: Id of the other recording.
            duration: Seconds of the other recording.
        """
        tiers = []
        first, last = self.source[0], self.source[-1]
        for tier in alignment.tiers:
            inside = [s for s in tier if s.end > first and s.start < last]
            spans = [(s.label, *self([s.start, s.end]).tolist(), None) for s in inside]
            tiers.append(tier_from_spans(tier.name, spans, duration))
        return Alignment(id, duration, tuple(tiers))
