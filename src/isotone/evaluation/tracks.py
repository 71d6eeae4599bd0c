"""Tiers as arrays of integers, ready to be compared."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isotone.alignment import Tier

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Relabel = Mapping[str, str] | Callable[[str], str]

#: Times are compared as multiples of 0.1 us: 0.13 - 0.12 s is 10 ms then, not 10.000000000000009 ms, and
#: every sample of 8 and 16 kHz audio is a whole number.
TICKS_PER_S = 10_000_000
TICKS_PER_MS = TICKS_PER_S // 1000

#: Segments no further apart than this share one boundary: formats that write start and duration leave such
#: gaps.
TOUCH_TICKS = TICKS_PER_MS

#: The code of silence, where a boundary has it on one side.
SILENT = -1


def ticks(seconds: float) -> int:
    """Convert seconds to integer ticks of 0.1 us."""
    return round(seconds * TICKS_PER_S)


@dataclass(frozen=True)
class Track:
    """The segments of a tier without its silences.

    Attributes:
        labels: ``(n,)`` codes, 0 and up; equal codes are equal labels.
        starts, ends: ``(n,)`` ticks of 0.1 us, neither ever decreases.
    """

    labels: Ints
    starts: Ints
    ends: Ints

    def __len__(self) -> int:
        return len(self.labels)

    def context(self) -> tuple[Ints, Ints]:
        """Return the codes of the left and right neighbours, ``(n,)`` each; :data:`SILENT` where none touches."""
        left, right = np.full_like(self.labels, SILENT), np.full_like(self.labels, SILENT)
        touching = self.starts[1:] - self.ends[:-1] <= TOUCH_TICKS
        left[1:] = np.where(touching, self.labels[:-1], SILENT)
        right[:-1] = np.where(touching, self.labels[1:], SILENT)
        return left, right

    def boundaries(self) -> Boundaries:
        """List the starts and ends of segments; two that touch share a boundary, at the start of the later."""
        left, right = self.context()
        silent = np.full_like(self.labels, SILENT)
        # start and end of every segment in turn: in order of time already
        times = np.stack([self.starts, self.ends], 1).ravel()
        before = np.stack([left, self.labels], 1).ravel()
        after = np.stack([self.labels, silent], 1).ravel()
        keep = np.stack([np.ones(len(self), bool), right == SILENT], 1).ravel()
        return Boundaries(times[keep], before[keep], after[keep])


@dataclass(frozen=True)
class Boundaries:
    """Points in time with the label on either side.

    Attributes:
        times: ``(k,)`` ticks, never decreasing.
        left, right: ``(k,)`` codes of the segments that end and start there, :data:`SILENT` for silence.
    """

    times: Ints
    left: Ints
    right: Ints

    def __len__(self) -> int:
        return len(self.times)


def encode(
    tier: Tier,
    codes: dict[str, int],
    silence: Collection[str] = (),
    relabel: Relabel | None = None,
) -> Track:
    """Convert a tier to arrays.

    Args:
        tier: Its segments.
        codes: The code of every label met so far; new labels are added to it.
        silence: Labels whose segments are left out, after relabelling.
        relabel: Labels to rename first: a mapping (61 phones to 39, say; what it has not stays as it is), or a
            function of the label (case and punctuation of words).
    """
    rows = []
    for segment in tier:
        label = segment.label
        if relabel is not None:
            label = relabel.get(label, label) if isinstance(relabel, Mapping) else relabel(label)
        if label not in silence:
            rows.append((codes.setdefault(label, len(codes)), ticks(segment.start), ticks(segment.end)))
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return Track(table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy())
