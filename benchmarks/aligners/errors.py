"""Errors of boundaries against hand labels, with intervals by resampling of recordings."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotone.alignment import Segment
from isotone.text.phones import fold_segments

#: Collars of the tables, in milliseconds.
COLLARS_MS = (10, 20, 25, 50, 100, 250)
_RESAMPLINGS = 1000

#: Errors of the start and the end of segments of one recording in milliseconds, by their place in the reference.
Errors = Mapping[int, tuple[float, float]]


#: Segments of one recording as an aligner and as the reference have them, by their place in the reference.
Pairs = Mapping[int, tuple[Segment, Segment]]


def word_pairs(found: Sequence[Segment], reference: Sequence[Segment]) -> Pairs:
    """Pair all words; ValueError where they are not the same number."""
    return dict(enumerate(zip(found, reference, strict=True)))


def phone_pairs(found: Sequence[Segment], reference: Sequence[Segment]) -> Pairs:
    """Pair the phones that both sequences have.

    Both are folded to the 39 phones, stops with their closures, without silence.
    """
    ours, theirs = (fold_segments(s, 39, closures="merge", silence="drop") for s in (found, reference))
    matcher = difflib.SequenceMatcher(
        None, [s.label for s in ours], [s.label for s in theirs], autojunk=False
    )
    return {
        b + k: (ours[a + k], theirs[b + k])
        for a, b, size in matcher.get_matching_blocks()
        for k in range(size)
    }


def word_errors(found: Sequence[Segment], reference: Sequence[Segment]) -> Errors:
    """Return the errors of every word; ValueError where the words are not the same number."""
    return {i: _ends(*pair) for i, pair in word_pairs(found, reference).items()}


def phone_errors(found: Sequence[Segment], reference: Sequence[Segment]) -> Errors:
    """Return the errors of the phones that both sequences have, see :func:`phone_pairs`."""
    return {i: _ends(*pair) for i, pair in phone_pairs(found, reference).items()}


def in_common(errors: Mapping[str, Mapping[int, Errors]]) -> dict[str, dict[int, Errors]]:
    """Keep the segments that every aligner has: one that leaves out what is difficult would look better.

    Args:
        errors: Of every aligner, by recording.
    """
    recordings = set.intersection(*(set(own) for own in errors.values()))
    kept = {r: set.intersection(*(set(own[r]) for own in errors.values())) for r in sorted(recordings)}
    return {
        name: {r: {i: own[r][i] for i in sorted(segments)} for r, segments in kept.items()}
        for name, own in errors.items()
    }


def framed(segments: Sequence[Segment], frame_ms: float) -> list[Segment]:
    """Move every boundary to the start of the frame that it lies in, as an aligner of such frames would say it.

    Labels of a frame-based aligner are multiples of its frames: a phone that begins at 104 ms begins at 100 there.
    """
    return [replace(s, start=_frame(s.start, frame_ms), end=_frame(s.end, frame_ms)) for s in segments]


def _frame(time: float, frame_ms: float) -> float:
    # 0.29 s are 28.999999999999996 frames of 10 ms
    return math.floor(1000 * time / frame_ms + 1e-6) * frame_ms / 1000


def _ends(found: Segment, reference: Segment) -> tuple[float, float]:
    """Return the errors of start and end in milliseconds.

    Their last digits are noise: labels are multiples of milliseconds, and 20.000000000000018 is within 20.
    """
    return round(1000 * (found.start - reference.start), 6), round(1000 * (found.end - reference.end), 6)


class Figures(NamedTuple):
    """Figures of the errors of both ends of segments.

    Attributes:
        mean: Milliseconds.
        interval: Its 95 % interval over recordings; None of one recording.
        median: Milliseconds.
        within: Percent within each of :data:`COLLARS_MS`.
    """

    mean: float
    interval: tuple[float, float] | None
    median: float
    within: list[float]

    @property
    def mean_shown(self) -> str:
        """The mean with its interval, as tables have it."""
        return f"{self.mean:.1f}" + (" ({:.1f} to {:.1f})".format(*self.interval) if self.interval else "")


def figures(errors: Mapping[int, Errors]) -> Figures | None:
    """Compute the figures of an aligner from the errors of every recording; None without errors."""
    sizes = [np.abs(own) for own in _by_recording(errors)]
    if not sizes:
        return None
    every = np.concatenate(sizes)
    within = [100 * float(np.mean(every <= collar)) for collar in COLLARS_MS]
    interval = _interval(sizes) if len(sizes) > 1 else None
    return Figures(float(every.mean()), interval, float(np.median(every)), within)


def row(name: str, found: Figures | None, missed: int) -> str:
    """Format a row of the table."""
    if found is None:
        return f"| {name} | - | - | {' | '.join('-' for _ in COLLARS_MS)} | {missed} |"
    within = " | ".join(f"{percent:.1f}" for percent in found.within)
    return f"| {name} | {found.mean_shown} | {found.median:.1f} | {within} | {missed} |"


def header(title: str) -> str:
    """Return the head of the table."""
    first, *others = COLLARS_MS
    collars = " | ".join([f"within {first} ms, %", *(f"{collar} ms" for collar in others)])
    rule = "|".join("---" for _ in range(len(COLLARS_MS) + 4))
    return (
        f"\n**{title}**\n\n| aligner | mean error ms (95 %) | median ms | {collars} | not aligned |\n|{rule}|"
    )


def _by_recording(errors: Mapping[int, Errors]) -> list[NDArray[np.float64]]:
    """Return the errors of both ends of each recording that has any, in one array per recording."""
    return [np.array(list(own.values())).ravel() for own in errors.values() if own]


def _interval(errors: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
    """Return the bootstrap interval of the mean error; whole recordings are drawn."""
    rng = np.random.default_rng(0)
    sums, counts = np.array([e.sum() for e in errors]), np.array([len(e) for e in errors])
    draws = rng.integers(len(errors), size=(_RESAMPLINGS, len(errors)))
    means = sums[draws].sum(1) / counts[draws].sum(1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)
